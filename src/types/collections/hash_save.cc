// Saving and loading hashes: the RDB forms of Redis 7.0 without times, those of 7.4 with them.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "types/collections/hash.h"
#include "types/collections/packed_forms.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbHash = 4;
constexpr uint8_t kRdbZipmap = 9;
constexpr uint8_t kRdbZiplist = 13;
constexpr uint8_t kRdbListpack = 16;
constexpr uint8_t kRdbTimedEarly = 22;          // 7.4 before its release: times as they are
constexpr uint8_t kRdbTimedListpackEarly = 23;  // the same: without the earliest time in front
constexpr uint8_t kRdbTimed = 24;
constexpr uint8_t kRdbTimedListpack = 25;
// More than this is not written as one listpack.
constexpr size_t kMostListpackFields = 512;

}  // namespace

const TypeInfo& Hash::Type() {
  static constexpr SharedStore kSharedStores[] = {
      {"field-names", [] { return SharedTexts::FieldNames().size(); },
       [] { return SharedTexts::FieldNames().memory(); }},
      {"field-values", [] { return SharedTexts::FieldValues().size(); },
       [] { return SharedTexts::FieldValues().memory(); }}};
  static constexpr uint8_t kRdbTypes[] = {kRdbHash,     kRdbZipmap,       kRdbZiplist,
                                          kRdbListpack, kRdbTimedEarly,   kRdbTimedListpackEarly,
                                          kRdbTimed,    kRdbTimedListpack};
  static const TypeInfo info{
      .name = "hash",
      .rdb_types = kRdbTypes,
      .rdb_type_count = std::size(kRdbTypes),
      .load = Load,
      // A hash that gets its first time later is still read by every server that knows its type.
      .rdb_version = [] { return FieldExpiries::Any() ? kRdbNewestVersion : kRdbVersion; },
      .part_effect = {.command = "HDEL", .event = "hexpired", .event_class = 'h'},
      .shared_stores = kSharedStores,
      .digest_number = 4};
  return info;
}

// ---- saving ----

bool Hash::writes_listpack() const {
  return kind() != Encoding::kHashtable && size() <= kMostListpackFields && !large();
}

uint8_t Hash::rdb_type() const {
  if (has_expiries()) return writes_listpack() ? kRdbTimedListpack : kRdbTimed;
  return writes_listpack() ? kRdbListpack : kRdbHash;
}

// A field's time is written as its distance from the earliest, plus one; 0: none.
void Hash::SaveTimedHead(Writer& out, int64_t earliest) const {
  out.Fixed64(static_cast<uint64_t>(earliest));
}

void Hash::Save(Writer& out) const {
  const uint8_t type = rdb_type();
  const int64_t earliest = has_expiries() ? expiries()->earliest() : 0;
  if (has_expiries()) SaveTimedHead(out, earliest);
  if (type == kRdbListpack || type == kRdbTimedListpack) {
    ListpackWriter pack;
    if (type == kRdbListpack) {
      ForEach(kNever, [&](std::string_view field, std::string_view value) {
        pack.Add(field);
        pack.Add(value);
      });
    } else {
      // In order of their times; those without one last, as Redis expects.
      std::vector<std::pair<uint64_t, RecordTable::Record>> order;
      ForEach(kNever, [&](std::string_view field, std::string_view value) {
        order.emplace_back(static_cast<uint64_t>(expiries()->Of(field)),
                           RecordTable::Record{field, value});
      });
      std::stable_sort(order.begin(), order.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [at, record] : order) {
        pack.Add(record.key);
        pack.Add(record.payload);
        pack.AddInt(static_cast<int64_t>(at) == kNoExpiry ? 0 : static_cast<int64_t>(at));
      }
    }
    out.String(pack.Finish());
    return;
  }
  out.Length(size());
  ForEach(kNever, [&](std::string_view field, std::string_view value) {
    if (type == kRdbTimed) {
      const int64_t at = expiries()->Of(field);
      out.Length(at == kNoExpiry ? 0 : static_cast<uint64_t>(at - earliest + 1));
    }
    out.String(field);
    out.String(value);
  });
}

void Hash::BeginCut(const PieceSink& sink, bool /*refer*/) {
  const bool timed = has_expiries();
  const int64_t earliest = timed ? expiries()->earliest() : 0;
  std::string head;
  {
    Writer out(&head);
    if (timed) SaveTimedHead(out, earliest);
    out.Length(size());
  }
  table().BeginCut(sink, head,
                   [this, timed, earliest](const RecordTable::Record& record, Writer& out) {
                     if (timed) {
                       const int64_t at = ExpiryOf(record.key);
                       out.Length(at == kNoExpiry ? 0 : static_cast<uint64_t>(at - earliest + 1));
                     }
                     out.String(record.key);
                     out.String(record.payload);
                   });
}

