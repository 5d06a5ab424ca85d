#include "types/algo/geohash.h"

#include <algorithm>
#include <cmath>

namespace sava::types {

namespace {

constexpr int kMostSteps = 26;
constexpr double kEarthRadius = 6372797.560856;
// Half the circumference, by which the size of cells is estimated.
constexpr double kHalfWorld = 20037726.37;
constexpr double kDegree = M_PI / 180.0;

double Radians(double degrees) { return degrees * kDegree; }
double Degrees(double radians) { return radians / kDegree; }

// The bits of x in the even places of the result.
uint64_t Spread(uint32_t x) {
  uint64_t bits = x;
  bits = (bits | (bits << 16)) & 0x0000ffff0000ffffULL;
  bits = (bits | (bits << 8)) & 0x00ff00ff00ff00ffULL;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f0f0f0f0fULL;
  bits = (bits | (bits << 2)) & 0x3333333333333333ULL;
  return (bits | (bits << 1)) & 0x5555555555555555ULL;
}

uint32_t Gather(uint64_t bits) {
  bits &= 0x5555555555555555ULL;
  bits = (bits | (bits >> 1)) & 0x3333333333333333ULL;
  bits = (bits | (bits >> 2)) & 0x0f0f0f0f0f0f0f0fULL;
  bits = (bits | (bits >> 4)) & 0x00ff00ff00ff00ffULL;
  bits = (bits | (bits >> 8)) & 0x0000ffff0000ffffULL;
  return static_cast<uint32_t>(bits | (bits >> 16));
}

// A cell of the grid with 2^step columns and rows.
struct Cell {
  uint32_t column = 0;
  uint32_t row = 0;
  int step = kMostSteps;

