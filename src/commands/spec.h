// CommandSpec: everything there is to say about a command, in one row at the bottom of its family's
// file. The dispatcher, COMMAND, COMMAND DOCS, the CLI's hints, the docs and the fuzz dictionary
// read this row; nothing else names the command.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace sava::commands {

class Context;
class KeyContext;

// Bits of CommandSpec::flags; the names COMMAND INFO prints are in registry.cc.
enum CommandFlag : uint32_t {
  kWrite = 1U << 0,
  kReadonly = 1U << 1,
  kDenyOom = 1U << 2,
  kAdmin = 1U << 3,
  kPubsub = 1U << 4,
  kNoscript = 1U << 5,
  kBlocking = 1U << 6,
  kLoading = 1U << 7,
  kStale = 1U << 8,
  kSkipMonitor = 1U << 9,
  kSkipSlowlog = 1U << 10,
  kAsking = 1U << 11,
  kFast = 1U << 12,
  kNoAuth = 1U << 13,
  kMayReplicate = 1U << 14,
  kNoAsyncLoading = 1U << 15,
  kNoMulti = 1U << 16,
  kMovableKeys = 1U << 17,
  kAllowBusy = 1U << 18,
  kTouchesArbitraryKeys = 1U << 19,
  kNoMandatoryKeys = 1U << 20,
  kProtected = 1U << 21,
  kSentinel = 1U << 22,
  kOnlySentinel = 1U << 23,
};

// Bits of CommandSpec::traits: what the engine has to know of a command beyond Redis's flags. No
// client is shown them.
enum CommandTrait : uint32_t {
  kRunsQueue = 1U << 0,        // EXEC: what the queued commands do, it does
  kEndsQueue = 1U << 1,        // ends a transaction; costs a limited client nothing there
  kInsideMulti = 1U << 2,      // runs at once while commands are being queued
  kWhileSubscribed = 1U << 3,  // may be used by a subscribed client of RESP2
  kTellsHealth = 1U << 4,      // answered with the error, as a write, while writes are refused
  kFindsElement = 1U << 5,     // its third word is an element of the collection at its key
  kAlwaysTouches = 1U << 6,    // refreshes LRU/LFU also for a client in NO-TOUCH mode
  kDebugging = 1U << 7,  // kProtected by enable-debug-command; others by enable-module-command
  kSelectsDatabase = 1U << 8,
  // Channels among its arguments, for ACL rules.
  kNamesChannel = 1U << 9,    // the second word is one
  kNamesChannels = 1U << 10,  // all words from the second on are
  kNamesPatterns = 1U << 11,  // all words from the second on are patterns of channels
  kRunsScript = 1U << 12,     // EVAL, FCALL: what it locks and may do, its script says
};

// Explicit ACL categories; @read, @write, @fast, @slow, @admin, @dangerous, @blocking, @pubsub
// follow from the flags as in Redis.
enum AclCategory : uint32_t {
  kAclKeyspace = 1U << 0,
  kAclRead = 1U << 1,
  kAclWrite = 1U << 2,
  kAclSet = 1U << 3,
  kAclSortedSet = 1U << 4,
  kAclList = 1U << 5,
  kAclHash = 1U << 6,
  kAclString = 1U << 7,
  kAclBitmap = 1U << 8,
  kAclHyperloglog = 1U << 9,
  kAclGeo = 1U << 10,
  kAclStream = 1U << 11,
  kAclPubsub = 1U << 12,
  kAclAdmin = 1U << 13,
  kAclFast = 1U << 14,
  kAclSlow = 1U << 15,
  kAclBlocking = 1U << 16,
  kAclDangerous = 1U << 17,
  kAclConnection = 1U << 18,
  kAclTransaction = 1U << 19,
  kAclScripting = 1U << 20,
  // Of the commands that Redis does not have; they follow from a row's group.
  kAclBloom = 1U << 21,
  kAclCuckoo = 1U << 22,
  kAclCms = 1U << 23,
  kAclTopk = 1U << 24,
  kAclCounter = 1U << 25,
  kAclLimit = 1U << 26,
  kAclFrontier = 1U << 27,
  kAclSimhash = 1U << 28,
};

// What a command does to a key, as COMMAND INFO's key specifications say it.
enum KeyFlag : uint16_t {
  kKeyRo = 1U << 0,
  kKeyRw = 1U << 1,
  kKeyOw = 1U << 2,
  kKeyRm = 1U << 3,
  kKeyAccess = 1U << 4,
  kKeyUpdate = 1U << 5,
  kKeyInsert = 1U << 6,
  kKeyDelete = 1U << 7,
  kKeyNotKey = 1U << 8,
  kKeyIncomplete = 1U << 9,
  kKeyVariableFlags = 1U << 10,
};

