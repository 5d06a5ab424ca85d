// BITFIELD and BITFIELD_RO: integers of any width at any bit of a string.
//
// All operations are checked before the first is carried out. A string that the writes reach beyond
// is made long enough at once; otherwise it is opened for change only when an operation really
// changes something, so that reading and writing what is there already wakes nobody.
#include <algorithm>
#include <limits>
#include <vector>

#include "commands/redis/bitmaps.h"
#include "commands/redis/strings.h"

namespace sava::commands::bitmaps {

namespace {

constexpr std::string_view kFieldType =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.";

enum class Overflow : uint8_t { kWrap, kSaturate, kFail };
enum class FieldAction : uint8_t { kGet, kSet, kIncrement };

struct FieldOperation {
  FieldAction action = FieldAction::kGet;
  Overflow overflow = Overflow::kWrap;
  bool is_signed = false;
  int width = 0;
  uint64_t offset = 0;
  int64_t operand = 0;

  uint64_t end() const { return offset + static_cast<uint64_t>(width); }
};

struct FieldPlan {
  std::vector<FieldOperation> operations;
  uint64_t written_bits = 0;  // where the farthest write ends; 0 when all only read
};

bool OverflowArg(Context& context, size_t arg, Overflow* overflow) {
  if (context.ArgIs(arg, "WRAP")) {
    *overflow = Overflow::kWrap;
  } else if (context.ArgIs(arg, "SAT")) {
    *overflow = Overflow::kSaturate;
  } else if (context.ArgIs(arg, "FAIL")) {
    *overflow = Overflow::kFail;
  } else {
    context.Error("ERR Invalid OVERFLOW type specified");
    return false;
  }
  return true;
}

// "i1" to "i64", "u1" to "u63".
bool FieldTypeArg(Context& context, size_t arg, FieldOperation* operation) {
  const std::string_view text = context.arg(arg);
  int64_t width = 0;
  const bool is_signed = !text.empty() && text[0] == 'i';
  const bool named = is_signed || (!text.empty() && text[0] == 'u');
  if (!named || !base::ParseInt(text.substr(1), &width) || width < 1 ||
      width > (is_signed ? 64 : 63)) {
    context.Error(kFieldType);
    return false;
  }
  operation->is_signed = is_signed;
  operation->width = static_cast<int>(width);
  return true;
}

bool ParseFieldPlan(Context& context, FieldPlan* plan) {
  Overflow overflow = Overflow::kWrap;
  plan->operations.reserve(context.argc() / 3);
  for (size_t i = 2; i < context.argc();) {
    const size_t more = context.argc() - i - 1;
    FieldOperation operation;
    if (context.ArgIs(i, "GET") && more >= 2) {
      operation.action = FieldAction::kGet;
    } else if (context.ArgIs(i, "SET") && more >= 3) {
      operation.action = FieldAction::kSet;
    } else if (context.ArgIs(i, "INCRBY") && more >= 3) {
      operation.action = FieldAction::kIncrement;
    } else if (context.ArgIs(i, "OVERFLOW") && more >= 1) {
      if (!OverflowArg(context, i + 1, &overflow)) return false;
      i += 2;
      continue;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
    operation.overflow = overflow;
    if (!FieldTypeArg(context, i + 1, &operation)) return false;
    if (!OffsetArg(context, i + 2, operation.width, &operation.offset)) return false;
    if (operation.action != FieldAction::kGet) {
      if (!context.IntArg(i + 3, &operation.operand)) return false;
      plan->written_bits = std::max(plan->written_bits, operation.end());
    }
    i += operation.action == FieldAction::kGet ? 3 : 4;
    plan->operations.push_back(operation);
  }
  return true;
}

// The field's number as the operation's type reads it; up to 64 bits of either sign fit.
__int128 Decode(const FieldOperation& operation, uint64_t raw) {
  if (!operation.is_signed) return raw;
  const int unused = 64 - operation.width;
  return static_cast<int64_t>(raw << unused) >> unused;
}

// What the operation makes of the old number; false when it does not fit and overflow is refused.
bool NewNumber(const FieldOperation& operation, __int128 old, __int128* number) {
  if (operation.action == FieldAction::kIncrement) {
    *number = old + operation.operand;
  } else {
    *number = operation.is_signed ? static_cast<__int128>(operation.operand)
                                  : static_cast<__int128>(static_cast<uint64_t>(operation.operand));
  }
  const int magnitude = operation.width - (operation.is_signed ? 1 : 0);
  const __int128 highest = (static_cast<__int128>(1) << magnitude) - 1;
  const __int128 lowest = operation.is_signed ? -highest - 1 : 0;
  if (*number >= lowest && *number <= highest) return true;
  if (operation.overflow == Overflow::kFail) return false;
  if (operation.overflow == Overflow::kSaturate) {
    // SET of a number more than 2^63 - 1 below the highest saturates upwards: clients of Redis see
    // its 64-bit distance wrap around, so they shall see the same here.
    const bool wraps = operation.is_signed && operation.action == FieldAction::kSet &&
                       highest - *number > std::numeric_limits<int64_t>::max();
    *number = *number > highest || wraps ? highest : lowest;
  } else {
    const uint64_t mask = ~uint64_t{0} >> (64 - operation.width);
    *number = Decode(operation, static_cast<uint64_t>(*number) & mask);
  }
  return true;
}

// A string that is read until it must be changed.
class EditedString {
 public:
  EditedString(Context& context, std::string_view key, std::string_view bytes)
      : context_(context), key_(key), bytes_(bytes) {}

  std::string_view bytes() const { return bytes_; }
  char* Open(size_t size) {
    if (writable_ == nullptr) {
      const size_t length = std::max(size, bytes_.size());
      writable_ = context_.OpenString(key_, length);
      bytes_ = {writable_, length};
    }
    return writable_;
  }

 private:
  Context& context_;
  std::string_view key_;
  std::string_view bytes_;
  char* writable_ = nullptr;
};

enum class WriteResult : uint8_t { kRefused, kSame, kChanged };

// Carries out SET or INCRBY and replies.
WriteResult Write(Context& context, const FieldOperation& operation, EditedString* string) {
  const uint64_t raw = bits::GetField(string->bytes(), operation.offset, operation.width);
  const __int128 old = Decode(operation, raw);
  __int128 number = 0;
  if (!NewNumber(operation, old, &number)) {
    context.reply().Null();
    return WriteResult::kRefused;
  }
  const __int128 answer = operation.action == FieldAction::kSet ? old : number;
  context.reply().Int(static_cast<int64_t>(answer));
  if (number == old) return WriteResult::kSame;
  bits::SetField(string->Open(0), operation.offset, operation.width, static_cast<uint64_t>(number));
  return WriteResult::kChanged;
}

void RunFieldPlan(Context& context, const FieldPlan& plan) {
  const bool writes = plan.written_bits != 0;
  const std::string_view key = context.arg(1);
  const Value value = context.Find(key, writes ? Access::kWrite : Access::kRead);
  if (!context.RequireString(value)) return;
  NumberText scratch;
  EditedString string(context, key, StringBytes(value, &scratch));
  const auto needed = static_cast<size_t>((plan.written_bits + 7) / 8);
  const bool grows = needed > string.bytes().size();
  if (grows) string.Open(needed);

  context.reply().Array(static_cast<int64_t>(plan.operations.size()));
  int64_t changes = 0;
  for (const FieldOperation& operation : plan.operations) {
    if (operation.action == FieldAction::kGet) {
      const uint64_t raw = bits::GetField(string.bytes(), operation.offset, operation.width);
      context.reply().Int(static_cast<int64_t>(Decode(operation, raw)));
      continue;
    }
    const WriteResult result = Write(context, operation, &string);
    // In a string just made longer even the zeros that were written are news.
    if (result == WriteResult::kChanged || (grows && result == WriteResult::kSame)) ++changes;
  }
  if (changes != 0) {
    context.Touched(key);
    context.Changed(changes);
    context.Notify(kNotifyString, "setbit", key);
  } else if (grows) {
    // All writes were refused, yet the string is longer: that must be logged.
    context.Changed();
  } else if (writes && value.form != StringForm::kRaw) {
    context.OpenString(key, 0);  // it is raw from now on
  }
}

void BitfieldGeneric(Context& context, bool read_only) {
  FieldPlan plan;
  if (!ParseFieldPlan(context, &plan)) return;
  if (read_only && plan.written_bits != 0) {
    context.Error("ERR BITFIELD_RO only supports the GET subcommand");
    return;
  }
  RunFieldPlan(context, plan);
}

}  // namespace

void Bitfield(Context& context) { BitfieldGeneric(context, false); }

// Only reads when every operation is a GET.
uint16_t BitfieldKeyFlags(Args args) {
  for (size_t i = 2; i < args.size(); ++i) {
    if (base::EqualsNoCase(args[i], "SET") || base::EqualsNoCase(args[i], "INCRBY")) {
      return kKeyRw | kKeyAccess | kKeyUpdate;
    }
  }
  return kKeyRo | kKeyAccess;
}

void BitfieldRo(Context& context) { BitfieldGeneric(context, true); }

}  // namespace sava::commands::bitmaps
