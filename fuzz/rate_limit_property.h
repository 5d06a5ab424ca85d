// What must hold for any bytes as the string of a rate limit bucket, under any rule. Shared by the
// fuzz target and by the unit test that replays its corpus.

#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "types/counters/rate_limit.h"

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

  const auto negative = [](const RateAnswer& answer) {
    return answer.remaining < 0 || answer.retry_ms < -1 || answer.reset_ms < 0;
  };
  for (const int64_t now : {int64_t{0}, int64_t{1'700'000'000'000}, kMaxNowMs}) {
    state = again;
    if (!PeekTokens(rule, 0, now, state).allowed) return "taking nothing is refused";
    for (const int64_t cost : {int64_t{1}, rule.capacity, kMaxTokens}) {
      const RateAnswer peeked = PeekTokens(rule, cost, now, state);
      const RateAnswer taken = TakeTokens(rule, cost, now, &state);
      if (peeked.allowed != taken.allowed) return "peeking and taking differ";
      if (negative(peeked) || negative(taken)) return "a negative number";
      RateState after;
      if (taken.allowed &&
          !ParseBucket(algorithm, {text, FormatBucket(algorithm, state, text)}, &after)) {
        return "a bucket after a take cannot be read";
      }
    }
    if (RateTtl(rule, state, now) < 0) return "a negative time to live";
    if (negative(RefundTokens(rule, kMaxTokens, now, &state))) return "a negative number";
  }
  return {};
}

}  // namespace sava::types
