// Searching for points near another: GEOSEARCH GEOSEARCHSTORE, and the older GEORADIUS
// GEORADIUSBYMEMBER with their read-only forms. All of them parse into one request.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/redis/geo.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::GeoPoint;
using types::GeoRange;
using types::GeoShape;
using types::SortedSet;

enum class GeoForm : uint8_t { kSearch, kSearchStore, kRadius, kByMember };
enum class GeoOrder : uint8_t { kNone, kAsc, kDesc };

struct GeoRequest {
  GeoForm form = GeoForm::kSearch;
  bool may_store = true;  // of kRadius and kByMember
  const SortedSet* set = nullptr;
  GeoShape shape;
  bool from_member = false;
  bool from_point = false;
  bool by_radius = false;
  bool by_box = false;
  struct {
    bool distance = false;
    bool hash = false;
    bool point = false;
  } show;
  bool any = false;
  int64_t count = 0;  // 0: all
  GeoOrder order = GeoOrder::kNone;
  std::optional<std::string_view> store;
  bool store_distance = false;

  bool search() const { return form == GeoForm::kSearch || form == GeoForm::kSearchStore; }
};

bool GeoError(Context& context, std::string_view text) {
  context.Error(text);
  return false;
}

// ---- arguments ----

// radius unit
bool RadiusArgs(Context& context, size_t i, GeoShape* shape) {
  if (!ScoreArg(context, i, &shape->radius, "ERR need numeric radius")) return false;
  if (shape->radius < 0) return GeoError(context, "ERR radius cannot be negative");
  return GeoUnitArg(context, i + 1, &shape->metres);
}

// width height unit
bool BoxArgs(Context& context, size_t i, GeoShape* shape) {
  shape->box = true;
  if (!ScoreArg(context, i, &shape->width, "ERR need numeric width") ||
      !ScoreArg(context, i + 1, &shape->height, "ERR need numeric height")) {
    return false;
  }
  if (shape->width < 0 || shape->height < 0) {
    return GeoError(context, "ERR height or width cannot be negative");
  }
  return GeoUnitArg(context, i + 2, &shape->metres);
}

bool CentreAtMember(Context& context, std::string_view member, GeoRequest* request) {
  // Without a key there is nothing to find; the rest of the words is looked at first.
  if (request->set == nullptr) return true;
  const std::optional<GeoPoint> point = GeoPointOf(*request->set, member);
  if (!point) return GeoError(context, "ERR could not decode requested zset member");
  request->shape.centre = *point;
  return true;
}

// What stands at fixed places in the older commands. Returns where the other words begin, 0 after
// an error.
size_t FixedArgs(Context& context, GeoRequest* request) {
  switch (request->form) {
    case GeoForm::kSearch:
      return 2;
    case GeoForm::kSearchStore:
      request->store = context.arg(1);
      return 3;
    case GeoForm::kRadius:
      if (!GeoPointArg(context, 2, &request->shape.centre)) return 0;
      return RadiusArgs(context, 4, &request->shape) ? 6 : 0;
    case GeoForm::kByMember:
      if (request->set == nullptr) return 5;
      if (!CentreAtMember(context, context.arg(2), request)) return 0;
      return RadiusArgs(context, 3, &request->shape) ? 5 : 0;
  }
  return 0;
}

// Words that all forms know and that stand alone.
bool PlainWord(Context& context, size_t i, GeoRequest* request) {
  if (context.ArgIs(i, "WITHDIST")) {
    request->show.distance = true;
  } else if (context.ArgIs(i, "WITHHASH")) {
    request->show.hash = true;
  } else if (context.ArgIs(i, "WITHCOORD")) {
    request->show.point = true;
  } else if (context.ArgIs(i, "ANY")) {
    request->any = true;
  } else if (context.ArgIs(i, "ASC")) {
    request->order = GeoOrder::kAsc;
  } else if (context.ArgIs(i, "DESC")) {
    request->order = GeoOrder::kDesc;
  } else if (request->form == GeoForm::kSearchStore && context.ArgIs(i, "STOREDIST")) {
    request->store_distance = true;
  } else {
    return false;
  }
  return true;
}

