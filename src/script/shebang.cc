#include "script/shebang.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"

namespace sava::script {

namespace {

constexpr std::string_view kMark = "#!";
constexpr std::string_view kEngine = "#!lua";
constexpr std::string_view kFlags = "flags=";
constexpr std::string_view kName = "name=";

// Adds the flags of a list; the first that there is not, or nothing.
std::optional<std::string> AddFlags(std::string_view list, uint8_t* flags) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    const uint8_t flag = FlagByName(word);
    if (flag == 0) return std::string(word);
    *flags |= flag;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
    if (list.empty()) return std::string();
  }
  return std::nullopt;
}

}  // namespace

uint8_t FlagByName(std::string_view name) {
  for (const detail::FlagName& one : detail::kFlagNames) {
    if (one.name == name) return one.flag;
  }
  return 0;
}

bool GoodName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

base::Result<ScriptHead> ReadScriptHead(std::string_view source) {
  ScriptHead head;
  if (!source.starts_with(kMark)) return head;
  head.present = true;
  head.length = source.find('\n');
  if (head.length == std::string_view::npos) return base::Error{"Invalid script shebang"};
  const auto words = base::SplitArgs(source.substr(0, head.length));
  if (!words || words->empty()) return base::Error{"Invalid engine in script shebang"};
  if ((*words)[0] != kEngine) {
    return base::Error{fmt::format("Unexpected engine in script shebang: {}", (*words)[0])};
  }
  for (size_t i = 1; i < words->size(); ++i) {
    const std::string_view word = (*words)[i];
    if (!word.starts_with(kFlags)) {
      return base::Error{fmt::format("Unknown lua shebang option: {}", word)};
    }
    if (const auto unknown = AddFlags(word.substr(kFlags.size()), &head.flags)) {
      return base::Error{fmt::format("Unexpected flag in script shebang: {}", *unknown)};
    }
  }
  return head;
}

base::Result<LibraryHead> ReadLibraryHead(std::string_view source) {
  if (!source.starts_with(kMark)) return base::Error{"Missing library metadata"};
  LibraryHead head;
  head.length = source.find('\n');
  if (head.length == std::string_view::npos) return base::Error{"Invalid library metadata"};
  const auto words = base::SplitArgs(source.substr(0, head.length));
  if (!words || words->empty()) return base::Error{"Invalid library metadata"};
  bool named = false;
  for (size_t i = 1; i < words->size(); ++i) {
    const std::string_view word = (*words)[i];
    if (!base::EqualsNoCase(word.substr(0, kName.size()), kName)) {
      return base::Error{fmt::format("Invalid metadata value given: {}", word)};
    }
    if (named) {
      return base::Error{"Invalid metadata value, name argument was given multiple times"};
    }
    named = true;
    head.name = word.substr(kName.size());
  }
  const std::string_view engine = std::string_view((*words)[0]).substr(kMark.size());
  if (!named) return base::Error{"Library name was not given"};
  if (!GoodName(head.name)) return base::Error{std::string(kBadLibraryName)};
  if (!base::EqualsNoCase(engine, "lua")) {
    return base::Error{fmt::format("Engine '{}' not found", engine)};
  }
  return head;
}

}  // namespace sava::script