// Where keys stand: from argument `first` to `last` (negative: from the end; relative to first when
// positive, as Redis counts: 0 = only the first) in steps of `step`; or, with keynum, at `first`
// stands how many keys follow.
struct KeySpec {
  uint16_t flags = 0;
  int16_t first = 0;
  int16_t last = 0;
  int16_t step = 1;
  int16_t limit = 0;
  // begin_search by keyword instead of index: the keyword, and where to start looking.
  std::string_view keyword = {};
  int16_t keyword_from = 0;
  // find_keys by number: keynum_at (relative to the begin), first_key (relative), step.
  bool keynum = false;
  int16_t keynum_at = 0;
  int16_t keynum_first = 1;
  std::string_view notes = {};
};

struct KeySpecs {
  constexpr KeySpecs() = default;
  constexpr KeySpecs(std::initializer_list<KeySpec> specs) {
    for (const KeySpec& spec : specs) items[count++] = spec;
  }
  std::array<KeySpec, 3> items{};
  uint8_t count = 0;
};

// Shorthands for the usual shapes.
constexpr KeySpec KeyAt(int16_t index, uint16_t flags) { return {.flags = flags, .first = index}; }
constexpr KeySpec KeysFrom(int16_t index, int16_t step, uint16_t flags) {
  return {.flags = flags, .first = index, .last = -1, .step = step};
}

// What the engine locks for it: nothing, the stripes of its keys, or everything.
enum class LockClass : uint8_t {
  kAuto,  // kKeys when the row has key specifications, else kNone
  kNone,
  kKeys,
  kAll,
};

using Args = std::span<const std::string_view>;

// Runs a command. A handler that takes a KeyContext runs on any host, the others only in a server.
class Handler {
 public:
  using OnServer = void (*)(Context&);
  using OnKeys = void (*)(KeyContext&);

  constexpr Handler() = default;
  constexpr Handler(std::nullptr_t) {}
  constexpr Handler(OnServer run) : server_(run) {}
  constexpr Handler(OnKeys run) : keys_(run) {}

  constexpr bool operator==(std::nullptr_t) const { return !server_ && !keys_; }
  // REQUIRES: there is one. Defined in context.h.
  void operator()(Context& context) const;
  // nullptr for handlers that need a server.
  constexpr OnKeys on_keys() const { return keys_; }

 private:
  OnServer server_ = nullptr;
  OnKeys keys_ = nullptr;
};

// For commands whose keys depend on the arguments: appends the indexes of the key arguments.
// False when the arguments are invalid.
using KeyFinder = bool (*)(Args args, std::vector<int>* indexes);
// For commands whose lock class depends on the arguments.
using LockChooser = LockClass (*)(Args args);
// For specifications with kKeyVariableFlags: what this very call does to its keys (KeyFlag).
using KeyFlagger = uint16_t (*)(Args args);

// A row of a table: all that is known of a command stands in one place, so it has many fields.
struct CommandSpec {
  std::string_view name;  // lower-case
  Handler handler = {};
  int16_t arity = 0;  // counts the name; negative: at least
  uint32_t flags = 0;
  uint32_t traits = 0;
  uint32_t acl = 0;
  KeySpecs keys = {};
  LockClass lock = LockClass::kAuto;
  KeyFinder find_keys = nullptr;
  LockChooser choose_lock = nullptr;
  KeyFlagger key_flags = nullptr;

  // For people. `arguments` is the usage grammar: lower-case words are arguments, capitals are
  // tokens, [ ] optional, | alternatives, ( ) grouping, `...` repetition; name:type gives a type
  // where the name does not tell (key, integer, double, string, pattern, unix-time).
  std::string_view group = "generic";
  std::string_view since = "1.0.0";
  std::string_view summary = {};
  std::string_view complexity = {};
  std::string_view arguments = {};
  std::string_view reply = {};    // shape, in words
  std::string_view example = {};  // one call that runs on an empty server
  // Tips of COMMAND INFO, comma separated ("nondeterministic_output,request_policy:all_shards").
  std::string_view tips = {};
  std::string_view deprecated_since = {};
  std::string_view replaced_by = {};
  std::span<const CommandSpec> subcommands = {};
};

}  // namespace sava::commands
