// The command table, and what follows from a command's row: implied ACL categories, lock class,
// where its keys stand, and the names that COMMAND INFO prints.
//
// Lookup: a name is two words, its first and last eight bytes lower-cased at once, that are hashed
// into a table at most a quarter full and compared in its slot. It runs for every command and
// allocates nothing.
#include "commands/registry.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <iterator>

#include "base/text.h"

namespace sava::commands {

namespace {

// A name's bytes as two words: all of them up to 16, the first and last eight of longer names.
struct NameWords {
  uint64_t head = 0;
  uint64_t tail = 0;
};

// ASCII capitals to lower case, eight bytes at once.
uint64_t LowerWord(uint64_t word) {
  constexpr uint64_t kEach = 0x0101010101010101ULL;
  const uint64_t low7 = word & (0x7f * kEach);
  const uint64_t from_a = low7 + (0x80 - 'A') * kEach;
  const uint64_t above_z = low7 + (0x80 - 'Z' - 1) * kEach;
  const uint64_t capital = (from_a & ~above_z & ~word) & (0x80 * kEach);
  return word | (capital >> 2);
}

template <typename T>
uint64_t LoadLower(const char* p) {
  T word;
  memcpy(&word, p, sizeof word);
  return LowerWord(word);
}

NameWords LowerWords(std::string_view name) {
  const char* p = name.data();
  const size_t n = name.size();
  if (n >= 8) return {LoadLower<uint64_t>(p), LoadLower<uint64_t>(p + n - 8)};
  if (n >= 4) return {LoadLower<uint32_t>(p) | LoadLower<uint32_t>(p + n - 4) << 32, 0};
  if (n >= 2) return {LoadLower<uint16_t>(p) | LoadLower<uint16_t>(p + n - 2) << 16, 0};
  return {n == 1 ? LoadLower<uint8_t>(p) : 0, 0};
}

size_t Hash(const NameWords& words, size_t size) {
  const uint64_t hash = (words.head ^ std::rotl(words.tail, 29) ^ size) * 0x9e3779b97f4a7c15ULL;
  return hash >> 32;
}

// The groups of commands that Redis does not have.
struct GroupCategory {
  std::string_view group;
  uint32_t category;
};
constexpr GroupCategory kGroupCategories[] = {
    {"bf", kAclBloom},          {"cf", kAclCuckoo},       {"cms", kAclCms},
    {"topk", kAclTopk},         {"afc", kAclCounter},     {"limits", kAclLimit},
    {"frontier", kAclFrontier}, {"simhash", kAclSimhash},
};

uint32_t ImpliedCategories(const CommandSpec& spec) {
  uint32_t acl = spec.acl;
  if ((spec.flags & kWrite) != 0) acl |= kAclWrite;
  if ((spec.flags & kReadonly) != 0 && (acl & kAclScripting) == 0) acl |= kAclRead;
  if ((spec.flags & kAdmin) != 0) acl |= kAclAdmin | kAclDangerous;
  if ((spec.flags & kPubsub) != 0) acl |= kAclPubsub;
  if ((spec.flags & kFast) != 0) acl |= kAclFast;
  if ((spec.flags & kBlocking) != 0) acl |= kAclBlocking;
  if ((acl & kAclFast) == 0) acl |= kAclSlow;
  for (const GroupCategory& row : kGroupCategories) {
    if (row.group == spec.group) acl |= row.category;
  }
  return acl;
}

std::span<const KeySpec> Specs(const CommandSpec& spec) {
  return {spec.keys.items.data(), spec.keys.count};
}

bool IsPlainRange(const KeySpec& key) {
  return key.first > 0 && key.keyword.empty() && !key.keynum;
}

bool HasKeys(const CommandSpec& spec) {
  if (spec.find_keys != nullptr) return true;
  const auto specs = Specs(spec);
  return std::any_of(specs.begin(), specs.end(),
                     [](const KeySpec& key) { return (key.flags & kKeyNotKey) == 0; });
}

// The first, last and step of COMMAND INFO: the keys that stand at fixed places.
struct FixedRange {
  int first = 0;
  int last = 0;
  int step = 0;
  bool movable = false;  // there are, or may be, other keys
};

FixedRange FindFixedRange(const CommandSpec& spec) {
  FixedRange range;
  range.movable = (spec.flags & kMovableKeys) != 0;
  const auto specs = Specs(spec);
  for (const KeySpec& key : specs) {
    const bool single = specs.size() == 1;
    const bool follows = range.first == 0 || range.last == key.first - 1;
    if (!IsPlainRange(key) || (!single && (key.step != 1 || !follows))) {
      range.movable = true;
      continue;
    }
    if ((key.flags & kKeyIncomplete) != 0) range.movable = true;
    if (range.first == 0) range.first = key.first;
    range.last = key.last < 0 ? key.last : key.first + key.last;
    range.step = key.step;
  }
  return range;
}

// Appends first, first + step, … last. False when they do not fit the arguments.
bool AppendRange(int first, int last, int step, int argc, std::vector<int>* indexes) {
  if (first < 1 || step < 1 || last < first || last >= argc) return false;
  for (int i = first; i <= last; i += step) indexes->push_back(i);
  return true;
}

// Where a specification begins; 0 when its keyword is not there.
int BeginOf(const KeySpec& key, Args args) {
  if (key.keyword.empty()) return key.first;
  const int argc = static_cast<int>(args.size());
  const bool forward = key.keyword_from >= 0;
  const int step = forward ? 1 : -1;
  // A keyword in the last place has no key behind it.
  int i = forward ? key.keyword_from : std::min(argc + key.keyword_from, argc - 2);
  for (; i >= 1 && i < argc - 1; i += step) {
    if (base::EqualsNoCase(args[static_cast<size_t>(i)], key.keyword)) return i + 1;
  }
  return 0;
}

bool AppendKeys(const KeySpec& key, Args args, std::vector<int>* indexes) {
  const int argc = static_cast<int>(args.size());
  const int begin = BeginOf(key, args);
  if (begin == 0) return true;
  if (begin >= argc) return false;
  if (key.keynum) {
    const int at = begin + key.keynum_at;
    int64_t count = 0;
    if (at < 1 || at >= argc || !base::ParseInt(args[static_cast<size_t>(at)], &count))
      return false;
    if (count < 0 || count > argc) return false;
    if (count == 0) return true;
    const int first = begin + key.keynum_first;
    return AppendRange(first, first + (static_cast<int>(count) - 1) * key.step, key.step, argc,
                       indexes);
  }
  int last = begin + key.last;
  if (key.last < 0) {
    last = key.limit <= 1 ? argc + key.last : begin + (argc - begin) / key.limit + key.last;
  }
  return AppendRange(begin, last, key.step, argc, indexes);
}

struct FlagName {
  uint32_t flag;
  std::string_view name;
};

// may_replicate, sentinel, only_sentinel, protected and the arbitrary-keys flag are not shown.
constexpr FlagName kFlagNames[] = {
    {kWrite, "write"},
    {kReadonly, "readonly"},
    {kDenyOom, "denyoom"},
    {kAdmin, "admin"},
    {kPubsub, "pubsub"},
    {kNoscript, "noscript"},
    {kBlocking, "blocking"},
    {kLoading, "loading"},
    {kStale, "stale"},
    {kSkipMonitor, "skip_monitor"},
    {kSkipSlowlog, "skip_slowlog"},
    {kAsking, "asking"},
    {kFast, "fast"},
    {kNoAuth, "no_auth"},
    {kNoMandatoryKeys, "no_mandatory_keys"},
    {kNoAsyncLoading, "no_async_loading"},
    {kNoMulti, "no_multi"},
    {kMovableKeys, "movablekeys"},
    {kAllowBusy, "allow_busy"},
};

constexpr FlagName kCategoryNames[] = {
    {kAclKeyspace, "keyspace"},
    {kAclRead, "read"},
    {kAclWrite, "write"},
    {kAclSet, "set"},
    {kAclSortedSet, "sortedset"},
    {kAclList, "list"},
    {kAclHash, "hash"},
    {kAclString, "string"},
    {kAclBitmap, "bitmap"},
    {kAclHyperloglog, "hyperloglog"},
    {kAclGeo, "geo"},
    {kAclStream, "stream"},
    {kAclPubsub, "pubsub"},
    {kAclAdmin, "admin"},
    {kAclFast, "fast"},
    {kAclSlow, "slow"},
    {kAclBlocking, "blocking"},
    {kAclDangerous, "dangerous"},
    {kAclConnection, "connection"},
    {kAclTransaction, "transaction"},
    {kAclScripting, "scripting"},
    {kAclBloom, "bloom"},
    {kAclCuckoo, "cuckoo"},
    {kAclCms, "cms"},
    {kAclTopk, "topk"},
    {kAclCounter, "counter"},
    {kAclLimit, "limit"},
    {kAclFrontier, "frontier"},
    {kAclSimhash, "simhash"},
};

constexpr FlagName kKeyFlagNames[] = {
    {kKeyRo, "RO"},
    {kKeyRw, "RW"},
    {kKeyOw, "OW"},
    {kKeyRm, "RM"},
    {kKeyAccess, "access"},
    {kKeyUpdate, "update"},
    {kKeyInsert, "insert"},
    {kKeyDelete, "delete"},
    {kKeyNotKey, "not_key"},
    {kKeyIncomplete, "incomplete"},
    {kKeyVariableFlags, "variable_flags"},
};

std::vector<std::string_view> NamesOf(std::span<const FlagName> table, uint32_t flags) {
  std::vector<std::string_view> names;
  for (const FlagName& row : table) {
    if ((flags & row.flag) != 0) names.push_back(row.name);
  }
  return names;
}

}  // namespace

const Command* CommandTable::AddOne(const CommandSpec& spec, const Command* parent) {
  auto owned = std::make_unique<Command>();
  Command* command = owned.get();
  command->spec = &spec;
  command->id = static_cast<int>(commands_.size());
  command->parent = parent;
  if (parent != nullptr) command->full_name.append(parent->full_name).append("|");
  command->full_name += spec.name;
  command->acl = ImpliedCategories(spec);
  command->lock = spec.lock;
  if (spec.lock == LockClass::kAuto) {
    command->lock = HasKeys(spec) ? LockClass::kKeys : LockClass::kNone;
  }
  const FixedRange range = FindFixedRange(spec);
  command->first_key = range.first;
  command->last_key = range.last;
  command->key_step = range.step;
  bool plain = range.first > 0 && !range.movable && spec.find_keys == nullptr;
  for (const KeySpec& key : Specs(spec)) {
    if ((key.flags & kKeyNotKey) != 0 || key.limit > 1) plain = false;
  }
  command->simple_keys = plain;
  command->same_flags = plain && spec.keys.count == 1;
  command->looks_up = plain && (spec.traits & kFindsElement) != 0;
  commands_.push_back(std::move(owned));
  for (const CommandSpec& sub : spec.subcommands) {
    command->subcommands.push_back(AddOne(sub, command));
  }
  return command;
}

void CommandTable::Add(std::span<const CommandSpec> family) {
  for (const CommandSpec& spec : family) {
    assert(Find(spec.name) == nullptr && "a command is registered once");
    top_.push_back(AddOne(spec, nullptr));
  }
  Rebuild();
}

void CommandTable::Insert(Slots* slots, std::string_view name, const Command* command) {
  const NameWords words = LowerWords(name);
  const size_t mask = slots->size() - 1;
  size_t i = Hash(words, name.size()) & mask;
  while ((*slots)[i].command != nullptr) i = (i + 1) & mask;
  (*slots)[i] = {words.head, words.tail, name.size(), command, name};
}

void CommandTable::Rebuild() {
  slots_.assign(std::bit_ceil(top_.size() * 4 + 1), Slot{});
  for (const Command* command : top_) Insert(&slots_, command->full_name, command);
}

CommandTable::Renamed CommandTable::Rename(std::string_view name, std::string_view other) {
  const Command* const command = Find(name);
  if (command == nullptr) return Renamed::kUnknown;
  if (!other.empty() && Find(other) != nullptr) return Renamed::kTaken;
  if (own_slots_.empty()) own_slots_ = slots_;
  std::vector<Slot> used;
  for (const Slot& slot : slots_) {
    if (slot.command != nullptr && slot.command != command) used.push_back(slot);
  }
  slots_.assign(slots_.size(), Slot{});
  for (const Slot& slot : used) Insert(&slots_, slot.name, slot.command);
  commands_[static_cast<size_t>(command->id)]->renamed = true;
  if (other.empty()) {
    std::erase(top_, command);
  } else {
    renames_.push_back(std::make_unique<std::string>(other));
    Insert(&slots_, *renames_.back(), command);
  }
  return Renamed::kDone;
}

const Command* CommandTable::Lookup(const Slots& slots, std::string_view name) {
  if (slots.empty()) return nullptr;
  const size_t size = name.size();
  const NameWords words = LowerWords(name);
  const size_t mask = slots.size() - 1;
  for (size_t i = Hash(words, size) & mask; slots[i].command != nullptr; i = (i + 1) & mask) {
    const Slot& slot = slots[i];
    if (slot.head == words.head && slot.tail == words.tail && slot.size == size &&
        (size <= 16 || base::EqualsNoCase(name, slot.name))) {
      return slot.command;
    }
  }
  return nullptr;
}

const Command* CommandTable::Subcommand(const Command* command, Args args) {
  if (command == nullptr || command->subcommands.empty() || args.size() < 2) return command;
  for (const Command* sub : command->subcommands) {
    if (base::EqualsNoCase(args[1], sub->spec->name)) return sub;
  }
  return command;
}

const Command* CommandTable::FindFullName(std::string_view name) const {
  const size_t bar = name.find('|');
  if (bar == std::string_view::npos) return FindOwnName(name);
  const std::string_view words[] = {name.substr(0, bar), name.substr(bar + 1)};
  const Command* command = ResolveOwnName(words);
  return command != nullptr && command->parent != nullptr ? command : nullptr;
}

bool KeyIndexes(const Command& command, Args args, std::vector<int>* indexes) {
  indexes->clear();
  const CommandSpec& spec = *command.spec;
  if (command.simple_keys) {
    return command.ForEachSimpleKey(
        args.size(), [indexes](size_t index) { indexes->push_back(static_cast<int>(index)); });
  }
  if (spec.find_keys != nullptr) return spec.find_keys(args, indexes);
  for (const KeySpec& key : Specs(spec)) {
    if ((key.flags & kKeyNotKey) != 0) continue;
    if (!AppendKeys(key, args, indexes)) return false;
  }
  return true;
}

bool KeyIndexesAndFlags(const Command& command, Args args, std::vector<int>* indexes,
                        std::vector<uint16_t>* flags) {
  flags->clear();
  if (!KeyIndexes(command, args, indexes)) return false;
  // Flags of the places the specifications name; a key found elsewhere has those of the last one.
  const CommandSpec& spec = *command.spec;
  const auto specs = Specs(spec);
  std::vector<int> places;
  flags->assign(indexes->size(), specs.empty() ? uint16_t{0} : specs.back().flags);
  for (const KeySpec& key : specs) {
    places.clear();
    if ((key.flags & kKeyNotKey) != 0 || !AppendKeys(key, args, &places)) continue;
    for (size_t i = 0; i < indexes->size(); ++i) {
      if (std::find(places.begin(), places.end(), (*indexes)[i]) != places.end()) {
        (*flags)[i] = key.flags;
      }
    }
  }
  for (uint16_t& flag : *flags) {
    if ((flag & kKeyVariableFlags) == 0) continue;
    flag = spec.key_flags != nullptr ? spec.key_flags(args)
                                     : static_cast<uint16_t>(flag & ~kKeyVariableFlags);
  }
  return true;
}

std::vector<std::string_view> FlagNames(const Command& command) {
  uint32_t flags = command.spec->flags;
  if (FindFixedRange(*command.spec).movable) flags |= kMovableKeys;
  return NamesOf(kFlagNames, flags);
}

std::vector<std::string_view> CategoryNames(uint32_t acl) { return NamesOf(kCategoryNames, acl); }

std::vector<std::string_view> KeyFlagNames(uint16_t flags) { return NamesOf(kKeyFlagNames, flags); }

std::vector<std::string_view> AllCategories() { return CategoryNames(~uint32_t{0}); }

uint32_t CategoryByName(std::string_view name) {
  for (const FlagName& row : kCategoryNames) {
    if (base::EqualsNoCase(row.name, name)) return row.flag;
  }
  return 0;
}

}  // namespace sava::commands
