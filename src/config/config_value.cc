// Reading and printing of the values of the settings table, by kind. The error texts are Redis's.

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/text.h"
#include "config/config_table.h"

namespace sava::config {

namespace {

constexpr uint64_t kUlongMax = std::numeric_limits<uint64_t>::max();
constexpr int64_t kLongMax = std::numeric_limits<int64_t>::max();

std::string RangeError(const Setting& setting) {
  if (setting.kind == Kind::kOctal) {
    return fmt::format("argument must be between {:o} and {:o} inclusive", setting.min,
                       setting.max);
  }
  return fmt::format("argument must be between {} and {} inclusive", setting.min, setting.max);
}

base::Result<int64_t> ReadInteger(const Setting& setting, std::string_view text) {
  int64_t value = 0;
  if (setting.kind == Kind::kOctal) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, 8);
    if (error != std::errc() || stop != end) {
      return base::Error{"argument couldn't be parsed as an octal number"};
    }
  } else if (!base::ParseInt(text, &value)) {
    return base::Error{"argument couldn't be parsed into an integer"};
  }
  if (value < setting.min || (value > 0 && static_cast<uint64_t>(value) > setting.max)) {
    return base::Error{RangeError(setting)};
  }
  return value;
}

base::Result<int64_t> ReadMemory(const Setting& setting, std::string_view text) {
  uint64_t bytes = 0;
  if (!ParseMemory(text, &bytes)) return base::Error{"argument must be a memory value"};
  if (bytes < static_cast<uint64_t>(setting.min) || bytes > setting.max) {
    return base::Error{RangeError(setting)};
  }
  return static_cast<int64_t>(bytes);
}

base::Result<int64_t> ReadMemoryOrPercent(std::string_view text) {
  const base::Error bad{"argument must be a memory or percent value"};
  if (text.ends_with('%')) {
    int64_t percent = 0;
    if (!base::ParseInt(text.substr(0, text.size() - 1), &percent) || percent < 0) return bad;
    if (percent > 100) return base::Error{"percentage argument must be less or equal to 100"};
    return -percent;
  }
  uint64_t bytes = 0;
  if (!ParseMemory(text, &bytes) || bytes > static_cast<uint64_t>(kLongMax)) return bad;
  return static_cast<int64_t>(bytes);
}

base::Result<int64_t> ReadChoices(const Setting& setting, Words words) {
  int64_t value = 0;
  bool good = !words.empty();
  for (const std::string& word : words) {
    bool known = false;
    for (const ChoiceName& choice : setting.choices) {
      if (base::EqualsNoCase(choice.name, word)) {
        value |= choice.value;
        known = true;
        break;
      }
    }
    good = good && known;
  }
  if (good) return value;
  std::string names;
  for (const ChoiceName& choice : setting.choices) {
    if (!names.empty()) names += ", ";
    names += choice.name;
  }
  return base::Error{"argument(s) must be one of the following: " + names};
}

base::Result<int64_t> ReadNumber(const Setting& setting, Words words) {
  switch (setting.kind) {
    case Kind::kBool:
      if (base::EqualsNoCase(words[0], "yes")) return 1;
      if (base::EqualsNoCase(words[0], "no")) return 0;
      return base::Error{"argument must be 'yes' or 'no'"};
    case Kind::kMemory:
      return ReadMemory(setting, words[0]);
    case Kind::kMemoryOrPercent:
      return ReadMemoryOrPercent(words[0]);
    case Kind::kChoice:
    case Kind::kChoices:
      return ReadChoices(setting, words);
    default:
      return ReadInteger(setting, words[0]);
  }
}

std::string PrintNumber(const Setting& setting, int64_t value) {
  switch (setting.kind) {
    case Kind::kBool:
      return value != 0 ? "yes" : "no";
    case Kind::kOctal:
      return fmt::format("{:o}", value);
    case Kind::kMemory:
      return fmt::format("{}", static_cast<uint64_t>(value));
    case Kind::kMemoryOrPercent:
      return value < 0 ? fmt::format("{}%", -value) : base::IntText(value);
    case Kind::kChoice:
      for (const ChoiceName& choice : setting.choices) {
        if (choice.value == value) return std::string(choice.name);
      }
      return {};
    case Kind::kChoices: {
      std::string names;
      for (const ChoiceName& choice : setting.choices) {
        if (choice.value != 0 ? (value & choice.value) == 0 : value != 0) continue;
        if (!names.empty()) names += ' ';
        names += choice.name;
      }
      return names;
    }
    default:
      return base::IntText(value);
  }
}

