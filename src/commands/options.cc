#include "commands/options.h"

#include <string>

namespace sava::commands {

ExpireUnit ExpireUnitNamed(std::string_view word) {
  if (base::EqualsNoCase(word, "EX")) return ExpireUnit::kSeconds;
  if (base::EqualsNoCase(word, "PX")) return ExpireUnit::kMilliseconds;
  if (base::EqualsNoCase(word, "EXAT")) return ExpireUnit::kAtSeconds;
  if (base::EqualsNoCase(word, "PXAT")) return ExpireUnit::kAtMilliseconds;
  return ExpireUnit::kNone;
}

namespace {

// The options SET alone knows; false when the word is none of them or contradicts an earlier one.
bool TakeSetOption(std::string_view word, StringOptions* options) {
  if (base::EqualsNoCase(word, "NX")) {
    options->nx = true;
    return !options->xx;
  }
  if (base::EqualsNoCase(word, "XX")) {
    options->xx = true;
    return !options->nx;
  }
  if (base::EqualsNoCase(word, "GET")) {
    options->get = true;
    return true;
  }
  if (base::EqualsNoCase(word, "KEEPTTL")) {
    options->keep_ttl = true;
    return !options->has_expiry();
  }
  return false;
}

bool TakeGetexOption(std::string_view word, StringOptions* options) {
  if (!base::EqualsNoCase(word, "PERSIST")) return false;
  options->persist = true;
  return !options->has_expiry();
}

bool SyntaxError(KeyContext& context) {
  context.Error(errors::kSyntax);
  return false;
}

}  // namespace

bool ParseStringOptions(KeyContext& context, OptionsOf command, size_t from,
                        StringOptions* options) {
  for (size_t i = from; i < context.argc(); ++i) {
    const std::string_view word = context.arg(i);
    const ExpireUnit unit = ExpireUnitNamed(word);
    if (unit == ExpireUnit::kNone) {
      const bool taken = command == OptionsOf::kSet ? TakeSetOption(word, options)
                                                    : TakeGetexOption(word, options);
      if (!taken) return SyntaxError(context);
      continue;
    }
    const bool other_unit = options->has_expiry() && options->expire_unit != unit;
    if (other_unit || options->keep_ttl || options->persist || i + 1 == context.argc()) {
      return SyntaxError(context);
    }
    options->expire_unit = unit;
    options->expire_arg = ++i;
  }
  return true;
}

bool ParseExpireTime(KeyContext& context, size_t arg, ExpireUnit unit, std::string_view command,
                     int64_t* expire_at) {
  int64_t time = 0;
  if (!context.IntArg(arg, &time)) return false;
  bool valid = time > 0;
  if (unit == ExpireUnit::kSeconds || unit == ExpireUnit::kAtSeconds) {
    valid = valid && !__builtin_mul_overflow(time, int64_t{1000}, &time);
  }
  if (!IsAbsolute(unit)) {
    valid = valid && !__builtin_add_overflow(time, context.now_ms(), &time);
  }
  if (!valid) {
    context.Error(errors::BadExpireTime(command));
    return false;
  }
  *expire_at = time;
  return true;
}

}  // namespace sava::commands
