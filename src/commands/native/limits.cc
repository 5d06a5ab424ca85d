// RL.TAKE, RL.PEEK, RL.REFUND, RL.TAKEALL and CL.THROTTLE, and the rows of the family.
#include "commands/native/limits.h"

#include <algorithm>
#include <string>
#include <vector>

#include "commands/native/families.h"
#include "commands/registry.h"
#include "commands/texts.h"
#include "types/counters/rate_limit.h"

namespace sava::commands {

namespace limits {

namespace {

using types::RateAlgorithm;
using types::RateAnswer;
using types::RateRule;
using types::RateState;

constexpr int64_t kTimeNotGiven = -1;

// How long a bucket written with NOW is kept at least: its times are not the server's, so the
// server cannot tell when it is as good as none.
constexpr int64_t kReplayLifeMs = 24 * 60 * 60 * 1000;

// What may follow the buckets.
struct Options {
  int64_t burst = 0;  // 0: not given
  int64_t cost = 1;
  int64_t now_ms = kTimeNotGiven;
};

bool Refuse(KeyContext& context, std::string_view reason) {
  std::string text = "ERR ";
  text += reason;
  context.Error(text);
  return false;
}

// ALGO limit period-ms from argument `at`; the rule is not checked yet.
bool ReadRule(KeyContext& context, size_t at, RateRule* rule) {
  if (!types::ParseRateAlgorithm(context.arg(at), &rule->algorithm)) {
    return Refuse(context, "unknown algorithm, use WINDOW, TOKEN, GCRA or SLIDING");
  }
  if (!context.IntArg(at + 1, &rule->limit) || !context.IntArg(at + 2, &rule->period_ms)) {
    return false;
  }
  rule->capacity = rule->limit;
  return true;
}

bool ReadOptions(KeyContext& context, size_t at, bool burst_allowed, Options* options) {
  for (; at < context.argc(); at += 2) {
    if (at + 1 == context.argc()) return Refuse(context, "syntax error");
    if (context.ArgIs(at, "COST")) {
      if (!context.IntArg(at + 1, &options->cost)) return false;
      if (options->cost < 0 || options->cost > types::kMaxTokens) {
        return Refuse(context, "COST must be between 0 and 1000000000000000");
      }
    } else if (context.ArgIs(at, "NOW")) {
      if (!context.IntArg(at + 1, &options->now_ms)) return false;
      if (options->now_ms < 0 || options->now_ms > types::kMaxNowMs) {
        return Refuse(context, "NOW must be a Unix time in ms, before the year 2128");
      }
    } else if (burst_allowed && context.ArgIs(at, "BURST")) {
      if (!context.IntArg(at + 1, &options->burst)) return false;
      if (options->burst < 1) return Refuse(context, "BURST must be positive");
    } else {
      return Refuse(context, "syntax error");
    }
  }
  return true;
}

bool CheckRule(KeyContext& context, const RateRule& rule) {
  const std::string_view problem = types::CheckRule(rule);
  return problem.empty() || Refuse(context, problem);
}

int64_t NowOf(const KeyContext& context, const Options& options) {
  if (options.now_ms != kTimeNotGiven) return options.now_ms;
  return std::min(context.now_ms(), types::kMaxNowMs);
}

// The arguments of RL.TAKE, PEEK and REFUND.
struct Call {
  std::string_view key;
  RateRule rule;
  Options options;
  int64_t now_ms = 0;
};

bool ReadCall(KeyContext& context, Call* call) {
  call->key = context.arg(1);
  if (!ReadRule(context, 2, &call->rule)) return false;
  if (context.argc() > 5) {
    if (!ReadOptions(context, 5, true, &call->options)) return false;
    if (call->options.burst != 0) {
      if (!types::TakesBurst(call->rule.algorithm)) {
        return Refuse(context, "BURST is for TOKEN and GCRA");
      }
      call->rule.capacity = call->options.burst;
    }
  }
  call->now_ms = NowOf(context, call->options);
  return CheckRule(context, call->rule);
}

// The state at the key, a fresh one when there is none. False, after the error, when the key holds
// something else. *found may be nullptr.
bool LoadBucket(KeyContext& context, std::string_view key, const RateRule& rule, int64_t now_ms,
                Access access, RateState* state, bool* found) {
  const Value value = context.Find(key, access);
  if (found != nullptr) *found = static_cast<bool>(value);
  if (!value) {
    types::FreshBucket(rule, now_ms, state);
    return true;
  }
  if (!context.RequireString(value)) return false;
  if (value.is_int()) {
    if (rule.algorithm == RateAlgorithm::kGcra) {
      state->time = value.integer;
      return true;
    }
  } else if (types::ParseBucket(rule.algorithm, value.bytes, state)) {
    return true;
  }
  context.Error(errors::kNotBucket);
  return false;
}

// How long the key lives: until the state is as good as none, longer for WINDOW, and a day at least
// where the caller gave the time. `reset_ms` is what the answer says.
int64_t LifeOf(const RateRule& rule, const RateState& state, int64_t now_ms, int64_t reset_ms,
               const Options& options) {
  const int64_t ttl = reset_ms > 0 ? reset_ms : types::RateTtl(rule, state, now_ms);
  const int64_t life = types::BucketLife(rule, ttl);
  return options.now_ms == kTimeNotGiven ? life : std::max(life, kReplayLifeMs);
}

// The log gets the result and its absolute time.
void StoreBucket(KeyContext& context, std::string_view key, const RateRule& rule,
                 const RateState& state, int64_t life_ms) {
  const int64_t expire_at = context.now_ms() + life_ms;
  char text[types::kBucketText];
  const std::string_view value(text, types::FormatBucket(rule.algorithm, state, text));
  if (rule.algorithm == RateAlgorithm::kGcra) {
    context.SetInteger(key, state.time, expire_at);
  } else {
    context.SetString(key, value, expire_at, false);
  }
  context.Changed();
  context.Notify(kNotifyString, "set", key);
  if (context.wants_effects()) {
    NumberText time;
    context.Effect({"SET", key, value, "PXAT", time.Write(expire_at)});
  } else {
    context.NoEffect();
  }
}

void ReplyFive(KeyContext& context, const RateAnswer& answer) {
  context.reply().Ints(
      {answer.allowed ? 1 : 0, answer.limit, answer.remaining, answer.retry_ms, answer.reset_ms});
}

// One bucket of RL.TAKEALL.
struct Part {
  std::string_view key;
  RateRule rule;
  RateState state;
  RateAnswer answer;
};

// Reads `n key ALGO limit period-ms ... [COST c] [NOW ms]`.
bool ReadParts(KeyContext& context, std::vector<Part>* parts, Options* options) {
  constexpr size_t kWords = 4;
  int64_t count = 0;
  if (!context.IntArg(1, &count)) return false;
  if (count < 1) return Refuse(context, "numkeys should be greater than 0");
  if (static_cast<uint64_t>(count) > (context.argc() - 2) / kWords) {
    return Refuse(context, "syntax error");
  }
  const size_t end = 2 + static_cast<size_t>(count) * kWords;
  if (!ReadOptions(context, end, false, options)) return false;
  parts->resize(static_cast<size_t>(count));
  std::vector<std::string_view> names;
  for (size_t i = 0; i < parts->size(); ++i) {
    Part& part = (*parts)[i];
    const size_t at = 2 + i * kWords;
    part.key = context.arg(at);
    names.push_back(part.key);
    if (!ReadRule(context, at + 1, &part.rule) || !CheckRule(context, part.rule)) return false;
  }
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) {
    return Refuse(context, "a key may be named only once");
  }
  return true;
}

// redis-cell reads numbers as Rust does: a sign and leading zeros are welcome.
bool ParseCellNumber(std::string_view text, int64_t* out) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  bool good = !text.empty();
  __extension__ __int128 value = 0;
  for (const char c : text) {
    good = good && c >= '0' && c <= '9' && value <= INT64_MAX;
    if (good) value = value * 10 + (c - '0');
  }
  if (negative) value = -value;
  if (!good || value > INT64_MAX || value < INT64_MIN) return false;
  *out = static_cast<int64_t>(value);
  return true;
}

bool CellNumber(KeyContext& context, size_t i, int64_t* out) {
  if (ParseCellNumber(context.arg(i), out)) return true;
  std::string error = "Cell error: Store error: Couldn't parse as integer: ";
  error += context.arg(i).substr(0, 128);
  context.Error(error);
  return false;
}

// The arrival time at the key, now when there is none. False, after the error, when the key holds
// something else.
bool LoadCell(KeyContext& context, std::string_view key, int64_t now_ns, int64_t* tat) {
  constexpr int64_t kNone = -1;  // redis-cell takes a stored -1 for no time
  const Value value = context.Find(key, Access::kWrite);
  *tat = kNone;
  if (value) {
    if (!context.RequireString(value)) return false;
    if (value.is_int()) {
      *tat = value.integer;
    } else if (!ParseCellNumber(value.bytes, tat)) {
      context.Error(errors::kNotBucket);
      return false;
    }
  }
  if (*tat == kNone) *tat = now_ns;
  return true;
}

}  // namespace

