#include "program/options.h"

#include <fmt/format.h>

#include <charconv>

namespace timeline {

const std::map<std::string, bool> kCommonOptions = {
    {"database", true},    {"store", true},         {"layout", true},        {"feed-length", true},
    {"connections", true}, {"account-limit", true}, {"address-limit", true},
};

bool Options::Parse(const std::vector<std::string>& words, const std::map<std::string, bool>& known,
                    std::string* error) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].rfind("--", 0) != 0) {
      rest_.push_back(words[i]);
      continue;
    }
    auto name = words[i].substr(2);
    auto found = known.find(name);
    if (found == known.end()) {
      *error = fmt::format("there is no option --{}", name);
      return false;
    }
    if (!found->second) {
      values_[name] = "";
    } else if (i + 1 < words.size()) {
      values_[name] = words[++i];
    } else {
      *error = fmt::format("--{} needs a value", name);
      return false;
    }
  }
  return true;
}

std::string Options::Text(const std::string& name, const std::string& otherwise) const {
  auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

std::int64_t Options::Number(const std::string& name, std::int64_t otherwise, std::int64_t least,
                             std::int64_t most, std::string* error) const {
  auto found = values_.find(name);
  if (found == values_.end()) return otherwise;
  std::int64_t number = 0;
  const auto& text = found->second;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    *error = fmt::format("--{} is a number from {} to {}", name, least, most);
  }
  return number;
}

ApplicationOptions ApplicationOptionsOf(const Options& options, std::string* error) {
  ApplicationOptions result;
  result.database = options.Text("database", result.database);
  result.store = options.Text("store", result.store);
  if (options.Has("layout")) {
    result.layout = LayoutOf(options.Text("layout", ""));
    if (!result.layout) *error = "--layout is document or indexed";
  }
  result.feed_length = options.Number("feed-length", result.feed_length, 1, 1000000, error);
  result.connections = static_cast<int>(options.Number("connections", 32, 1, 1000, error));
  result.limits.per_account = options.Number("account-limit", 5, 1, 1000000, error);
  result.limits.per_address = options.Number("address-limit", 30, 1, 1000000, error);
  return result;
}

}  // namespace timeline
