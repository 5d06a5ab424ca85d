// The bitmap family: strings as arrays of bits. The work on bytes is in bitmaps_bits.cc, BITFIELD
// in bitmaps_field.cc; the rows of all of them are at the bottom.
#include "commands/redis/bitmaps.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "commands/redis/families.h"
#include "commands/redis/strings.h"
#include "commands/registry.h"

namespace sava::commands {

namespace bitmaps {

namespace {

// The part of a string that BITCOUNT and BITPOS look at.
struct BitRange {
  int64_t start = 0;
  int64_t end = 0;
  bool in_bits = false;  // else start and end count bytes
};

bool UnitArg(Context& context, size_t arg, bool* in_bits) {
  *in_bits = context.ArgIs(arg, "BIT");
  if (*in_bits || context.ArgIs(arg, "BYTE")) return true;
  context.Error(errors::kSyntax);
  return false;
}

// Counts negative bounds from the end of a string of `size` bytes, cuts to what is there, and turns
// bytes into bits. False when nothing is left.
bool CutToBits(size_t size, BitRange* range) {
  const int64_t total = static_cast<int64_t>(size) * (range->in_bits ? 8 : 1);
  if (range->start < 0) range->start = std::max<int64_t>(range->start + total, 0);
  if (range->end < 0) range->end = std::max<int64_t>(range->end + total, 0);
  range->end = std::min(range->end, total - 1);
  if (range->start > range->end) return false;
  if (!range->in_bits) {
    range->start *= 8;
    range->end = range->end * 8 + 7;
  }
  return true;
}

std::optional<bits::Operation> OperationNamed(std::string_view name) {
  if (base::EqualsNoCase(name, "AND")) return bits::Operation::kAnd;
  if (base::EqualsNoCase(name, "OR")) return bits::Operation::kOr;
  if (base::EqualsNoCase(name, "XOR")) return bits::Operation::kXor;
  if (base::EqualsNoCase(name, "NOT")) return bits::Operation::kNot;
  return std::nullopt;
}

// Reads the bounds that follow BITPOS's bit. False after an error was replied.
bool BitposRange(Context& context, BitRange* range) {
  const size_t argc = context.argc();
  range->end = -1;
  if (argc == 3) return true;
  if (argc > 6) {
    context.Error(errors::kSyntax);
    return false;
  }
  if (!context.IntArg(3, &range->start)) return false;
  if (argc == 6 && !UnitArg(context, 5, &range->in_bits)) return false;
  return argc < 5 || context.IntArg(4, &range->end);
}

}  // namespace

bool OffsetArg(Context& context, size_t arg, int width, uint64_t* offset) {
  std::string_view text = context.arg(arg);
  const bool in_fields = width > 0 && !text.empty() && text[0] == '#';
  if (in_fields) text.remove_prefix(1);
  int64_t number = 0;
  bool valid = base::ParseInt(text, &number);
  // Wraps around when far too large, as clients are used to; the check below still holds.
  const auto bit = static_cast<uint64_t>(number) * static_cast<uint64_t>(in_fields ? width : 1);
  valid = valid && static_cast<int64_t>(bit) >= 0 &&
          static_cast<int64_t>(bit >> 3) < context.max_string_size();
  if (!valid) {
    context.Error(errors::kBitOffset);
    return false;
  }
  *offset = bit;
  return true;
}

void Setbit(Context& context) {
  uint64_t offset = 0;
  int64_t bit = 0;
  if (!OffsetArg(context, 2, 0, &offset)) return;
  if (!context.IntArg(3, &bit, errors::kBitValue)) return;
  if (bit != 0 && bit != 1) {
    context.Error(errors::kBitValue);
    return;
  }
  const std::string_view key = context.arg(1);
  const Value value = context.Find(key, Access::kWrite);
  if (!context.RequireString(value)) return;
  NumberText scratch;
  const std::string_view bytes = StringBytes(value, &scratch);
  const auto old = static_cast<int64_t>(bits::GetField(bytes, offset, 1));
  const bool grows = (offset >> 3) >= bytes.size();
  if (grows || old != bit) {
    const size_t size = std::max<size_t>(bytes.size(), (offset >> 3) + 1);
    bits::SetField(context.EditString(key, size), offset, 1, static_cast<uint64_t>(bit));
    context.Changed();
    context.Notify(kNotifyString, "setbit", key);
  } else if (value.form != StringForm::kRaw) {
    context.OpenString(key, 0);  // it is raw from now on
  }
  context.reply().Int(old);
}

void Getbit(Context& context) {
  uint64_t offset = 0;
  if (!OffsetArg(context, 2, 0, &offset)) return;
  const Value value = context.Find(context.arg(1), Access::kRead);
  if (!context.RequireString(value)) return;
  NumberText scratch;
  const std::string_view bytes = StringBytes(value, &scratch);
  context.reply().Int(static_cast<int64_t>(bits::GetField(bytes, offset, 1)));
}

void Bitcount(Context& context) {
  const size_t argc = context.argc();
  if (argc == 3 || argc > 5) {
    context.Error(errors::kSyntax);
    return;
  }
  BitRange range;
  range.end = -1;
  if (argc >= 4 && (!context.IntArg(2, &range.start) || !context.IntArg(3, &range.end))) return;
  if (argc == 5 && !UnitArg(context, 4, &range.in_bits)) return;
  const Value value = context.Find(context.arg(1), Access::kRead);
  if (!context.RequireString(value)) return;
  NumberText scratch;
  const std::string_view bytes = StringBytes(value, &scratch);
  const bool backwards = range.start < 0 && range.end < 0 && range.start > range.end;
  const bool any = value && !backwards && CutToBits(bytes.size(), &range);
  context.reply().Int(any ? static_cast<int64_t>(bits::Count(bytes, range.start, range.end)) : 0);
}

void Bitpos(Context& context) {
  int64_t bit = 0;
  if (!context.IntArg(2, &bit)) return;
  if (bit != 0 && bit != 1) {
    context.Error("ERR The bit argument must be 1 or 0.");
    return;
  }
  BitRange range;
  if (!BitposRange(context, &range)) return;
  const Value value = context.Find(context.arg(1), Access::kRead);
  if (!value) {
    // A missing key is an endless row of zeros.
    context.reply().Int(bit == 1 ? -1 : 0);
    return;
  }
  if (!context.RequireString(value)) return;
  NumberText scratch;
  const std::string_view bytes = StringBytes(value, &scratch);
  if (!CutToBits(bytes.size(), &range)) {
    context.reply().Int(-1);
    return;
  }
  int64_t position = bits::Find(bytes, bit == 1, range.start, range.end);
  // Without a given end the string is taken as if zeros followed it.
  const bool open_end = context.argc() < 5;
  if (position < 0 && bit == 0 && open_end) position = static_cast<int64_t>(bytes.size()) * 8;
  context.reply().Int(position);
}

void Bitop(Context& context) {
  const std::optional<bits::Operation> operation = OperationNamed(context.arg(1));
  if (!operation) {
    context.Error(errors::kSyntax);
    return;
  }
  if (*operation == bits::Operation::kNot && context.argc() != 4) {
    context.Error("ERR BITOP NOT must be called with a single source key.");
    return;
  }
  const size_t count = context.argc() - 3;
  std::vector<NumberText> scratch(count);
  std::vector<std::string_view> sources(count);
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    const Value value = context.Find(context.arg(i + 3), Access::kRead);
    if (!context.RequireString(value)) return;
    sources[i] = StringBytes(value, &scratch[i]);
    size = std::max(size, sources[i].size());
  }