void Take(KeyContext& context) {
  Call call;
  if (!ReadCall(context, &call)) return;
  RateState state;
  if (!LoadBucket(context, call.key, call.rule, call.now_ms, Access::kWrite, &state, nullptr)) {
    return;
  }
  const RateAnswer answer = types::TakeTokens(call.rule, call.options.cost, call.now_ms, &state);
  if (answer.allowed && call.options.cost > 0) {
    StoreBucket(context, call.key, call.rule, state,
                LifeOf(call.rule, state, call.now_ms, answer.reset_ms, call.options));
  }
  ReplyFive(context, answer);
}

void Peek(KeyContext& context) {
  Call call;
  if (!ReadCall(context, &call)) return;
  RateState state;
  if (!LoadBucket(context, call.key, call.rule, call.now_ms, Access::kRead, &state, nullptr)) {
    return;
  }
  ReplyFive(context, types::PeekTokens(call.rule, call.options.cost, call.now_ms, state));
}

void Refund(KeyContext& context) {
  Call call;
  if (!ReadCall(context, &call)) return;
  RateState state;
  bool found = false;
  if (!LoadBucket(context, call.key, call.rule, call.now_ms, Access::kWrite, &state, &found)) {
    return;
  }
  RateAnswer answer = types::PeekTokens(call.rule, 1, call.now_ms, state);
  if (found && call.options.cost > 0) {
    answer = types::RefundTokens(call.rule, call.options.cost, call.now_ms, &state);
  } else {
    answer.allowed = false;
    answer.retry_ms = 0;
  }
  if (answer.allowed && types::RateTtl(call.rule, state, call.now_ms) > 0) {
    StoreBucket(context, call.key, call.rule, state,
                LifeOf(call.rule, state, call.now_ms, answer.reset_ms, call.options));
  } else if (answer.allowed) {  // nothing is missing any more: as good as no bucket
    context.Delete(call.key);
    context.Changed();
    context.Notify(kNotifyGeneric, "del", call.key);
    context.Effect({"DEL", call.key});
  }
  ReplyFive(context, answer);
}

