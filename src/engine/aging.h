// Ages of keys, as Redis keeps them in 24 bits: either the second of the last use (LRU), or the
// minute of the last decrement and a logarithmic counter of uses (LFU).
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "config/settings.h"

namespace sava::engine {

inline constexpr uint32_t kAgeMask = (1U << 24) - 1;
inline constexpr int kLfuInitial = 5;

inline bool UsesLfu(config::MaxmemoryPolicy policy) {
  return policy == config::MaxmemoryPolicy::kAllkeysLfu ||
         policy == config::MaxmemoryPolicy::kVolatileLfu;
}

inline uint32_t LruClock(int64_t now_ms) { return static_cast<uint32_t>(now_ms / 1000) & kAgeMask; }
inline uint32_t LruIdleSeconds(uint32_t age, uint32_t clock) { return (clock - age) & kAgeMask; }

inline uint32_t LfuMinutes(int64_t now_ms) { return static_cast<uint32_t>(now_ms / 60000) & 65535; }
inline uint32_t LfuPack(int64_t now_ms, int counter) {
  return (LfuMinutes(now_ms) << 8) | static_cast<uint32_t>(counter & 255);
}

// The counter after losing one for every decay-time minutes since it was last touched.
inline int LfuDecayed(uint32_t age, int64_t now_ms, const config::Settings& settings) {
  const auto counter = static_cast<int>(age & 255);
  if (settings.lfu_decay_time == 0) return counter;
  const uint32_t elapsed = (LfuMinutes(now_ms) - (age >> 8)) & 65535;
  const auto periods = static_cast<int>(elapsed / static_cast<uint32_t>(settings.lfu_decay_time));
  return periods > counter ? 0 : counter - periods;
}

// Counts a use: the higher the counter, the less likely it rises.
inline uint32_t LfuTouched(uint32_t age, int64_t now_ms, const config::Settings& settings,
                           base::Rng& rng) {
  int counter = LfuDecayed(age, now_ms, settings);
  if (counter < 255) {
    const int above = counter > kLfuInitial ? counter - kLfuInitial : 0;
    const double chance = 1.0 / (above * static_cast<double>(settings.lfu_log_factor) + 1);
    if (rng.Unit() < chance) ++counter;
  }
  return LfuPack(now_ms, counter);
}

inline uint32_t InitialAge(const config::Settings& settings, int64_t now_ms, uint32_t lru_clock) {
  return UsesLfu(settings.maxmemory_policy) ? LfuPack(now_ms, kLfuInitial) : lru_clock;
}

// The age of a key of which a file or RESTORE says what the policy needs; -1: it does not say.
inline uint32_t AgeFrom(const config::Settings& settings, int64_t now_ms, uint32_t lru_clock,
                        int64_t idle_seconds, int frequency) {
  if (UsesLfu(settings.maxmemory_policy)) {
    return LfuPack(now_ms, frequency >= 0 ? frequency : kLfuInitial);
  }
  return idle_seconds >= 0 ? (lru_clock - static_cast<uint32_t>(idle_seconds)) & kAgeMask
                           : lru_clock;
}

}  // namespace sava::engine