  const std::string_view target = context.arg(2);
  if (size != 0) {
    // The target may be one of the sources, so the result is complete before anything changes.
    const std::unique_ptr<char[]> result(new char[size]);
    bits::Combine(*operation, sources, result.get(), size);
    // Whatever stood there goes, with its expiry; opening it for edit makes it raw.
    context.SetString(target, {result.get(), size}, kNoExpiry, false);
    context.EditString(target, size);
    context.Changed();
    context.Notify(kNotifyString, "set", target);
  } else if (context.Delete(target)) {
    context.Changed();
    context.Notify(kNotifyGeneric, "del", target);
  }
  context.reply().Int(static_cast<int64_t>(size));
}

}  // namespace bitmaps

namespace {

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec kFieldKey = {.flags = kKeyRw | kKeyAccess | kKeyUpdate | kKeyVariableFlags,
                               .first = 1,
                               .notes = "whether it reads or changes depends on the operations"};

constexpr CommandSpec kRows[] = {
    {.name = "setbit",
     .handler = bitmaps::Setbit,
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .acl = kAclBitmap,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "bitmap",
     .since = "2.2.0",
     .summary = "Sets or clears one bit of a string, making it longer when needed.",
     .complexity = "O(1)",
     .arguments = "key offset:integer value:integer",
     .reply = "integer: the bit's former value",
     .example = "SETBIT visits 7 1"},
    {.name = "getbit",
     .handler = bitmaps::Getbit,
     .arity = 3,
     .flags = kReadonly | kFast,
     .acl = kAclBitmap,
     .keys = {kReadKey},
     .group = "bitmap",
     .since = "2.2.0",
     .summary = "Tells one bit of a string.",
     .complexity = "O(1)",
     .arguments = "key offset:integer",
     .reply = "integer: 1 or 0; 0 beyond the end and for a missing key",
     .example = "GETBIT visits 7"},
    {.name = "bitcount",
     .handler = bitmaps::Bitcount,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclBitmap,
     .keys = {kReadKey},
     .group = "bitmap",
     .since = "2.6.0",
     .summary = "Counts the bits that are set in a string or a part of it.",
     .complexity = "O(N)",
     .arguments = "key [range: start:integer end:integer [unit: BYTE|BIT]]",
     .reply = "integer: how many bits are set",
     .example = "BITCOUNT visits 0 -1 BYTE"},
    {.name = "bitpos",
     .handler = bitmaps::Bitpos,
     .arity = -3,
     .flags = kReadonly,
     .acl = kAclBitmap,
     .keys = {kReadKey},
     .group = "bitmap",
     .since = "2.8.7",
     .summary = "Finds the first bit that is set, or the first that is clear.",
     .complexity = "O(N)",
     .arguments =
         "key bit:integer [range: start:integer [end-unit-block: end:integer [unit: BYTE|BIT]]]",
     .reply = "integer: the bit's position, -1 when there is none",
     .example = "BITPOS visits 1 0 -1 BIT"},
    {.name = "bitop",
     .handler = bitmaps::Bitop,
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .acl = kAclBitmap,
     .keys = {KeyAt(2, kKeyOw | kKeyUpdate), KeysFrom(3, 1, kKeyRo | kKeyAccess)},
     .group = "bitmap",
     .since = "2.6.0",
     .summary = "Combines strings bit by bit and stores the result.",
     .complexity = "O(N)",
     .arguments = "(operation: AND|OR|XOR|NOT) destkey:key key ...",
     .reply = "integer: the length of the result, that of the longest source",
     .example = "BITOP OR week monday tuesday"},
    {.name = "bitfield",
     .handler = bitmaps::Bitfield,
     .arity = -2,
     .flags = kWrite | kDenyOom,
     .acl = kAclBitmap,
     .keys = {kFieldKey},
     .key_flags = bitmaps::BitfieldKeyFlags,
     .group = "bitmap",
     .since = "3.2.0",
     .summary = "Reads and changes integers of any width at any bit of a string.",
     .complexity = "O(1) for each operation",
     .arguments = "key [operation: (GET encoding:string offset:integer | "
                  "(write: [OVERFLOW (WRAP|SAT|FAIL)] "
                  "(write-operation: SET encoding:string offset:integer value:integer | "
                  "INCRBY encoding:string offset:integer increment:integer))) ...]",
     .reply = "array: one integer for each operation, null where an overflow was refused",
     .example = "BITFIELD scores SET u8 #0 200 OVERFLOW SAT INCRBY u8 #0 100 GET u4 0"},
    {.name = "bitfield_ro",
     .handler = bitmaps::BitfieldRo,
     .arity = -2,
     .flags = kReadonly | kFast,
     .acl = kAclBitmap,
     .keys = {kReadKey},
     .group = "bitmap",
     .since = "6.0.0",
     .summary = "Reads integers of any width at any bit of a string.",
     .complexity = "O(1) for each operation",
     .arguments = "key [GET encoding:string offset:integer ...]",
     .reply = "array: one integer for each operation",
     .example = "BITFIELD_RO scores GET u8 #0 GET i5 3"},
};

}  // namespace

std::span<const CommandSpec> BitmapCommands() { return kRows; }

}  // namespace sava::commands
