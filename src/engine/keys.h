// Keys: one invocation's hold on the keyspace. Every change to a key goes through here, with all
// that follows from it: watchers are marked, waiting clients made ready, a snapshot gets what it
// still needs, displaced values are kept until no lock is held, and the effects of time (expiry,
// eviction) are recorded.
//
// All calls REQUIRE the locks of the keys they name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/if_memory.h"
#include "commands/context.h"
#include "engine/invocation.h"
#include "keyspace/keyspace.h"

namespace sava::engine {

class Keys {
 public:
  explicit Keys(Invocation& invocation);
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  struct Located {
    uint64_t hash;
    size_t stripe;
    keyspace::Table* table;       // nullptr when the database has nothing in the stripe
    keyspace::Table::Slot* slot;  // nullptr when missing
    keyspace::Entry* entry;       // nullptr when missing
  };

  // ---- finding ----
  // As it is there, expired or not.
  Located Locate(int db, std::string_view key);
  commands::Value Find(int db, std::string_view key, commands::Access access);
  bool Expired(const keyspace::Entry& entry) const {
    return entry.has(keyspace::kHasExpiry) && entry.expire_at() < past_ms_;
  }

  // ---- changing ----
  void SetString(int db, std::string_view key, std::string_view text, int64_t expire_at,
                 bool as_number);
  void SetInteger(int db, std::string_view key, int64_t number, int64_t expire_at);
  char* OpenString(int db, std::string_view key, size_t size);
  // Takes over what the value refers to: also, without memory, what is then dropped.
  void Put(int db, std::string_view key, keyspace::NewValue value, int64_t expire_at);
  // False when there was none, or none any more.
  bool Delete(int db, std::string_view key);
  void SetExpiry(int db, std::string_view key, int64_t expire_at);
  // The key was replaced, and counts as one that is new.
  void CountAsNew(int db, std::string_view key);
  void Touched(int db, std::string_view key);
  void DeadlineMoved(int db, std::string_view key);

  // ---- whole keys ----
  void Rename(int db, std::string_view src, std::string_view dst);
  bool Copy(int db, std::string_view src, int dst_db, std::string_view dst, bool replace);
  bool Move(int db, std::string_view key, int dst_db);

  // ---- time and memory ----
  // Removes a key whose time is over.
  void Expire(int db, keyspace::Table& table, keyspace::Entry* entry, uint64_t hash);
  // Removes parts of an object whose time is over (fields of a hash), at most `budget`, and the key
  // with the last of them.
  void ExpireParts(int db, keyspace::Table& table, keyspace::Entry* entry, uint64_t hash,
                   size_t budget);
  void ExpireFields(int db, std::string_view key, commands::Args fields);
  // Removes a key to make room.
  void Evict(int db, keyspace::Table& table, keyspace::Entry* entry, uint64_t hash);

 private:
  uint64_t HashOf(std::string_view key);
  keyspace::Table& TableOf(int db, const Located& at);
  // Forgets which key was located last: tables change, and so may the place of its entry.
  void Forget() { last_key_ = nullptr; }
  void Touch(keyspace::Entry* entry);
  void SetInitialAge(keyspace::Entry* entry);
  // The entry is about to change or to go: a snapshot may still need it as it is.
  void BeforeChange(keyspace::Table& table, keyspace::Entry* entry) {
    if (engine_.snapshot().active()) [[unlikely]]
      engine_.snapshot().Preserve(table, entry);
  }
  void NoteChange(int db, size_t stripe, std::string_view key);
  // gone: the key is there no longer; expired: because its time was over.
  void NoteGone(int db, size_t stripe, std::string_view key, bool expired);
  void NotePartsExpired(int db, keyspace::Table& table, keyspace::Entry* entry,
                        const std::string& key, uint64_t hash,
                        const std::vector<std::string>& names);
  void Discard(const keyspace::Displaced& displaced);
  void Remove(int db, keyspace::Table& table, std::string_view key, uint64_t hash, bool expired);
  // What it has not taken over when it throws is dropped by the caller.
  void PutValue(int db, std::string_view key, keyspace::NewValue& value, int64_t expire_at);
  // The value goes to another key. Without memory it stays where it is.
  void MoveValue(int db, std::string_view key, int dst_db, std::string_view dst);
  // Before something may be displaced: Discard takes no memory.
  void ExpectDiscard();

  Invocation& invocation_;
  Engine& engine_;
  Lane& lane_;
  const int64_t past_ms_;
  size_t next_hash_ = 0;
  // The key located last: handlers look at a key and then change it.
  const char* last_key_ = nullptr;
  int last_db_ = 0;
  Located last_{};
};

// The server's own work on keys: work(keys). False when there was no memory: what was done of it is
// done. REQUIRES: the locks.
template <typename WorkOnKeys>
bool DoUpkeep(Lane& lane, const WorkOnKeys& work) {
  Invocation invocation(lane);
  const auto all = [&] {
    Keys keys(invocation);
    work(keys);
    invocation.End();
  };
  if (base::IfMemory(all)) return true;
  invocation.Abandon();
  invocation.engine().memory().NoteExhausted();
  return false;
}

// What an entry holds.
commands::Value Describe(keyspace::Entry* entry);
// The value at a key; nothing is counted, touched or removed. REQUIRES: the key's lock.
commands::Value Glance(const keyspace::Keyspace& keyspace, int64_t now_ms, int db,
                       std::string_view key);
// Whether the key is there, but its time is over. REQUIRES: the key's lock.
bool IsExpired(const keyspace::Keyspace& keyspace, int64_t now_ms, int db, std::string_view key);

}  // namespace sava::engine
