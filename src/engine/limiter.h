// Limiter: the server's own protection. Every user with a rule has a bucket, every address of a
// network with a rule has one, and a command runs only when all buckets of its client give a token.
//
// The buckets in memory are what counts; they are ordinary keys of database 0 as well (prefix +
// user, prefix + "ip:" + address). The engine writes a changed bucket to its key within a tenth of
// a second and before any command that names the key, and reads it back after a command that wrote
// the key (see charging.h).
//
// Thread safety: a bucket is guarded by its spin lock, the map of buckets by mutex_; both are leaf
// locks, taken under a stripe's lock or under none. Configure only with the gate closed or before
// there are threads; what it sets is read inside the gate. Clients keep their buckets alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "commands/registry.h"
#include "config/settings.h"
#include "types/counters/rate_limit.h"

namespace sava::engine {

struct Client;

// A lock for a few instructions.
class SpinLock {
 public:
  void lock();
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

class RateBucket {
 public:
  RateBucket(std::string key, const types::RateRule& rule) : key_(std::move(key)), rule_(rule) {}

  const std::string& key() const { return key_; }

  // Takes `cost` tokens if there are that many. *newly_dirty: the key must be written, and that was
  // not reported before.
  types::RateAnswer Take(int64_t cost, int64_t now_ms, bool* newly_dirty);
  // Takes back what Take has given.
  void GiveBack(int64_t cost, int64_t now_ms);

  // Whether the state was read from the key.
  bool loaded() const { return loaded_.load(std::memory_order_acquire); }
  // Takes over the value of the key: nullptr when there is no key. A text that is no bucket is left
  // out of account. `again`: also when it was loaded already.
  void Load(const std::string_view* text, int64_t now_ms, bool again);
  // What the key should hold, when it does not.
  struct Text {
    char bytes[types::kBucketText];
    size_t size = 0;
    int64_t ttl_ms = 0;
    bool number = false;
  };
  bool TakeChange(int64_t now_ms, Text* out);
  // True when it was not to be written before.
  bool MarkDirty();

  // Another rule; the state stays when it means the same under both.
  void SetRule(const types::RateRule& rule, int64_t now_ms);

  struct Figures {
    types::RateRule rule;
    int64_t remaining;
    uint64_t allowed;
    uint64_t refused;
  };
  Figures Look(int64_t now_ms);
  // Nothing would be lost with it.
  bool Idle(int64_t now_ms);

 private:
  void EnsureState(int64_t now_ms);

  const std::string key_;
  SpinLock lock_;
  types::RateRule rule_;    // this and the rest guarded by lock_
  types::RateState state_;  // valid when has_state_
  bool has_state_ = false;
  bool dirty_ = false;
  uint64_t allowed_ = 0;
  uint64_t refused_ = 0;
  std::atomic<bool> loaded_{false};
};

class Limiter {
 public:
  explicit Limiter(const commands::CommandTable* table) : table_(*table) {}

  // Whether the settings can be used: all exempt commands exist.
  base::Status Check(const config::Settings& settings) const;
  // Puts the settings into effect. REQUIRES: Check; no other thread is inside the gate.
  void Configure(const config::Settings& settings);

  bool enabled() const { return enabled_; }
  // Whether keys with the prefix may be buckets: on, or it has been.
  bool engaged() const { return engaged_; }
  std::string_view prefix() const { return prefix_; }
  bool Exempt(const commands::Command& command) const {
    return exempt_[static_cast<size_t>(command.id)] != 0;
  }

  // Gives the client the buckets that belong to it under the current configuration.
  void Resolve(Client& client, int64_t now_ms);
  bool Resolved(const Client& client) const;
  // Takes a token from each of the client's buckets, or from none. Newly changed buckets are added
  // to *dirty. REQUIRES: Resolved, and the buckets are loaded.
  types::RateAnswer Take(Client& client, int64_t cost, int64_t now_ms,
                         std::vector<std::shared_ptr<RateBucket>>* dirty);

  // The bucket at a key; nullptr when the key is none.
  std::shared_ptr<RateBucket> Find(std::string_view key);
  std::vector<std::shared_ptr<RateBucket>> All();
  // Forgets some of the buckets that are not needed. Cheap; call it from time to time.
  void Prune(int64_t now_ms);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::shared_ptr<RateBucket> FindOrMake(std::string key, const types::RateRule& rule,
                                         int64_t now_ms);

  const commands::CommandTable& table_;
  // Written by Configure, read inside the gate.
  bool enabled_ = false;
  uint64_t generation_ = 1;
  std::string prefix_;
  std::vector<uint8_t> exempt_;  // by Command::id
  const config::Settings* settings_ = nullptr;
  bool engaged_ = false;

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<RateBucket>, Hash, std::equal_to<>>
      buckets_;              // guarded by mutex_
  size_t prune_cursor_ = 0;  // guarded by mutex_
};

}  // namespace sava::engine
