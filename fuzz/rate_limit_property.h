// What must hold for any bytes as the string of a rate limit bucket, under any rule. Shared by the
// fuzz target and by the unit test that replays its corpus.

#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "types/rate_limit.h"

namespace sava::types {

// The first byte chooses the algorithm, the next 24 limit, period and capacity; the rest is the
// string. Empty if all is well, otherwise what went wrong.
inline std::string CheckBucketText(std::string_view bytes) {
  constexpr size_t kHead = 1 + 3 * sizeof(int64_t);
  if (bytes.size() < kHead) return {};
  int64_t numbers[3];
  memcpy(numbers, bytes.data() + 1, sizeof numbers);
  const auto algorithm = static_cast<RateAlgorithm>(static_cast<uint8_t>(bytes[0]) % 4);
  const RateRule rule{algorithm, numbers[0], numbers[1],
                      TakesBurst(algorithm) ? numbers[2] : numbers[0]};
  if (!CheckRule(rule).empty()) return {};
  RateState state;
  if (!ParseBucket(algorithm, bytes.substr(kHead), &state)) return {};

  char text[kBucketText];
  const std::string first(text, FormatBucket(algorithm, state, text));
  RateState again;
  if (!ParseBucket(algorithm, first, &again)) return "a written bucket cannot be read";
  if (std::string(text, FormatBucket(algorithm, again, text)) != first) return "it changed";

  constexpr int64_t kNow = 1'700'000'000'000;
  for (const int64_t cost : {int64_t{1}, rule.capacity, kMaxTokens}) {
    const RateAnswer peeked = PeekTokens(rule, cost, kNow, state);
    const RateAnswer taken = TakeTokens(rule, cost, kNow, &state);
    if (peeked.allowed != taken.allowed) return "peeking and taking differ";
    if (taken.remaining < 0 || taken.reset_ms < 0) return "a negative number";
    if (taken.allowed &&
        !ParseBucket(algorithm, {text, FormatBucket(algorithm, state, text)}, &again)) {
      return "a bucket after a take cannot be read";
    }
  }
  if (RateTtl(rule, state, kNow) < 0) return "a negative time to live";
  RefundTokens(rule, kMaxTokens, kNow, &state);
  return {};
}

}  // namespace sava::types