// ---- loading ----

bool Hash::LoadPair(std::string_view field, std::string_view value,
                    const CollectionLimits& limits) {
  return Set(field, value, kNever, limits);
}

bool Hash::LoadFields(Reader& in) {
  const uint64_t count = in.Count(2);
  Expect(count, 0, in.limits());
  std::string field_scratch;
  std::string value_scratch;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view field = in.StringView(&field_scratch);
    const std::string_view value = in.StringView(&value_scratch);
    if (!in.ok()) return false;
    if (!LoadPair(field, value, in.limits())) return in.Fail("no field of a hash twice");
  }
  return in.ok();
}

bool Hash::LoadTimedFields(Reader& in, bool relative) {
  const auto earliest = relative ? static_cast<int64_t>(in.Fixed64()) : 0;
  const uint64_t count = in.Count(3);
  if (earliest < 0 || earliest > kMaxExpiry * 4) return in.Fail("the time of a field");
  Expect(count, 0, in.limits());
  std::string field_scratch;
  std::string value_scratch;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t time = in.Length();
    const std::string_view field = in.StringView(&field_scratch);
    const std::string_view value = in.StringView(&value_scratch);
    if (!in.ok()) return false;
    if (time > static_cast<uint64_t>(kMaxExpiry) * 4 + 1) return in.Fail("the time of a field");
    const int64_t at = static_cast<int64_t>(time) + (relative ? earliest - 1 : 0);
    if (at > kMaxExpiry * 4) return in.Fail("the time of a field");
    if (!LoadPair(field, value, in.limits())) return in.Fail("no field of a hash twice");
    // A listpack has 0 for none.
    if (time != 0) SetExpiry(field, std::max<int64_t>(at, 1));
  }
  return in.ok();
}

bool Hash::LoadTimedListpack(std::string_view bytes, const CollectionLimits& limits) {
  std::string parts[2];
  size_t n = 0;
  const bool read = ForEachListpack(bytes, [&](const PackedItem& item) {
    PackedItem::Scratch digits;
    if (n % 3 < 2) {
      parts[n++ % 3] = item.Text(digits);
      return true;
    }
    ++n;
    int64_t at = item.number;
    if (!item.is_number && !base::ParseInt(item.text, &at)) return false;
    if (at < 0 || at > kMaxExpiry * 4 || !LoadPair(parts[0], parts[1], limits)) return false;
    if (at != 0) SetExpiry(parts[0], at);
    return true;
  });
  return read && n % 3 == 0;
}

bool Hash::LoadPacked(uint8_t rdb_type, Reader& in) {
  std::string scratch;
  const std::string_view bytes = in.StringView(&scratch);
  if (!in.ok()) return false;
  // A listpack stays one whatever the limit for single values is now.
  CollectionLimits limits = in.limits();
  if (rdb_type == kRdbListpack || rdb_type == kRdbTimedListpack ||
      rdb_type == kRdbTimedListpackEarly) {
    limits.hash_max_listpack_value = UINT64_MAX;
  }
  if (rdb_type == kRdbTimedListpack || rdb_type == kRdbTimedListpackEarly) {
    return LoadTimedListpack(bytes, limits);
  }
  if (rdb_type == kRdbZipmap) {
    return ForEachZipmap(bytes, [&](std::string_view field, std::string_view value) {
      return LoadPair(field, value, limits);
    });
  }
  std::string field;
  size_t n = 0;
  const auto take = [&](const PackedItem& item) {
    PackedItem::Scratch digits;
    if (n++ % 2 == 0) {
      field = item.Text(digits);
      return true;
    }
    return LoadPair(field, item.Text(digits), limits);
  };
  const bool read =
      rdb_type == kRdbZiplist ? ForEachZiplist(bytes, take) : ForEachListpack(bytes, take);
  return read && n % 2 == 0;
}

std::unique_ptr<Object> Hash::Load(uint8_t rdb_type, Reader& in) {
  auto hash = std::make_unique<Hash>();
  bool read = false;
  switch (rdb_type) {
    case kRdbHash:
      read = hash->LoadFields(in);
      break;
    case kRdbTimedEarly:
    case kRdbTimed:
      read = hash->LoadTimedFields(in, rdb_type == kRdbTimed);
      break;
    case kRdbTimedListpack:
      in.Fixed64();
      read = hash->LoadPacked(rdb_type, in) || in.Fail("the listpack of a hash");
      break;
    default:
      read = hash->LoadPacked(rdb_type, in) || in.Fail("the listpack, ziplist or zipmap of a hash");
  }
  if (!read || hash->size() == 0) {
    in.Fail("a hash has fields");
    return nullptr;
  }
  return hash;
}

}  // namespace sava::types
