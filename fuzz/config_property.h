// What must hold for any text given as a configuration file. Shared by the fuzz target and by the
// unit test that replays its corpus.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"

namespace sava::config {

inline std::vector<std::pair<std::string, std::string>> AllValues(const Config& config) {
  const std::string_view everything[] = {"*"};
  return config.Get(everything);
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckConfigText(std::string_view text) {
  Config config;
  config.RefuseIncludes();
  if (const base::Status status = config.ParseText(text, "the text"); !status) {
    return status.error().starts_with("*** FATAL") ? "" : "an error without a place";
  }

  // A rewritten file means the same, and rewriting it again changes nothing.
  const std::string rewritten = config.RewrittenText(text);
  Config again;
  again.RefuseIncludes();
  if (const base::Status status = again.ParseText(rewritten, "the rewritten text"); !status) {
    return status.error();
  }
  if (AllValues(again) != AllValues(config)) return "rewriting changed a value";
  if (again.RewrittenText(rewritten) != rewritten) return "rewriting twice differs";

  // What CONFIG GET shows, CONFIG SET takes.
  Config copy;
  const auto defaults = AllValues(copy);
  const auto values = AllValues(config);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == defaults[i]) continue;
    const auto& [name, value] = values[i];
    if (name == "bind") continue;  // words of a file may hold spaces, which no address has
    const std::string_view assignment[] = {name, value};
    const base::Status status = copy.Set(assignment, false);
    if (!status) {
      const std::string& error = status.error();
      if (error.ends_with("can't set immutable config")) continue;
      if (error.ends_with("can't set protected config")) continue;
      return error;
    }
    const std::string_view pattern[] = {name};
    if (copy.Get(pattern).at(0).second != value) return "CONFIG SET lost the value of " + name;
  }
  return {};
}

}  // namespace sava::config
