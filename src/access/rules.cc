// How the rules of ACL SETUSER change a user. Each works on a copy: a refused rule changes nothing.
#include <fmt/format.h>

#include <algorithm>

#include "access/permissions.h"
#include "base/sha256.h"
#include "base/text.h"

namespace sava::access {

using base::Error;
using base::Status;
using commands::Command;

namespace {

constexpr size_t kHashSize = 64;

Error Unknown() { return Error{"Unknown command or category name in ACL"}; }
Error Syntax() { return Error{"Syntax error"}; }

bool IsHash(std::string_view text) {
  return text.size() == kHashSize && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The rules within the parentheses.
std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

bool HasBlank(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return c == '\0' || c == ' ' || (c >= '\t' && c <= '\r'); });
}

// ---- selectors: commands ----

Selector::Selector(const commands::CommandTable* table, bool all_channels)
    : table_(table), all_channels_(all_channels), bits_(table->by_id().size() / 64 + 1, 0) {}

void Selector::AllowAll(bool allow) {
  std::ranges::fill(bits_, allow ? ~uint64_t{0} : 0);
  all_commands_ = base_all_ = allow;
  first_args_.clear();
  rules_.clear();
}

void Selector::SetBit(int id, bool allow) {
  const auto bit = static_cast<size_t>(id);
  const uint64_t mask = uint64_t{1} << (bit % 64);
  bits_[bit / 64] = allow ? bits_[bit / 64] | mask : bits_[bit / 64] & ~mask;
  if (!allow) all_commands_ = false;
}

// A container means all its subcommands.
void Selector::SetCommand(const Command& command, bool allow) {
  SetBit(command.id, allow);
  std::erase_if(first_args_, [&](const auto& one) { return one.first == command.id; });
  for (const Command* sub : command.subcommands) SetBit(sub->id, allow);
}

// The last word about a command counts; what was said before of it, or of its subcommands, goes.
void Selector::NoteRule(std::string_view name, bool allow) {
  std::string rule = base::ToLower(name);
  std::erase_if(rules_, [&](const CommandRule& old) {
    return old.name == rule || (old.name.size() > rule.size() && old.name.starts_with(rule) &&
                                old.name[rule.size()] == '|');
  });
  rules_.push_back({allow, std::move(rule)});
}

Status Selector::ApplyCommand(std::string_view name, bool allow) {
  const Command* const command = table_->FindFullName(name);
  if (command == nullptr) return allow ? AllowWithArgument(name) : Unknown();
  SetCommand(*command, allow);
  NoteRule(command->full_name, allow);
  return {};
}

// +command|word for a command without subcommands.
Status Selector::AllowWithArgument(std::string_view name) {
  const size_t bar = name.rfind('|');
  if (bar == std::string_view::npos) return Unknown();
  const Command* const command = table_->FindFullName(name.substr(0, bar));
  if (command == nullptr) return Unknown();
  if (command->parent != nullptr) {
    return Error{"Allowing first-arg of a subcommand is not supported"};
  }
  const std::string_view word = name.substr(bar + 1);
  if (word.empty() || HasBlank(word)) return Syntax();
  if (!command->subcommands.empty()) return Unknown();
  const std::pair<int, std::string> one(command->id, word);
  if (std::ranges::find(first_args_, one) == first_args_.end()) first_args_.push_back(one);
  NoteRule(name, true);
  return {};
}

Status Selector::ApplyCategory(std::string_view name, bool allow) {
  const uint32_t category = commands::CategoryByName(name);
  if (category == 0) return Unknown();
  for (const auto& command : table_->by_id()) {
    if ((command->acl & category) != 0) SetCommand(*command, allow);
  }
  NoteRule(fmt::format("@{}", name), allow);
  return {};
}

// ---- selectors: keys and channels ----

// ~pattern, or % with the letters R and W before it.
Status Selector::AddKeys(std::string_view rule) {
  if (all_keys_) {
    return Error{
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not "
        "have any effect. Try 'resetkeys' to start with an empty list of patterns"};
  }
  uint8_t rights = rule.front() == '~' ? kAnyKey : 0;
  size_t at = 1;
  if (rights == 0) {
    for (; at < rule.size() && rule[at] != '~'; ++at) {
      const char letter = base::LowerChar(rule[at]);
      const uint8_t right = letter == 'r' ? kReadKey : letter == 'w' ? kWriteKey : 0;
      if (right == 0 || (rights & right) != 0) return Syntax();
      rights |= right;
    }
    if (rights == 0 || at == rule.size()) return Syntax();
    ++at;
  }
  const std::string_view pattern = rule.substr(at);
  if (HasBlank(pattern)) return Syntax();
  const auto same = std::ranges::find_if(
      keys_, [&](const KeyRule& old) { return old.pattern.text() == pattern; });
  if (same != keys_.end()) {
    same->rights |= rights;
  } else {
    keys_.push_back({Pattern(pattern), rights});
  }
  return {};
}

Status Selector::AddChannels(std::string_view pattern) {
  if (all_channels_) {
    return Error{
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does "
        "not have any effect. Try 'resetchannels' to start with an empty list of channels"};
  }
  if (HasBlank(pattern)) return Syntax();
  const bool known =
      std::ranges::any_of(channels_, [&](const Pattern& old) { return old.text() == pattern; });
  if (!known) channels_.emplace_back(pattern);
  return {};
}

Status Selector::Apply(std::string_view rule) {
  const auto is = [rule](std::string_view word) { return base::EqualsNoCase(rule, word); };
  if (rule.empty()) return {};
  if (is("allkeys") || is("~*") || is("resetkeys")) {
    all_keys_ = !is("resetkeys");
    keys_.clear();
    return {};
  }
  if (is("allchannels") || is("&*") || is("resetchannels")) {
    all_channels_ = !is("resetchannels");
    channels_.clear();
    return {};
  }
  if (is("allcommands") || is("+@all")) {
    AllowAll(true);
    return {};
  }
  if (is("nocommands") || is("-@all")) {
    AllowAll(false);
    return {};
  }
  const std::string_view rest = rule.substr(1);
  switch (rule.front()) {
    case '~':
    case '%':
      return AddKeys(rule);
    case '&':
      return AddChannels(rest);
    case '+':
    case '-':
      if (rest.starts_with('@')) return ApplyCategory(rest.substr(1), rule.front() == '+');
      return ApplyCommand(rest, rule.front() == '+');
    default:
      return Syntax();
  }
}

// ---- selectors: as they are shown ----

std::string Selector::KeysText() const {
  if (all_keys_) return "~*";
  static constexpr std::string_view kMarks[] = {"", "%R~", "%W~", "~"};
  std::vector<std::string> words;
  for (const KeyRule& rule : keys_) {
    // ~* would mean allkeys, which takes no patterns beside it.
    const bool every = rule.rights == kAnyKey && rule.pattern.text() == "*";
    words.push_back(std::string(every ? "%RW~" : kMarks[rule.rights]) + rule.pattern.text());
  }
  return Joined(words);
}

std::string Selector::ChannelsText() const {
  if (all_channels_) return "&*";
  std::vector<std::string> words;
  for (const Pattern& channel : channels_) words.push_back("&" + channel.text());
  return Joined(words);
}

std::string Selector::CommandsText() const {
  std::string text = base_all_ ? "+@all" : "-@all";
  for (const CommandRule& rule : rules_) {
    text += rule.allow ? " +" : " -";
    text += rule.name;
  }
  return text;
}

std::string Selector::Text() const {
  std::string text = KeysText();
  if (!text.empty()) text += ' ';
  if (!all_channels_) text += "resetchannels ";
  const std::string channels = ChannelsText();
  text += channels;
  if (!channels.empty()) text += ' ';
  return text + CommandsText();
}

// ---- users ----

User::User(std::string user_name, const commands::CommandTable* table, bool all_channels)
    : name(std::move(user_name)), table_(table) {
  selectors.emplace_back(table, all_channels);
}

// > and # add a password or a hash, < and ! take it away.
Status User::ApplyPassword(std::string_view rule) {
  const bool plain = rule.front() == '>' || rule.front() == '<';
  const bool add = rule.front() == '>' || rule.front() == '#';
  const std::string_view rest = rule.substr(1);
  if (!plain && !IsHash(rest)) {
    return Error{
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
        "characters"};
  }
  std::string hash = plain ? base::Sha256Hex(rest) : std::string(rest);
  const auto known = std::ranges::find(hashes, hash);
  if (add) {
    nopass = false;
    if (known == hashes.end()) hashes.push_back(std::move(hash));
    return {};
  }
  if (known == hashes.end()) {
    return Error{"The password you are trying to remove from the user does not exist"};
  }
  hashes.erase(known);
  return {};
}

Status User::AddSelector(std::string_view rules) {
  Selector selector(table_, false);
  for (const std::string_view rule : Words(rules)) {
    if (rule.ends_with(')')) return Syntax();  // would end the selector when it is read again
    if (Status status = selector.Apply(rule); !status) return status;
  }
  selectors.push_back(std::move(selector));
  return {};
}

Status User::Apply(std::string_view rule, bool all_channels) {
  const auto is = [rule](std::string_view word) { return base::EqualsNoCase(rule, word); };
  if (rule.empty()) return {};
  if (is("on") || is("off")) {
    on = is("on");
  } else if (is("nopass") || is("resetpass")) {
    nopass = is("nopass");
    hashes.clear();
  } else if (is("sanitize-payload") || is("skip-sanitize-payload")) {
    skips_sanitizing = is("skip-sanitize-payload");
  } else if (is("clearselectors")) {
    selectors.erase(selectors.begin() + 1, selectors.end());
  } else if (is("reset")) {
    *this = User(std::move(name), table_, all_channels);
  } else if (rule.front() == '(' && rule.back() == ')' && rule.size() > 1) {
    return AddSelector(rule.substr(1, rule.size() - 2));
  } else if (std::string_view("><#!").find(rule.front()) != std::string_view::npos) {
    return ApplyPassword(rule);
  } else {
    return selectors.front().Apply(rule);
  }
  return {};
}

bool JoinSelectors(const std::vector<std::string>& words, std::vector<std::string>* joined,
                   std::string* bad) {
  bool open = false;
  for (const std::string& word : words) {
    if (open) {
      joined->back().append(" ").append(word);
      open = !word.ends_with(')');
    } else {
      joined->push_back(word);
      open = word.starts_with('(') && !word.ends_with(')');
      if (open) *bad = word;
    }
  }
  return !open;
}

Status User::ApplyAll(const std::vector<std::string>& rules, bool all_channels) {
  std::vector<std::string> joined;
  std::string bad;
  if (!JoinSelectors(rules, &joined, &bad)) {
    return Error{fmt::format("Unmatched parenthesis in acl selector starting at '{}'.", bad)};
  }
  User changed = *this;
  for (const std::string& rule : joined) {
    if (Status status = changed.Apply(rule, all_channels); !status) {
      return Error{fmt::format("Error in ACL SETUSER modifier '{}': {}", rule, status.error())};
    }
  }
  *this = std::move(changed);
  return {};
}

std::string User::Text() const {
  std::string text = on ? "on " : "off ";
  if (nopass) text += "nopass ";
  text += skips_sanitizing ? "skip-sanitize-payload " : "sanitize-payload ";
  for (const std::string& hash : hashes) text.append("#").append(hash) += ' ';
  text += selectors.front().Text();
  for (size_t i = 1; i < selectors.size(); ++i) {
    text.append(" (").append(selectors[i].Text()) += ')';
  }
  return text;
}

}  // namespace sava::access
