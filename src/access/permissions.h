// What a user may do, compiled: a bitmap of commands by Command::id, patterns of keys and channels,
// and selectors, each of which is such a set of its own. A call is allowed when one selector allows
// all of it.
//
// A Selector keeps its rules in two forms: the compiled one that Check reads, and the words that
// ACL LIST shows. Apply changes both.
//
// Thread safety: plain data. A User that was handed to Users is never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "commands/registry.h"

namespace sava::access {

// Why something is refused. Of several the largest counts.
enum class Reason : uint8_t { kNone, kCommand, kKey, kAuth, kChannel };

// What rules say to a call.
struct Verdict {
  Reason reason = Reason::kNone;
  size_t arg = 0;  // of a key or a channel: which argument it is

  bool allowed() const { return reason == Reason::kNone; }
};

// A pattern of names.
class Pattern {
 public:
  explicit Pattern(std::string_view text);

  const std::string& text() const { return text_; }
  bool Matches(std::string_view name) const;

 private:
  enum class Shape : uint8_t { kExact, kPrefix, kGlob };  // most need no glob

  std::string text_;
  Shape shape_;
};

// Rights to a key.
enum KeyRight : uint8_t { kReadKey = 1, kWriteKey = 2, kAnyKey = 3 };

class Selector {
 public:
  // Allows nothing, but all channels if so wanted. REQUIRES: the table outlives it.
  Selector(const commands::CommandTable* table, bool all_channels);

  // Adds a rule, a word such as +get, -@admin, ~key:* or &news. The error is what follows "Error in
  // ACL SETUSER modifier 'x': "; then nothing is changed.
  base::Status Apply(std::string_view rule);

  Verdict Check(const commands::Command& command, commands::Args args) const;
  bool AllowsCommand(const commands::Command& command, commands::Args args) const;
  bool AllowsChannel(std::string_view name, bool is_pattern) const;
  bool ReadsEveryKey() const;
  bool everything() const { return all_commands_ && all_keys_ && all_channels_; }

  // As ACL GETUSER shows them.
  std::string KeysText() const;
  std::string ChannelsText() const;
  std::string CommandsText() const;
  // As ACL LIST does.
  std::string Text() const;

 private:
  struct KeyRule {
    Pattern pattern;
    uint8_t rights;
  };
  struct CommandRule {
    bool allow;
    std::string name;  // "get", "config|get", "select|0", "@hash"
  };

  void AllowAll(bool allow);
  void SetBit(int id, bool allow);
  void SetCommand(const commands::Command& command, bool allow);
  void NoteRule(std::string_view name, bool allow);
  base::Status ApplyCommand(std::string_view name, bool allow);
  base::Status AllowWithArgument(std::string_view name);
  base::Status ApplyCategory(std::string_view name, bool allow);
  base::Status AddKeys(std::string_view rule);
  base::Status AddChannels(std::string_view pattern);
  bool AllowsKey(std::string_view key, uint16_t flags) const;
  bool has(int id) const {
    const auto bit = static_cast<size_t>(id);
    return bit / 64 < bits_.size() && (bits_[bit / 64] >> (bit % 64) & 1) != 0;
  }

  const commands::CommandTable* table_;
  bool all_commands_ = false;  // no command was taken away since +@all
  bool base_all_ = false;      // the rules begin with +@all
  bool all_keys_ = false;
  bool all_channels_ = false;
  std::vector<uint64_t> bits_;  // by Command::id
  // Commands without a bit that are allowed with this word behind them.
  std::vector<std::pair<int, std::string>> first_args_;
  std::vector<KeyRule> keys_;
  std::vector<Pattern> channels_;
  std::vector<CommandRule> rules_;  // since the last +@all or -@all
};

struct User {
  // As ACL SETUSER makes a user that is new: off, without any rights.
  User(std::string user_name, const commands::CommandTable* table, bool all_channels);

  std::string name;
  bool on = false;
  bool nopass = false;
  bool skips_sanitizing = false;
  std::vector<std::string> hashes;  // SHA-256 of the passwords, in hexadecimal digits
  std::vector<Selector> selectors;  // the first has the rules outside of parentheses

  // Applies one rule of ACL SETUSER, see Selector::Apply. `all_channels`: what `reset` does.
  base::Status Apply(std::string_view rule, bool all_channels);
  // Applies the rules, all or none, those in parentheses in one piece or in several. The error is
  // complete, but for its code.
  base::Status ApplyAll(const std::vector<std::string>& rules, bool all_channels);

  Verdict Check(const commands::Command& command, commands::Args args) const;
  bool AllowsChannel(std::string_view channel, bool is_pattern) const;
  // Whether the call is allowed by a selector that lets it read all keys.
  bool ReadsEveryKey(const commands::Command& command, commands::Args args) const;
  bool everything() const { return selectors.front().everything(); }

  // What follows "user NAME " in ACL LIST.
  std::string Text() const;

 private:
  base::Status ApplyPassword(std::string_view rule);
  base::Status AddSelector(std::string_view rules);

  const commands::CommandTable* table_;
};

// Joins the words from one that begins with a parenthesis to the one that ends with it. False when
// it is not closed: *bad is the word that opens it.
bool JoinSelectors(const std::vector<std::string>& words, std::vector<std::string>* joined,
                   std::string* bad);
// Whether blanks or a NUL are in it: no name, pattern or rule may hold them.
bool HasBlank(std::string_view text);

// No rights: for a client that is being closed.
const User& Nobody();

// "User u has no permissions to run the 'get' command" and its kin. `verbose` names the key or the
// channel. REQUIRES: it is refused.
std::string RefusalText(const Verdict& verdict, std::string_view user,
                        const commands::Command& command, commands::Args args, bool verbose);

}  // namespace sava::access
