#include "access/users.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/secret.h"
#include "base/sha256.h"
#include "base/text.h"
#include "config/config_file.h"

namespace sava::access {

using base::Error;
using base::Status;

namespace {

constexpr std::string_view kDefault = "default";
constexpr std::string_view kNotPerformed =
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

// The words of a line of an ACL file; blanks separate them, and nothing is quoted.
std::vector<std::string> SplitLine(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> words;
  while (true) {
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

// A line of a configuration file reads the word as it is.
bool IsPlain(std::string_view word) {
  return std::ranges::all_of(word,
                             [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\''; });
}

}  // namespace

Users::Users(const commands::CommandTable* table, const config::Settings* settings)
    : table_(table), settings_(settings) {
  std::unique_ptr<User> user = NewDefault();
  if (!settings->requirepass.empty()) {
    static_cast<void>(user->Apply(">" + settings->requirepass, false));
  }
  default_ = user.get();
  users_.emplace(kDefault, std::move(user));
}

std::unique_ptr<User> Users::NewDefault() const {
  auto user = std::make_unique<User>(std::string(kDefault), table_, true);
  for (const std::string_view rule : {"on", "nopass", "allkeys", "allcommands"}) {
    static_cast<void>(user->Apply(rule, true));
  }
  return user;
}

const User* Users::Find(std::string_view name) const {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second.get();
}

const User* Users::Authenticate(std::string_view name, std::string_view password) const {
  static const std::vector<std::string> kSomeHash = {std::string(64, '0')};
  const User* const user = Find(name);
  const std::string given = base::Sha256Hex(password);
  bool right = false;
  for (const std::string& hash : user == nullptr ? kSomeHash : user->hashes) {
    const bool same = base::SameSecret(given, hash);
    right = right || same;
  }
  if (user == nullptr || !user->on) return nullptr;
  return right || user->nopass ? user : nullptr;
}

// ---- changes ----

void Users::Changed(uint64_t session) {
  default_ = Find(kDefault);
  for (const Listener& listener : listeners_) listener(session);
}

Status Users::Set(std::string_view name, const std::vector<std::string>& rules, uint64_t session) {
  const User* const old = Find(name);
  auto changed = old != nullptr ? std::make_unique<User>(*old)
                                : std::make_unique<User>(std::string(name), table_, all_channels());
  if (Status status = changed->ApplyAll(rules, all_channels()); !status) return status;
  std::unique_ptr<const User> other = std::move(changed);
  users_[std::string(name)].swap(other);
  Changed(session);
  return {};
}

size_t Users::Delete(const std::vector<std::string_view>& names, uint64_t session) {
  std::vector<std::unique_ptr<const User>> gone;
  for (const std::string_view name : names) {
    const auto found = users_.find(name);
    if (found == users_.end()) continue;
    gone.push_back(std::move(found->second));
    users_.erase(found);
  }
  if (!gone.empty()) Changed(session);
  return gone.size();
}

void Users::SetDefaultPassword(std::string_view password) {
  std::vector<std::string> rules = {"resetpass", "nopass"};
  if (!password.empty()) rules[1] = ">" + std::string(password);
  static_cast<void>(Set(kDefault, rules, 0));
}

void Users::Replace(Map users, uint64_t session) {
  users_.swap(users);
  Changed(session);
}

// ---- files ----

// The error ends with a blank, as several of them follow one another.
Status Users::ParseLine(std::string_view line, Map* users) const {
  const std::vector<std::string> words = SplitLine(line);
  if (words.empty()) return {};
  if (words[0] != "user" || words.size() < 2) {
    return Error{"line should start with user keyword. "};
  }
  const std::string& name = words[1];
  if (HasBlank(name))
    return Error{fmt::format("username '{}' contains invalid characters. ", name)};
  if (users->contains(name)) return Error{fmt::format("Duplicate user '{}' found. ", name)};
  std::vector<std::string> rules;
  std::string bad;
  if (!JoinSelectors({words.begin() + 2, words.end()}, &rules, &bad)) {
    return Error{"Unmatched parenthesis in selector definition."};
  }
  auto user = std::make_unique<User>(name, table_, all_channels());
  std::string problem;
  for (const std::string& rule : rules) {
    const Status status = user->Apply(rule, all_channels());
    if (!status && problem.empty()) problem = status.error();
  }
  if (!problem.empty()) return Error{problem + ". "};
  users->emplace(name, std::move(user));
  return {};
}

base::Result<Users::Map> Users::Parse(std::string_view text, std::string_view source) const {
  Map users;
  std::string problems;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const Status status = ParseLine(text.substr(0, end), &users);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!status) problems += fmt::format("{}:{}: {}", source, number, status.error());
  }
  if (!problems.empty()) return Error{problems + std::string(kNotPerformed)};
  if (!users.contains(kDefault)) users.emplace(kDefault, NewDefault());
  return users;
}

Status Users::Load(uint64_t session) {
  base::Result<std::string> text = config::ReadWholeFile(file_);
  if (!text) {
    return Error{fmt::format("Error loading ACLs, opening file '{}': {}", file_, text.error())};
  }
  base::Result<Map> users = Parse(*text, file_);
  if (!users) return Error{users.error()};
  Replace(std::move(*users), session);
  return {};
}

std::string Users::FileText() const {
  std::string text;
  for (const auto& [name, user] : users_) text += fmt::format("user {} {}\n", name, user->Text());
  return text;
}

Status Users::Save() const { return config::ReplaceFile(file_, FileText()); }

std::vector<std::string> Users::ConfigLines() const {
  std::vector<std::string> lines;
  const Users fresh(table_, settings_);
  for (const auto& [name, user] : users_) {
    if (user.get() == default_ && user->Text() == fresh.default_user().Text()) continue;
    std::string line;
    for (const std::string& word : SplitLine(name + " " + user->Text())) {
      if (!line.empty()) line += ' ';
      line += IsPlain(word) ? word : base::Quoted(word);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// The `user` lines of the configuration, which win over requirepass.
Status Users::OpenLines() {
  std::vector<std::string_view> seen;
  for (const std::vector<std::string>& words : settings_->user_lines) {
    const std::string& name = words[0];
    const auto wrong = [](std::string_view what, std::string_view why) {
      return Error{fmt::format("Error in user declaration '{}': {}", what, why)};
    };
    if (HasBlank(name) || name.empty()) return wrong(name, "Syntax error");
    if (std::ranges::find(seen, name) != seen.end()) {
      return wrong(name, "Duplicate user found. A user can only be defined once in config files");
    }
    seen.push_back(name);
    std::vector<std::string> rules;
    std::string bad;
    if (!JoinSelectors({words.begin() + 1, words.end()}, &rules, &bad)) {
      return wrong(bad, "Unmatched parenthesis in selector definition");
    }
    auto user = std::make_unique<User>(name, table_, all_channels());
    for (const std::string& rule : rules) {
      if (const Status status = user->Apply(rule, all_channels()); !status) {
        return wrong(rule, status.error());
      }
    }
    users_[name] = std::move(user);
  }
  default_ = Find(kDefault);
  return {};
}

Status Users::Open() {
  if (settings_->aclfile.empty()) return OpenLines();
  if (!settings_->user_lines.empty()) {
    return Error{
        "There are users in the configuration file and an aclfile as well: one of them would be "
        "ignored. Declare the users in the ACL file or in the configuration, not in both."};
  }
  std::error_code error;
  file_ = std::filesystem::absolute(settings_->aclfile, error).lexically_normal().string();
  if (const Status status = Load(0); !status) {
    return Error{"Aborting startup because of ACL errors: " + status.error()};
  }
  return {};
}

}  // namespace sava::access
