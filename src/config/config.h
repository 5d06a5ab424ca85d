// Sava's configuration: reads it at start, answers CONFIG GET, SET and REWRITE.
//
// Configuration is redis.conf's language: one `name value` a line, in files, on the command line
// and through CONFIG SET. config_table.cc has the table of settings; this class moves values
// between texts and the typed engine::Settings that the rest of the server reads.
//
// Invariant: settings() always holds values that passed their checks; a failing Set changes
// nothing.
//
// Thread safety: none of its own. The Parse functions run before the server has threads; later the
// caller holds the gate exclusively for Set and at least shared for Get and RewrittenText.

#pragma once

#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config_table.h"
#include "config/settings.h"

namespace sava::config {

class Config {
 public:
  // Puts a changed setting into effect, or says why it cannot; it then leaves everything as it was.
  using Hook = std::function<base::Status(const Settings& now)>;

  Config();

  const Settings& settings() const { return state_.settings; }
  // For the start-up code, which may have to lower a value to what the machine allows.
  Settings& settings() { return state_.settings; }

  // --- At start. Errors are complete messages of several lines: where, the line, the reason.

  // Reads a file, which becomes config_file().
  [[nodiscard]] base::Status ParseFile(const std::string& path);
  // Reads lines; `source` names them in errors ("the configuration file 'x'").
  [[nodiscard]] base::Status ParseText(std::string_view text, const std::string& source);
  // What follows `sava serve`: [FILE] [-] [--name value ...]. The file counts first, then standard
  // input (`-`), then the options, each overriding what came before.
  [[nodiscard]] base::Status ParseArgs(std::span<const std::string> args,
                                       std::istream* standard_input = nullptr);
  // Makes `include` an error, for text from untrusted sources.
  void RefuseIncludes() { refuse_includes_ = true; }

  // Whether the file or the options have it. REQUIRES: the name exists.
  bool GivenAtStart(std::string_view name) const;

  // The absolute path of the file given at start, empty if there was none.
  const std::string& config_file() const { return config_file_; }

  // --- While running. Errors are complete RESP error texts, beginning with "ERR " or another code.

  // Tells whether data is being loaded, when some settings cannot be changed.
  void AskWhetherLoading(std::function<bool()> loading) { loading_ = std::move(loading); }

  // The settings whose names match any of the glob patterns, each once, with their values. A name
  // without wildcards comes back spelled as it was asked for.
  std::vector<std::pair<std::string, std::string>> Get(
      std::span<const std::string_view> patterns) const;

  // Sets name, value, name, value, ... all or none. `local` says whether the caller is connected
  // from this machine, which may decide about protected settings. Hooks of settings whose value
  // changed run once all values are in place; if one fails, the old values return and the hooks
  // that had run run again with them.
  [[nodiscard]] base::Status Set(std::span<const std::string_view> names_and_values, bool local);

  // Registers `hook` for changes of any of `names`; it runs once per Set however many of them
  // changed. REQUIRES: the names exist.
  void OnChange(std::initializer_list<std::string_view> names, Hook hook);

  // Tells the `user` lines that a rewritten file has, without that word.
  void OnRewriteUsers(std::function<std::vector<std::string>()> lines) {
    user_lines_ = std::move(lines);
  }
  // What CONFIG RESETSTAT puts back to zero.
  void OnResetStats(std::function<void()> reset) { reset_stats_ = std::move(reset); }
  void ResetStats() const { reset_stats_(); }

  // A setting as CONFIG GET shows it. REQUIRES: the name exists.
  std::string Text(std::string_view name) const { return Get({&name, 1})[0].second; }

  // Brings the file up to date with the values in effect, keeping comments and order.
  [[nodiscard]] base::Status Rewrite() const;
  // What Rewrite makes of a file that contains `old_text`.
  std::string RewrittenText(std::string_view old_text) const;

 private:
  struct HookEntry {
    std::vector<const Setting*> settings;
    Hook hook;
  };
  struct Assignment;

  base::Status ReadLine(std::string_view line);
  bool ReadKeptLine(Words words, base::Status* status);
  base::Status ReadAtStart(const Setting& setting, Words words);
  base::Status Include(const std::string& pattern);
  base::Status ReadFileLines(const std::string& path);

  base::Result<std::vector<Assignment>> FindAssignments(std::span<const std::string_view> args,
                                                        bool local) const;
  base::Status RunHooks(std::span<const Assignment> changed, ConfigState& old_state);
  base::Status CheckBuilt(const Setting& setting, const ConfigState& state) const;

  ConfigState state_;
  std::function<bool()> loading_;
  const ConfigState defaults_;
  std::vector<bool> given_at_start_;  // by row
  std::vector<HookEntry> hooks_;
  std::function<void()> reset_stats_;
  std::function<std::vector<std::string>()> user_lines_;  // empty: those in the file stay
  std::string config_file_;
  int include_depth_ = 0;
  bool refuse_includes_ = false;
};

}  // namespace sava::config
