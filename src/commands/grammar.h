// The usage grammar of a command's row, parsed into the argument tree that COMMAND DOCS shows and
// HELP lines are written from.
//
//   word         an argument; word:type says its type, else the name does (see TypeOfName)
//   name=text    an argument that is shown as text
//   WORD         a token (anything without lower-case letters). Plain arguments that follow belong
//   to
//                it: one carries the token, several become a block that does; none: a pure token
//   [ … ]        optional            ( … ) or < … >   grouping
//   a | b        one of them; inside brackets, parentheses or on its own. Outside of brackets each
//                is one word
//   x...         x may be repeated, directly behind a word or a closing bracket
//   [a b ...]    behind a space and before a ], all of the bracket may be repeated. When the
//   bracket
//                only repeats what stands before it (key value [key value ...]), that is what
//                repeats
//   [name: … ]   names a group; groups without are named after their parts
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sava::commands {

struct Argument {
  std::string name;
  std::string display;  // what is shown for it, when that is not its name
  std::string type;  // string, integer, double, key, pattern, unix-time, pure-token, oneof, block
  std::string token;
  int key_spec_index = -1;  // for keys
  bool optional = false;
  bool multiple = false;
  bool multiple_token = false;      // a repetition repeats the token too
  std::vector<Argument> arguments;  // of oneof and block

  const std::string& shown() const { return display.empty() ? name : display; }
  bool is_group() const { return type == "oneof" || type == "block"; }
};

// key_specs: how many key specifications the row has. The n-th key argument belongs to the n-th of
// them, the rest to the last.
base::Result<std::vector<Argument>> ParseGrammar(std::string_view grammar, int key_specs);

enum class NameStyle : uint8_t { kPlain, kAngles };  // key, or <key>

// "key [NX | XX] [GET]".
std::string UsageText(const std::vector<Argument>& arguments, NameStyle style = NameStyle::kPlain);

}  // namespace sava::commands
