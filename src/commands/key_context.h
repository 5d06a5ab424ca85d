// KeyContext: what any host offers a command handler. The engine implements it over the striped
// keyspace, the module over a Redis or Valkey server; a handler that takes a KeyContext never knows
// which. Context adds what only a server of ours has.
//
// A handler runs alone on its keys: the host has locked them, and now_ms() stands still. Views
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
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "commands/errors.h"
#include "commands/spec.h"
#include "commands/value.h"
#include "protocol/reply.h"
#include "types/value/object.h"

namespace sava::commands {

class KeyContext {
 public:
  KeyContext(const KeyContext&) = delete;
  KeyContext& operator=(const KeyContext&) = delete;

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

  // ---- keys of the selected database ----
  virtual Value Find(std::string_view key, Access access) = 0;
  bool Exists(std::string_view key) { return static_cast<bool>(Find(key, Access::kPeek)); }

  // Makes the key a string, whatever it was. Numbers in canonical form are kept as numbers, unless
  // as_number says otherwise. expire_at: Unix ms, kNoExpiry or kKeepExpiry.
  virtual void SetString(std::string_view key, std::string_view value,
                         int64_t expire_at = kNoExpiry, bool as_number = true) = 0;
  virtual void SetInteger(std::string_view key, int64_t value, int64_t expire_at = kKeepExpiry) = 0;
  // The key was changed in place: wakes whoever watches it.
  virtual void Touched(std::string_view key) = 0;
  // True when the key was there.
  virtual bool Delete(std::string_view key) = 0;
  // expire_at may be kNoExpiry (persist). REQUIRES: the key exists.
  virtual void SetExpiry(std::string_view key, int64_t expire_at) = 0;
  // For other types: the object to change in place (after Find said it is there), or a new one.
  virtual void SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                         int64_t expire_at = kNoExpiry) = 0;
  // Bytes held for the key, its table slot and value, sampling at most `samples` elements (0: all).
  virtual int64_t MemoryOf(std::string_view key, size_t samples) = 0;

  // ---- bookkeeping ----
  virtual void Changed(int64_t changes = 1) = 0;
  void Notify(NotifyClass cls, std::string_view event, std::string_view key) {
    NotifyIn(db_, cls, event, key);
  }
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

  virtual uint64_t Random() = 0;

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
  virtual void NotifyIn(int db, NotifyClass cls, std::string_view event, std::string_view key) = 0;

  KeyContext() : reply_(nullptr, 2) {}
  ~KeyContext() = default;

  Args args_;
  protocol::Reply reply_;
  int64_t now_ms_ = 0;
  int64_t past_ms_ = 0;  // keys expire at this time and before
  int db_ = 0;
  std::string_view command_name_;
};

}  // namespace sava::commands
