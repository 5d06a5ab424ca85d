// OBJECT: how a value is kept, and how lately and how often it was used.
#include "commands/help.h"
#include "commands/redis/keys.h"

namespace sava::commands::keys {

namespace {

// Small numbers are shared in Redis, and counted as if by everybody.
constexpr int64_t kSharedNumbers = 10000;
constexpr int64_t kSharedCount = INT32_MAX;

constexpr std::string_view kNotLfu =
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
    "when switching between policies at runtime LRU and LFU data will take some time to adjust.";
constexpr std::string_view kIsLfu =
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
    "switching between policies at runtime LRU and LFU data will take some time to adjust.";

// The value at argument 2; replies null when the key is missing. A look that is found counts as a
// hit but does not refresh what IDLETIME and FREQ tell.
Value Looked(Context& context) {
  const Value value = context.Find(context.arg(2), Access::kPeek);
  if (!value) {
    context.reply().Null();
    return value;
  }
  return context.Find(context.arg(2), Access::kReadQuiet);
}

std::string_view EncodingName(const Value& value) {
  if (value.object != nullptr) return value.object->encoding();
  switch (value.form) {
    case StringForm::kInt:
      return "int";
    case StringForm::kEmbstr:
      return "embstr";
    case StringForm::kRaw:
      break;
  }
  return "raw";
}

void Encoding(Context& context) {
  const Value value = Looked(context);
  if (value) context.reply().Bulk(EncodingName(value));
}

void Freq(Context& context) {
  if (!Looked(context)) return;
  const KeyAge age = context.Age(context.arg(2));
  age.lfu ? context.reply().Int(age.frequency) : context.Error(kNotLfu);
}

void Idletime(Context& context) {
  if (!Looked(context)) return;
  const KeyAge age = context.Age(context.arg(2));
  age.lfu ? context.Error(kIsLfu) : context.reply().Int(age.idle_seconds);
}

void Refcount(Context& context) {
  const Value value = Looked(context);
  if (!value) return;
  const bool shared = value.is_int() && value.integer >= 0 && value.integer < kSharedNumbers;
  context.reply().Int(shared && context.shares_numbers() ? kSharedCount : 1);
}

constexpr KeySpec kLookedAt = KeyAt(2, kKeyRo);

constexpr CommandSpec kSubcommands[] = {
    {.name = "encoding",
     .handler = Encoding,
     .arity = 3,
     .flags = kReadonly,
     .acl = kAclKeyspace,
     .keys = {kLookedAt},
     .group = "generic",
     .since = "2.2.3",
     .summary = "Tells the representation in which a value is kept.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "bulk string: its name, or null for a missing key",
     .example = "OBJECT ENCODING greeting",
     .tips = "nondeterministic_output"},
    {.name = "freq",
     .handler = Freq,
     .arity = 3,
     .flags = kReadonly,
     .acl = kAclKeyspace,
     .keys = {kLookedAt},
     .group = "generic",
     .since = "4.0.0",
     .summary = "Tells the logarithmic counter of how often a key was used (LFU policies).",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: the counter, or null for a missing key",
     .example = "OBJECT FREQ greeting",
     .tips = "nondeterministic_output"},
    {.name = "idletime",
     .handler = Idletime,
     .arity = 3,
     .flags = kReadonly,
     .acl = kAclKeyspace,
     .keys = {kLookedAt},
     .group = "generic",
     .since = "2.2.3",
     .summary = "Tells for about how many seconds a key was not used.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: seconds, or null for a missing key",
     .example = "OBJECT IDLETIME greeting",
     .tips = "nondeterministic_output"},
    {.name = "refcount",
     .handler = Refcount,
     .arity = 3,
     .flags = kReadonly,
     .acl = kAclKeyspace,
     .keys = {kLookedAt},
     .group = "generic",
     .since = "2.2.3",
     .summary = "Tells how many references a value has.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: references, or null for a missing key",
     .example = "OBJECT REFCOUNT greeting",
     .tips = "nondeterministic_output"},
    {.name = "help",
     .handler = HelpCommand,
     .arity = 2,
     .flags = kLoading | kStale,
     .acl = kAclKeyspace,
     .group = "generic",
     .since = "6.2.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "OBJECT HELP"},
};

constexpr CommandSpec kRows[] = {
    {.name = "object",
     .arity = -2,
     .group = "generic",
     .since = "2.2.3",
     .summary = "Looks at how a value is kept.",
     .complexity = "Depends on the subcommand.",
     .example = "OBJECT HELP",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const CommandSpec> ObjectRows() { return kRows; }

}  // namespace sava::commands::keys
