// What must hold for any bytes given as an ACL file or as rules of ACL SETUSER. Shared by the fuzz
// target and by the unit test that replays its corpus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "access/users.h"
#include "commands/native/families.h"
#include "commands/redis/families.h"

namespace sava::access {

inline const commands::CommandTable& FuzzedTable() {
  static const commands::CommandTable kTable = [] {
    commands::CommandTable table;
    for (const auto family : commands::RedisFamilies()) table.Add(family);
    for (const auto family : commands::NativeFamilies()) table.Add(family);
    return table;
  }();
  return kTable;
}

// The text split at one character, empty words included.
inline std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> words;
  while (true) {
    const size_t end = text.find(at);
    words.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

// The user made of the words of another's text is the same; what one may call, the other may.
inline std::string CheckUser(const User& user, const std::vector<std::string>& words) {
  User again(user.name, &FuzzedTable(), false);
  if (const base::Status status = again.ApplyAll(Split(user.Text(), ' '), false); !status) {
    return "its own text is refused: " + status.error();
  }
  if (again.Text() != user.Text()) return "its own text means something else: " + user.Text();
  const std::vector<std::string_view> args(words.begin(), words.end());
  for (const auto& command : FuzzedTable().by_id()) {
    if (command->spec->handler == nullptr || !command->ArityOk(args.size())) continue;
    const Verdict verdict = user.Check(*command, args);
    if (verdict.reason != again.Check(*command, args).reason) return "another answer";
    if (verdict.arg >= args.size()) return "an argument that is not there";
    if (user.everything() && !verdict.allowed()) return "everything is not everything";
    if (verdict.allowed() &&
        user.ReadsEveryKey(*command, args) != again.ReadsEveryKey(*command, args)) {
      return "another answer about every key";
    }
  }
  return {};
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckAclText(std::string_view text) {
  static const config::Settings kSettings;
  const Users users(&FuzzedTable(), &kSettings);
  const std::vector<std::string> words = Split(text, '\n');
  if (base::Result<Users::Map> map = users.Parse(text, "file"); map.ok()) {
    for (const auto& [name, user] : *map) {
      if (std::string problem = CheckUser(*user, words); !problem.empty()) return problem;
    }
  }
  // The lines as rules, and as the arguments of calls.
  User user("fuzzed", &FuzzedTable(), false);
  const std::string before = user.Text();
  if (!user.ApplyAll(words, false).ok() && user.Text() != before) return "changed by half";
  for (const std::string& word : words) static_cast<void>(user.Apply(word, false));
  return CheckUser(user, words);
}

}  // namespace sava::access
