#include "admin/digest.h"

#include "base/sha1.h"
#include "base/sha256.h"
#include "base/text.h"
#include "types/value/digest_sink.h"
#include "types/value/object.h"

namespace sava::admin {

namespace {

using commands::Value;

// Redis's number of strings; others' are in their TypeInfo.
constexpr uint32_t kStringNumber = 0;

void MixNumber(uint32_t number, Digest20* digest) {
  const char bytes[] = {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
                        static_cast<char>(number >> 8), static_cast<char>(number)};
  digest->Mix({bytes, sizeof bytes});
}

class ValueSink final : public types::DigestSink {
 public:
  explicit ValueSink(Digest20* digest) : digest_(*digest) {}
  void Ordered(std::string_view text) override { digest_.Mix(text); }
  void Unordered(std::string_view text) override { digest_.XorHashOf(text); }
  void UnorderedPair(std::string_view first, std::string_view second) override {
    Digest20 pair;
    pair.Mix(first);
    pair.Mix(second);
    digest_.XorHashOf({reinterpret_cast<const char*>(pair.bytes.data()), pair.bytes.size()});
  }

 private:
  Digest20& digest_;
};

void AddObject(const types::Object& object, Digest20* digest) {
  MixNumber(object.type().digest_number, digest);
  if (object.type().module_id == 0) {
    ValueSink sink(digest);
    object.DigestAsRedis(sink);
    return;
  }
  // Redis gives a module a digest of its own and adds the sequence that the module ends in: a stock
  // server with sava.so has the same.
  Digest20 sequence;
  ValueSink sink(&sequence);
  object.DigestAsRedis(sink);
  Digest20 whole;
  whole.XorHashOf({reinterpret_cast<const char*>(sequence.bytes.data()), sequence.bytes.size()});
  digest->XorHashOf({reinterpret_cast<const char*>(whole.bytes.data()), whole.bytes.size()});
}

void AddWhole(const Value& value, Digest20* digest) {
  if (value.is_string()) {
    std::string scratch;
    MixNumber(kStringNumber, digest);
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