// A word of GEOSEARCH with what follows it; how many arguments these were, 0 when it is none, -1
// after an error.
int SearchWord(Context& context, size_t i, GeoRequest* request) {
  const size_t behind = context.argc() - i - 1;
  if (behind >= 1 && !request->from_point && context.ArgIs(i, "FROMMEMBER")) {
    request->from_member = true;
    return CentreAtMember(context, context.arg(i + 1), request) ? 2 : -1;
  }
  if (behind >= 2 && !request->from_member && context.ArgIs(i, "FROMLONLAT")) {
    request->from_point = true;
    return GeoPointArg(context, i + 1, &request->shape.centre) ? 3 : -1;
  }
  if (behind >= 2 && !request->by_box && context.ArgIs(i, "BYRADIUS")) {
    request->by_radius = true;
    return RadiusArgs(context, i + 1, &request->shape) ? 3 : -1;
  }
  if (behind >= 3 && !request->by_radius && context.ArgIs(i, "BYBOX")) {
    request->by_box = true;
    return BoxArgs(context, i + 1, &request->shape) ? 4 : -1;
  }
  return 0;
}

bool GeoWords(Context& context, size_t from, GeoRequest* request) {
  for (size_t i = from; i < context.argc(); ++i) {
    const bool has_value = i + 1 < context.argc();
    if (PlainWord(context, i, request)) continue;
    if (has_value && context.ArgIs(i, "COUNT")) {
      if (!context.IntArg(++i, &request->count)) return false;
      if (request->count <= 0) return GeoError(context, errors::kCountOption);
    } else if (has_value && !request->search() && request->may_store &&
               (context.ArgIs(i, "STORE") || context.ArgIs(i, "STOREDIST"))) {
      request->store_distance = context.ArgIs(i, "STOREDIST");
      request->store = context.arg(++i);
    } else {
      const int taken = request->search() ? SearchWord(context, i, request) : 0;
      if (taken < 0) return false;
      if (taken == 0) return GeoError(context, errors::kSyntax);
      i += static_cast<size_t>(taken) - 1;
    }
  }
  return true;
}

