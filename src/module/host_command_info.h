// What a module tells its host of a command, for COMMAND INFO and COMMAND DOCS: the structs of the
// module API of Redis 7.0 and later, in their layout there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sava::module::host {

struct HistoryEntry {
  const char* since;
  const char* changes;
};

enum BeginSearch : int { kBeginInvalid = 0, kBeginUnknown, kBeginIndex, kBeginKeyword };
enum FindKeys : int { kFindOmitted = 0, kFindUnknown, kFindRange, kFindKeynum };

struct KeySpec {
  const char* notes;
  uint64_t flags;  // as commands::KeyFlag
  BeginSearch begin_search;
  union {
    struct {
      int pos;
    } index;
    struct {
      const char* keyword;
      int start_from;
    } keyword;
  } begin;
  FindKeys find_keys;
  union {
    struct {
      int last_key;
      int step;
      int limit;
    } range;
    struct {
      int count_at;
      int first_key;
      int step;
    } keynum;
  } find;
};

enum ArgumentType : int {
  kStringArgument = 0,
  kIntegerArgument,
  kDoubleArgument,
  kKeyArgument,
  kPatternArgument,
  kUnixTimeArgument,
  kPureToken,
  kOneOf,
  kBlock,
};
enum ArgumentFlag : int { kOptional = 1 << 0, kMultiple = 1 << 1, kMultipleToken = 1 << 2 };

// The host is told the size, so that a newer one may know more fields.
struct Argument {
  const char* name;
  ArgumentType type;
  int key_spec_index;
  const char* token;
  const char* summary;
  const char* since;
  int flags;
  const char* deprecated_since;
  Argument* parts;
  const char* display;
};

struct CommandInfoVersion {
  int version;
  size_t history_entry_size;
  size_t key_spec_size;
  size_t argument_size;
};

struct CommandInfo {
  const CommandInfoVersion* version;
  const char* summary;
  const char* complexity;
  const char* since;
  HistoryEntry* history;
  const char* tips;
  int arity;
  KeySpec* key_specs;
  Argument* arguments;
};

}  // namespace sava::module::host
