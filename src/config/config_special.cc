// The settings that are more than one plain value: lists of addresses, save rules, output buffer
// limits, event letters and the like. The error texts are Redis's.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/text.h"
#include "config/config_table.h"

namespace sava::config {

namespace {

constexpr size_t kMaxAddresses = 16;

// A decimal number with an optional sign; too large a number gives the nearest one.
bool ReadLooseInt(std::string_view text, int64_t* out) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  if (error == std::errc::result_out_of_range) {
    *out = text.starts_with('-') ? std::numeric_limits<int64_t>::min()
                                 : std::numeric_limits<int64_t>::max();
  } else if (error != std::errc()) {
    return false;
  }
  return stop == end;
}

std::string Join(Words words) {
  std::string text;
  for (const std::string& word : words) {
    if (&word != words.data()) text += ' ';
    text += word;
  }
  return text;
}

// bind and http-bind.

base::Status ReadAddresses(Words words, std::vector<std::string>& addresses) {
  if (words.size() > kMaxAddresses) return base::Error{"Too many bind addresses specified."};
  addresses.assign(words.begin(), words.end());
  return {};
}

std::vector<std::string> AddressLines(const std::vector<std::string>& addresses) {
  std::string line;
  for (const std::string& address : addresses) {
    if (!line.empty()) line += ' ';
    const std::string quoted = base::Quoted(address);
    const bool plain = !address.empty() && address.find_first_of(" '#") == std::string::npos &&
                       quoted.size() == address.size() + 2;
    line += plain ? address : quoted;
  }
  return {line.empty() ? "\"\"" : line};
}

base::Status ReadBind(Words words, Origin, Settings& s) { return ReadAddresses(words, s.bind); }
std::string PrintBind(const Settings& s) { return Join(s.bind); }
std::vector<std::string> BindLines(const Settings& s, bool) { return AddressLines(s.bind); }

base::Status ReadHttpBind(Words words, Origin, Settings& s) {
  return ReadAddresses(words, s.http_bind);
}
std::string PrintHttpBind(const Settings& s) { return Join(s.http_bind); }
std::vector<std::string> HttpBindLines(const Settings& s, bool) {
  return AddressLines(s.http_bind);
}

// http-hosts: names of hosts, without ports; an empty text means none.

base::Status ReadHttpHosts(Words words, Origin, Settings& s) {
  std::vector<std::string> hosts;
  for (const std::string& word : words) {
    if (word.empty()) continue;
    if (word.find_first_of(" :/\"\\") != std::string::npos) {
      return base::Error{"A host is a name without a port, or *"};
    }
    hosts.push_back(word);
  }
  s.http_hosts = std::move(hosts);
  return {};
}
std::string PrintHttpHosts(const Settings& s) { return Join(s.http_hosts); }
std::vector<std::string> HttpHostsLines(const Settings& s, bool) {
  return AddressLines(s.http_hosts);
}

// dir. At start it need not exist yet (the server makes it); CONFIG SET wants an existing one.

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::weakly_canonical(path, error);
  return error ? path : full.string();
}

base::Status ReadDir(Words words, Origin origin, Settings& s) {
  const std::string& path = words[0];
  if (path.empty()) return base::Error{std::strerror(ENOENT)};
  if (origin != Origin::kCommand) {
    s.dir = path;
    return {};
  }
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return base::Error{std::strerror(errno)};
  if (!S_ISDIR(info.st_mode)) return base::Error{std::strerror(ENOTDIR)};
  if (access(path.c_str(), X_OK) != 0) return base::Error{std::strerror(errno)};
  s.dir = AbsolutePath(path);
  return {};
}
std::string PrintDir(const Settings& s) { return AbsolutePath(s.dir); }

// save

base::Status ReadSave(Words words, Origin origin, Settings& s) {
  const base::Error bad{"Invalid save parameters"};
  if (words.size() % 2 != 0) return bad;
  std::vector<SaveRule> rules;
  for (size_t i = 0; i < words.size(); i += 2) {
    SaveRule rule;
    if (!ReadLooseInt(words[i], &rule.seconds) || !ReadLooseInt(words[i + 1], &rule.changes) ||
        rule.seconds < 1 || rule.changes < 0) {
      return bad;
    }
    rules.push_back(rule);
  }
  if (origin != Origin::kLaterLine || words.empty()) s.save_rules.clear();
  s.save_rules.insert(s.save_rules.end(), rules.begin(), rules.end());
  return {};
}

