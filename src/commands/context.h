// Context: all that a command handler sees of the world. The engine implements it over the striped
// keyspace; the module will implement it over a Redis host. A handler never knows which.
//
// A handler runs alone on its keys: the engine has locked them, and now_ms() stands still. Views
// returned by Find stay valid until the next call that changes a key.
//
// What a handler must do when it changes data:
//   - change it through the calls below (they wake watchers and keep the accounts);
//   - call Changed() with how many changes it made (INFO's dirty counter, and whether to journal);
//   - call Notify() for keyspace notifications, as Redis does for that command;
//   - call Effect() when what is to be logged is not the command as it was sent (relative times,
//     random choices). Without it the command is logged verbatim if Changed() was called.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/blob.h"
#include "commands/errors.h"
#include "commands/parts.h"
#include "commands/session.h"
#include "commands/spec.h"
#include "protocol/reply.h"
#include "types/collections/collection_limits.h"
#include "types/value/object.h"

namespace sava::types {
class TypeRegistry;
}

namespace sava::commands {

class CommandTable;

// Classes of keyspace notifications (the letters of notify-keyspace-events).
enum NotifyClass : uint32_t {
  kNotifyKeyspace = 1U << 0,  // K
  kNotifyKeyevent = 1U << 1,  // E
  kNotifyGeneric = 1U << 2,   // g
  kNotifyString = 1U << 3,    // $
  kNotifyList = 1U << 4,      // l
  kNotifySet = 1U << 5,       // s
  kNotifyHash = 1U << 6,      // h
  kNotifyZset = 1U << 7,      // z
  kNotifyExpired = 1U << 8,   // x
  kNotifyEvicted = 1U << 9,   // e
  kNotifyStream = 1U << 10,   // t
  kNotifyKeyMiss = 1U << 11,  // m
  kNotifyLoaded = 1U << 12,
  kNotifyModule = 1U << 13,  // d
  kNotifyNew = 1U << 14,     // n
  kNotifyAll = kNotifyGeneric | kNotifyString | kNotifyList | kNotifySet | kNotifyHash |
               kNotifyZset | kNotifyExpired | kNotifyEvicted | kNotifyStream | kNotifyModule,
};

// The class of the values of a type by its letter; none for other letters.
constexpr NotifyClass NotifyClassOf(char letter) {
  switch (letter) {
    case '$':
      return kNotifyString;
    case 'l':
      return kNotifyList;
    case 's':
      return kNotifySet;
    case 'h':
      return kNotifyHash;
    case 'z':
      return kNotifyZset;
    case 't':
      return kNotifyStream;
    case 'd':
      return kNotifyModule;
    default:
      return NotifyClass{};
  }
}

inline constexpr int64_t kNoExpiry = -1;
inline constexpr int64_t kKeepExpiry = -2;

// How a string is kept; what OBJECT ENCODING answers.
enum class StringForm : uint8_t { kInt, kEmbstr, kRaw };

// What stands at a key.
struct Value {
  enum class Kind : uint8_t { kNone, kString, kObject };

  Kind kind = Kind::kNone;
  StringForm form = StringForm::kRaw;
  int64_t integer = 0;              // kString with form kInt: the number
  std::string_view bytes;           // kString otherwise
  base::Blob* blob = nullptr;       // set when `bytes` live in a blob
  types::Object* object = nullptr;  // kObject
  int64_t expire_at = kNoExpiry;    // Unix milliseconds

  explicit operator bool() const { return kind != Kind::kNone; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_int() const { return kind == Kind::kString && form == StringForm::kInt; }
  // The string's text; `scratch` holds it when the value is kept as a number.
  std::string_view Text(std::string* scratch) const {
    if (!is_int()) return bytes;
    *scratch = base::IntText(integer);
    return *scratch;
  }
};

// How a key is looked at.
enum class Access : uint8_t {
  kRead,   // counts as hit or miss, refreshes LRU/LFU
  kWrite,  // about to be changed: refreshes LRU/LFU, no hit or miss
  kPeek,   // leaves no trace (OBJECT, DEBUG, TTL's family uses kRead without refresh: kReadQuiet)
  kReadQuiet,  // counts as hit or miss but does not refresh LRU/LFU
};

// What LRU/LFU bookkeeping knows of a key.
struct KeyAge {
  bool lfu = false;  // the policy in force counts frequency
  int64_t idle_seconds = 0;
  int frequency = 0;  // decayed logarithmic counter
};

class Context {
 public:
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Args args() const { return args_; }
  size_t argc() const { return args_.size(); }
  std::string_view arg(size_t i) const { return args_[i]; }
  protocol::Reply& reply() { return reply_; }
  int64_t now_ms() const { return now_ms_; }
  // Whether a value of that many bytes, announced from outside, may be made: asked before anything
  // is reserved for it.
  virtual bool RoomFor(uint64_t bytes) const {
    static_cast<void>(bytes);
    return true;
  }
  // Whether a key with this expiry is as good as gone. Never while the log is replayed: what
  // happened to the key before its time came must happen again.
  bool Past(int64_t expire_at) const { return expire_at <= past_ms_; }
  int db() const { return db_; }

  // ---- keys of the selected database ----
  virtual Value Find(std::string_view key, Access access) = 0;
  bool Exists(std::string_view key) { return static_cast<bool>(Find(key, Access::kPeek)); }

