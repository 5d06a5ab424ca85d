// Commands that look for keys: KEYS SCAN RANDOMKEY.
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/glob.h"
#include "commands/redis/keys.h"

namespace sava::commands::keys {

namespace {

constexpr int64_t kDefaultCount = 10;

// Which keys a reply is to have. An empty pattern matches only an empty key, so both have a flag.
struct Filter {
  bool by_pattern = false;
  bool by_type = false;
  std::string_view pattern;
  std::string_view type;

  void SetPattern(std::string_view text) {
    pattern = text;
    by_pattern = text != "*";
  }
  bool Passes(std::string_view key, std::string_view key_type) const {
    if (by_type && !base::EqualsNoCase(type, key_type)) return false;
    return !by_pattern || base::GlobMatch(pattern, key);
  }
};

void Keys(Context& context) {
  Filter filter;
  filter.SetPattern(context.arg(1));
  protocol::Reply& reply = context.reply();
  const size_t mark = reply.Mark();
  int64_t count = 0;
  context.ForEachKey([&](std::string_view key) {
    if (!filter.Passes(key, {})) return;
    reply.Bulk(key);
    ++count;
  });
  reply.ArrayAt(mark, count);
}

// A cursor as the C library reads an unsigned number: signs and leading zeros are fine, and nothing
// at all is 0.
bool ParseCursor(std::string_view text, uint64_t* cursor) {
  if (!text.empty() && isspace(static_cast<unsigned char>(text[0])) != 0) return false;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  *cursor = strtoull(copy.c_str(), &end, 10);
  return *end == '\0' && errno != ERANGE;
}

// Reads the options of SCAN from argument 2 on; replies the error and returns false when they are
// wrong.
bool ScanOptions(Context& context, Filter* filter, int64_t* count) {
  for (size_t i = 2; i < context.argc(); i += 2) {
    const bool has_value = i + 1 < context.argc();
    if (has_value && context.ArgIs(i, "COUNT")) {
      if (!context.IntArg(i + 1, count)) return false;
      if (*count < 1) {
        context.Error(errors::kSyntax);
        return false;
      }
    } else if (has_value && context.ArgIs(i, "MATCH")) {
      filter->SetPattern(context.arg(i + 1));
    } else if (has_value && context.ArgIs(i, "TYPE")) {
      filter->type = context.arg(i + 1);
      filter->by_type = true;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

void Scan(Context& context) {
  uint64_t cursor = 0;
  if (!ParseCursor(context.arg(1), &cursor)) return context.Error(errors::kBadCursor);
  Filter filter;
  int64_t count = kDefaultCount;
  if (!ScanOptions(context, &filter, &count)) return;

  protocol::Reply& reply = context.reply();
  reply.Array(2);
  const size_t mark = reply.Mark();
  int64_t found = 0;
  const uint64_t next =
      context.Scan(cursor, count, [&](std::string_view key, std::string_view type) {
        if (!filter.Passes(key, type)) return;
        reply.Bulk(key);
        ++found;
      });
  // The cursor goes before the keys, and is known only now.
  reply.ArrayAt(mark, found);
  char digits[24];
  const size_t size = base::FormatUint(next, digits);
  std::string head = "$" + base::IntText(static_cast<int64_t>(size)) + "\r\n";
  head.append(digits, size).append("\r\n");
  reply.out().InsertAt(mark, head);
}

void Randomkey(Context& context) {
  std::string key;
  context.RandomKey(&key) ? context.reply().Bulk(key) : context.reply().Null();
}

constexpr CommandSpec kRows[] = {
    {.name = "keys",
     .handler = Keys,
     .arity = 2,
     .flags = kReadonly,
     .acl = kAclKeyspace | kAclDangerous,
     .lock = LockClass::kAll,
     .group = "generic",
     .since = "1.0.0",
     .summary = "Lists all keys whose names match a pattern, holding everybody up meanwhile.",
     .complexity = "O(N) for N keys in the database",
     .arguments = "pattern",
     .reply = "array of keys",
     .example = "KEYS user:*",
     .tips = "request_policy:all_shards,nondeterministic_output_order"},
    {.name = "scan",
     .handler = Scan,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclKeyspace,
     .lock = LockClass::kNone,
     .group = "generic",
     .since = "2.8.0",
     .summary = "Walks over the keys of the database in small steps.",
     .complexity = "O(1) for each call, O(N) for the whole walk over N keys",
     .arguments = "cursor [MATCH pattern] [COUNT count] [TYPE type]",
     .reply = "array: the cursor for the next call (0: the walk is over) and an array of keys",
     .example = "SCAN 0 MATCH user:* COUNT 100",
     .tips = "nondeterministic_output,request_policy:special"},
    {.name = "randomkey",
     .handler = Randomkey,
     .arity = 1,
     .flags = kReadonly,
     .acl = kAclKeyspace,
     .lock = LockClass::kAll,
     .group = "generic",
     .since = "1.0.0",
     .summary = "Picks a key at random.",
     .complexity = "O(1)",
     .reply = "bulk string: a key, or null when there is none",
     .example = "RANDOMKEY",
     .tips = "request_policy:all_shards,nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> ScanRows() { return kRows; }

}  // namespace sava::commands::keys
