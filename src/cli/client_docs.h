// What a server tells about its commands (COMMAND DOCS), in the shape that help, completion and
// hints need. Immutable once built; reading is thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client_reply.h"

namespace sava::cli {

enum class ArgumentType : uint8_t { kText, kNumber, kToken, kOneOf, kBlock };

struct ArgumentDoc {
  ArgumentType type = ArgumentType::kText;
  std::string name;   // what to show for a value
  std::string token;  // the fixed word, or the one that stands before the value; often empty
  bool optional = false;
  bool multiple = false;
  bool multiple_token = false;         // a repetition repeats the token too
  std::vector<ArgumentDoc> arguments;  // of kOneOf and kBlock
};

struct CommandDoc {
  std::string name;  // upper case, "CONFIG GET" for a subcommand
  std::string summary;
  std::string since;
  std::string group;
  std::string complexity;
  std::vector<ArgumentDoc> arguments;
  std::map<std::string, CommandDoc> subcommands;  // by their own upper-case name: "GET"
};

class CommandDocs {
 public:
  // From the reply to COMMAND DOCS, or to COMMAND (names only) of servers before 7.0. Takes what it
  // understands and skips the rest.
  static CommandDocs FromReply(const Reply& reply);

  bool empty() const { return commands_.empty(); }
  const std::map<std::string, CommandDoc>& commands() const { return commands_; }

  // The command, or subcommand, that the words begin with; `consumed` is how many of them name it.
  // Null if none. Case does not matter.
  const CommandDoc* Find(const std::vector<std::string>& words, size_t* consumed) const;

 private:
  std::map<std::string, CommandDoc> commands_;
};

// "key value [NX | XX] [GET]": the notation of Redis's documentation.
std::string RenderArgument(const ArgumentDoc& argument);
std::string RenderArguments(const CommandDoc& doc);

// The part without token, repetition and the brackets of an option.
std::string RenderBody(const ArgumentDoc& argument);
// How a repetition of an argument shows: "[key ...]".
std::string RenderRepetition(const ArgumentDoc& argument);

// What `help COMMAND` prints; `words` are the command's name, or "@group".
std::string HelpText(const CommandDocs& docs, const std::vector<std::string>& words);

}  // namespace sava::cli
