// Context: all that a command handler sees of a server of ours: a KeyContext, and with it whole
// keys, other databases, sessions and the server's parts. The engine implements it; the families of
// Redis's own types take it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "commands/key_context.h"
#include "commands/parts.h"
#include "commands/session.h"
#include "types/collections/collection_limits.h"

namespace sava::types {
class TypeRegistry;
}

namespace sava::commands {

class CommandTable;

// What LRU/LFU bookkeeping knows of a key.
struct KeyAge {
  bool lfu = false;  // the policy in force counts frequency
  int64_t idle_seconds = 0;
  int frequency = 0;  // decayed logarithmic counter
};

class Context : public KeyContext {
 public:
  int db() const { return db_; }

  // ---- keys of the selected database, in place ----
  // The string's bytes for change in place, grown with zeros to at least `size`; created when
  // missing (any expiry is kept). The string becomes raw. REQUIRES: the key is a string or missing.
  virtual char* EditString(std::string_view key, size_t size) = 0;
  // Like EditString, but nobody is told: for what shall not count as a change (yet). Call Touched
  // when it turns out to be one.
  virtual char* OpenString(std::string_view key, size_t size) = 0;
  // The object at the key has an earlier next_deadline() than before: it is to be visited then.
  virtual void DeadlineMoved(std::string_view key) { static_cast<void>(key); }
  // Takes away those of the fields of the hash at the key that are past their time, all such when
  // none is named, and the hash with the last of them: it is not to be used afterwards.
  virtual void ExpireFields(std::string_view key, Args fields) {
    static_cast<void>(key);
    static_cast<void>(fields);
  }

  // ---- whole keys, other databases, the whole keyspace ----
  virtual int database_count() const = 0;
  virtual Value FindIn(int db, std::string_view key, Access access) = 0;
  // dst is overwritten, with its expiry. REQUIRES: src exists; the keys are locked.
  virtual void Rename(std::string_view src, std::string_view dst) = 0;
  // False when the destination exists (and not replace). REQUIRES: src exists.
  virtual bool CopyKey(std::string_view src, int dst_db, std::string_view dst, bool replace) = 0;
  virtual bool MoveKey(std::string_view key, int dst_db) = 0;
  virtual int64_t DbSize() = 0;
  // A random key that is not expired; false when the database is empty.
  virtual bool RandomKey(std::string* key) = 0;
  // One SCAN step: calls `visit` for about `count` keys (expired ones are left out) and returns the
  // next cursor, 0 at the end. `type` is the TYPE name.
  virtual uint64_t Scan(
      uint64_t cursor, int64_t count,
      const std::function<void(std::string_view key, std::string_view type)>& visit) = 0;
  // All keys, REQUIRES: lock class kAll.
  virtual void ForEachKey(const std::function<void(std::string_view key)>& visit) = 0;
  // db -1: all databases. REQUIRES: kAll. Returns how many keys went.
  virtual int64_t Flush(int db, bool async) = 0;
  virtual void SwapDb(int a, int b) = 0;
  virtual bool SelectDb(int db) = 0;
  virtual KeyAge Age(std::string_view key) = 0;
  virtual void SetAge(std::string_view key, int64_t idle_seconds, int frequency) = 0;  // -1: leave
  // The key was replaced, and counts as one that is new.
  virtual void CountAsNew(std::string_view key) { static_cast<void>(key); }
  using KeyContext::NotifyIn;

  // ---- waiting ----
  // Set while a handler runs again because this key changed and only this one is locked: it looks
  // at no other, and calls Block again (its place in the line is kept) when there is nothing.
  virtual std::optional<std::string_view> ready_key() const { return std::nullopt; }
  // The client has waited, and its command is run again: with ready_key(), or, when the command has
  // more keys than it waits for or its wake_at_ms came, with all its keys locked.
  virtual bool runs_again() const { return false; }

  // ---- settings a handler may need ----
  virtual const types::CollectionLimits& collection_limits() const {
    return types::kDefaultCollectionLimits;
  }
  virtual int64_t max_string_size() const = 0;  // proto-max-bulk-len
  // Whether Redis would keep small numbers once for all keys: not while a policy needs the age of
  // each.
  virtual bool shares_numbers() const = 0;
  // A line for the server's log.
  virtual void Warn(const std::string& text) { static_cast<void>(text); }
  // DEBUG SET-SKIP-CHECKSUM-VALIDATION.
  virtual bool skips_checksums() const { return false; }
  // Whether FLUSHALL shall free in the background (lazyfree-lazy-user-flush).
  virtual bool lazy_user_flush() const = 0;
  // The commands of this host (COMMAND and its subcommands answer from it).
  virtual const CommandTable& command_table() const = 0;
  // Who reads values of which RDB type (RESTORE); nullptr: strings only.
  virtual const types::TypeRegistry* type_registry() const { return nullptr; }

  // ---- the server's parts and the session ----
  // REQUIRES: the host has such a part.
  template <typename T>
  T& part() const {
    return parts().Get<T>();
  }
  // The connection that sent the command. REQUIRES: has_session().
  virtual Session& session() { __builtin_unreachable(); }
  virtual bool has_session() const { return false; }
  // Connected from this machine.
  virtual bool is_local() const { return false; }
  virtual bool in_transaction() const { return false; }
  // A script has called the command.
  virtual bool in_script() const { return false; }
  // The session's user was changed.
  virtual void UserChanged() {}
  // Whether ACL rules let this command read keys that are no arguments of it.
  virtual bool MayReadEveryKey() { return true; }
  // The session as CLIENT LIST shows it.
  virtual std::string DescribeSession() { return {}; }
  // Keeps an argument out of MONITOR and the slow log.
  virtual void Redact(size_t index) { static_cast<void>(index); }

 protected:
  virtual const Parts& parts() const;

  Context() = default;
  ~Context() = default;
};

inline void Handler::operator()(Context& context) const {
  if (keys_ != nullptr) {
    keys_(context);
  } else {
    server_(context);
  }
}

}  // namespace sava::commands
