// CommandTable: the commands a server knows, found by name. Built once at start from the families'
// rows, read by all threads without locks afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/spec.h"

namespace sava::commands {

// A row with what follows from it.
struct Command {
  const CommandSpec* spec = nullptr;
  int id = 0;             // dense, for statistics
  std::string full_name;  // "config|get"
  uint32_t acl = 0;       // explicit and implied categories
  LockClass lock = LockClass::kNone;
  const Command* parent = nullptr;
  std::vector<const Command*> subcommands;
  // Plain keys at fixed places, the common case: argument indexes first, first+step, … last.
  bool simple_keys = false;
  bool looks_up = false;  // its third word is an element of its key's collection
  int first_key = 0;
  int last_key = 0;
  int key_step = 0;
  // Its simple keys all have the flags of one specification.
  bool same_flags = false;
  bool renamed = false;  // clients call it by another name, or by none

  // What this call does to its keys. REQUIRES: same_flags.
  uint16_t SimpleFlags(Args args) const {
    const uint16_t flags = spec->keys.items[0].flags;
    if ((flags & kKeyVariableFlags) == 0) return flags;
    return spec->key_flags != nullptr ? spec->key_flags(args)
                                      : static_cast<uint16_t>(flags & ~kKeyVariableFlags);
  }
  // The argument that is the n-th of them.
  size_t SimpleKey(size_t n) const {
    return static_cast<size_t>(first_key) + n * static_cast<size_t>(key_step);
  }
  // Calls visit(index) for each of them, in order. False when they do not fit that many arguments:
  // then for none.
  template <typename Visit>
  bool ForEachSimpleKey(size_t argc, const Visit& visit) const {
    const int count = static_cast<int>(argc);
    const int last = last_key < 0 ? count + last_key : last_key;
    if (last < first_key || last >= count) return false;
    for (int i = first_key; i <= last; i += key_step) visit(static_cast<size_t>(i));
    return true;
  }

  bool has(uint32_t flag) const { return (spec->flags & flag) != 0; }
  bool is(CommandTrait trait) const { return (spec->traits & trait) != 0; }
  bool ArityOk(size_t argc) const {
    const int n = spec->arity;
    return n >= 0 ? static_cast<int>(argc) == n : static_cast<int>(argc) >= -n;
  }
};

class CommandTable {
 public:
  // Appends a family. REQUIRES: before any lookup from another thread.
  void Add(std::span<const CommandSpec> family);
  // From now on clients call the command by the other name; an empty one: by none. Its own name
  // stays what it is called everywhere else. REQUIRES: before any lookup from another thread.
  enum class Renamed : uint8_t { kDone, kUnknown, kTaken };
  Renamed Rename(std::string_view name, std::string_view other);

  // By the name that clients use, any case; nullptr when unknown. For containers the container.
  const Command* Find(std::string_view name) const { return Lookup(slots_, name); }
  // By its own name, whatever clients call it.
  const Command* FindOwnName(std::string_view name) const {
    return Lookup(own_slots_.empty() ? slots_ : own_slots_, name);
  }
  // Resolves a container's subcommand when there is one (args[1]); the container itself when not.
  const Command* Resolve(Args args) const {
    return args.empty() ? nullptr : Subcommand(Find(args[0]), args);
  }
  const Command* ResolveOwnName(Args args) const { return Subcommand(FindOwnName(args[0]), args); }
  // By full name, "config|get" for a subcommand, made of own names; nullptr when unknown.
  const Command* FindFullName(std::string_view name) const;

  // All top-level commands in name order of registration; Resolve-able ones under them.
  const std::vector<const Command*>& all() const { return top_; }
  // By dense id, subcommands included.
  const std::vector<std::unique_ptr<Command>>& by_id() const { return commands_; }

 private:
  // A name's first and last bytes, all of them up to 16, beside its command.
  struct Slot {
    uint64_t head = 0;
    uint64_t tail = 0;
    size_t size = 0;
    const Command* command = nullptr;
    std::string_view name;
  };
  using Slots = std::vector<Slot>;

  static const Command* Lookup(const Slots& slots, std::string_view name);
  static const Command* Subcommand(const Command* command, Args args);
  static void Insert(Slots* slots, std::string_view name, const Command* command);
  const Command* AddOne(const CommandSpec& spec, const Command* parent);
  void Rebuild();

  std::vector<std::unique_ptr<Command>> commands_;
  std::vector<const Command*> top_;
  Slots slots_;
  Slots own_slots_;                                    // empty: nothing was renamed
  std::vector<std::unique_ptr<std::string>> renames_;  // the names that clients use
};

// The indexes of the arguments that are keys. False when the arguments cannot be right (a number of
// keys that does not fit).
bool KeyIndexes(const Command& command, Args args, std::vector<int>* indexes);
// Calls visit(index) for the same arguments; `scratch` is used where they do not stand at fixed
// places. What is locked, prefetched, charged and allowed by ACL rules for a call is this list, and
// COMMAND GETKEYS shows it.
template <typename Visit>
bool ForEachKey(const Command& command, Args args, std::vector<int>* scratch, const Visit& visit) {
  if (command.simple_keys) return command.ForEachSimpleKey(args.size(), visit);
  if (!KeyIndexes(command, args, scratch)) return false;
  for (const int index : *scratch) visit(static_cast<size_t>(index));
  return true;
}
// The same with each key's flags (KeyFlag).
bool KeyIndexesAndFlags(const Command& command, Args args, std::vector<int>* indexes,
                        std::vector<uint16_t>* flags);

// Calls visit(index, flags) for the same arguments as ForEachKey.
template <typename Visit>
bool ForEachKeyAndFlags(const Command& command, Args args, const Visit& visit) {
  if (command.same_flags) {
    const uint16_t flags = command.SimpleFlags(args);
    return command.ForEachSimpleKey(args.size(), [&](size_t index) { visit(index, flags); });
  }
  std::vector<int> indexes;
  std::vector<uint16_t> flags;
  if (!KeyIndexesAndFlags(command, args, &indexes, &flags)) return false;
  for (size_t i = 0; i < indexes.size(); ++i) visit(static_cast<size_t>(indexes[i]), flags[i]);
  return true;
}

// Names as COMMAND INFO prints them, in Redis's order.
std::vector<std::string_view> FlagNames(const Command& command);
std::vector<std::string_view> CategoryNames(uint32_t acl);
std::vector<std::string_view> KeyFlagNames(uint16_t flags);
// All categories in Redis's order (ACL CAT).
std::vector<std::string_view> AllCategories();
uint32_t CategoryByName(std::string_view name);

}  // namespace sava::commands
