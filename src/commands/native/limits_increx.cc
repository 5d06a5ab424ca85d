// INCREX, Redis 8.8's counter: adds an integer or a fraction, keeps the result within bounds, and
// sets, keeps or removes the expiry, all at once.
#include <cfloat>
#include <cmath>
#include <limits>
#include <string>

#include "commands/native/limits.h"
#include "commands/options.h"
#include "commands/texts.h"

namespace sava::commands::limits {

namespace {

__extension__ using Int128 = __int128;

struct IncrexOptions {
  // Where the option's number stands; 0: not given.
  size_t by_int = 0;
  size_t by_float = 0;
  size_t lower = 0;
  size_t upper = 0;
  size_t expire = 0;
  ExpireUnit unit = ExpireUnit::kNone;
  bool saturate = false;
  bool persist = false;
  bool enx = false;
};

// Where the number of the option at `i` is to be noted; nullptr when the word takes none.
size_t* PlaceFor(KeyContext& context, size_t i, IncrexOptions* options) {
  if (context.ArgIs(i, "BYINT")) return &options->by_int;
  if (context.ArgIs(i, "BYFLOAT")) return &options->by_float;
  if (context.ArgIs(i, "LBOUND")) return &options->lower;
  if (context.ArgIs(i, "UBOUND")) return &options->upper;
  const ExpireUnit unit = ExpireUnitNamed(context.arg(i));
  if (unit == ExpireUnit::kNone) return nullptr;
  if (options->unit == ExpireUnit::kNone) options->unit = unit;
  return &options->expire;
}

// No option may be given twice, and some exclude each other.
bool ReadOptions(KeyContext& context, IncrexOptions* options) {
  bool good = true;
  for (size_t i = 2; i < context.argc() && good; ++i) {
    bool* flag = nullptr;
    if (context.ArgIs(i, "SATURATE")) flag = &options->saturate;
    if (context.ArgIs(i, "PERSIST")) flag = &options->persist;
    if (context.ArgIs(i, "ENX")) flag = &options->enx;
    if (flag != nullptr) {
      good = !*flag;
      *flag = true;
      continue;
    }
    size_t* place = PlaceFor(context, i, options);
    good = place != nullptr && *place == 0 && i + 1 < context.argc();
    if (good) *place = ++i;
  }
  good = good && (options->by_int == 0 || options->by_float == 0) &&
         !(options->persist && (options->enx || options->expire != 0));
  if (!good) {
    context.Error(errors::kSyntax);
  } else if (options->enx && options->expire == 0) {
    context.Error("ERR ENX flag requires an expiration");
    good = false;
  }
  return good;
}

bool ReadNumber(KeyContext& context, size_t i, std::string_view name, int64_t* out) {
  if (i == 0) return true;
  return context.IntArg(i, out, "ERR " + std::string(name) + " is not an integer or out of range");
}

bool ReadNumber(KeyContext& context, size_t i, std::string_view name, long double* out) {
  if (i == 0 || base::ParseLongDouble(context.arg(i), out)) return true;
  context.Error("ERR " + std::string(name) + " is not a valid float");
  return false;
}

// A number in the kind the command counts in, and how far it may go.
template <typename T>
struct Numbers {
  T by = 1;
  T lower;
  T upper;
  T old = 0;
  T result = 0;
  T applied = 0;
};

template <typename T>
bool ReadNumbers(KeyContext& context, const IncrexOptions& options, Numbers<T>* n) {
  constexpr bool kFloat = std::is_same_v<T, long double>;
  n->lower = std::numeric_limits<T>::lowest();
  n->upper = std::numeric_limits<T>::max();
  const size_t by = kFloat ? options.by_float : options.by_int;
  if (!ReadNumber(context, by, "Increment", &n->by)) return false;
  if constexpr (kFloat) {
    if (std::isinf(n->by)) {
      context.Error("ERR BYFLOAT increment cannot be Infinity");
      return false;
    }
  }
  if (!ReadNumber(context, options.lower, "LBOUND", &n->lower) ||
      !ReadNumber(context, options.upper, "UBOUND", &n->upper)) {
    return false;
  }
  if (n->lower > n->upper) {
    context.Error("ERR LBOUND can't be greater than UBOUND");
    return false;
  }
  return true;
}

bool ReadOld(KeyContext& context, const Value& value, int64_t* out) {
  if (value.is_int()) {
    *out = value.integer;
  } else if (value && !base::ParseInt(value.bytes, out)) {
    context.Error(errors::kNotInteger);
    return false;
  }
  return true;
}

bool ReadOld(KeyContext& context, const Value& value, long double* out) {
  NumberText scratch;
  if (value && !base::ParseLongDouble(StringBytes(value, &scratch), out)) {
    context.Error(errors::kNotFloat);
    return false;
  }
  if (std::isinf(*out)) {
    context.Error("ERR value cannot be Infinity");
    return false;
  }
  return true;
}

enum class Sum : uint8_t { kGood, kDeclined, kFailed };

Sum Add(KeyContext& context, bool saturate, Numbers<int64_t>* n) {
  Int128 sum = Int128{n->old} + n->by;
  if (sum < n->lower || sum > n->upper) {
    if (!saturate) return Sum::kDeclined;
    sum = sum < n->lower ? n->lower : n->upper;
  }
  n->result = static_cast<int64_t>(sum);
  if (__builtin_sub_overflow(n->result, n->old, &n->applied)) {
    context.Error("ERR applied increment would overflow");
    return Sum::kFailed;
  }
  return Sum::kGood;
}

Sum Add(KeyContext& context, bool saturate, Numbers<long double>* n) {
  n->result = n->old + n->by;
  n->applied = n->by;
  if (std::isinf(n->result) || n->result < n->lower || n->result > n->upper) {
    if (!saturate) return Sum::kDeclined;
    n->result = std::min(std::max(n->result, n->lower), n->upper);
    n->applied = n->result - n->old;
    if (std::isinf(n->applied)) {
      context.Error("ERR applied increment would be Infinity");
      return Sum::kFailed;
    }
  }
  return Sum::kGood;
}

void ReplyNumber(KeyContext& context, int64_t value) { context.reply().Int(value); }

void ReplyNumber(KeyContext& context, long double value) {
  const std::string text = base::LongDoubleText(value);
  if (context.reply().resp() == 3) {
    context.reply().Raw("," + text + "\r\n");
  } else {
    context.reply().Bulk(text);
  }
}

template <typename T>
void ReplyPair(KeyContext& context, T value, T applied) {
  context.reply().Array(2);
  ReplyNumber(context, value);
  ReplyNumber(context, applied);
}

// Stores the sum and logs it as the SET it comes to.
template <typename T>
void Store(KeyContext& context, const IncrexOptions& options, T result, int64_t expire_at,
           bool had_expiry) {
  constexpr bool kFloat = std::is_same_v<T, long double>;
  const std::string_view key = context.arg(1);
  NumberText number;
  std::string fraction;
  std::string_view text;
  if constexpr (kFloat) {
    fraction = base::LongDoubleText(result);
    text = fraction;
    context.SetString(key, text, expire_at, false);
  } else {
    text = number.Write(result);
    context.SetInteger(key, result, expire_at);
  }
  context.Changed();
  context.Notify(kNotifyString, kFloat ? "incrbyfloat" : "incrby", key);
  if (expire_at == kKeepExpiry) {
    context.Effect({"SET", key, text, "KEEPTTL"});
  } else if (options.persist) {
    if (had_expiry) context.Notify(kNotifyGeneric, "persist", key);
    context.Effect({"SET", key, text});
  } else {
    NumberText time;
    context.Notify(kNotifyGeneric, "expire", key);
    context.Effect({"SET", key, text, "PXAT", time.Write(expire_at)});
  }
}

void RemoveExpired(KeyContext& context) {
  const std::string_view key = context.arg(1);
  if (!context.Delete(key)) return;
  context.Changed();
  context.Notify(kNotifyGeneric, "del", key);
  context.Effect({"DEL", key});
}

template <typename T>
void Run(KeyContext& context, const IncrexOptions& options) {
  Numbers<T> numbers;
  if (!ReadNumbers(context, options, &numbers)) return;
  int64_t expire_at = options.persist ? kNoExpiry : kKeepExpiry;
  if (options.expire != 0 &&
      !ParseExpireTime(context, options.expire, options.unit, "increx", &expire_at)) {
    return;
  }
  const Value value = context.Find(context.arg(1), Access::kWrite);
  if (!context.RequireString(value) || !ReadOld(context, value, &numbers.old)) return;
  const bool had_expiry = value.expire_at != kNoExpiry;
  const Sum sum = Add(context, options.saturate, &numbers);
  if (sum == Sum::kFailed) return;
  if (sum == Sum::kDeclined) {
    ReplyPair(context, numbers.old, T{0});
    return;
  }
  if (options.enx && had_expiry) expire_at = kKeepExpiry;
  if (expire_at >= 0 && context.Past(expire_at)) {
    RemoveExpired(context);
  } else {
    Store(context, options, numbers.result, expire_at, had_expiry);
  }
  ReplyPair(context, numbers.result, numbers.applied);
}

}  // namespace

void Increx(KeyContext& context) {
  IncrexOptions options;
  if (!ReadOptions(context, &options)) return;
  if (options.by_float != 0) {
    Run<long double>(context, options);
  } else {
    Run<int64_t>(context, options);
  }
}

}  // namespace sava::commands::limits