std::vector<std::string> SaveLines(const Settings& s, bool) {
  std::vector<std::string> lines;
  for (const SaveRule& rule : s.save_rules) {
    lines.push_back(fmt::format("{} {}", rule.seconds, rule.changes));
  }
  if (lines.empty()) lines.emplace_back("\"\"");
  return lines;
}

std::string PrintSave(const Settings& s) {
  return s.save_rules.empty() ? std::string() : Join(SaveLines(s, true));
}

// client-output-buffer-limit

struct ClientClass {
  std::string_view shown;
  std::string_view written;
  OutputBufferLimit Settings::*limit;
};
constexpr ClientClass kClasses[] = {
    {"normal", "normal", &Settings::output_limit_normal},
    {"slave", "replica", &Settings::output_limit_replica},
    {"pubsub", "pubsub", &Settings::output_limit_pubsub},
};

base::Status ReadOutputLimits(Words words, Origin, Settings& s) {
  if (words.size() % 4 != 0) {
    return base::Error{"Wrong number of arguments in buffer limit configuration."};
  }
  Settings changed = s;
  for (size_t i = 0; i < words.size(); i += 4) {
    const ClientClass* found = nullptr;
    for (const ClientClass& one : kClasses) {
      if (base::EqualsNoCase(one.shown, words[i]) || base::EqualsNoCase(one.written, words[i])) {
        found = &one;
      }
    }
    if (found == nullptr) {
      return base::Error{"Invalid client class specified in buffer limit configuration."};
    }
    OutputBufferLimit limit;
    if (!ParseMemory(words[i + 1], &limit.hard) || !ParseMemory(words[i + 2], &limit.soft) ||
        !ReadLooseInt(words[i + 3], &limit.soft_seconds) || limit.soft_seconds < 0) {
      return base::Error{
          "Error in hard, soft or soft_seconds setting in buffer limit configuration."};
    }
    changed.*(found->limit) = limit;
  }
  for (const ClientClass& one : kClasses) s.*(one.limit) = changed.*(one.limit);
  return {};
}

std::string PrintOutputLimits(const Settings& s) {
  std::string text;
  for (const ClientClass& one : kClasses) {
    const OutputBufferLimit& limit = s.*(one.limit);
    if (!text.empty()) text += ' ';
    text += fmt::format("{} {} {} {}", one.shown, limit.hard, limit.soft, limit.soft_seconds);
  }
  return text;
}

std::vector<std::string> OutputLimitLines(const Settings& s, bool all) {
  const Settings defaults;
  std::vector<std::string> lines;
  for (const ClientClass& one : kClasses) {
    const OutputBufferLimit& limit = s.*(one.limit);
    if (!all && limit == defaults.*(one.limit)) continue;
    lines.push_back(
        fmt::format("{} {} {} {}", one.written, limit.hard, limit.soft, limit.soft_seconds));
  }
  return lines;
}

// oom-score-adj-values

base::Status ReadOomValues(Words words, Origin, Settings& s) {
  if (words.size() != s.oom_score_adj_values.size()) {
    return base::Error{"wrong number of arguments"};
  }
  std::array<int, 3> values = {};
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t value = 0;
    if (!ReadLooseInt(words[i], &value) || value < -2000 || value > 2000) {
      return base::Error{"Invalid oom-score-adj-values, elements must be between -2000 and 2000."};
    }
    values[i] = static_cast<int>(value);
  }
  s.oom_score_adj_values = values;
  return {};
}
std::string PrintOomValues(const Settings& s) {
  return fmt::format("{}", fmt::join(s.oom_score_adj_values, " "));
}
std::vector<std::string> OomValuesLines(const Settings& s, bool) { return {PrintOomValues(s)}; }

// notify-keyspace-events

struct NotifyLetter {
  char letter;
  uint32_t flag;
};
constexpr NotifyLetter kNotifyLetters[] = {
    {'g', kNotifyGeneric}, {'$', kNotifyString}, {'l', kNotifyList},    {'s', kNotifySet},
    {'h', kNotifyHash},    {'z', kNotifyZset},   {'x', kNotifyExpired}, {'e', kNotifyEvicted},
    {'t', kNotifyStream},  {'d', kNotifyModule}, {'n', kNotifyNewKey},
};
constexpr NotifyLetter kNotifyTail[] = {
    {'K', kNotifyKeyspace}, {'E', kNotifyKeyevent}, {'m', kNotifyKeyMiss}};