  uint64_t bits() const { return Spread(row) | (Spread(column) << 1); }
  // Wraps around at the edges of the map.
  Cell Neighbour(int columns, int rows) const {
    const uint32_t mask = (uint32_t{1} << step) - 1;
    Cell cell = *this;
    if (columns != 0) cell.column = (column + static_cast<uint32_t>(columns)) & mask;
    if (rows != 0) cell.row = (row + static_cast<uint32_t>(rows)) & mask;
    return cell;
  }
};

struct Area {
  double west = 0;
  double east = 0;
  double south = 0;
  double north = 0;
};

Cell CellOf(const GeoPoint& point, int step, double max_latitude = kMaxLatitude) {
  const auto cells = static_cast<double>(uint64_t{1} << step);
  const double x = (point.longitude + kMaxLongitude) / (kMaxLongitude * 2);
  const double y = (point.latitude + max_latitude) / (max_latitude * 2);
  return {static_cast<uint32_t>(x * cells), static_cast<uint32_t>(y * cells), step};
}

Area AreaOf(const Cell& cell) {
  const auto cells = static_cast<double>(uint64_t{1} << cell.step);
  const double width = kMaxLongitude - -kMaxLongitude;
  const double height = kMaxLatitude - -kMaxLatitude;
  Area area;
  area.south = -kMaxLatitude + (cell.row * 1.0 / cells) * height;
  area.north = -kMaxLatitude + ((cell.row + 1) * 1.0 / cells) * height;
  area.west = -kMaxLongitude + (cell.column * 1.0 / cells) * width;
  area.east = -kMaxLongitude + ((cell.column + 1) * 1.0 / cells) * width;
  return area;
}

// How fine a grid may be so that nine cells cover the radius; wider near the poles.
int StepsFor(double metres, double latitude) {
  if (metres == 0) return kMostSteps;
  int step = 1;
  while (metres < kHalfWorld) {
    metres *= 2;
    ++step;
  }
  step -= 2;
  if (std::abs(latitude) > 66) --step;
  if (std::abs(latitude) > 80) --step;
  return std::clamp(step, 1, kMostSteps);
}

// The smallest box in degrees around the shape.
Area BoxAround(const GeoShape& shape) {
  const double height = shape.metres * (shape.box ? shape.height / 2 : shape.radius);
  const double width = shape.metres * (shape.box ? shape.width / 2 : shape.radius);
  const double latitude = shape.centre.latitude;
  const double dlat = Degrees(height / kEarthRadius);
  const double dlon_top = Degrees(width / kEarthRadius / cos(Radians(latitude + dlat)));
  const double dlon_bottom = Degrees(width / kEarthRadius / cos(Radians(latitude - dlat)));
  const double dlon = latitude < 0 ? dlon_bottom : dlon_top;
  return {shape.centre.longitude - dlon, shape.centre.longitude + dlon, latitude - dlat,
          latitude + dlat};
}

double LatitudeDistance(double a, double b) {
  return kEarthRadius * std::abs(Radians(a) - Radians(b));
}

}  // namespace

uint64_t GeoEncode(const GeoPoint& point) { return CellOf(point, kMostSteps).bits(); }

GeoPoint GeoDecode(uint64_t hash) {
  const Area area = AreaOf({Gather(hash >> 1), Gather(hash), kMostSteps});
  GeoPoint point;
  point.longitude = std::clamp((area.west + area.east) / 2, -kMaxLongitude, kMaxLongitude);
  point.latitude = std::clamp((area.south + area.north) / 2, -kMaxLatitude, kMaxLatitude);
  return point;
}

std::string GeoText(const GeoPoint& point) {
  static constexpr char kAlphabet[] = "0123456789bcdefghjkmnpqrstuvwxyz";
  const uint64_t bits = CellOf(point, kMostSteps, 90).bits();
  std::string text;
  for (int shift = 47; shift >= 2; shift -= 5) text += kAlphabet[(bits >> shift) & 31];
  return text + kAlphabet[0];
}

double GeoDistance(const GeoPoint& a, const GeoPoint& b) {
  const double v = sin((Radians(b.longitude) - Radians(a.longitude)) / 2);
  if (v == 0) return LatitudeDistance(b.latitude, a.latitude);
  const double lat1 = Radians(a.latitude);
  const double lat2 = Radians(b.latitude);
  const double u = sin((lat2 - lat1) / 2);
  return 2.0 * kEarthRadius * asin(sqrt(u * u + cos(lat1) * cos(lat2) * v * v));
}

std::optional<double> GeoShape::DistanceInside(const GeoPoint& point) const {
  if (box) {
    if (LatitudeDistance(point.latitude, centre.latitude) > height * metres / 2) {
      return std::nullopt;
    }
    const GeoPoint beside{centre.longitude, point.latitude};
    if (GeoDistance(point, beside) > width * metres / 2) return std::nullopt;
    return GeoDistance(centre, point);
  }
  const double distance = GeoDistance(centre, point);
  if (distance > radius * metres) return std::nullopt;
  return distance;
}

std::vector<GeoRange> GeoCover(const GeoShape& shape) {
  const Area box = BoxAround(shape);
  const double reach =
      shape.box
          ? sqrt((shape.width / 2) * (shape.width / 2) + (shape.height / 2) * (shape.height / 2))
          : shape.radius;
  int steps = StepsFor(reach * shape.metres, shape.centre.latitude);
  Cell middle = CellOf(shape.centre, steps);
  // Near an edge of its cell the shape may reach beyond the neighbours.
  const bool too_fine = AreaOf(middle.Neighbour(0, 1)).north < box.north ||
                        AreaOf(middle.Neighbour(0, -1)).south > box.south ||
                        AreaOf(middle.Neighbour(1, 0)).east < box.east ||
                        AreaOf(middle.Neighbour(-1, 0)).west > box.west;
  if (steps > 1 && too_fine) middle = CellOf(shape.centre, --steps);
  // Neighbours that the shape does not reach need no search.
  const Area area = AreaOf(middle);
  const bool skip = steps >= 2;
  const bool no_south = skip && area.south < box.south;
  const bool no_north = skip && area.north > box.north;
  const bool no_west = skip && area.west < box.west;
  const bool no_east = skip && area.east > box.east;

  constexpr std::array<std::array<int, 2>, 9> kAround = {
      {{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}};
  std::vector<GeoRange> ranges;
  const int shift = (kMostSteps - steps) * 2;
  for (size_t i = 0; i < kAround.size(); ++i) {
    const auto [columns, rows] = kAround[i];
    if ((columns > 0 && no_east) || (columns < 0 && no_west) || (rows > 0 && no_north) ||
        (rows < 0 && no_south)) {
      continue;
    }
    const uint64_t bits = middle.Neighbour(columns, rows).bits();
    const GeoRange range{bits << shift, (bits + 1) << shift};
    // On a coarse grid neighbours may be the same cell. The first two are compared by Redis only
    // from the second on, and so are ours: replies show it.
    if (ranges.size() > 1 && ranges.back().from == range.from) continue;
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace sava::types
