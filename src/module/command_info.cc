#include "module/command_info.h"

#include <algorithm>
#include <utility>

namespace sava::module {

namespace {

using commands::CommandSpec;

constexpr host::CommandInfoVersion kVersion = {1, sizeof(host::HistoryEntry), sizeof(host::KeySpec),
                                               sizeof(host::Argument)};

constexpr std::pair<uint32_t, std::string_view> kFlags[] = {
    {commands::kWrite, "write"},
    {commands::kReadonly, "readonly"},
    {commands::kDenyOom, "deny-oom"},
    {commands::kAdmin, "admin"},
    {commands::kNoscript, "deny-script"},
    {commands::kBlocking, "blocking"},
    {commands::kLoading, "allow-loading"},
    {commands::kStale, "allow-stale"},
    {commands::kFast, "fast"},
    {commands::kNoMandatoryKeys, "no-mandatory-keys"},
    {commands::kAllowBusy, "allow-busy"},
};

constexpr std::pair<std::string_view, host::ArgumentType> kTypes[] = {
    {"string", host::kStringArgument},
    {"integer", host::kIntegerArgument},
    {"double", host::kDoubleArgument},
    {"key", host::kKeyArgument},
    {"pattern", host::kPatternArgument},
    {"unix-time", host::kUnixTimeArgument},
    {"pure-token", host::kPureToken},
    {"oneof", host::kOneOf},
    {"block", host::kBlock},
};

host::ArgumentType TypeNamed(std::string_view name) {
  const auto* const at = std::ranges::find(kTypes, name, [](const auto& one) { return one.first; });
  return at == std::end(kTypes) ? host::kStringArgument : at->second;
}

}  // namespace

std::string HostFlags(const CommandSpec& spec) {
  std::string flags;
  for (const auto& [flag, name] : kFlags) {
    if ((spec.flags & flag) == 0) continue;
    if (!flags.empty()) flags += ' ';
    flags += name;
  }
  if (NeedsKeysRequest(spec)) flags += " getkeys-api";
  return flags;
}

bool NeedsKeysRequest(const CommandSpec& spec) {
  return spec.keys.count > 0 && spec.keys.items[0].keynum && spec.keys.items[0].step != 1;
}

CommandDescription::CommandDescription(const CommandSpec& spec) {
  info_.version = &kVersion;
  info_.summary = Keep(spec.summary);
  info_.complexity = Keep(spec.complexity);
  info_.since = Keep(spec.since);
  if (!spec.tips.empty()) {
    info_.tips = Keep(spec.tips);
    std::ranges::replace(texts_.back(), ',', ' ');
  }
  info_.arity = spec.arity;
  AddKeySpecs(spec);
  const auto arguments = commands::ParseGrammar(spec.arguments, spec.keys.count);
  if (arguments.ok()) info_.arguments = Arguments(arguments.value());
}

const char* CommandDescription::Keep(std::string_view text) {
  return texts_.emplace_back(text).c_str();
}

// One without a name ends the list.
host::Argument* CommandDescription::Arguments(const std::vector<commands::Argument>& arguments) {
  if (arguments.empty()) return nullptr;
  std::vector<host::Argument>& list = arguments_.emplace_back(arguments.size() + 1);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const commands::Argument& from = arguments[i];
    host::Argument& to = list[i];
    to.name = Keep(from.name);
    to.type = TypeNamed(from.type);
    to.key_spec_index = from.key_spec_index;
    if (!from.token.empty()) to.token = Keep(from.token);
    to.flags = (from.optional ? host::kOptional : 0) | (from.multiple ? host::kMultiple : 0) |
               (from.multiple_token ? host::kMultiple | host::kMultipleToken : 0);
    to.parts = Arguments(from.arguments);
    if (!from.display.empty()) to.display = Keep(from.display);
  }
  return list.data();
}

void CommandDescription::AddKeySpecs(const CommandSpec& spec) {
  keys_.resize(spec.keys.count + 1U);  // the last one says that the list ends
  for (size_t i = 0; i < spec.keys.count; ++i) {
    const commands::KeySpec& from = spec.keys.items[i];
    host::KeySpec& to = keys_[i];
    if (!from.notes.empty()) to.notes = Keep(from.notes);
    to.flags = from.flags;
    if (NeedsKeysRequest(spec)) to.flags |= commands::kKeyIncomplete;
    if (from.keyword.empty()) {
      to.begin_search = host::kBeginIndex;
      to.begin.index.pos = from.first;
    } else {
      to.begin_search = host::kBeginKeyword;
      to.begin.keyword = {Keep(from.keyword), from.keyword_from};
    }
    if (from.keynum) {
      to.find_keys = host::kFindKeynum;
      to.find.keynum = {from.keynum_at, from.keynum_first, from.step};
    } else {
      to.find_keys = host::kFindRange;
      to.find.range = {from.last, from.step, from.limit};
    }
  }
  if (spec.keys.count > 0) info_.key_specs = keys_.data();
}

}  // namespace sava::module