base::Status ReadNotify(Words words, Origin, Settings& s) {
  if (!ParseNotifyFlags(words[0], &s.notify_keyspace_events)) {
    return base::Error{"Invalid event class character. Use 'Ag$lshzxeKEtmdn'."};
  }
  return {};
}
std::string PrintNotify(const Settings& s) { return NotifyFlagsText(s.notify_keyspace_events); }
std::vector<std::string> NotifyLines(const Settings& s, bool) {
  return {base::Quoted(NotifyFlagsText(s.notify_keyspace_events, true))};
}

// latency-tracking-info-percentiles

base::Status ReadPercentiles(Words words, Origin, Settings& s) {
  std::vector<double> values;
  for (const std::string& word : words) {
    double value = 0;
    if (!base::ParseDouble(word, &value)) {
      return base::Error{"Invalid latency-tracking-info-percentiles parameters"};
    }
    if (value < 0 || value > 100) {
      return base::Error{
          "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"};
    }
    values.push_back(value);
  }
  s.latency_tracking_info_percentiles = std::move(values);
  return {};
}

std::string PrintPercentiles(const Settings& s) {
  std::string text;
  for (const double value : s.latency_tracking_info_percentiles) {
    std::string digits = fmt::format("{:.6f}", value);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    if (!text.empty()) text += ' ';
    text += digits;
  }
  return text;
}
std::vector<std::string> PercentileLines(const Settings& s, bool) {
  std::string text = PrintPercentiles(s);
  return {text.empty() ? "\"\"" : text};
}

// replicaof: a host and a port, or "no one".

base::Status ReadReplicaOf(Words words, Origin, Settings& s) {
  if (words.size() != 2) return base::Error{"wrong number of arguments"};
  if (base::EqualsNoCase(words[0], "no") && base::EqualsNoCase(words[1], "one")) {
    s.master_host.clear();
    s.master_port = 0;
    return {};
  }
  int64_t port = 0;
  if (!base::ParseInt(words[1], &port) || port < 0 || port > 65535) {
    return base::Error{"Invalid master port"};
  }
  s.master_host = words[0];
  s.master_port = port;
  return {};
}
std::string PrintReplicaOf(const Settings& s) {
  return s.master_host.empty() ? std::string() : fmt::format("{} {}", s.master_host, s.master_port);
}
std::vector<std::string> ReplicaOfLines(const Settings& s, bool) {
  const std::string text = PrintReplicaOf(s);
  return {text.empty() ? "no one" : text};
}

}  // namespace

bool ParseNotifyFlags(std::string_view letters, uint32_t* out) {
  uint32_t flags = 0;
  for (const char letter : letters) {
    uint32_t flag = letter == 'A' ? uint32_t{kNotifyAll} : 0;
    for (const NotifyLetter& known : kNotifyLetters) {
      if (known.letter == letter) flag = known.flag;
    }
    for (const NotifyLetter& known : kNotifyTail) {
      if (known.letter == letter) flag = known.flag;
    }
    if (flag == 0) return false;
    flags |= flag;
  }
  *out = flags;
  return true;
}

std::string NotifyFlagsText(uint32_t flags, bool lossless) {
  std::string text;
  if ((flags & kNotifyAll) == kNotifyAll) {
    text += 'A';
    if (lossless && (flags & kNotifyNewKey) != 0) text += 'n';
  } else {
    for (const NotifyLetter& known : kNotifyLetters) {
      if ((flags & known.flag) != 0) text += known.letter;
    }
  }
  for (const NotifyLetter& known : kNotifyTail) {
    if ((flags & known.flag) != 0) text += known.letter;
  }
  return text;
}

constinit const Special kBindSpecial = {ReadBind, PrintBind, BindLines};
constinit const Special kHttpBindSpecial = {ReadHttpBind, PrintHttpBind, HttpBindLines};
constinit const Special kHttpHostsSpecial = {ReadHttpHosts, PrintHttpHosts, HttpHostsLines};
constinit const Special kDirSpecial = {ReadDir, PrintDir, nullptr};
constinit const Special kSaveSpecial = {ReadSave, PrintSave, SaveLines, true};
constinit const Special kOutputLimitSpecial = {ReadOutputLimits, PrintOutputLimits,
                                               OutputLimitLines};
constinit const Special kOomValuesSpecial = {ReadOomValues, PrintOomValues, OomValuesLines};
constinit const Special kNotifySpecial = {ReadNotify, PrintNotify, NotifyLines};
constinit const Special kPercentilesSpecial = {ReadPercentiles, PrintPercentiles, PercentileLines};
constinit const Special kReplicaOfSpecial = {ReadReplicaOf, PrintReplicaOf, ReplicaOfLines};

}  // namespace sava::config
