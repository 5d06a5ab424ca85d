// Rate limits: four ways to count what a client took, as pure functions over a small state.
//
//   WINDOW   a number of tokens until the window ends, then all of them again:
//            "<reset Unix ms> <tokens left>"
//   TOKEN    tokens come back continuously, up to a capacity: "<Unix ms> <tokens left>", the tokens
//            with up to nine decimals
//   GCRA     the generic cell rate algorithm: "<theoretical arrival time in ns>"
//   SLIDING  at most `limit` in any span of a period: "<Unix ms> <taken> <ms later> <taken> ...",
//            oldest first, at most kSlidingEntries pairs
//
// The text is what a key holds (docs/types/limits.md). Time comes in as a parameter, there is no
// lock and no allocation; threads that share a state must guard it. A state whose RateTtl has
// passed is as good as a fresh one, so a key may expire then.
//
// Numbers: CheckRule bounds limit, period and capacity, the callers bound cost (kMaxTokens) and now
// (kMaxNowMs), ParseBucket bounds what was stored; within these nothing here overflows.
// Cost: O(1); SLIDING O(kSlidingEntries).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sava::types {

enum class RateAlgorithm : uint8_t { kWindow, kToken, kGcra, kSliding };

inline constexpr int64_t kMaxTokens = 1'000'000'000'000'000;  // limit, capacity, cost
inline constexpr int64_t kMaxPeriodMs = 1'000'000'000'000;    // 31 years
inline constexpr int64_t kMaxNowMs = 5'000'000'000'000;       // the year 2128
inline constexpr int64_t kMaxFillMs = 4'000'000'000'000;      // an empty bucket is full by then

struct RateRule {
  RateAlgorithm algorithm = RateAlgorithm::kWindow;
  int64_t limit = 1;
  int64_t period_ms = 1;
  int64_t capacity = 1;  // how many at once; differs from limit only by a BURST

  bool operator==(const RateRule&) const = default;
};

// By its name, whatever the case; false when there is none such.
bool ParseRateAlgorithm(std::string_view name, RateAlgorithm* out);
std::string_view RateAlgorithmName(RateAlgorithm algorithm);
// TOKEN and GCRA have a capacity of their own.
inline bool TakesBurst(RateAlgorithm algorithm) {
  return algorithm == RateAlgorithm::kToken || algorithm == RateAlgorithm::kGcra;
}
// Why the rule cannot be used; empty when it can.
std::string_view CheckRule(const RateRule& rule);

struct RateState {
  static constexpr uint32_t kSlidingEntries = 32;
  struct Taken {
    int64_t ms;
    int64_t count;
  };

  int64_t time = 0;       // WINDOW: last reset; TOKEN: when `tokens` was true; GCRA: ns
  int64_t tokens = 0;     // WINDOW, TOKEN
  uint32_t fraction = 0;  // TOKEN: billionths of a token
  uint32_t entries = 0;   // SLIDING
  // Ascending in ms; only the first `entries` mean anything.
  std::array<Taken, kSlidingEntries> taken;
};

// What a caller is told, in the order of RL.TAKE's reply.
struct RateAnswer {
  bool allowed = false;
  int64_t limit = 0;
  int64_t remaining = 0;
  int64_t retry_ms = 0;  // 0: allowed; -1: more than ever fits
  int64_t reset_ms = 0;  // until nothing is missing any more
};

// The state before anything was taken.
void FreshBucket(const RateRule& rule, int64_t now_ms, RateState* state);

// Takes `cost` if there is so much; the state changes only when it was allowed.
RateAnswer TakeTokens(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state);
// What TakeTokens would answer, with what remains before it.
RateAnswer PeekTokens(const RateRule& rule, int64_t cost, int64_t now_ms, const RateState& state);
// Gives back what was taken, the latest first, never beyond what there was. `allowed` says whether
// anything was missing; the state changes only then.
RateAnswer RefundTokens(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state);

// Milliseconds until the state is as good as a fresh one.
int64_t RateTtl(const RateRule& rule, const RateState& state, int64_t now_ms);
// For how long a key holds a state of that RateTtl, at least 1 ms. A WINDOW is kept for two periods
// from its reset on, so that a bucket whose window is over can still be read.
int64_t BucketLife(const RateRule& rule, int64_t ttl_ms);

// Room for the text of any state.
inline constexpr size_t kBucketText = 32 * 40;
// False when the text is not that of a bucket of this algorithm.
bool ParseBucket(RateAlgorithm algorithm, std::string_view text, RateState* state);
size_t FormatBucket(RateAlgorithm algorithm, const RateState& state, char* out);

// CL.THROTTLE: redis-cell's view of a GCRA bucket. The numbers may be any; times are kept in 128
// bits, and what cannot be counted in nanoseconds is refused.
struct CellRequest {
  int64_t max_burst = 0;
  int64_t count = 0;
  int64_t period_s = 0;
  int64_t quantity = 1;
};

struct CellAnswer {
  std::string_view error;  // empty: the rest is valid
  bool limited = false;    // if not, new_tat must be kept for ttl_ms, whatever the quantity
  int64_t limit = 0;
  int64_t remaining = 0;
  int64_t retry_s = -1;
  int64_t reset_s = 0;  // below zero when limited on a time in the past
  int64_t new_tat = 0;
  int64_t ttl_ms = 0;
};

// `tat` is the stored time, or now when there is none.
CellAnswer CellThrottle(const CellRequest& request, int64_t now_ns, int64_t tat);

}  // namespace sava::types
