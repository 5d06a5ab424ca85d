#include "script/script_cache.h"

#include "base/sha1.h"

namespace sava::script {

std::string ShaOf(std::string_view source) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : base::Sha1(source)) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

ScriptPtr ScriptCache::Find(std::string_view sha) const {
  const std::lock_guard lock(mutex_);
  const auto it = scripts_.find(sha);
  return it == scripts_.end() ? nullptr : it->second;
}

ScriptPtr ScriptCache::Add(ScriptPtr script, bool loaded, int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  const auto [it, added] = scripts_.try_emplace(script->sha, script);
  ScriptPtr kept = it->second;
  if (added) {
    ++evals_;
    bytes_ += kept->source.size() + kept->sha.size() + sizeof(Script);
  }
  kept->used_ms.store(now_ms, std::memory_order_relaxed);
  if (loaded && !kept->loaded.exchange(true)) --evals_;
  if (evals_ > kMostEvals) EvictOne();
  return kept;
}

// The one that was not run for longest.
void ScriptCache::EvictOne() {
  auto oldest = scripts_.end();
  for (auto it = scripts_.begin(); it != scripts_.end(); ++it) {
    if (it->second->loaded.load(std::memory_order_relaxed)) continue;
    if (oldest == scripts_.end() || it->second->used_ms.load(std::memory_order_relaxed) <
                                        oldest->second->used_ms.load(std::memory_order_relaxed)) {
      oldest = it;
    }
  }
  if (oldest == scripts_.end()) return;
  bytes_ -= oldest->second->source.size() + oldest->second->sha.size() + sizeof(Script);
  oldest->second->evicted.store(true, std::memory_order_release);
  scripts_.erase(oldest);
  --evals_;
  evicted_.fetch_add(1, std::memory_order_relaxed);
}

void ScriptCache::Flush() {
  decltype(scripts_) gone;  // freed without the lock
  const std::lock_guard lock(mutex_);
  gone.swap(scripts_);
  evals_ = bytes_ = 0;
  generation_.fetch_add(1, std::memory_order_release);
}

size_t ScriptCache::count() const {
  const std::lock_guard lock(mutex_);
  return scripts_.size();
}

size_t ScriptCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace sava::script
