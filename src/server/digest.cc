#include "server/digest.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"

namespace sava::server {

namespace {

using commands::Value;

Digest20 Shortened(base::Sha256& hash) {
  Digest20 digest;
  const base::Sha256::Digest full = hash.Finish();
  std::copy_n(full.begin(), digest.bytes.size(), digest.bytes.begin());
  return digest;
}

// With its length before it, so that no two lists of texts look alike.
void AddText(base::Sha256& hash, std::string_view text) {
  hash.Add(base::IntText(static_cast<int64_t>(text.size())));
  hash.Add(":");
  hash.Add(text);
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

std::string Digest20::Hex() const { return base::HexText(bytes.data(), bytes.size()); }

Digest20 ValueDigest(const Value& value) {
  if (!value) return {};
  base::Sha256 hash;
  if (value.is_string()) {
    std::string scratch;
    AddText(hash, "string");
    AddText(hash, value.Text(&scratch));
  } else {
    AddText(hash, value.object->type().name);
    value.object->Digest([&hash](std::string_view element) { AddText(hash, element); });
  }
  if (value.expire_at != commands::kNoExpiry) AddText(hash, "expires");
  return Shortened(hash);
}

Digest20 KeyspaceDigest(const keyspace::Keyspace& keyspace, int64_t now_ms) {
  Digest20 all;
  for (int db = 0; db < keyspace.databases(); ++db) {
    for (size_t stripe = 0; stripe < keyspace::Keyspace::kStripes; ++stripe) {
      const keyspace::Table* table = keyspace.table(db, stripe);
      if (table == nullptr) continue;
      table->ForEach([&](keyspace::Entry* entry) {
        const Value value = ValueOf(*entry);
        if (value.expire_at != commands::kNoExpiry && value.expire_at < now_ms) return;
        base::Sha256 hash;
        AddText(hash, base::IntText(db));
        AddText(hash, entry->key());
        AddText(hash, ValueDigest(value).Hex());
        all.Xor(Shortened(hash));
      });
    }
  }
  return all;
}

}  // namespace sava::server
