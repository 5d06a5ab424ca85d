#include "types/counters/rate_limit.h"

#include <algorithm>
#include <limits>

namespace sava::types {

namespace {

__extension__ using Int128 = __int128;

constexpr int64_t kBillion = 1'000'000'000;
constexpr int64_t kNanosPerMilli = 1'000'000;
// An entry of SLIDING may be counted this part of a period too long when there are too many.
constexpr int64_t kSlidingCells = 16;

int64_t CeilDiv(int64_t value, int64_t by) { return value / by + (value % by > 0 ? 1 : 0); }

// ---- WINDOW ----

// The window that holds now: the stored one, or a new one when more than the period has passed.
bool WindowOver(const RateRule& rule, const RateState& state, int64_t now_ms) {
  return now_ms - state.time > rule.period_ms;
}

int64_t WindowLeft(const RateRule& rule, const RateState& state, int64_t now_ms) {
  return state.time + rule.period_ms + 1 - now_ms;
}

// ---- TOKEN ----

struct Level {
  int64_t tokens;
  uint32_t fraction;
};

// What a time is worth, cut to billionths; no more than the capacity and a fraction.
Level Refill(const RateRule& rule, int64_t elapsed_ms) {
  const Int128 units = Int128{elapsed_ms} * rule.limit;
  Int128 rest;
  Level gained{};
  if (units <= std::numeric_limits<int64_t>::max()) [[likely]] {
    const auto small = static_cast<int64_t>(units);
    gained.tokens = std::min(small / rule.period_ms, rule.capacity);
    rest = small % rule.period_ms;
  } else {
    const Int128 whole = units / rule.period_ms;
    gained.tokens = whole > rule.capacity ? rule.capacity : static_cast<int64_t>(whole);
    rest = units % rule.period_ms;
  }
  if (rule.period_ms < kBillion) {  // 11 days: 64 bits are enough
    gained.fraction = static_cast<uint32_t>(static_cast<int64_t>(rest) * kBillion / rule.period_ms);
  } else {
    gained.fraction = static_cast<uint32_t>(rest * kBillion / rule.period_ms);
  }
  return gained;
}

Level LevelAt(const RateRule& rule, const RateState& state, int64_t now_ms) {
  Level level{state.tokens, state.fraction};
  if (now_ms > state.time && level.tokens < rule.capacity) {
    const Level gained = Refill(rule, now_ms - state.time);
    level.tokens += gained.tokens;
    level.fraction += gained.fraction;
    if (level.fraction >= kBillion) {
      level.fraction -= kBillion;
      ++level.tokens;
    }
    if (level.tokens >= rule.capacity) level = {rule.capacity, 0};
  }
  return level;
}

// Milliseconds until the level has grown to `wanted` tokens.
int64_t TimeToGrow(const RateRule& rule, const Level& level, int64_t wanted) {
  if (level.tokens >= wanted) return 0;
  int64_t units = 0;
  if (level.fraction == 0 &&
      !__builtin_mul_overflow(wanted - level.tokens, rule.period_ms, &units)) {
    return CeilDiv(units, rule.limit);
  }
  const Int128 missing = Int128{wanted - level.tokens} * kBillion - level.fraction;
  const Int128 per_ms = Int128{rule.limit} * kBillion;
  return static_cast<int64_t>((missing * rule.period_ms + per_ms - 1) / per_ms);
}

// ---- GCRA ----

int64_t EmissionNs(const RateRule& rule) { return rule.period_ms * kNanosPerMilli / rule.limit; }

int64_t ArrivalTime(const RateState& state, int64_t now_ns) { return std::max(state.time, now_ns); }

// ---- SLIDING ----

// Entries up to this one are out of the window.
uint32_t FirstCounted(const RateRule& rule, const RateState& state, int64_t now_ms) {
  uint32_t first = 0;
  while (first < state.entries && now_ms - state.taken[first].ms >= rule.period_ms) ++first;
  return first;
}

int64_t SumFrom(const RateState& state, uint32_t first) {
  int64_t sum = 0;
  for (uint32_t i = first; i < state.entries; ++i) sum += state.taken[i].count;
  return sum;
}

void DropBefore(RateState* state, uint32_t first) {
  if (first == 0) return;
  std::copy(state->taken.begin() + first, state->taken.begin() + state->entries,
            state->taken.begin());
  state->entries -= first;
}

// Makes room: what lies in one sixteenth of a period counts as taken at its latest time. Never
// early, and at most that part of a period late.
void Coarsen(const RateRule& rule, RateState* state) {
  const int64_t cell = rule.period_ms / kSlidingCells + 1;
  uint32_t kept = 0;
  for (uint32_t i = 1; i < state->entries; ++i) {
    const RateState::Taken& next = state->taken[i];
    RateState::Taken& last = state->taken[kept];
    if (last.ms / cell == next.ms / cell) {
      last = {next.ms, last.count + next.count};
    } else {
      state->taken[++kept] = next;
    }
  }
  state->entries = kept + 1;
}

void AddTaken(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state) {
  DropBefore(state, FirstCounted(rule, *state, now_ms));
  if (state->entries > 0) {
    RateState::Taken& newest = state->taken[state->entries - 1];
    if (newest.ms >= now_ms) {
      newest.count += cost;
      return;
    }
    if (state->entries == RateState::kSlidingEntries) Coarsen(rule, state);
  }
  state->taken[state->entries++] = {now_ms, cost};
}

// Milliseconds until `missing` more tokens have left the window.
int64_t TimeToFree(const RateRule& rule, const RateState& state, uint32_t first, int64_t missing,
                   int64_t now_ms) {
  for (uint32_t i = first; i < state.entries; ++i) {
    missing -= state.taken[i].count;
    if (missing <= 0) return state.taken[i].ms + rule.period_ms - now_ms;
  }
  return -1;
}

// ---- one answer for each ----

RateAnswer AskWindow(const RateRule& rule, int64_t cost, int64_t now_ms, RateState& state,
                     bool take) {
  RateAnswer answer;
  const bool over = WindowOver(rule, state, now_ms);
  const int64_t tokens = over ? rule.limit : state.tokens;
  answer.allowed = cost <= tokens;
  answer.remaining = tokens;
  if (answer.allowed && take) {
    if (over) state.time = now_ms;
    state.tokens = answer.remaining = tokens - cost;
  }
  // Nothing is missing in a full bucket, whenever its window ends.
  answer.reset_ms = answer.remaining >= rule.limit ? 0 : WindowLeft(rule, state, now_ms);
  if (!answer.allowed) answer.retry_ms = cost > rule.limit ? -1 : answer.reset_ms;
  return answer;
}

RateAnswer AskToken(const RateRule& rule, int64_t cost, int64_t now_ms, RateState& state,
                    bool take) {
  RateAnswer answer;
  Level level = LevelAt(rule, state, now_ms);
  answer.allowed = cost <= level.tokens;
  if (answer.allowed && take) {
    level.tokens -= cost;
    state.time = std::max(state.time, now_ms);
    state.tokens = level.tokens;
    state.fraction = level.fraction;
  }
  answer.remaining = level.tokens;
  // From the stored level, so that nothing cut off since moves the time. When nothing was taken
  // that may lie in the past: full long ago.
  const Level stored{state.tokens, state.fraction};
  const int64_t full = TimeToGrow(rule, stored, rule.capacity);
  if (full != 0) answer.reset_ms = std::max<int64_t>(state.time + full - now_ms, 0);
  if (!answer.allowed) {
    answer.retry_ms =
        cost > rule.capacity ? -1 : state.time + TimeToGrow(rule, stored, cost) - now_ms;
  }
  return answer;
}

RateAnswer AskGcra(const RateRule& rule, int64_t cost, int64_t now_ms, RateState& state,
                   bool take) {
  RateAnswer answer;
  const int64_t now = now_ms * kNanosPerMilli;
  const int64_t emission = EmissionNs(rule);
  const int64_t tolerance = emission * rule.capacity;
  const int64_t ahead = ArrivalTime(state, now) - now;
  int64_t room = tolerance - ahead;  // cannot overflow: both lie within 64 bits of now
  const Int128 wanted = Int128{cost} * emission;
  answer.allowed = cost == 0 || wanted <= room;  // a smaller burst may leave less than no room
  if (answer.allowed && take) {
    state.time = now + ahead + static_cast<int64_t>(wanted);
    room -= static_cast<int64_t>(wanted);
  }
  answer.remaining = room > 0 ? room / emission : 0;
  answer.reset_ms = CeilDiv(tolerance - room, kNanosPerMilli);
  if (!answer.allowed) {
    const Int128 wait = (wanted - room + kNanosPerMilli - 1) / kNanosPerMilli;
    answer.retry_ms = cost > rule.capacity ? -1 : static_cast<int64_t>(wait);
  }
  return answer;
}

RateAnswer AskSliding(const RateRule& rule, int64_t cost, int64_t now_ms, RateState& state,
                      bool take) {
  RateAnswer answer;
  const uint32_t first = FirstCounted(rule, state, now_ms);
  const int64_t left = std::max<int64_t>(rule.limit - SumFrom(state, first), 0);
  answer.allowed = cost <= left;
  answer.remaining = left;
  if (!answer.allowed) {
    answer.retry_ms =
        cost > rule.limit
            ? -1
            : TimeToFree(rule, state, first, SumFrom(state, first) - rule.limit + cost, now_ms);
  } else if (take && cost > 0) {
    AddTaken(rule, cost, now_ms, &state);
    answer.remaining = left - cost;
  }
  answer.reset_ms = RateTtl(rule, state, now_ms);
  return answer;
}

RateAnswer Ask(const RateRule& rule, int64_t cost, int64_t now_ms, RateState& state, bool take) {
  RateAnswer answer;
  switch (rule.algorithm) {
    case RateAlgorithm::kWindow:
      answer = AskWindow(rule, cost, now_ms, state, take);
      break;
    case RateAlgorithm::kToken:
      answer = AskToken(rule, cost, now_ms, state, take);
      break;
    case RateAlgorithm::kGcra:
      answer = AskGcra(rule, cost, now_ms, state, take);
      break;
    case RateAlgorithm::kSliding:
      answer = AskSliding(rule, cost, now_ms, state, take);
      break;
  }
  answer.limit = rule.capacity;
  return answer;
}

// ---- refunds ----

bool RefundWindow(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state) {
  if (WindowOver(rule, *state, now_ms) || state->tokens >= rule.limit) return false;
  state->tokens = std::min(rule.limit, state->tokens + cost);
  return true;
}

bool RefundToken(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state) {
  Level level = LevelAt(rule, *state, now_ms);
  if (level.tokens >= rule.capacity) return false;
  level.tokens += cost;
  if (level.tokens >= rule.capacity) level = {rule.capacity, 0};
  state->time = std::max(state->time, now_ms);
  state->tokens = level.tokens;
  state->fraction = level.fraction;
  return true;
}

bool RefundGcra(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state) {
  const int64_t now = now_ms * kNanosPerMilli;
  if (state->time <= now) return false;
  const Int128 back = Int128{state->time} - Int128{cost} * EmissionNs(rule);
  state->time = back < now ? now : static_cast<int64_t>(back);
  return true;
}

bool RefundSliding(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state) {
  DropBefore(state, FirstCounted(rule, *state, now_ms));
  if (state->entries == 0) return false;
  while (cost > 0 && state->entries > 0) {
    RateState::Taken& newest = state->taken[state->entries - 1];
    const int64_t back = std::min(cost, newest.count);
    newest.count -= back;
    cost -= back;
    if (newest.count == 0) --state->entries;
  }
  return true;
}

}  // namespace

std::string_view CheckRule(const RateRule& rule) {
  if (rule.limit < 1 || rule.limit > kMaxTokens) {
    return "limit must be between 1 and 1000000000000000";
  }
  if (rule.period_ms < 1 || rule.period_ms > kMaxPeriodMs) {
    return "period must be between 1 and 1000000000000 ms";
  }
  if (rule.capacity < 1 || rule.capacity > kMaxTokens) {
    return "burst must be between 1 and 1000000000000000";
  }
  if (rule.capacity != rule.limit && !TakesBurst(rule.algorithm)) {
    return "burst is for token and gcra";
  }
  if (rule.algorithm == RateAlgorithm::kGcra && EmissionNs(rule) < 1) {
    return "gcra needs a limit of at most one per nanosecond";
  }
  if (Int128{rule.capacity} * rule.period_ms / rule.limit > kMaxFillMs) {
    return "burst would take too long to come back";
  }
  return {};
}

void FreshBucket(const RateRule& rule, int64_t now_ms, RateState* state) {
  const bool gcra = rule.algorithm == RateAlgorithm::kGcra;
  state->time = gcra ? now_ms * kNanosPerMilli : now_ms;
  state->tokens = rule.capacity;
  state->fraction = 0;
  state->entries = 0;
}

RateAnswer TakeTokens(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state) {
  return Ask(rule, cost, now_ms, *state, true);
}

RateAnswer PeekTokens(const RateRule& rule, int64_t cost, int64_t now_ms, const RateState& state) {
  // Nothing is written when nothing is taken.
  return Ask(rule, cost, now_ms, const_cast<RateState&>(state), false);
}

RateAnswer RefundTokens(const RateRule& rule, int64_t cost, int64_t now_ms, RateState* state) {
  bool missing = false;
  switch (rule.algorithm) {
    case RateAlgorithm::kWindow:
      missing = RefundWindow(rule, cost, now_ms, state);
      break;
    case RateAlgorithm::kToken:
      missing = RefundToken(rule, cost, now_ms, state);
      break;
    case RateAlgorithm::kGcra:
      missing = RefundGcra(rule, cost, now_ms, state);
      break;
    case RateAlgorithm::kSliding:
      missing = RefundSliding(rule, cost, now_ms, state);
      break;
  }
  RateAnswer answer = PeekTokens(rule, 1, now_ms, *state);
  answer.allowed = missing;
  answer.retry_ms = 0;
  return answer;
}

int64_t RateTtl(const RateRule& rule, const RateState& state, int64_t now_ms) {
  switch (rule.algorithm) {
    case RateAlgorithm::kWindow:
      return std::max<int64_t>(WindowLeft(rule, state, now_ms), 0);
    case RateAlgorithm::kToken: {
      // More than ever fits was put there by hand; it is let be for a period.
      if (state.tokens > rule.capacity) return rule.period_ms;
      const Level level{state.tokens, state.fraction};
      const int64_t full = TimeToGrow(rule, level, rule.capacity);
      return full == 0 ? 0 : std::max<int64_t>(state.time + full - now_ms, 0);
    }
    case RateAlgorithm::kGcra: {
      const int64_t now = now_ms * kNanosPerMilli;
      return CeilDiv(ArrivalTime(state, now) - now, kNanosPerMilli);
    }
    case RateAlgorithm::kSliding:
      if (state.entries == 0) return 0;
      return std::max<int64_t>(state.taken[state.entries - 1].ms + rule.period_ms - now_ms, 0);
  }
  return 0;
}

int64_t BucketLife(const RateRule& rule, int64_t ttl_ms) {
  const int64_t extra = rule.algorithm == RateAlgorithm::kWindow ? rule.period_ms - 1 : 0;
  return std::max<int64_t>(ttl_ms + extra, 1);
}

// ---- CL.THROTTLE ----

namespace {

// Whole seconds, one more when at least a millisecond is left over.
int64_t CellSeconds(Int128 nanos) {
  const Int128 seconds = nanos / kBillion;
  const Int128 millis = nanos % kBillion / kNanosPerMilli;
  return static_cast<int64_t>(seconds + (millis > 0 ? 1 : 0));
}

// All of it can be counted in nanoseconds.
bool FitsNanos(Int128 nanos) {
  return nanos <= std::numeric_limits<int64_t>::max() &&
         nanos >= std::numeric_limits<int64_t>::min();
}

// How many emissions fit, counted in whole microseconds as redis-cell does; a rate above one per
// microsecond has room without end.
int64_t CellRemaining(Int128 room, int64_t emission) {
  if (room <= -Int128{emission}) return 0;
  const Int128 room_us = room / 1000;
  const int64_t emission_us = emission / 1000;
  const auto part = static_cast<double>(room_us);
  const auto whole = static_cast<double>(emission_us);
  const double count = whole == 0 && part == 0 ? 0 : part / whole;
  if (count >= 9.2e18) return std::numeric_limits<int64_t>::max();
  if (count <= -9.2e18) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(count);
}

}  // namespace

CellAnswer CellThrottle(const CellRequest& request, int64_t now_ns, int64_t tat) {
  constexpr std::string_view kOutOfRange = "ERR value is out of range";
  CellAnswer answer;
  const auto refuse = [&](std::string_view error) {
    answer.error = error;
    return answer;
  };
  const Int128 period = Int128{request.period_s} * kBillion;
  if (!FitsNanos(period) || request.max_burst == std::numeric_limits<int64_t>::max()) {
    return refuse(kOutOfRange);
  }
  if (request.count == 0 || period == 0) {
    return refuse("Cell error: Store error: Zero rates are not supported");
  }
  const auto emission =
      static_cast<int64_t>(static_cast<double>(period) / static_cast<double>(request.count));
  if (emission == 0) return refuse("Cell error: Store error: Zero rates are not supported");
  answer.limit = request.max_burst + 1;
  const Int128 tolerance = Int128{emission} * answer.limit;
  if (!FitsNanos(tolerance)) return refuse(kOutOfRange);

  const Int128 increment = Int128{emission} * request.quantity;
  const Int128 new_tat = Int128{std::max(now_ns, tat)} + increment;
  const Int128 late = now_ns - (new_tat - tolerance);  // below zero: too early
  answer.limited = late < 0;
  Int128 ttl;
  if (answer.limited) {
    if (increment <= tolerance) answer.retry_s = CellSeconds(-late);
    ttl = Int128{tat} - now_ns;  // below zero for a time in the past, as in redis-cell
  } else {
    ttl = new_tat - now_ns;
    if (ttl < 0) return refuse("Cell error: Store error: Error while setting key expire");
    if (!FitsNanos(new_tat)) return refuse(kOutOfRange);
    answer.new_tat = static_cast<int64_t>(new_tat);
    answer.ttl_ms = static_cast<int64_t>((ttl + kNanosPerMilli - 1) / kNanosPerMilli);
  }
  answer.remaining = CellRemaining(tolerance - ttl, emission);
  answer.reset_s = CellSeconds(ttl);
  return answer;
}

}  // namespace sava::types