void TakeAll(KeyContext& context) {
  std::vector<Part> parts;
  Options options;
  if (!ReadParts(context, &parts, &options)) return;
  const int64_t now_ms = NowOf(context, options);
  int64_t refused = -1;
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (!LoadBucket(context, part.key, part.rule, now_ms, Access::kWrite, &part.state, nullptr)) {
      return;
    }
    part.answer = types::PeekTokens(part.rule, options.cost, now_ms, part.state);
    if (!part.answer.allowed && refused < 0) refused = static_cast<int64_t>(i);
  }
  if (refused < 0 && options.cost > 0) {
    for (Part& part : parts) {
      part.answer = types::TakeTokens(part.rule, options.cost, now_ms, &part.state);
      StoreBucket(context, part.key, part.rule, part.state,
                  LifeOf(part.rule, part.state, now_ms, part.answer.reset_ms, options));
    }
  }
  protocol::Reply& reply = context.reply();
  reply.Array(3);
  reply.Int(refused < 0 ? 1 : 0);
  reply.Int(refused);
  reply.Array(static_cast<int64_t>(parts.size()));
  for (const Part& part : parts) ReplyFive(context, part.answer);
}

void Throttle(KeyContext& context) {
  if (context.argc() != 5 && context.argc() != 6) {
    context.Error(
        "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> "
        "<period> [<quantity>]");
    return;
  }
  types::CellRequest request;
  if (!CellNumber(context, 2, &request.max_burst) || !CellNumber(context, 3, &request.count) ||
      !CellNumber(context, 4, &request.period_s)) {
    return;
  }
  if (context.argc() == 6 && !CellNumber(context, 5, &request.quantity)) return;
  constexpr RateRule kGcra{RateAlgorithm::kGcra};
  const int64_t now_ms = std::min(context.now_ms(), types::kMaxNowMs);
  const int64_t now_ns = now_ms * 1'000'000;
  const std::string_view key = context.arg(1);
  RateState state;
  if (!LoadCell(context, key, now_ns, &state.time)) return;
  const types::CellAnswer answer = types::CellThrottle(request, now_ns, state.time);
  if (!answer.error.empty()) {
    context.Error(answer.error);
    return;
  }
  if (!answer.limited) {
    state.time = answer.new_tat;
    StoreBucket(context, key, kGcra, state, types::BucketLife(kGcra, answer.ttl_ms));
  }
  context.reply().Ints(
      {answer.limited ? 1 : 0, answer.limit, answer.remaining, answer.retry_s, answer.reset_s});
}

}  // namespace limits

namespace {

constexpr KeySpec kUpdateKey = KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate);
constexpr uint32_t kTakeFlags = kWrite | kDenyOom | kFast;