// The largest unit that divides the number evenly, as a person would have written it.
std::string MemoryWithUnit(uint64_t bytes) {
  if (bytes != 0) {
    if (bytes % (1ULL << 30) == 0) return fmt::format("{}gb", bytes >> 30);
    if (bytes % (1ULL << 20) == 0) return fmt::format("{}mb", bytes >> 20);
    if (bytes % (1ULL << 10) == 0) return fmt::format("{}kb", bytes >> 10);
  }
  return fmt::format("{}", bytes);
}

size_t RowOf(const Setting& setting) {
  return static_cast<size_t>(&setting - AllSettings().data());
}

base::Status ReadText(const Setting& setting, const std::string& word, ConfigState& state) {
  if (setting.check_text != nullptr) {
    if (base::Status status = setting.check_text(word); !status) return status;
  }
  if (setting.field.text != nullptr) {
    setting.field.text(state.settings) = word;
  } else {
    state.kept[RowOf(setting)] = word;
  }
  return {};
}

}  // namespace

bool ParseMemory(std::string_view text, uint64_t* out) {
  if (text.size() > 127) return false;
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  uint64_t unit = 0;
  const std::string_view suffix = text.substr(digits);
  const auto is = [&](std::string_view name) { return base::EqualsNoCase(suffix, name); };
  if (suffix.empty() || is("b")) {
    unit = 1;
  } else if (is("k")) {
    unit = 1000;
  } else if (is("kb")) {
    unit = 1ULL << 10;
  } else if (is("m")) {
    unit = 1000 * 1000;
  } else if (is("mb")) {
    unit = 1ULL << 20;
  } else if (is("g")) {
    unit = 1000ULL * 1000 * 1000;
  } else if (is("gb")) {
    unit = 1ULL << 30;
  } else {
    return false;
  }
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + digits, value);
  if (result.ec == std::errc::result_out_of_range) value = kUlongMax;
  *out = value > kUlongMax / unit ? kUlongMax : value * unit;
  return true;
}

base::Status ReadValue(const Setting& setting, Words words, Origin origin, ConfigState& state) {
  std::vector<std::string> split;
  if (setting.has(kManyWords) && words.size() == 1) {
    const std::string& text = words[0];
    for (size_t begin = 0; !text.empty() && begin <= text.size();) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      split.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    words = split;
  }
  if (!setting.has(kManyWords) && words.size() != 1) {
    return base::Error{"wrong number of arguments"};
  }
  if (setting.special != nullptr) return setting.special->read(words, origin, state.settings);
  if (setting.kind == Kind::kText) return ReadText(setting, words[0], state);

  base::Result<int64_t> number = ReadNumber(setting, words);
  if (!number) return base::Error{number.error()};
  int64_t value = *number;
  if (setting.check_number != nullptr) {
    if (base::Status status = setting.check_number(value); !status) return status;
  }
  if (setting.clamp != nullptr) value = setting.clamp(value);
  if (setting.field.store != nullptr) {
    setting.field.store(state.settings, value);
  } else {
    state.kept[RowOf(setting)] = PrintNumber(setting, value);
  }
  return {};
}

std::string PrintValue(const Setting& setting, const ConfigState& state) {
  if (setting.special != nullptr) return setting.special->print(state.settings);
  if (setting.kept()) return state.kept[RowOf(setting)];
  if (setting.field.text != nullptr) {
    // The accessor serves reading and writing; nothing is written here.
    return setting.field.text(const_cast<Settings&>(state.settings));
  }
  return PrintNumber(setting, setting.field.load(state.settings));
}

std::vector<std::string> FileLines(const Setting& setting, const ConfigState& state, bool all) {
  if (setting.special != nullptr && setting.special->lines != nullptr) {
    return setting.special->lines(state.settings, all);
  }
  std::string text = PrintValue(setting, state);
  uint64_t bytes = 0;
  if (setting.kind == Kind::kText || setting.kind == Kind::kSpecial) {
    text = base::Quoted(text);
  } else if (setting.kind == Kind::kMemory && ParseMemory(text, &bytes)) {
    text = MemoryWithUnit(bytes);
  }
  return {text};
}

bool SameValue(const Setting& setting, const ConfigState& a, const ConfigState& b) {
  if (setting.special != nullptr) {
    return FileLines(setting, a, true) == FileLines(setting, b, true);
  }
  return PrintValue(setting, a) == PrintValue(setting, b);
}

}  // namespace sava::config