// Whether the words fit together; replies the error when not.
bool GeoWordsFit(Context& context, const GeoRequest& request) {
  if (request.store && (request.show.distance || request.show.hash || request.show.point)) {
    return GeoError(context, request.form == GeoForm::kSearchStore
                                 ? "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH "
                                   "and WITHCOORD options"
                                 : "ERR STORE option in GEORADIUS is not compatible with WITHDIST, "
                                   "WITHHASH and WITHCOORD options");
  }
  const std::string name(context.arg(0));
  if (request.search() && !request.from_member && !request.from_point) {
    return GeoError(context,
                    "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
  }
  if (request.search() && !request.by_radius && !request.by_box) {
    return GeoError(context, "ERR exactly one of BYRADIUS and BYBOX can be specified for " + name);
  }
  if (request.any && request.count == 0) {
    return GeoError(context, "ERR the ANY argument requires COUNT argument");
  }
  return true;
}

// ---- searching ----

struct GeoFound {
  std::string member;
  double score = 0;
  double distance = 0;  // in metres
  GeoPoint point;
};

std::vector<GeoFound> FindInside(const SortedSet& set, const GeoShape& shape, size_t enough) {
  std::vector<GeoFound> found;
  const auto is_enough = [&] { return enough > 0 && found.size() >= enough; };
  for (const GeoRange& range : types::GeoCover(shape)) {
    if (is_enough()) break;
    const auto to = static_cast<double>(range.to);
    auto it = set.At(set.CountBelow(static_cast<double>(range.from), false));
    for (; it && it.score() < to && !is_enough(); it.Next()) {
      const GeoPoint point = types::GeoDecode(GeoHashOf(it.score()));
      const std::optional<double> distance = shape.DistanceInside(point);
      if (distance) found.push_back({std::string(it.member()), it.score(), *distance, point});
    }
  }
  return found;
}

void SortFound(const GeoRequest& request, std::vector<GeoFound>* found) {
  GeoOrder order = request.order;
  // The first few are of use only when they are the nearest.
  if (request.count != 0 && order == GeoOrder::kNone && !request.any) order = GeoOrder::kAsc;
  if (order == GeoOrder::kAsc) {
    std::stable_sort(found->begin(), found->end(),
                     [](const GeoFound& a, const GeoFound& b) { return a.distance < b.distance; });
  } else if (order == GeoOrder::kDesc) {
    std::stable_sort(found->begin(), found->end(),
                     [](const GeoFound& a, const GeoFound& b) { return a.distance > b.distance; });
  }
  if (request.count > 0 && found->size() > static_cast<uint64_t>(request.count)) {
    found->resize(static_cast<size_t>(request.count));
  }
}

void ReplyFound(Context& context, const GeoRequest& request, const std::vector<GeoFound>& found) {
  protocol::Reply& reply = context.reply();
  const int64_t more =
      (request.show.distance ? 1 : 0) + (request.show.hash ? 1 : 0) + (request.show.point ? 1 : 0);
  reply.Array(static_cast<int64_t>(found.size()));
  for (const GeoFound& item : found) {
    if (more > 0) reply.Array(more + 1);
    reply.Bulk(item.member);
    if (request.show.distance) ReplyGeoDistance(reply, item.distance / request.shape.metres);
    if (request.show.hash) reply.Int(static_cast<int64_t>(GeoHashOf(item.score)));
    if (request.show.point) ReplyGeoPoint(reply, item.point);
  }
}

void SearchGeneric(Context& context, GeoForm form, bool may_store) {
  GeoRequest request;
  request.form = form;
  request.may_store = may_store;
  SortedSet* set = nullptr;
  const size_t key = form == GeoForm::kSearchStore ? 2 : 1;
  if (!FindObject(context, context.arg(key), Access::kRead, &set)) return;
  request.set = set;
  const size_t from = FixedArgs(context, &request);
  if (from == 0 || !GeoWords(context, from, &request) || !GeoWordsFit(context, request)) return;
  std::vector<GeoFound> found;
  if (set != nullptr) {
    found = FindInside(*set, request.shape, request.any ? static_cast<size_t>(request.count) : 0);
    SortFound(request, &found);
  }
  if (!request.store) return ReplyFound(context, request, found);
  std::vector<ScoredMember> members;
  members.reserve(found.size());
  for (const GeoFound& item : found) {
    members.push_back(
        {item.member, request.store_distance ? item.distance / request.shape.metres : item.score});
  }
  StoreSortedSet(context, *request.store, members,
                 request.search() ? "geosearchstore" : "georadiusstore");
}

void Geosearch(Context& context) { SearchGeneric(context, GeoForm::kSearch, false); }
void Geosearchstore(Context& context) { SearchGeneric(context, GeoForm::kSearchStore, true); }
void Georadius(Context& context) { SearchGeneric(context, GeoForm::kRadius, true); }
void GeoradiusRo(Context& context) { SearchGeneric(context, GeoForm::kRadius, false); }
void Georadiusbymember(Context& context) { SearchGeneric(context, GeoForm::kByMember, true); }
void GeoradiusbymemberRo(Context& context) { SearchGeneric(context, GeoForm::kByMember, false); }

// The key, and the last destination that is named.
bool GeoradiusKeys(Args args, std::vector<int>* indexes) {
  indexes->push_back(1);
  int store = 0;
  for (size_t i = 5; i + 1 < args.size(); ++i) {
    if (!base::EqualsNoCase(args[i], "STORE") && !base::EqualsNoCase(args[i], "STOREDIST"))
      continue;
    store = static_cast<int>(++i);
  }
  if (store > 0) indexes->push_back(store);
  return true;
}

// ---- rows ----

constexpr KeySpec kGeoSearchKey = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec StoreBehind(std::string_view keyword, int16_t from) {
  return {.flags = kKeyOw | kKeyUpdate, .keyword = keyword, .keyword_from = from};
}
constexpr std::string_view kGeoSearchCost =
    "O(N+log(M)) where N is the number of points in the cells around the shape and M that of the "
    "points at the key";
constexpr std::string_view kGeoSearchReply =
    "array of members, or of arrays of member, distance, hash and coordinates as asked for";

const CommandSpec kGeoSearchRows[] = {
    {.name = "geosearch",
     .handler = Geosearch,
     .arity = -7,
     .flags = kReadonly,
     .acl = kAclGeo,
     .keys = {kGeoSearchKey},
     .group = "geo",
     .since = "6.2.0",
     .summary = "Finds the points inside a circle or a box.",
     .complexity = kGeoSearchCost,
     .arguments =
         "key (from: FROMMEMBER member:string | FROMLONLAT longitude:double latitude:double) "
         "(by: (circle: BYRADIUS radius:double (unit: M | KM | FT | MI)) | "
         "(box: BYBOX width:double height:double (unit: M | KM | FT | MI))) "
         "[order: ASC | DESC] [count-block: COUNT count:integer [ANY]] [WITHCOORD] [WITHDIST] "
         "[WITHHASH]",
     .reply = kGeoSearchReply,
     .example = "GEOSEARCH cities FROMLONLAT 20 45 BYRADIUS 400 km ASC WITHDIST"},
    {.name = "geosearchstore",
     .handler = Geosearchstore,
     .arity = -8,
     .flags = kWrite | kDenyOom,
     .acl = kAclGeo,
     .keys = {KeyAt(1, kKeyOw | kKeyUpdate), KeyAt(2, kKeyRo | kKeyAccess)},
     .group = "geo",
     .since = "6.2.0",
     .summary = "Stores the points inside a circle or a box in another key.",
     .complexity = kGeoSearchCost,
     .arguments = "destination:key source:key "
                  "(from: FROMMEMBER member:string | FROMLONLAT longitude:double latitude:double) "
                  "(by: (circle: BYRADIUS radius:double (unit: M | KM | FT | MI)) | "
                  "(box: BYBOX width:double height:double (unit: M | KM | FT | MI))) "
                  "[order: ASC | DESC] [count-block: COUNT count:integer [ANY]] [STOREDIST]",
     .reply = "how many points were stored",
     .example = "GEOSEARCHSTORE near cities FROMLONLAT 20 45 BYBOX 400 300 km"},
    {.name = "georadius",
     .handler = Georadius,
     .arity = -6,
     .flags = kWrite | kDenyOom | kMovableKeys,
     .acl = kAclGeo,
     .keys = {kGeoSearchKey, StoreBehind("STORE", 6), StoreBehind("STOREDIST", 6)},
     .find_keys = GeoradiusKeys,
     .group = "geo",
     .since = "3.2.0",
     .summary = "Finds the points inside a circle, and stores them if asked to.",
     .complexity = kGeoSearchCost,
     .arguments = "key longitude:double latitude:double radius:double (unit: M | KM | FT | MI) "
                  "[WITHCOORD] [WITHDIST] [WITHHASH] [count-block: COUNT count:integer [ANY]] "
                  "[order: ASC | DESC] [store: STORE storekey=key | STOREDIST storedistkey=key]",
     .reply = kGeoSearchReply,
     .example = "GEORADIUS cities 20 45 400 km",
     .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"},
    {.name = "georadiusbymember",
     .handler = Georadiusbymember,
     .arity = -5,
     .flags = kWrite | kDenyOom | kMovableKeys,
     .acl = kAclGeo,
     .keys = {kGeoSearchKey, StoreBehind("STORE", 5), StoreBehind("STOREDIST", 5)},
     .find_keys = GeoradiusKeys,
     .group = "geo",
     .since = "3.2.0",
     .summary = "Finds the points near another one, and stores them if asked to.",
     .complexity = kGeoSearchCost,
     .arguments = "key member:string radius:double (unit: M | KM | FT | MI) "
                  "[WITHCOORD] [WITHDIST] [WITHHASH] [count-block: COUNT count:integer [ANY]] "
                  "[order: ASC | DESC] [store: STORE storekey=key | STOREDIST storedistkey=key]",
     .reply = kGeoSearchReply,
     .example = "GEORADIUSBYMEMBER cities belgrade 400 km",
     .deprecated_since = "6.2.0",
     .replaced_by =
         "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments"},
    {.name = "georadius_ro",
     .handler = GeoradiusRo,
     .arity = -6,
     .flags = kReadonly,
     .acl = kAclGeo,
     .keys = {kGeoSearchKey},
     .group = "geo",
     .since = "3.2.10",
     .summary = "Finds the points inside a circle.",
     .complexity = kGeoSearchCost,
     .arguments = "key longitude:double latitude:double radius:double (unit: M | KM | FT | MI) "
                  "[WITHCOORD] [WITHDIST] [WITHHASH] [count-block: COUNT count:integer [ANY]] "
                  "[order: ASC | DESC]",
     .reply = kGeoSearchReply,
     .example = "GEORADIUS_RO cities 20 45 400 km",
     .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` with the `BYRADIUS` argument"},
    {.name = "georadiusbymember_ro",
     .handler = GeoradiusbymemberRo,
     .arity = -5,
     .flags = kReadonly,
     .acl = kAclGeo,
     .keys = {kGeoSearchKey},
     .group = "geo",
     .since = "3.2.10",
     .summary = "Finds the points near another one.",
     .complexity = kGeoSearchCost,
     .arguments = "key member:string radius:double (unit: M | KM | FT | MI) "
                  "[WITHCOORD] [WITHDIST] [WITHHASH] [count-block: COUNT count:integer [ANY]] "
                  "[order: ASC | DESC]",
     .reply = kGeoSearchReply,
     .example = "GEORADIUSBYMEMBER_RO cities belgrade 400 km",
     .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"},
};

}  // namespace

std::span<const CommandSpec> GeoSearchCommands() { return kGeoSearchRows; }

}  // namespace sava::commands
