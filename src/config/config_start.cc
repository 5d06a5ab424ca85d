// The configuration at start: files, standard input and the command line.

#include <fmt/format.h>
#include <glob.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/text.h"
#include "config/config.h"
#include "config/config_file.h"

namespace sava::config {

namespace {

constexpr int kMaxIncludeDepth = 16;
constexpr size_t kMaxShownLine = 256;
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string FirstWord(std::string_view line) {
  const auto words = base::SplitArgs(line);
  if (words && !words->empty()) return words->front();
  return std::string(line.substr(0, std::min(line.find_first_of(kBlanks), line.size())));
}

// The whole message for a line that cannot be used. Secrets are not shown.
base::Error FatalError(std::string_view where, std::string_view line, std::string_view reason) {
  std::string shown(line.substr(0, kMaxShownLine));
  const Setting* setting = FindSetting(FirstWord(line));
  if (setting != nullptr && setting->has(kSensitive)) {
    shown = fmt::format("{} (value not shown)", setting->name);
  } else if (line.size() > 4 && base::EqualsNoCase(FirstWord(line), "user")) {
    shown = "user (rules not shown)";
  }
  return base::Error{fmt::format("*** FATAL CONFIG FILE ERROR (Sava) ***\nReading {}\n>>> '{}'\n{}",
                                 where, shown, reason)};
}

base::Error CannotOpen(const std::string& path, const std::string& reason) {
  return base::Error{fmt::format("Fatal error, can't open config file '{}': {}", path, reason)};
}

// Errors of nested files are complete already.
bool IsComplete(std::string_view error) {
  return error.starts_with("*** FATAL") || error.starts_with("Fatal error");
}

base::Error UnknownName(std::string_view name) {
  std::string text = "Bad directive or wrong number of arguments";
  if (FindDirective(name) == nullptr && name != "include" && name != "user" &&
      name != "rename-command") {
    text += fmt::format(": there is no setting '{}'", name.substr(0, kMaxShownLine));
    const std::string_view nearest = NearestName(name);
    if (!nearest.empty()) text += fmt::format(", did you mean '{}'?", nearest);
  }
  return base::Error{text};
}

// The command line taken apart, in the order in which it counts.
struct Arguments {
  std::string file;
  bool standard_input = false;
  std::vector<std::string> lines;  // one configuration line per option
};

bool IsOption(const std::string& arg) { return arg.starts_with("--"); }

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error);
}

// redis-server's rules: `--name` begins a line and the words up to the next option are its values.
// What follows a bare `--name` is its value even if it looks like an option, except after --save.
// A word too many after an option that takes one value is the file if it names one and there is
// none yet.
Arguments TakeApart(std::span<const std::string> args) {
  Arguments result;
  size_t i = 0;
  if (!args.empty() && !args[0].starts_with('-')) result.file = args[i++];
  bool value_expected = false;
  bool single_value_given = false;
  for (; i < args.size(); ++i) {
    const std::string& arg = args[i];
    const bool last = i + 1 == args.size();
    if (arg == "-" && (i == 0 || last) && !value_expected) {
      result.standard_input = true;
    } else if (!value_expected && IsOption(arg)) {
      result.lines.push_back(arg.substr(2));
      const auto words = base::SplitArgs(arg);
      value_expected = words.has_value() && words->size() == 1;
      single_value_given = false;
      if (value_expected && base::EqualsNoCase(arg, "--save") && (last || IsOption(args[i + 1]))) {
        result.lines.back() += " \"\"";
        value_expected = false;
      }
    } else if (single_value_given && result.file.empty() && IsFile(arg)) {
      result.file = arg;
    } else {
      if (result.lines.empty()) result.lines.emplace_back();
      const Setting* setting = FindSetting(FirstWord(result.lines.back()));
      single_value_given = value_expected && setting != nullptr && !setting->has(kManyWords);
      result.lines.back() += ' ' + base::Quoted(arg);
      value_expected = false;
    }
  }
  return result;
}

}  // namespace

bool Config::GivenAtStart(std::string_view name) const {
  return given_at_start_[static_cast<size_t>(FindSetting(name) - AllSettings().data())];
}

