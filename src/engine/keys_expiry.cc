// The part of Keys that removes what time or the lack of memory takes away.
#include "engine/keys.h"

namespace sava::engine {

using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::Table;

void Keys::Expire(int db, Table& table, Entry* entry, uint64_t hash) {
  const std::string key(entry->key());
  // Time changes it, not the client that finds it.
  if (engine_.tracking().any()) [[unlikely]]
    engine_.tracking().NoteChange(lane_, Keyspace::StripeOf(hash), key, nullptr);
  Remove(db, table, key, hash, true);
  lane_.stats.keys.expired.Add();
  const std::string_view words[] = {"DEL", key};
  invocation_.Propagate(words, db);
  invocation_.Notify(db, commands::kNotifyExpired, "expired", key);
}

void Keys::ExpireFields(int db, std::string_view key, commands::Args fields) {
  const Located at = Locate(db, key);
  if (at.entry == nullptr || at.entry->kind() != keyspace::Kind::kObject) return;
  if (!engine_.admission().MayRemoveExpired(invocation_.now_ms())) return;
  if (fields.empty()) return ExpireParts(db, *at.table, at.entry, at.hash, SIZE_MAX);
  types::Object* const object = at.entry->object();
  const std::string name(key);
  ExpectDiscard();
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const std::string_view field : fields) {
    if (!object->IsPartExpired(field, invocation_.now_ms())) continue;
    if (names.empty()) BeforeChange(*at.table, at.entry);
    std::string kept(field);
    if (object->RemovePart(field)) names.push_back(std::move(kept));
  }
  if (!names.empty()) NotePartsExpired(db, *at.table, at.entry, name, at.hash, names);
}

void Keys::ExpireParts(int db, Table& table, Entry* entry, uint64_t hash, size_t budget) {
  ExpectDiscard();
  BeforeChange(table, entry);
  const std::string key(entry->key());
  std::vector<std::string> names;
  entry->object()->RemoveExpired(invocation_.now_ms(), budget, &names);
  NotePartsExpired(db, table, entry, key, hash, names);
}

void Keys::NotePartsExpired(int db, Table& table, Entry* entry, const std::string& key,
                            uint64_t hash, const std::vector<std::string>& names) {
  const bool empty = entry->object()->size() == 0;
  if (!empty) table.NoteDeadline(hash, entry);
  if (names.empty()) return;
  lane_.stats.keys.expired_parts.Add(names.size());
  if (engine_.tracking().any()) [[unlikely]]
    engine_.tracking().NoteChange(lane_, Keyspace::StripeOf(hash), key, nullptr);
  const types::PartEffect effect = entry->object()->type().part_effect;
  // What is empty goes, also when there is no memory to tell of it.
  if (empty) {
    Remove(db, table, key, hash, false);
  } else {
    NoteChange(db, Keyspace::StripeOf(hash), key);
  }
  invocation_.Notify(db, commands::NotifyClassOf(effect.event_class), effect.event, key);
  if (empty) invocation_.Notify(db, commands::kNotifyGeneric, "del", key);
  std::vector<std::string_view> words = {effect.command, key};
  words.insert(words.end(), names.begin(), names.end());
  invocation_.Propagate(words, db);
}

void Keys::Evict(int db, Table& table, Entry* entry, uint64_t hash) {
  const std::string key(entry->key());
  Remove(db, table, key, hash, false);
  lane_.stats.keys.evicted.Add();
  const std::string_view words[] = {"DEL", key};
  invocation_.Propagate(words, db);
  invocation_.Notify(db, commands::kNotifyEvicted, "evicted", key);
}

}  // namespace sava::engine