constexpr CommandSpec kRows[] = {
    {.name = "rl.take",
     .handler = limits::Take,
     .arity = -5,
     .flags = kTakeFlags,
     .acl = kAclString,
     .keys = {kUpdateKey},
     .group = "limits",
     .since = "0.1.0",
     .summary = "Takes tokens from a rate limit, if there are enough.",
     .complexity = "O(1)",
     .arguments = "key (algorithm: WINDOW|TOKEN|GCRA|SLIDING) limit:integer period-ms:integer "
                  "[BURST burst:integer] [COST cost:integer] [NOW unix-time-ms:unix-time]",
     .reply = "array of five integers: allowed 0 or 1, limit, remaining, ms to wait (0: allowed, "
              "-1: never fits), ms until nothing is missing",
     .example = "RL.TAKE user:7 WINDOW 3 60000"},
    {.name = "rl.peek",
     .handler = limits::Peek,
     .arity = -5,
     .flags = kReadonly | kFast,
     .acl = kAclString,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "limits",
     .since = "0.1.0",
     .summary = "Tells what RL.TAKE would answer, without taking.",
     .complexity = "O(1)",
     .arguments = "key (algorithm: WINDOW|TOKEN|GCRA|SLIDING) limit:integer period-ms:integer "
                  "[BURST burst:integer] [COST cost:integer] [NOW unix-time-ms:unix-time]",
     .reply = "array of five integers, as RL.TAKE's; what remains is told before taking",
     .example = "RL.PEEK user:7 WINDOW 3 60000"},
    {.name = "rl.refund",
     .handler = limits::Refund,
     .arity = -5,
     .flags = kWrite | kFast,
     .acl = kAclString,
     .keys = {kUpdateKey},
     .group = "limits",
     .since = "0.1.0",
     .summary = "Gives tokens back to a rate limit.",
     .complexity = "O(1)",
     .arguments = "key (algorithm: WINDOW|TOKEN|GCRA|SLIDING) limit:integer period-ms:integer "
                  "[BURST burst:integer] [COST cost:integer] [NOW unix-time-ms:unix-time]",
     .reply = "array of five integers, as RL.TAKE's; the first is 0 when nothing was missing",
     .example = "RL.REFUND user:7 WINDOW 3 60000"},
    {.name = "rl.takeall",
     .handler = limits::TakeAll,
     .arity = -6,
     .flags = kWrite | kDenyOom,
     .acl = kAclString,
     .keys = {KeySpec{.flags = kKeyRw | kKeyAccess | kKeyUpdate,
                      .first = 1,
                      .step = 4,
                      .keynum = true,
                      .keynum_at = 0,
                      .keynum_first = 1}},
     .group = "limits",
     .since = "0.1.0",
     .summary = "Takes tokens from several rate limits, from all of them or from none.",
     .complexity = "O(N) where N is the number of keys",
     .arguments = "numkeys:integer (bucket: key (algorithm: WINDOW|TOKEN|GCRA|SLIDING) "
                  "limit:integer period-ms:integer ...) [COST cost:integer] "
                  "[NOW unix-time-ms:unix-time]",
     .reply = "array: allowed 0 or 1, index of the first bucket that refuses or -1, and for each "
              "bucket the five integers of RL.TAKE",
     .example = "RL.TAKEALL 2 user:7 WINDOW 3 60000 all TOKEN 1000 1000"},
    {.name = "cl.throttle",
     .handler = limits::Throttle,
     .arity = -1,
     .flags = kTakeFlags,
     .acl = kAclString,
     .keys = {kUpdateKey},
     .group = "limits",
     .since = "0.1.0",
     .summary = "Limits a rate as redis-cell does (GCRA).",
     .complexity = "O(1)",
     .arguments = "key max-burst:integer count-per-period:integer period:integer "
                  "[quantity:integer]",
     .reply = "array of five integers: limited 0 or 1, limit, remaining, seconds to wait (-1: "
              "allowed, or never fits), seconds until nothing is missing",
     .example = "CL.THROTTLE user:7 15 30 60"},
    {.name = "increx",
     .handler = limits::Increx,
     .arity = -2,
     .flags = kTakeFlags,
     .acl = kAclString | kAclLimit,
     .keys = {kUpdateKey},
     .group = "string",
     .since = "8.8.0",
     .summary = "Adds to the number at a key, within bounds, and sets its expiry.",
     .complexity = "O(1)",
     .arguments = "key [increment: BYFLOAT float:double | BYINT integer] [SATURATE] "
                  "[LBOUND lowerbound:string] [UBOUND upperbound:string] "
                  "[expiration: EX seconds:integer | PX milliseconds:integer | "
                  "EXAT unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | "
                  "PERSIST] [ENX]",
     .reply = "array: the number now, and what was added to it (0 when it would have left the "
              "bounds)",
     .example = "INCREX visits BYINT 1 UBOUND 100 EX 60 ENX"},
};

}  // namespace

std::span<const CommandSpec> LimitCommands() { return kRows; }

}  // namespace sava::commands