base::Status Config::ReadAtStart(const Setting& setting, Words words) {
  const auto row = static_cast<size_t>(&setting - AllSettings().data());
  const Origin origin = given_at_start_[row] ? Origin::kLaterLine : Origin::kFirstLine;
  base::Status status = ReadValue(setting, words, origin, state_);
  if (!status) return status;
  given_at_start_[row] = true;
  status = CheckBuilt(setting, state_);
  return status;
}

// Lines that are no settings, but are kept: users and renamed commands. Whether they can be used is
// known only where the commands are. False: the line is something else.
bool Config::ReadKeptLine(Words words, base::Status* status) {
  const auto is = [&words](std::string_view name) { return base::EqualsNoCase(words[0], name); };
  if (is("user") && words.size() >= 2) {
    state_.settings.user_lines.emplace_back(words.begin() + 1, words.end());
    return true;
  }
  if (!is("rename-command") || words.size() < 2) return false;
  if (words.size() == 3) {
    state_.settings.renamed_commands.emplace_back(words[1], words[2]);
  } else {
    *status = base::Error{"rename-command takes the name of a command and a new name"};
  }
  return true;
}

base::Status Config::ReadLine(std::string_view line) {
  const auto words = base::SplitArgs(line);
  if (!words) return base::Error{"Unbalanced quotes in configuration line"};
  if (words->empty()) return {};
  const std::string& name = words->front();
  if (const Setting* setting = FindSetting(name)) {
    return ReadAtStart(*setting, Words(*words).subspan(1));
  }
  if (base::EqualsNoCase(name, "include") && words->size() == 2) return Include((*words)[1]);
  if (base::Status status; ReadKeptLine(*words, &status)) return status;
  const Directive* directive = FindDirective(name);
  if (directive == nullptr || words->size() < 2) return UnknownName(name);
  if (!directive->refusal.empty()) return base::Error{std::string(directive->refusal)};
  return {};
}

base::Status Config::ParseText(std::string_view text, const std::string& source) {
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    base::Status status = ReadLine(line);
    if (status) continue;
    if (IsComplete(status.error())) return status;
    return FatalError(fmt::format("{}, at line {}", source, number), line, status.error());
  }
  return {};
}

base::Status Config::ReadFileLines(const std::string& path) {
  base::Result<std::string> text = ReadWholeFile(path);
  if (!text) return CannotOpen(path, text.error());
  return ParseText(*text, fmt::format("the configuration file '{}'", path));
}

base::Status Config::ParseFile(const std::string& path) {
  std::error_code error;
  config_file_ = std::filesystem::absolute(path, error).lexically_normal().string();
  return ReadFileLines(path);
}

base::Status Config::Include(const std::string& pattern) {
  if (refuse_includes_) return base::Error{"include is not allowed here"};
  if (include_depth_ == kMaxIncludeDepth) {
    return base::Error{fmt::format("more than {} files include one another", kMaxIncludeDepth)};
  }
  std::vector<std::string> paths;
  if (pattern.find_first_of("*?[") == std::string::npos) {
    paths.push_back(pattern);
  } else {
    glob_t matches = {};
    const int outcome = glob(pattern.c_str(), 0, nullptr, &matches);
    for (size_t i = 0; outcome == 0 && i < matches.gl_pathc; ++i) {
      paths.emplace_back(matches.gl_pathv[i]);
    }
    globfree(&matches);
    if (outcome != 0 && outcome != GLOB_NOMATCH) return CannotOpen(pattern, std::strerror(EIO));
  }
  ++include_depth_;
  base::Status status;
  for (size_t i = 0; i < paths.size() && status; ++i) status = ReadFileLines(paths[i]);
  --include_depth_;
  return status;
}

base::Status Config::ParseArgs(std::span<const std::string> args, std::istream* standard_input) {
  const Arguments arguments = TakeApart(args);
  if (!arguments.file.empty()) {
    if (base::Status status = ParseFile(arguments.file); !status) return status;
  }
  if (arguments.standard_input) {
    std::istream& in = standard_input != nullptr ? *standard_input : std::cin;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (base::Status status = ParseText(text, "standard input"); !status) return status;
  }
  for (const std::string& line : arguments.lines) {
    base::Status status = ReadLine(line);
    if (status) continue;
    if (IsComplete(status.error())) return status;
    return FatalError("the command line", Trim(line), status.error());
  }
  return {};
}

}  // namespace sava::config
