// The part of Keys that removes what time or the lack of memory takes away.
#include "engine/keys.h"

namespace sava::engine {

using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::Table;

void Keys::Expire(int db, Table& table, Entry* entry, uint64_t hash) {
  const std::string key(entry->key());
  Remove(db, table, key, hash, true);
  lane_.stats.expired.Add();
  const std::string_view words[] = {"DEL", key};
  invocation_.Propagate(words, db);
  invocation_.Notify(db, commands::kNotifyExpired, "expired", key);
}

void Keys::ExpireFields(int db, std::string_view key, commands::Args fields) {
  const Located at = Locate(db, key);
  if (at.entry == nullptr || at.entry->kind() != keyspace::Kind::kObject) return;
  if (fields.empty()) return ExpireParts(db, *at.table, at.entry, at.hash, SIZE_MAX);
  types::Object* const object = at.entry->object();
  std::vector<std::string> names;
  for (const std::string_view field : fields) {
    if (!object->IsPartExpired(field, invocation_.now_ms())) continue;
    if (names.empty()) BeforeChange(*at.table, at.entry);
    if (object->RemovePart(field)) names.emplace_back(field);
  }
  if (!names.empty()) NotePartsExpired(db, *at.table, at.entry, at.hash, names);
}

void Keys::ExpireParts(int db, Table& table, Entry* entry, uint64_t hash, size_t budget) {
  BeforeChange(table, entry);
  std::vector<std::string> names;
  entry->object()->RemoveExpired(invocation_.now_ms(), budget, &names);
  NotePartsExpired(db, table, entry, hash, names);
}

void Keys::NotePartsExpired(int db, Table& table, Entry* entry, uint64_t hash,
                            const std::vector<std::string>& names) {
  const std::string key(entry->key());
  const bool empty = entry->object()->size() == 0;
  if (!empty) table.NoteDeadline(hash, entry);
  if (names.empty()) return;
  lane_.stats.expired_parts.Add(names.size());
  const types::PartEffect& effect = entry->object()->type().part_effect;
  std::vector<std::string_view> words = {effect.command, key};
  words.insert(words.end(), names.begin(), names.end());
  invocation_.Propagate(words, db);
  invocation_.Notify(db, commands::NotifyClassOf(effect.event_class), effect.event, key);
  if (empty) {
    Remove(db, table, key, hash, false);
    invocation_.Notify(db, commands::kNotifyGeneric, "del", key);
  } else {
    NoteChange(db, Keyspace::StripeOf(hash), key);
  }
}

void Keys::Evict(int db, Table& table, Entry* entry, uint64_t hash) {
  const std::string key(entry->key());
  Remove(db, table, key, hash, false);
  lane_.stats.evicted.Add();
  const std::string_view words[] = {"DEL", key};
  invocation_.Propagate(words, db);
  invocation_.Notify(db, commands::kNotifyEvicted, "evicted", key);
}

}  // namespace sava::engine
