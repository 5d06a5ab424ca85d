// Geohashes as Redis keeps them in sorted sets: longitude and latitude as 26-bit fractions of their
// ranges, interleaved to 52 bits (latitude in the even places), which a double holds exactly.
// Points that are near each other mostly have near hashes, so an area is a few ranges of scores.
//
// Distances are great circles on a sphere. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sava::types {

inline constexpr double kMaxLongitude = 180;
// Where the square of the web Mercator map ends.
inline constexpr double kMaxLatitude = 85.05112878;

struct GeoPoint {
  double longitude = 0;
  double latitude = 0;

  bool InRange() const {
    return longitude >= -kMaxLongitude && longitude <= kMaxLongitude && latitude >= -kMaxLatitude &&
           latitude <= kMaxLatitude;
  }
};

// REQUIRES: the point is in range.
uint64_t GeoEncode(const GeoPoint& point);
// The middle of the cell.
GeoPoint GeoDecode(uint64_t hash);
// The 11 characters that geohash.org uses, the last of them always 0.
std::string GeoText(const GeoPoint& point);
// In metres.
double GeoDistance(const GeoPoint& a, const GeoPoint& b);

// A circle, or a box of which the sides are parallel to meridians and circles of latitude.
struct GeoShape {
  bool box = false;
  GeoPoint centre;
  double radius = 0;  // lengths are in units of `metres`
  double width = 0;
  double height = 0;
  double metres = 1;

  // The distance in metres from the centre if the point is inside.
  std::optional<double> DistanceInside(const GeoPoint& point) const;
};

// Hashes [from, to).
struct GeoRange {
  uint64_t from = 0;
  uint64_t to = 0;
};
// The cells that together cover the shape, in the order of the search: up to
// nine, the middle one first.
std::vector<GeoRange> GeoCover(const GeoShape& shape);

}  // namespace sava::types
