// The settings of the server's own limiter. A rule is `algorithm limit period [burst n]`, a period
// a number with its unit: ms, s, m, h or d.

#include <fmt/format.h>

#include "base/text.h"
#include "config/config_table.h"

namespace sava::config {

namespace {

using types::RateRule;

struct Unit {
  std::string_view name;
  int64_t ms;
};
constexpr Unit kUnits[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};

bool ParsePeriod(std::string_view text, int64_t* out) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  int64_t value = 0;
  if (!base::ParseInt(text.substr(0, digits), &value)) return false;
  for (const Unit& unit : kUnits) {
    if (!base::EqualsNoCase(text.substr(digits), unit.name)) continue;
    return !__builtin_mul_overflow(value, unit.ms, out);
  }
  return false;
}

std::string RuleText(const RateRule& rule) {
  const bool seconds = rule.period_ms % 1000 == 0;
  std::string text =
      fmt::format("{} {} {}{}", types::RateAlgorithmName(rule.algorithm), rule.limit,
                  seconds ? rule.period_ms / 1000 : rule.period_ms, seconds ? "s" : "ms");
  if (rule.capacity != rule.limit) text += fmt::format(" burst {}", rule.capacity);
  return text;
}

// Reads `algorithm limit period [burst n]` from the front of `words` and moves behind it.
base::Result<RateRule> ReadRule(Words* words) {
  if (words->size() < 3) {
    return base::Error{"a rule is: window|token|gcra|sliding limit period [burst n]"};
  }
  RateRule rule;
  if (!types::ParseRateAlgorithm((*words)[0], &rule.algorithm)) {
    return base::Error{
        fmt::format("unknown algorithm '{}', use window, token, gcra or sliding", (*words)[0])};
  }
  if (!base::ParseInt((*words)[1], &rule.limit)) {
    return base::Error{fmt::format("'{}' is not a limit", (*words)[1])};
  }
  if (!ParsePeriod((*words)[2], &rule.period_ms)) {
    return base::Error{
        fmt::format("'{}' is not a period: a number with ms, s, m, h or d", (*words)[2])};
  }
  rule.capacity = rule.limit;
  *words = words->subspan(3);
  if (words->size() >= 2 && base::EqualsNoCase((*words)[0], "burst") &&
      base::ParseInt((*words)[1], &rule.capacity)) {
    if (!types::TakesBurst(rule.algorithm)) return base::Error{"burst is for token and gcra"};
    *words = words->subspan(2);
  }
  const std::string_view problem = types::CheckRule(rule);
  if (!problem.empty()) return base::Error{std::string(problem)};
  return rule;
}

bool IsNothing(Words words) { return words.empty() || (words.size() == 1 && words[0].empty()); }

// ratelimit-default

base::Status ReadDefault(Words words, Origin, Settings& s) {
  if (IsNothing(words)) {
    s.ratelimit_default.reset();
    return {};
  }
  base::Result<RateRule> rule = ReadRule(&words);
  if (!rule) return base::Error{rule.error()};
  if (!words.empty()) return base::Error{fmt::format("'{}' is too much", words[0])};
  s.ratelimit_default = *rule;
  return {};
}

std::string PrintDefault(const Settings& s) {
  return s.ratelimit_default ? RuleText(*s.ratelimit_default) : std::string();
}

std::vector<std::string> DefaultLines(const Settings& s, bool) {
  return {s.ratelimit_default ? RuleText(*s.ratelimit_default) : "\"\""};
}

// Reads `name rule name rule ...`; what is named again is replaced.
template <typename Limit, typename ReadName>
base::Status ReadLimits(Words words, Origin origin, std::vector<Limit>& limits,
                        const ReadName& read_name) {
  std::vector<Limit> read;
  if (origin == Origin::kLaterLine && !IsNothing(words)) read = limits;
  if (IsNothing(words)) words = {};
  while (!words.empty()) {
    Limit limit;
    if (base::Status status = read_name(words[0], &limit); !status) return status;
    const std::string name = words[0];
    words = words.subspan(1);
    base::Result<RateRule> rule = ReadRule(&words);
    if (!rule) return base::Error{fmt::format("'{}': {}", name, rule.error())};
    limit.rule = *rule;
    std::erase_if(read, [&](const Limit& other) {
      Limit same = other;
      same.rule = limit.rule;
      return same == limit;
    });
    read.push_back(std::move(limit));
  }
  limits = std::move(read);
  return {};
}

std::vector<std::string> LinesOrNone(std::vector<std::string> lines) {
  if (lines.empty()) lines.emplace_back("\"\"");
  return lines;
}

std::string Joined(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, " "));
}

// ratelimit-user

base::Status ReadUsers(Words words, Origin origin, Settings& s) {
  return ReadLimits(words, origin, s.ratelimit_users,
                    [](const std::string& name, UserLimit* limit) -> base::Status {
                      if (name.empty() || name.size() > 128 ||
                          base::Quoted(name).size() != name.size() + 2 ||
                          name.find_first_of(" '") != std::string::npos) {
                        return base::Error{fmt::format("'{}' is not a user's name", name)};
                      }
                      limit->user = name;
                      return {};
                    });
}

std::vector<std::string> Users(const Settings& s) {
  std::vector<std::string> lines;
  for (const UserLimit& limit : s.ratelimit_users) {
    lines.push_back(limit.user + " " + RuleText(limit.rule));
  }
  return lines;
}

std::string PrintUsers(const Settings& s) { return Joined(Users(s)); }
std::vector<std::string> UserLines(const Settings& s, bool) { return LinesOrNone(Users(s)); }

// ratelimit-ip

base::Status ReadNetworks(Words words, Origin origin, Settings& s) {
  return ReadLimits(words, origin, s.ratelimit_networks,
                    [](const std::string& name, NetworkLimit* limit) -> base::Status {
                      if (base::ParseNetwork(name, &limit->network)) return {};
                      return base::Error{fmt::format("'{}' is not an address or a network", name)};
                    });
}

std::vector<std::string> Networks(const Settings& s) {
  std::vector<std::string> lines;
  for (const NetworkLimit& limit : s.ratelimit_networks) {
    lines.push_back(base::NetworkText(limit.network) + " " + RuleText(limit.rule));
  }
  return lines;
}

std::string PrintNetworks(const Settings& s) { return Joined(Networks(s)); }
std::vector<std::string> NetworkLines(const Settings& s, bool) { return LinesOrNone(Networks(s)); }

// ratelimit-exempt. Whether the commands exist is known only where they are.

base::Status ReadExempt(Words words, Origin, Settings& s) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    if (word.empty()) continue;
    const std::string name = base::ToUpper(word);
    for (const char c : name) {
      const bool plain = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '|' ||
                         c == '-' || c == '_';
      if (!plain) return base::Error{fmt::format("'{}' is not a command", word)};
    }
    names.push_back(name);
  }
  s.ratelimit_exempt = std::move(names);
  return {};
}

std::string PrintExempt(const Settings& s) { return Joined(s.ratelimit_exempt); }
std::vector<std::string> ExemptLines(const Settings& s, bool) {
  return {s.ratelimit_exempt.empty() ? "\"\"" : PrintExempt(s)};
}

}  // namespace

constinit const Special kRateDefaultSpecial = {ReadDefault, PrintDefault, DefaultLines};
constinit const Special kRateUserSpecial = {ReadUsers, PrintUsers, UserLines, true};
constinit const Special kRateIpSpecial = {ReadNetworks, PrintNetworks, NetworkLines, true};
constinit const Special kRateExemptSpecial = {ReadExempt, PrintExempt, ExemptLines};

}  // namespace sava::config