  // Makes the key a string, whatever it was. Numbers in canonical form are kept as numbers, unless
  // as_number says otherwise. expire_at: Unix ms, kNoExpiry or kKeepExpiry.
  virtual void SetString(std::string_view key, std::string_view value,
                         int64_t expire_at = kNoExpiry, bool as_number = true) = 0;
  virtual void SetInteger(std::string_view key, int64_t value, int64_t expire_at = kKeepExpiry) = 0;
  // The string's bytes for change in place, grown with zeros to at least `size`; created when
  // missing (any expiry is kept). The string becomes raw. REQUIRES: the key is a string or missing.
  virtual char* EditString(std::string_view key, size_t size) = 0;
  // Like EditString, but nobody is told: for what shall not count as a change (yet). Call Touched
  // when it turns out to be one.
  virtual char* OpenString(std::string_view key, size_t size) = 0;
  // The key was changed in place: wakes whoever watches it.
  virtual void Touched(std::string_view key) = 0;
  // The object at the key has an earlier next_deadline() than before: it is to be visited then.
  virtual void DeadlineMoved(std::string_view key) { static_cast<void>(key); }
  // Takes away those of the fields of the hash at the key that are past their time, all such when
  // none is named, and the hash with the last of them: it is not to be used afterwards.
  virtual void ExpireFields(std::string_view key, Args fields) {
    static_cast<void>(key);
    static_cast<void>(fields);
  }
  // True when the key was there.
  virtual bool Delete(std::string_view key) = 0;
  // expire_at may be kNoExpiry (persist). REQUIRES: the key exists.
  virtual void SetExpiry(std::string_view key, int64_t expire_at) = 0;
  // For other types: the object to change in place (after Find said it is there), or a new one.
  virtual void SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                         int64_t expire_at = kNoExpiry) = 0;

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
  // Bytes held for the key, its table slot and value, sampling at most `samples` elements (0: all).
  virtual int64_t MemoryOf(std::string_view key, size_t samples) = 0;

  // ---- bookkeeping ----
  virtual void Changed(int64_t changes = 1) = 0;
  void Notify(NotifyClass cls, std::string_view event, std::string_view key) {
    NotifyIn(db_, cls, event, key);
  }
  virtual void NotifyIn(int db, NotifyClass cls, std::string_view event, std::string_view key) = 0;
  // What goes to the log instead of the command; may be called several times.
  virtual void Effect(Args words) = 0;
  void Effect(std::initializer_list<std::string_view> words) {
    Effect(Args(words.begin(), words.size()));
  }
  // False when nobody reads the log: an effect need not be put into words.
  virtual bool wants_effects() const { return true; }
  // Nothing goes to the log although something changed.
  virtual void NoEffect() = 0;

  // ---- waiting ----
  // False where nobody can wait (inside EXEC, while the log is replayed): the handler then answers
  // at once what it would answer when its time is up.
  virtual bool can_block() const { return false; }
  // The handler found nothing to answer with: it returns without a reply, and is run again, as if
  // it had just come, once one of `keys` has changed (whatever changed it) or `wake_at_ms` came,
  // in the order in which the waiting clients came. It is answered `reply` at `deadline_ms`.
  // Times are Unix ms; 0: never. REQUIRES: can_block().
  struct BlockRequest {
    std::span<const std::string_view> keys;
    int64_t deadline_ms = 0;
    int64_t wake_at_ms = 0;
    enum class TimeoutReply : uint8_t {
      kNull,
      kNullArray,
      kEmptyArray
    } reply = TimeoutReply::kNullArray;
    // Run again also when a key is gone (deleted, expired, flushed); otherwise only while it is
    // there.
    bool on_deletion = false;
    // Run again only when a value of this type is at the key; nullptr, or on_deletion: of any.
    const types::TypeInfo* type = nullptr;
    // The words to run again instead of the ones that came, with the same keys (XREAD's $ is the id
    // it was when it began to wait); empty: those.
    Args args = {};
  };
  virtual void Block(const BlockRequest& request) { static_cast<void>(request); }
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
  virtual uint64_t Random() = 0;
  // The commands of this host (COMMAND and its subcommands answer from it).
  virtual const CommandTable& command_table() const = 0;
  // Who reads values of which RDB type (RESTORE); nullptr: strings only.
  virtual const types::TypeRegistry* type_registry() const { return nullptr; }

  // ---- what only a server has ----
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
  // The session's user was changed.
  virtual void UserChanged() {}
  // The session as CLIENT LIST shows it.
  virtual std::string DescribeSession() { return {}; }
  // Keeps an argument out of MONITOR and the slow log.
  virtual void Redact(size_t index) { static_cast<void>(index); }

  // ---- conveniences ----
  void Error(std::string_view text) { reply_.Error(text); }
  // Replies WRONGTYPE and returns false unless the value is a string or missing.
  bool RequireString(const Value& value) {
    if (!value || value.is_string()) return true;
    reply_.Error(errors::kWrongType);
    return false;
  }
  // The string value as a bulk reply, by reference when large.
  void ReplyString(const Value& value) {
    if (value.is_int()) {
      reply_.BulkInt(value.integer);
    } else if (value.blob != nullptr) {
      reply_.BulkBlob(value.blob);
    } else {
      reply_.Bulk(value.bytes);
    }
  }
  // Parses an argument as a 64-bit integer; replies the error and returns false when it is none.
  bool IntArg(size_t i, int64_t* out, std::string_view error = errors::kNotInteger) {
    if (base::ParseInt(args_[i], out)) return true;
    reply_.Error(error);
    return false;
  }
  bool ArgIs(size_t i, std::string_view word) const { return base::EqualsNoCase(args_[i], word); }
  // "ERR wrong number of arguments for 'name' command".
  void ArityError();

 protected:
  virtual const Parts& parts() const;

  Context() : reply_(nullptr, 2) {}
  ~Context() = default;

  Args args_;
  protocol::Reply reply_;
  int64_t now_ms_ = 0;
  int64_t past_ms_ = 0;  // keys expire at this time and before
  int db_ = 0;
  std::string_view command_name_;
};

}  // namespace sava::commands
