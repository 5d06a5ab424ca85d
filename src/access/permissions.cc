// Checks against compiled rules. rules.cc makes these from words.
#include "access/permissions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/glob.h"
#include "base/text.h"

namespace sava::access {

using commands::Args;
using commands::Command;

// ---- patterns ----

Pattern::Pattern(std::string_view text) : text_(text), shape_(Shape::kGlob) {
  const size_t special = text.find_first_of("*?[\\");
  if (special == std::string_view::npos) shape_ = Shape::kExact;
  if (special + 1 == text.size() && text.ends_with('*')) shape_ = Shape::kPrefix;
}

bool Pattern::Matches(std::string_view name) const {
  switch (shape_) {
    case Shape::kExact:
      return name == text_;
    case Shape::kPrefix:
      return name.starts_with(std::string_view(text_).substr(0, text_.size() - 1));
    case Shape::kGlob:
      break;
  }
  return base::GlobMatch(text_, name);
}

// ---- selectors ----

bool Selector::AllowsCommand(const Command& command, Args args) const {
  if (all_commands_ || has(command.id) || command.has(commands::kNoAuth)) return true;
  if (args.size() < 2) return false;
  return std::ranges::any_of(first_args_, [&](const auto& one) {
    return one.first == command.id && base::EqualsNoCase(one.second, args[1]);
  });
}

// A key needs what the command does with it: what it returns is read, what it changes is written.
bool Selector::AllowsKey(std::string_view key, uint16_t flags) const {
  uint8_t needed = 0;
  if ((flags & commands::kKeyAccess) != 0) needed |= kReadKey;
  if ((flags & (commands::kKeyInsert | commands::kKeyDelete | commands::kKeyUpdate)) != 0) {
    needed |= kWriteKey;
  }
  return std::ranges::any_of(keys_, [&](const KeyRule& rule) {
    return (rule.rights & needed) == needed && rule.pattern.Matches(key);
  });
}

bool Selector::AllowsChannel(std::string_view name, bool is_pattern) const {
  return all_channels_ || std::ranges::any_of(channels_, [&](const Pattern& allowed) {
           return is_pattern ? allowed.text() == name : allowed.Matches(name);
         });
}

Verdict Selector::Check(const Command& command, Args args) const {
  if (!AllowsCommand(command, args)) return {Reason::kCommand};
  Verdict verdict;
  if (!all_keys_ &&
      (command.simple_keys || command.spec->keys.count > 0 || command.spec->find_keys != nullptr)) {
    commands::ForEachKeyAndFlags(command, args, [&](size_t index, uint16_t flags) {
      if (verdict.allowed() && !AllowsKey(args[index], flags)) verdict = {Reason::kKey, index};
    });
    if (!verdict.allowed()) return verdict;
  }
  if (all_channels_) return verdict;
  size_t end = 1;
  if (command.is(commands::kNamesChannel)) end = 2;
  const bool patterns = command.is(commands::kNamesPatterns);
  if (patterns || command.is(commands::kNamesChannels)) end = args.size();
  for (size_t i = 1; i < std::min(end, args.size()); ++i) {
    if (!AllowsChannel(args[i], patterns)) return {Reason::kChannel, i};
  }
  return verdict;
}

bool Selector::ReadsEveryKey() const {
  return all_keys_ || std::ranges::any_of(keys_, [](const KeyRule& rule) {
           return (rule.rights & kReadKey) != 0 && rule.pattern.text() == "*";
         });
}

// ---- users ----

Verdict User::Check(const Command& command, Args args) const {
  Verdict worst{Reason::kCommand};
  for (const Selector& selector : selectors) {
    const Verdict verdict = selector.Check(command, args);
    if (verdict.allowed()) return verdict;
    if (verdict.reason > worst.reason ||
        (verdict.reason == worst.reason && verdict.arg > worst.arg)) {
      worst = verdict;
    }
  }
  return worst;
}

bool User::AllowsChannel(std::string_view channel, bool is_pattern) const {
  return std::ranges::any_of(selectors, [&](const Selector& selector) {
    return selector.AllowsChannel(channel, is_pattern);
  });
}

bool User::ReadsEveryKey(const Command& command, Args args) const {
  return std::ranges::any_of(selectors, [&](const Selector& selector) {
    return selector.ReadsEveryKey() && selector.Check(command, args).allowed();
  });
}

const User& Nobody() {
  static const commands::CommandTable kNoCommands;
  static const User kNobody("", &kNoCommands, false);
  return kNobody;
}

std::string RefusalText(const Verdict& verdict, std::string_view user, const Command& command,
                        Args args, bool verbose) {
  if (verdict.reason == Reason::kCommand) {
    return fmt::format("User {} has no permissions to run the '{}' command", user,
                       command.full_name);
  }
  const std::string_view kind = verdict.reason == Reason::kKey ? "key" : "channel";
  if (!verbose) return fmt::format("No permissions to access a {}", kind);
  return fmt::format("User {} has no permissions to access the '{}' {}", user, args[verdict.arg],
                     kind);
}

}  // namespace sava::access
