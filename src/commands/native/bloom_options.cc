#include "commands/native/bloom_options.h"

#include <cstdint>

#include "base/text.h"

namespace sava::commands {

namespace {

using types::Bloom;
using types::BloomLayout;

constexpr int64_t kMaxExpansion = 32768;

// What both commands fill in.
struct Wanted {
  Bloom::Options options;
  bool layout_given = false;
};

// LAYOUT and DELETABLE, at argument *i, which then stands on its last word. False with *known when
// an error was replied; *known says whether it was one of these options.
bool ParseOurs(KeyContext& context, size_t* i, Wanted* wanted, bool* known) {
  *known = true;
  if (context.ArgIs(*i, "DELETABLE")) {
    wanted->options.deletable = true;
    return true;
  }
  if (!context.ArgIs(*i, "LAYOUT")) {
    *known = false;
    return true;
  }
  const bool there = ++*i < context.argc();
  if (there && context.ArgIs(*i, "CLASSIC")) {
    wanted->options.layout = BloomLayout::kClassic;
  } else if (!there || !context.ArgIs(*i, "BLOCKED")) {
    context.Error("ERR bad layout");
    return false;
  }
  wanted->layout_given = true;
  return true;
}

bool CheckOurs(KeyContext& context, const Wanted& wanted) {
  if (!wanted.options.deletable || !wanted.layout_given) return true;
  context.Error("ERR a deletable filter has no layout");
  return false;
}

bool ParseSize(KeyContext& context, Bloom::Options* options) {
  if (!base::ParseDouble(context.arg(2), &options->error)) {
    context.Error(errors::kBadErrorRate);
    return false;
  }
  if (!(options->error > 0 && options->error < 1)) {
    context.Error("ERR (0 < error rate range < 1) ");
    return false;
  }
  int64_t capacity = 0;
  if (!context.IntArg(3, &capacity, "ERR bad capacity")) return false;
  if (capacity <= 0) {
    context.Error("ERR (capacity should be larger than 0)");
    return false;
  }
  options->capacity = static_cast<uint64_t>(capacity);
  return true;
}

bool ParseReserve(KeyContext& context, Wanted* wanted) {
  Bloom::Options& options = wanted->options;
  options.reserved = true;
  if (!ParseSize(context, &options)) return false;
  bool scales = true;
  size_t expansion_at = 0;
  for (size_t i = 4; i < context.argc(); ++i) {
    bool known = false;
    if (context.ArgIs(i, "NONSCALING")) {
      scales = false;
      continue;
    }
    if (context.ArgIs(i, "EXPANSION")) {
      if (++i == context.argc()) {
        context.Error("ERR no expansion");
        return false;
      }
      expansion_at = i;
      continue;
    }
    if (!ParseOurs(context, &i, wanted, &known)) return false;
    if (!known) {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  if (!scales) options.expansion = 0;
  if (expansion_at != 0) {
    int64_t expansion = 0;
    if (!scales) {
      context.Error("Nonscaling filters cannot expand");
      return false;
    }
    if (!context.IntArg(expansion_at, &expansion, "ERR bad expansion")) return false;
    if (expansion < 1 || expansion > kMaxExpansion) {
      context.Error(expansion < 1 ? "ERR expansion should be greater or equal to 1"
                                  : "ERR bad expansion");
      return false;
    }
    options.expansion = static_cast<uint32_t>(expansion);
  }
  return CheckOurs(context, *wanted);
}

// One option of BF.INSERT at argument *i; false when an error was replied.
bool ParseInsertOption(KeyContext& context, size_t* i, Wanted* wanted, bool* create) {
  Bloom::Options& options = wanted->options;
  if (context.ArgIs(*i, "NOCREATE")) {
    *create = false;
    return true;
  }
  if (context.ArgIs(*i, "NONSCALING")) {
    options.expansion = 0;
    options.reserved = true;
    return true;
  }
  const bool capacity = context.ArgIs(*i, "CAPACITY");
  const bool error = context.ArgIs(*i, "ERROR");
  const bool expansion = context.ArgIs(*i, "EXPANSION");
  if (!capacity && !error && !expansion) {
    bool known = false;
    if (!ParseOurs(context, i, wanted, &known)) return false;
    if (!known) context.Error("Unknown argument received");
    return known;
  }
  if (++*i == context.argc()) {
    context.ArityError();
    return false;
  }
  int64_t number = 1;
  if (error && !base::ParseDouble(context.arg(*i), &options.error)) {
    context.Error("Bad error rate");
    return false;
  }
  if (capacity && !context.IntArg(*i, &number, "Bad capacity")) return false;
  if (expansion && !context.IntArg(*i, &number, "Bad expansion")) return false;
  if (number < 1 || (expansion && number > kMaxExpansion) ||
      !(options.error > 0 && options.error < 1)) {
    context.Error("Bad argument received");
    return false;
  }
  if (capacity) {
    options.capacity = static_cast<uint64_t>(number);
    options.reserved = true;
  } else if (expansion && options.expansion != 0) {
    options.expansion = static_cast<uint32_t>(number);
  }
  return true;
}

}  // namespace

bool ParseBloomReserve(KeyContext& context, Bloom::Options* options) {
  Wanted wanted;
  const bool good = ParseReserve(context, &wanted);
  *options = wanted.options;
  return good;
}

bool ParseBloomInsert(KeyContext& context, BloomInsert* insert) {
  Wanted wanted;
  size_t i = 2;
  for (; i < context.argc() && !context.ArgIs(i, "ITEMS"); ++i) {
    if (!ParseInsertOption(context, &i, &wanted, &insert->create)) return false;
  }
  if (i + 1 >= context.argc()) {
    context.ArityError();
    return false;
  }
  insert->options = wanted.options;
  insert->first_item = i + 1;
  return CheckOurs(context, wanted);
}

}  // namespace sava::commands
