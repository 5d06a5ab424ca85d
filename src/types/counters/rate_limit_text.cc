// The texts of rate limits: names of algorithms, and buckets as strings hold them.
#include "base/text.h"
#include "types/counters/rate_limit.h"

namespace sava::types {

namespace {

// Reads a number of at most `max` up to `end` or the text's end; moves behind it.
bool ReadNumber(std::string_view* text, char end, int64_t max, int64_t* out) {
  const size_t size = text->size();
  const char* p = text->data();
  size_t n = 0;
  int64_t value = 0;
  while (n < size && n < 17) {
    const unsigned digit = static_cast<unsigned char>(p[n]) - '0';
    if (digit > 9) break;
    value = value * 10 + static_cast<int64_t>(digit);
    ++n;
  }
  if (n == 0 || n == 17 || value > max || (n > 1 && p[0] == '0')) return false;
  if (n < size) {
    if (p[n] != end || n + 1 == size) return false;
    ++n;
  }
  text->remove_prefix(n);
  *out = value;
  return true;
}

bool ParseFraction(std::string_view text, uint32_t* out) {
  if (text.empty() || text.size() > 9) return false;
  uint32_t value = 0;
  for (size_t i = 0; i < 9; ++i) {
    const unsigned digit = i < text.size() ? static_cast<unsigned char>(text[i]) - '0' : 0;
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

bool ParseLevel(std::string_view text, bool fractions, RateState* state) {
  if (!ReadNumber(&text, ' ', kMaxNowMs, &state->time) || text.empty()) return false;
  state->fraction = 0;
  const size_t point = fractions ? text.find('.') : std::string_view::npos;
  if (!ReadNumber(&text, fractions ? '.' : '\0', kMaxTokens, &state->tokens)) return false;
  if (point == std::string_view::npos) return text.empty();
  return ParseFraction(text, &state->fraction);
}

bool ParseSliding(std::string_view text, RateState* state) {
  state->entries = 0;
  int64_t ms = 0;
  int64_t sum = 0;
  while (!text.empty()) {
    if (state->entries == RateState::kSlidingEntries) return false;
    int64_t later = 0;
    int64_t count = 0;
    const bool read = ReadNumber(&text, ' ', kMaxNowMs, &later) && !text.empty() &&
                      ReadNumber(&text, ' ', kMaxTokens, &count);
    ms += later;
    sum += count;
    if (!read || count == 0 || ms > kMaxNowMs || sum > kMaxTokens) return false;
    if (state->entries > 0 && later == 0) return false;
    state->taken[state->entries++] = {ms, count};
  }
  return state->entries > 0;
}

size_t FormatFraction(uint32_t fraction, char* out) {
  size_t digits = 9;
  while (fraction % 10 == 0) {
    fraction /= 10;
    --digits;
  }
  for (size_t i = digits; i > 0; --i) {
    out[i] = static_cast<char>('0' + fraction % 10);
    fraction /= 10;
  }
  out[0] = '.';
  return digits + 1;
}

size_t FormatSliding(const RateState& state, char* out) {
  size_t size = 0;
  int64_t before = 0;
  for (uint32_t i = 0; i < state.entries; ++i) {
    if (i > 0) out[size++] = ' ';
    size += base::FormatInt(state.taken[i].ms - before, out + size);
    out[size++] = ' ';
    size += base::FormatInt(state.taken[i].count, out + size);
    before = state.taken[i].ms;
  }
  return size;
}

struct NamedAlgorithm {
  std::string_view name;
  RateAlgorithm algorithm;
};
constexpr NamedAlgorithm kAlgorithms[] = {
    {"window", RateAlgorithm::kWindow},
    {"token", RateAlgorithm::kToken},
    {"gcra", RateAlgorithm::kGcra},
    {"sliding", RateAlgorithm::kSliding},
};

}  // namespace

bool ParseRateAlgorithm(std::string_view name, RateAlgorithm* out) {
  for (const NamedAlgorithm& known : kAlgorithms) {
    if (base::EqualsNoCase(name, known.name)) {
      *out = known.algorithm;
      return true;
    }
  }
  return false;
}

std::string_view RateAlgorithmName(RateAlgorithm algorithm) {
  return kAlgorithms[static_cast<size_t>(algorithm)].name;
}

bool ParseBucket(RateAlgorithm algorithm, std::string_view text, RateState* state) {
  state->entries = 0;
  switch (algorithm) {
    case RateAlgorithm::kWindow:
      return ParseLevel(text, false, state);
    case RateAlgorithm::kToken:
      return ParseLevel(text, true, state);
    case RateAlgorithm::kGcra:
      return base::ParseInt(text, &state->time);
    case RateAlgorithm::kSliding:
      return ParseSliding(text, state);
  }
  return false;
}

size_t FormatBucket(RateAlgorithm algorithm, const RateState& state, char* out) {
  if (algorithm == RateAlgorithm::kSliding) return FormatSliding(state, out);
  size_t size = base::FormatInt(state.time, out);
  if (algorithm == RateAlgorithm::kGcra) return size;
  out[size++] = ' ';
  size += base::FormatInt(state.tokens, out + size);
  if (algorithm == RateAlgorithm::kToken && state.fraction != 0) {
    size += FormatFraction(state.fraction, out + size);
  }
  return size;
}

}  // namespace sava::types
