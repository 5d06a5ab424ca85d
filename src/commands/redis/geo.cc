// Geo: points in sorted sets, their scores being geohashes (types/algo/geohash.h): GEOADD GEOPOS
// GEODIST GEOHASH. The searches are in geo_search.cc.
#include "commands/redis/geo.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

using types::GeoPoint;
using types::SortedSet;

bool GeoPointArg(Context& context, size_t i, GeoPoint* point) {
  if (!ScoreArg(context, i, &point->longitude) || !ScoreArg(context, i + 1, &point->latitude)) {
    return false;
  }
  if (point->InRange()) return true;
  context.Error(fmt::format("ERR invalid longitude,latitude pair {:f},{:f}", point->longitude,
                            point->latitude));
  return false;
}

bool GeoUnitArg(Context& context, size_t i, double* metres) {
  if (context.ArgIs(i, "m")) {
    *metres = 1;
  } else if (context.ArgIs(i, "km")) {
    *metres = 1000;
  } else if (context.ArgIs(i, "ft")) {
    *metres = 0.3048;
  } else if (context.ArgIs(i, "mi")) {
    *metres = 1609.34;
  } else {
    context.Error("ERR unsupported unit provided. please use M, KM, FT, MI");
    return false;
  }
  return true;
}

std::optional<GeoPoint> GeoPointOf(const SortedSet& set, std::string_view member) {
  const std::optional<double> score = set.Score(member);
  if (!score) return std::nullopt;
  return types::GeoDecode(GeoHashOf(*score));
}

void ReplyGeoDistance(protocol::Reply& reply, double distance) {
  reply.Bulk(fmt::format("{:.4f}", distance));
}

void ReplyGeoPoint(protocol::Reply& reply, const GeoPoint& point) {
  reply.Array(2);
  for (const double degrees : {point.longitude, point.latitude}) {
    const std::string text = base::LongDoubleText(degrees);
    if (reply.resp() == 3) {
      reply.Raw("," + text + "\r\n");
    } else {
      reply.Bulk(text);
    }
  }
}

namespace {

void Geoadd(Context& context) {
  ZaddOptions options;
  size_t from = 2;
  for (; from < context.argc(); ++from) {
    if (context.ArgIs(from, "NX")) {
      options.add.only_new = true;
    } else if (context.ArgIs(from, "XX")) {
      options.add.only_existing = true;
    } else if (context.ArgIs(from, "CH")) {
      options.reply_changed = true;
    } else {
      break;
    }
  }
  const size_t words = context.argc() - from;
  if (words % 3 != 0 || (options.add.only_new && options.add.only_existing)) {
    return context.Error(errors::kSyntax);
  }
  std::vector<ScoredMember> members(words / 3);
  for (size_t i = 0; i < members.size(); ++i) {
    GeoPoint point;
    if (!GeoPointArg(context, from + i * 3, &point)) return;
    members[i].score = static_cast<double>(types::GeoEncode(point));
    members[i].member = context.arg(from + i * 3 + 2);
  }
  if (members.empty()) return context.Error(errors::kSyntax);
  AddToSortedSet(context, context.arg(1), options, members);
}

void Geopos(Context& context) {
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  protocol::Reply& reply = context.reply();
  reply.Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) {
    const std::optional<GeoPoint> point =
        set == nullptr ? std::nullopt : GeoPointOf(*set, context.arg(i));
    point ? ReplyGeoPoint(reply, *point) : reply.NullArray();
  }
}

void Geohash(Context& context) {
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  protocol::Reply& reply = context.reply();
  reply.Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) {
    const std::optional<GeoPoint> point =
        set == nullptr ? std::nullopt : GeoPointOf(*set, context.arg(i));
    point ? reply.Bulk(types::GeoText(*point)) : reply.Null();
  }
}

void Geodist(Context& context) {
  double metres = 1;
  if (context.argc() > 5) return context.Error(errors::kSyntax);
  if (context.argc() == 5 && !GeoUnitArg(context, 4, &metres)) return;
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  if (set == nullptr) return context.reply().Null();
  const std::optional<GeoPoint> from = GeoPointOf(*set, context.arg(2));
  const std::optional<GeoPoint> to = GeoPointOf(*set, context.arg(3));
  if (!from || !to) return context.reply().Null();
  ReplyGeoDistance(context.reply(), types::GeoDistance(*from, *to) / metres);
}

constexpr KeySpec kGeoReadKey = KeyAt(1, kKeyRo | kKeyAccess);

const CommandSpec kGeoRows[] = {
    {.name = "geoadd",
     .handler = Geoadd,
     .arity = -5,
     .flags = kWrite | kDenyOom,
     .acl = kAclGeo,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "geo",
     .since = "3.2.0",
     .summary = "Adds points, or moves them.",
     .complexity = "O(log(N)) for each point, where N is the number of points at the key",
     .arguments = "key [condition: NX | XX] [CH] (longitude:double latitude:double member:string) "
                  "[(longitude:double latitude:double member:string) ...]",
     .reply = "how many points are new, with CH also how many moved",
     .example = "GEOADD cities 20.4612 44.8125 belgrade 15.9819 45.8150 zagreb"},
    {.name = "geopos",
     .handler = Geopos,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclGeo,
     .keys = {kGeoReadKey},
     .group = "geo",
     .since = "3.2.0",
     .summary = "Gets longitude and latitude of points.",
     .complexity = "O(N) where N is the number of points asked for",
     .arguments = "key [member:string [member:string ...]]",
     .reply = "array of pairs and nulls",
     .example = "GEOPOS cities belgrade"},
    {.name = "geohash",
     .handler = Geohash,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclGeo,
     .keys = {kGeoReadKey},
     .group = "geo",
     .since = "3.2.0",
     .summary = "Gets points as geohash texts.",
     .complexity = "O(log(N)) for each point asked for, where N is the number of points at the key",
     .arguments = "key [member:string [member:string ...]]",
     .reply = "array of texts of 11 characters and nulls",
     .example = "GEOHASH cities belgrade"},
    {.name = "geodist",
     .handler = Geodist,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclGeo,
     .keys = {kGeoReadKey},
     .group = "geo",
     .since = "3.2.0",
     .summary = "Gets the distance of two points.",
     .complexity = "O(log(N))",
     .arguments = "key member1:string member2:string [unit: M | KM | FT | MI]",
     .reply = "the distance in the unit, metres by default, or null",
     .example = "GEODIST cities belgrade zagreb km"},
};

}  // namespace

std::span<const CommandSpec> GeoCommands() { return kGeoRows; }

}  // namespace sava::commands
