#include "commands/blocking.h"

#include <cmath>

#include "base/text.h"

namespace sava::commands {

namespace {

bool FromNow(KeyContext& ctx, int64_t millis, int64_t* deadline_ms) {
  if (millis < 0) {
    ctx.Error(errors::kNegativeTimeout);
    return false;
  }
  *deadline_ms = 0;
  if (millis > 0 && __builtin_add_overflow(millis, ctx.now_ms(), deadline_ms)) {
    ctx.Error(errors::kTimeoutRange);
    return false;
  }
  return true;
}

}  // namespace

bool TimeoutSeconds(KeyContext& ctx, size_t i, int64_t* deadline_ms) {
  long double seconds = 0;
  if (!base::ParseLongDouble(ctx.arg(i), &seconds)) {
    ctx.Error("ERR timeout is not a float or out of range");
    return false;
  }
  const long double millis = std::ceil(seconds * 1000);
  if (millis >= 0x1p63L) {
    ctx.Error(errors::kTimeoutRange);
    return false;
  }
  return FromNow(ctx, millis < 0 ? -1 : static_cast<int64_t>(millis), deadline_ms);
}

bool TimeoutMillis(KeyContext& ctx, size_t i, int64_t* deadline_ms) {
  int64_t millis = 0;
  if (!ctx.IntArg(i, &millis, errors::kTimeoutNotInteger)) return false;
  return FromNow(ctx, millis, deadline_ms);
}

}  // namespace sava::commands
