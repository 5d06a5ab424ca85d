#include "services/limiter.h"

namespace timeline {
namespace {

// The table of this process is cleared of what is over when it grows beyond this.
constexpr std::size_t kMostWindows = 10000;

}  // namespace

bool Limiter::Take(const std::string& key, std::int64_t limit, std::int64_t seconds,
                   std::int64_t now) {
  if (settings_->use_cache) {
    auto answer = AskStore("limit:" + key, limit, seconds);
    if (answer != Answer::kNone) return answer == Answer::kAllowed;
  }
  return TakeHere(key, limit, seconds, now);
}

Limiter::Answer Limiter::AskStore(const std::string& key, std::int64_t limit,
                                  std::int64_t seconds) {
  auto connection = store_->Borrow();
  std::vector<Reply> replies;
  Command take = {"RL.TAKE", key, "SLIDING", std::to_string(limit), std::to_string(seconds * 1000)};
  if (!connection || !connection->Run({take}, &replies)) return Answer::kNone;
  if (replies[0].kind == Reply::Kind::kArray && !replies[0].elements.empty()) {
    return replies[0].elements[0].integer == 1 ? Answer::kAllowed : Answer::kRefused;
  }
  auto counter = "count:" + key;
  if (!connection->Run({{"MULTI"},
                        {"SET", counter, "0", "EX", std::to_string(seconds), "NX"},
                        {"INCR", counter},
                        {"EXEC"}},
                       &replies) ||
      replies.back().elements.size() != 2 ||
      replies.back().elements[1].kind != Reply::Kind::kInteger) {
    return Answer::kNone;
  }
  return replies.back().elements[1].integer <= limit ? Answer::kAllowed : Answer::kRefused;
}

bool Limiter::TakeHere(const std::string& key, std::int64_t limit, std::int64_t seconds,
                       std::int64_t now) {
  std::lock_guard lock(mutex_);
  if (windows_.size() >= kMostWindows) {
    std::erase_if(windows_, [&](const auto& entry) { return entry.second.ends <= now; });
    // Still full: somebody makes up names faster than they end. New ones have to wait.
    if (windows_.size() >= kMostWindows && !windows_.count(key)) return false;
  }
  auto& window = windows_[key];
  if (window.ends <= now) window = {now + seconds * 1000, 0};
  if (window.taken >= limit) return false;
  ++window.taken;
  return true;
}

}  // namespace timeline
