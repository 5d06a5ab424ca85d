// What the geo commands share: geo.cc and geo_search.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "commands/redis/sorted_sets.h"
#include "types/algo/geohash.h"

namespace sava::commands {

// Longitude and latitude at arguments i and i + 1; replies the error and returns false when they
// are none or out of range.
bool GeoPointArg(Context& context, size_t i, types::GeoPoint* point);
// How many metres the unit at argument i has; replies the error and returns false when it is none.
bool GeoUnitArg(Context& context, size_t i, double* metres);

// The hash in a score; scores that no GEOADD made give some hash.
inline uint64_t GeoHashOf(double score) {
  return score >= 0 && score < 0x1p63 ? static_cast<uint64_t>(score) : 0;
}
std::optional<types::GeoPoint> GeoPointOf(const types::SortedSet& set, std::string_view member);

// With four decimals.
void ReplyGeoDistance(protocol::Reply& reply, double distance);
void ReplyGeoPoint(protocol::Reply& reply, const types::GeoPoint& point);

}  // namespace sava::commands
