// What the commands on the times of fields share: their arguments, and what a change of times is
// followed by. Times are logged as HPEXPIREAT, HPERSIST and HDEL: whatever the client said, the log
// holds points in time.
#include <string>
#include <utility>

#include "base/text.h"
#include "commands/redis/hashes.h"

namespace sava::commands::hashes {

using types::Hash;

bool ParseFields(Context& context, size_t at, std::string_view count_error, FieldsArg* fields) {
  if (at + 1 >= context.argc() || !context.ArgIs(at, "FIELDS")) {
    context.Error(kNeedFields);
    return false;
  }
  int64_t count = 0;
  if (!base::ParseInt(context.arg(at + 1), &count) || count < 1) {
    context.Error(count_error);
    return false;
  }
  fields->first = at + 2;
  fields->count = context.argc() - fields->first;
  if (static_cast<uint64_t>(count) == fields->count) return true;
  context.Error("ERR The `numfields` parameter must match the number of arguments");
  return false;
}

bool ParseFieldTime(Context& context, size_t arg, bool seconds, bool absolute,
                    std::string_view command, int64_t* at) {
  int64_t value = 0;
  if (!context.IntArg(arg, &value)) return false;
  if (value < 0) {
    context.Error("ERR invalid expire time, must be >= 0");
    return false;
  }
  const int64_t base = absolute ? 0 : context.now_ms();
  const bool fits = (!seconds || value <= Hash::kMaxExpiry / 1000) &&
                    (seconds ? value * 1000 : value) <= Hash::kMaxExpiry - base;
  if (!fits) {
    context.Error(errors::BadExpireTime(command));
    return false;
  }
  *at = base + (seconds ? value * 1000 : value);
  return true;
}

TimesChange::TimesChange(Context& context, std::string_view key, Hash* hash)
    : context_(context), key_(key), hash_(hash), deadline_(hash->next_deadline()) {}

bool TimesChange::Set(std::string_view field, int64_t at) {
  if (context_.Past(at)) {
    hash_->Remove(field);
    deleted_.push_back(field);
    return false;
  }
  hash_->SetExpiry(field, at);
  timed_.push_back(field);
  return true;
}

void TimesChange::Persist(std::string_view field) {
  hash_->SetExpiry(field, Hash::kNoExpiry);
  persisted_.push_back(field);
}

void TimesChange::Finish(int64_t at) {
  if (timed_.empty() && deleted_.empty() && persisted_.empty()) return;
  const bool empty = hash_->size() == 0;
  if (!deleted_.empty()) context_.Notify(kNotifyHash, "hdel", key_);
  if (!timed_.empty()) context_.Notify(kNotifyHash, "hexpire", key_);
  if (!persisted_.empty()) context_.Notify(kNotifyHash, "hpersist", key_);
  if (empty) {
    context_.Delete(key_);
    context_.Notify(kNotifyGeneric, "del", key_);
  } else {
    context_.Touched(key_);
    const int64_t next = hash_->next_deadline();
    if (next >= 0 && (deadline_ < 0 || next < deadline_)) context_.DeadlineMoved(key_);
  }
  context_.Changed(static_cast<int64_t>(timed_.size() + deleted_.size() + persisted_.size()));
  const auto log = [&](std::string_view name, std::string_view time,
                       const std::vector<std::string_view>& fields) {
    if (fields.empty()) return;
    char count[24];
    std::vector<std::string_view> more;
    if (!time.empty()) more.push_back(time);
    more.push_back("FIELDS");
    more.emplace_back(count, base::FormatUint(fields.size(), count));
    LogFields(context_, name, key_, std::move(more), fields);
  };
  if (!deleted_.empty()) LogFields(context_, "HDEL", key_, {}, deleted_);
  if (log_timed_) {
    char time[24];
    log("HPEXPIREAT", {time, base::FormatInt(at, time)}, timed_);
  }
  log("HPERSIST", {}, persisted_);
}

}  // namespace sava::commands::hashes
