#include "admin/digest.h"

#include <cstdio>

#include "base/sha1.h"
#include "base/sha256.h"
#include "base/text.h"
#include "types/collections/hash.h"
#include "types/collections/list.h"
#include "types/collections/set.h"
#include "types/collections/sorted_set.h"
#include "types/collections/stream.h"

namespace sava::admin {

namespace {

using commands::Value;

// The numbers of Redis's types, which a value's digest begins with.
enum class RedisType : uint8_t {
  kString = 0,
  kList = 1,
  kSet = 2,
  kSortedSet = 3,
  kHash = 4,
  kNative = 5,
  kStream = 6,
};

void MixNumber(uint32_t number, Digest20* digest) {
  const char bytes[] = {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
                        static_cast<char>(number >> 8), static_cast<char>(number)};
  digest->Mix({bytes, sizeof bytes});
}

void MixType(RedisType type, Digest20* digest) { MixNumber(static_cast<uint32_t>(type), digest); }

// Two texts that belong together; pairs may come in any order.
void AddPair(std::string_view first, std::string_view second, Digest20* digest) {
  Digest20 pair;
  pair.Mix(first);
  pair.Mix(second);
  digest->XorHashOf({reinterpret_cast<const char*>(pair.bytes.data()), pair.bytes.size()});
}

void AddValue(const types::Set& set, Digest20* digest) {
  MixType(RedisType::kSet, digest);
  set.ForEach([digest](std::string_view member) { digest->XorHashOf(member); });
}

void AddValue(const types::Hash& hash, Digest20* digest) {
  MixType(RedisType::kHash, digest);
  hash.ForEach(types::Hash::kNever, [digest](std::string_view field, std::string_view value) {
    AddPair(field, value, digest);
  });
}

void AddValue(const types::List& list, Digest20* digest) {
  MixType(RedisType::kList, digest);
  list.ForRange(0, list.size(), [digest](const types::PackedItem& item) {
    types::PackedItem::Scratch scratch;
    digest->Mix(item.Text(scratch));
  });
}

void AddValue(const types::SortedSet& set, Digest20* digest) {
  MixType(RedisType::kSortedSet, digest);
  for (auto it = set.At(0); it; it.Next()) {
    char score[64];
    const int size = snprintf(score, sizeof score, "%.17g", it.score());
    AddPair(it.member(), {score, static_cast<size_t>(size)}, digest);
  }
}

void AddValue(const types::Stream& stream, Digest20* digest) {
  MixType(RedisType::kStream, digest);
  stream.Range(types::kLeastStreamId, types::kGreatestStreamId,
               [digest](const types::StreamEntry& entry) {
                 std::string id = entry.id.Text();
                 id[id.find('-')] = '.';
                 digest->Mix(id);
                 entry.ForEachField([digest](std::string_view field, std::string_view value) {
                   digest->Mix(field);
                   digest->Mix(value);
                 });
                 return true;
               });
}

template <typename T>
bool AddIf(const types::Object& object, Digest20* digest) {
  if (&object.type() != &T::Type()) return false;
  AddValue(static_cast<const T&>(object), digest);
  return true;
}

void AddObject(const types::Object& object, Digest20* digest) {
  if (AddIf<types::Set>(object, digest) || AddIf<types::Hash>(object, digest) ||
      AddIf<types::List>(object, digest) || AddIf<types::SortedSet>(object, digest) ||
      AddIf<types::Stream>(object, digest)) {
    return;
  }
  MixType(RedisType::kNative, digest);
  digest->Mix(object.type().name);
  object.Digest([digest](std::string_view element) { digest->Mix(element); });
}

void AddWhole(const Value& value, Digest20* digest) {
  if (value.is_string()) {
    std::string scratch;
    MixType(RedisType::kString, digest);
    digest->Mix(value.Text(&scratch));
  } else {
    AddObject(*value.object, digest);
  }
  if (value.expire_at != commands::kNoExpiry) digest->XorHashOf("!!expire!!");
}

Value ValueOf(const keyspace::Entry& entry) {
  Value value;
  value.expire_at = entry.expire_at();
  if (entry.kind() == keyspace::Kind::kObject) {
    value.kind = Value::Kind::kObject;
    value.object = entry.object();
    return value;
  }
  value.kind = Value::Kind::kString;
  value.form = static_cast<commands::StringForm>(entry.form());
  if (value.is_int()) {
    value.integer = entry.integer();
  } else {
    value.bytes = entry.has(keyspace::kExternal) ? entry.blob()->view() : entry.inline_bytes();
  }
  return value;
}

}  // namespace

void Digest20::Xor(const Digest20& other) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] ^= other.bytes[i];
}

void Digest20::XorHashOf(std::string_view text) { Xor(Digest20{base::Sha1(text)}); }

void Digest20::Mix(std::string_view text) {
  XorHashOf(text);
  bytes = base::Sha1({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string Digest20::Hex() const { return base::HexText(bytes.data(), bytes.size()); }

Digest20 ValueDigest(const Value& value) {
  Digest20 digest;
  if (value) AddWhole(value, &digest);
  return digest;
}

Digest20 KeyspaceDigest(const keyspace::Keyspace& keyspace, int64_t now_ms) {
  Digest20 all;
  for (int db = 0; db < keyspace.databases(); ++db) {
    bool any = false;
    Digest20 keys;
    for (size_t stripe = 0; stripe < keyspace::Keyspace::kStripes; ++stripe) {
      const keyspace::Table* table = keyspace.table(db, stripe);
      if (table == nullptr) continue;
      table->ForEach([&](keyspace::Entry* entry) {
        const Value value = ValueOf(*entry);
        if (value.expire_at != commands::kNoExpiry && value.expire_at < now_ms) return;
        Digest20 digest;
        digest.Mix(entry->key());
        AddWhole(value, &digest);
        keys.XorHashOf({reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()});
        any = true;
      });
    }
    if (!any) continue;
    MixNumber(static_cast<uint32_t>(db), &all);
    all.Xor(keys);
  }
  return all;
}

}  // namespace sava::admin
