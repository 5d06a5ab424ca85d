// Strings changed in part: ranges, appending, and strings that are numbers. Whatever is edited in
// place becomes raw; whatever is counted becomes a number.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "commands/redis/strings.h"

namespace sava::commands {

bool CheckStringSize(Context& context, int64_t size, int64_t more) {
  int64_t total = 0;
  if (!__builtin_add_overflow(size, more, &total) && total <= context.max_string_size()) {
    return true;
  }
  context.Error(errors::kStringTooLong);
  return false;
}

namespace strings {

namespace {

int64_t Length(const Value& value) {
  NumberText scratch;
  return static_cast<int64_t>(StringBytes(value, &scratch).size());
}

// The bounds of a range that may count from the end, cut to what is there. False when it is empty.
bool CutRange(int64_t size, int64_t* start, int64_t* end) {
  if (*start < 0 && *end < 0 && *start > *end) return false;
  if (*start < 0) *start += size;
  if (*end < 0) *end += size;
  if (*start < 0) *start = 0;
  if (*end < 0) *end = 0;
  if (*end >= size) *end = size - 1;
  return *start <= *end;
}

void IncrementBy(Context& context, int64_t increment) {
  const std::string_view key = context.arg(1);
  const Value value = context.Find(key, Access::kWrite);
  int64_t number = 0;
  if (value.is_int()) {
    number = value.integer;
  } else if (value) {
    if (!context.RequireString(value)) return;
    if (!base::ParseInt(value.bytes, &number)) {
      context.Error(errors::kNotInteger);
      return;
    }
  }
  if (__builtin_add_overflow(number, increment, &number)) {
    context.Error(errors::kOverflow);
    return;
  }
  context.SetInteger(key, number);
  context.Changed();
  context.Notify(kNotifyString, "incrby", key);
  context.reply().Int(number);
}

}  // namespace

void Append(Context& context) {
  const std::string_view key = context.arg(1);
  const std::string_view more = context.arg(2);
  const Value value = context.Find(key, Access::kWrite);
  auto total = static_cast<int64_t>(more.size());
  if (!value) {
    context.SetString(key, more);
  } else {
    if (!context.RequireString(value)) return;
    const int64_t size = Length(value);
    if (!CheckStringSize(context, size, total)) return;
    total += size;
    char* bytes = context.EditString(key, static_cast<size_t>(total));
    if (!more.empty()) memcpy(bytes + size, more.data(), more.size());
  }
  context.Changed();
  context.Notify(kNotifyString, "append", key);
  context.reply().Int(total);
}

void Strlen(Context& context) {
  const Value value = context.Find(context.arg(1), Access::kRead);
  if (context.RequireString(value)) context.reply().Int(Length(value));
}

void Getrange(Context& context) {
  int64_t start = 0;
  int64_t end = 0;
  if (!context.IntArg(2, &start) || !context.IntArg(3, &end)) return;
  const Value value = context.Find(context.arg(1), Access::kRead);
  if (!context.RequireString(value)) return;
  NumberText scratch;
  const std::string_view bytes = StringBytes(value, &scratch);
  if (!CutRange(static_cast<int64_t>(bytes.size()), &start, &end)) {
    context.reply().Bulk("");
    return;
  }
  const auto length = static_cast<size_t>(end - start + 1);
  if (length == bytes.size()) {
    context.ReplyString(value);
  } else {
    context.reply().Bulk(bytes.substr(static_cast<size_t>(start), length));
  }
}

void Setrange(Context& context) {
  const std::string_view key = context.arg(1);
  const std::string_view part = context.arg(3);
  int64_t offset = 0;
  if (!context.IntArg(2, &offset)) return;
  if (offset < 0) {
    context.Error(errors::kOffsetRange);
    return;
  }
  const Value value = context.Find(key, Access::kWrite);
  if (!context.RequireString(value)) return;
  const int64_t size = Length(value);
  if (part.empty()) {
    context.reply().Int(size);
    return;
  }
  const auto part_size = static_cast<int64_t>(part.size());
  if (!CheckStringSize(context, offset, part_size)) return;
  const int64_t total = std::max(size, offset + part_size);
  char* bytes = context.EditString(key, static_cast<size_t>(total));
  memcpy(bytes + offset, part.data(), part.size());
  context.Changed();
  context.Notify(kNotifyString, "setrange", key);
  context.reply().Int(total);
}

void Incr(Context& context) { IncrementBy(context, 1); }

void Decr(Context& context) { IncrementBy(context, -1); }

void Incrby(Context& context) {
  int64_t increment = 0;
  if (context.IntArg(2, &increment)) IncrementBy(context, increment);
}

void Decrby(Context& context) {
  int64_t decrement = 0;
  if (!context.IntArg(2, &decrement)) return;
  if (decrement == std::numeric_limits<int64_t>::min()) {
    context.Error("ERR decrement would overflow");
    return;
  }
  IncrementBy(context, -decrement);
}

void Incrbyfloat(Context& context) {
  const std::string_view key = context.arg(1);
  const Value value = context.Find(key, Access::kWrite);
  if (!context.RequireString(value)) return;
  NumberText scratch;
  long double number = 0;
  long double increment = 0;
  if ((value && !base::ParseLongDouble(StringBytes(value, &scratch), &number)) ||
      !base::ParseLongDouble(context.arg(2), &increment)) {
    context.Error(errors::kNotFloat);
    return;
  }
  number += increment;
  if (std::isnan(number) || std::isinf(number)) {
    context.Error(errors::kNaN);
    return;
  }
  const std::string text = base::LongDoubleText(number);
  context.SetString(key, text, kKeepExpiry, false);
  context.Changed();
  context.Notify(kNotifyString, "incrbyfloat", key);
  // The sum is logged, so that a reader whose floating point differs still gets the same.
  context.Effect({"SET", key, text, "KEEPTTL"});
  context.reply().Bulk(text);
}

}  // namespace strings
}  // namespace sava::commands
