// How often somebody may try: asked of the store with RL.TAKE, with INCR and EXPIRE where the store
// does not know that, and counted in this process while no store answers or the cache is off. Never
// unlimited. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "cache/store.h"
#include "services/settings.h"

namespace timeline {

class Limiter {
 public:
  Limiter(Store* store, const Settings* settings) : store_(store), settings_(settings) {}

  // True when `key` was taken at most `limit` times within the last `seconds`.
  bool Take(const std::string& key, std::int64_t limit, std::int64_t seconds, std::int64_t now);

 private:
  enum class Answer { kAllowed, kRefused, kNone };
  Answer AskStore(const std::string& key, std::int64_t limit, std::int64_t seconds);
  bool TakeHere(const std::string& key, std::int64_t limit, std::int64_t seconds, std::int64_t now);

  struct Window {
    std::int64_t ends = 0;
    std::int64_t taken = 0;
  };

  Store* store_;
  const Settings* settings_;
  std::mutex mutex_;
  std::unordered_map<std::string, Window> windows_;  // guarded by mutex_
};

}  // namespace timeline
