// What the commands on hashes share: hashes.cc, hashes_more.cc and
// hashes_expire*.cc.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "commands/context.h"
#include "commands/find_object.h"
#include "types/collections/hash.h"

namespace sava::commands {

namespace hashes {

// The time by which fields are past theirs: none while the log is replayed.
inline int64_t FieldTime(const Context& context) {
  return context.Past(0) ? context.now_ms() : types::Hash::kNever;
}

// A command has looked at these fields, or at all when none is named: those past their time go. The
// hash is not to be used afterwards.
inline void DropOutlived(Context& context, std::string_view key, const types::Hash* hash,
                         Args fields) {
  if (hash == nullptr || !context.Past(0)) return;
  if (hash->has_expiries() && hash->next_deadline() < context.now_ms()) {
    context.ExpireFields(key, fields);
  }
}

// What every removal of fields ends with; an empty hash goes with its key.
void FinishRemoval(Context& context, std::string_view key, const types::Hash& hash,
                   int64_t removed);

// Logs `name key [more ...] fields ...`, the fields being arguments of this call.
void LogFields(Context& context, std::string_view name, std::string_view key,
               std::vector<std::string_view> more, const std::vector<std::string_view>& fields);

// ---- FIELDS numfields field [field ...] ----
struct FieldsArg {
  size_t first = 0;  // argument of the first field
  size_t count = 0;
};
// At argument `at`, to the end. Replies the error and returns false when it is wrong;
// `count_error` is for a number that is not positive.
bool ParseFields(Context& context, size_t at, std::string_view count_error, FieldsArg* fields);

inline constexpr std::string_view kNeedFields =
    "ERR Mandatory argument FIELDS is missing or not at the right position";
inline constexpr std::string_view kNeedPositiveCount =
    "ERR Number of fields must be a positive integer";

// The Unix time in ms that argument `arg` stands for: from now, unless `absolute`. Replies the
// error and returns false when it is none; `command` is the name to blame.
bool ParseFieldTime(Context& context, size_t arg, bool seconds, bool absolute,
                    std::string_view command, int64_t* at);

// Gives fields times, or takes them, and remembers what is to be told and logged about it.
class TimesChange {
 public:
  TimesChange(Context& context, std::string_view key, types::Hash* hash);
  // The field goes when the time is past. REQUIRES: it is there.
  bool Set(std::string_view field, int64_t at);
  void Persist(std::string_view field);
  // Notifies, logs, and removes the key when nothing is left of it.
  void Finish(int64_t at);

  const std::vector<std::string_view>& timed() const { return timed_; }
  const std::vector<std::string_view>& deleted() const { return deleted_; }
  // For those who log what was timed themselves.
  void LeaveTimedToCaller() { log_timed_ = false; }

 private:
  Context& context_;
  std::string_view key_;
  types::Hash* hash_;
  int64_t deadline_;
  bool log_timed_ = true;
  std::vector<std::string_view> timed_;
  std::vector<std::string_view> deleted_;
  std::vector<std::string_view> persisted_;
};

}  // namespace hashes

}  // namespace sava::commands
