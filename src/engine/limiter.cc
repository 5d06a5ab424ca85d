#include "engine/limiter.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "engine/client.h"

namespace sava::engine {

using types::RateAnswer;
using types::RateRule;

void SpinLock::lock() {
  for (int spins = 0; held_.exchange(true, std::memory_order_acquire); ++spins) {
    while (held_.load(std::memory_order_relaxed)) {
      // The holder may have lost its core.
      if (++spins % 128 == 0) sched_yield();
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
}

// ---- a bucket ----

void RateBucket::EnsureState(int64_t now_ms) {
  if (has_state_) return;
  types::FreshBucket(rule_, now_ms, &state_);
  has_state_ = true;
}

RateAnswer RateBucket::Take(int64_t cost, int64_t now_ms, bool* newly_dirty) {
  const std::lock_guard guard(lock_);
  EnsureState(now_ms);
  const RateAnswer answer = types::TakeTokens(rule_, cost, now_ms, &state_);
  *newly_dirty = answer.allowed && !dirty_;
  dirty_ = dirty_ || answer.allowed;
  ++(answer.allowed ? allowed_ : refused_);
  return answer;
}

void RateBucket::GiveBack(int64_t cost, int64_t now_ms) {
  const std::lock_guard guard(lock_);
  EnsureState(now_ms);
  types::RefundTokens(rule_, cost, now_ms, &state_);
  --allowed_;
}

void RateBucket::Load(const std::string_view* text, int64_t now_ms, bool again) {
  const std::lock_guard guard(lock_);
  if (loaded() && !again) return;
  types::RateState state;
  if (text == nullptr) {
    types::FreshBucket(rule_, now_ms, &state_);
    has_state_ = true;
    dirty_ = false;
  } else if (types::ParseBucket(rule_.algorithm, *text, &state)) {
    state_ = state;
    has_state_ = true;
    dirty_ = false;
  }
  loaded_.store(true, std::memory_order_release);
}

bool RateBucket::TakeChange(int64_t now_ms, Text* out) {
  const std::lock_guard guard(lock_);
  if (!dirty_) return false;
  dirty_ = false;
  EnsureState(now_ms);
  const int64_t ttl_ms = types::RateTtl(rule_, state_, now_ms);
  if (ttl_ms <= 0) return false;  // as good as new: no key says the same
  out->ttl_ms = types::BucketLife(rule_, ttl_ms);
  out->size = types::FormatBucket(rule_.algorithm, state_, out->bytes);
  out->number = rule_.algorithm == types::RateAlgorithm::kGcra;
  return true;
}

bool RateBucket::MarkDirty() {
  const std::lock_guard guard(lock_);
  return !std::exchange(dirty_, true);
}

void RateBucket::SetRule(const RateRule& rule, int64_t now_ms) {
  const std::lock_guard guard(lock_);
  if (rule == rule_) return;
  if (rule.algorithm != rule_.algorithm) {
    has_state_ = false;
  } else if (has_state_) {
    // What was taken stays taken.
    state_.tokens =
        std::clamp<int64_t>(state_.tokens + rule.capacity - rule_.capacity, 0, types::kMaxTokens);
  }
  rule_ = rule;
  EnsureState(now_ms);
}

RateBucket::Figures RateBucket::Look(int64_t now_ms) {
  const std::lock_guard guard(lock_);
  EnsureState(now_ms);
  return {rule_, types::PeekTokens(rule_, 1, now_ms, state_).remaining, allowed_, refused_};
}

bool RateBucket::Idle(int64_t now_ms) {
  const std::lock_guard guard(lock_);
  return !dirty_ && (!has_state_ || types::RateTtl(rule_, state_, now_ms) <= 0);
}

// ---- configuration ----

base::Status Limiter::Check(const config::Settings& settings) const {
  for (const std::string& name : settings.ratelimit_exempt) {
    if (table_.FindFullName(name) == nullptr) {
      return base::Error{fmt::format("there is no command '{}'", name)};
    }
  }
  return {};
}

void Limiter::Configure(const config::Settings& settings) {
  settings_ = &settings;
  enabled_ = settings.ratelimit_enabled;
  engaged_ = engaged_ || enabled_;
  prefix_ = settings.ratelimit_key_prefix;
  ++generation_;
  exempt_.assign(table_.by_id().size(), 0);
  for (const std::string& name : settings.ratelimit_exempt) {
    const commands::Command* command = table_.FindFullName(name);
    if (command == nullptr) continue;
    exempt_[static_cast<size_t>(command->id)] = 1;
    for (const commands::Command* sub : command->subcommands) {
      exempt_[static_cast<size_t>(sub->id)] = 1;
    }
  }
}

// ---- clients and their buckets ----

std::shared_ptr<RateBucket> Limiter::FindOrMake(std::string key, const RateRule& rule,
                                                int64_t now_ms) {
  std::shared_ptr<RateBucket> bucket;
  {
    const std::lock_guard guard(mutex_);
    if (const auto found = buckets_.find(key); found != buckets_.end()) {
      bucket = found->second;
    } else {
      bucket = std::make_shared<RateBucket>(key, rule);
      buckets_.emplace(std::move(key), bucket);
    }
  }
  bucket->SetRule(rule, now_ms);
  return bucket;
}

bool Limiter::Resolved(const Client& client) const {
  return client.rate.generation == generation_ && client.rate.authenticated == client.authenticated;
}

void Limiter::Resolve(Client& client, int64_t now_ms) {
  client.rate.generation = 0;  // not resolved, in case there is no memory
  client.rate.user.reset();
  client.rate.address.reset();
  const auto done = [&] {
    client.rate.generation = generation_;
    client.rate.authenticated = client.authenticated;
  };
  if (!enabled_ || client.rate.exempt) return done();
  if (client.authenticated) {
    const RateRule* rule = settings_->ratelimit_default ? &*settings_->ratelimit_default : nullptr;
    for (const config::UserLimit& limit : settings_->ratelimit_users) {
      if (limit.user == client.user) rule = &limit.rule;
    }
    if (rule != nullptr) client.rate.user = FindOrMake(prefix_ + client.user, *rule, now_ms);
  }
  base::IpAddress address;
  if (client.has(kClientUnixSocket) || !base::ParsePeer(client.peer.addr, &address)) return done();
  const config::NetworkLimit* best = nullptr;
  for (const config::NetworkLimit& limit : settings_->ratelimit_networks) {
    if (!limit.network.Contains(address)) continue;
    if (best == nullptr || limit.network.prefix > best->network.prefix) best = &limit;
  }
  if (best == nullptr) return done();
  client.rate.address = FindOrMake(prefix_ + "ip:" + base::IpText(address), best->rule, now_ms);
  done();
}

RateAnswer Limiter::Take(Client& client, int64_t cost, int64_t now_ms,
                         std::vector<std::shared_ptr<RateBucket>>* dirty) {
  // A bucket that gave a token is noted, with or without memory.
  constexpr size_t kMost = 2;
  if (dirty->capacity() - dirty->size() < kMost)
    dirty->reserve(std::max<size_t>(16, 2 * dirty->capacity()));
  RateAnswer answer;
  answer.allowed = true;
  for (const std::shared_ptr<RateBucket>* bucket : {&client.rate.address, &client.rate.user}) {
    if (*bucket == nullptr) continue;
    bool newly_dirty = false;
    answer = (*bucket)->Take(cost, now_ms, &newly_dirty);
    if (newly_dirty) dirty->push_back(*bucket);
    if (answer.allowed) continue;
    if (bucket == &client.rate.user && client.rate.address != nullptr) {
      client.rate.address->GiveBack(cost, now_ms);
    }
    break;
  }
  return answer;
}

std::shared_ptr<RateBucket> Limiter::Find(std::string_view key) {
  const std::lock_guard guard(mutex_);
  const auto found = buckets_.find(key);
  return found == buckets_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<RateBucket>> Limiter::All() {
  const std::lock_guard guard(mutex_);
  std::vector<std::shared_ptr<RateBucket>> all;
  all.reserve(buckets_.size());
  for (const auto& [key, bucket] : buckets_) all.push_back(bucket);
  return all;
}

void Limiter::Prune(int64_t now_ms) {
  constexpr size_t kSteps = 256;
  const std::lock_guard guard(mutex_);
  std::vector<std::string> idle;
  for (size_t i = 0; i < std::min(kSteps, buckets_.bucket_count()); ++i) {
    const size_t at = ++prune_cursor_ % buckets_.bucket_count();
    for (auto it = buckets_.begin(at); it != buckets_.end(at); ++it) {
      // Copies are made under mutex_ only, so no thread can take one meanwhile.
      if (it->second.use_count() == 1 && it->second->Idle(now_ms)) idle.push_back(it->first);
    }
  }
  for (const std::string& key : idle) buckets_.erase(key);
}

}  // namespace sava::engine
