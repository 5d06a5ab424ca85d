// CONFIG GET and CONFIG SET. Start-up is in config_start.cc, CONFIG REWRITE in
// config_rewrite.cc.

#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "base/glob.h"
#include "base/text.h"
#include "commands/errors.h"

namespace sava::config {

// One name and value of a CONFIG SET.
struct Config::Assignment {
  const Setting* setting;
  std::string name;  // the name or alias the caller used, in lower case
  std::string value;
};

namespace {

base::Error SetError(std::string_view name, std::string_view reason) {
  return base::Error{
      fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}", name, reason)};
}

bool Allowed(Allow allow, bool local) {
  return allow == Allow::kYes || (allow == Allow::kLocal && local);
}

}  // namespace

Config::Config()
    : state_(DefaultState()),
      defaults_(DefaultState()),
      given_at_start_(AllSettings().size(), false) {}

base::Status Config::CheckBuilt(const Setting& setting, const ConfigState& state) const {
  if (setting.not_built.empty() || SameValue(setting, state, defaults_)) return {};
  return base::Error{fmt::format("not built yet: {}", setting.not_built)};
}

std::vector<std::pair<std::string, std::string>> Config::Get(
    std::span<const std::string_view> patterns) const {
  std::vector<std::pair<std::string, std::string>> found;
  std::set<std::string> seen;
  const auto add = [&](const Setting& setting, std::string_view name) {
    if (seen.insert(base::ToLower(name)).second) {
      found.emplace_back(name, PrintValue(setting, state_));
    }
  };
  for (const std::string_view pattern : patterns) {
    if (pattern.find_first_of("[*?") == std::string_view::npos) {
      if (const Setting* setting = FindSetting(pattern)) add(*setting, pattern);
      continue;
    }
    for (const Setting& setting : AllSettings()) {
      if (setting.has(kHidden)) continue;
      for (const std::string_view name : {setting.name, setting.alias}) {
        if (!name.empty() && base::GlobMatch(pattern, name, true)) add(setting, name);
      }
    }
  }
  return found;
}

base::Result<std::vector<Config::Assignment>> Config::FindAssignments(
    std::span<const std::string_view> args, bool local) const {
  std::vector<Assignment> assignments;
  for (size_t i = 0; i + 1 < args.size(); i += 2) {
    const Setting* setting = FindSetting(args[i]);
    if (setting == nullptr) {
      return base::Error{
          fmt::format("ERR Unknown option or number of arguments for CONFIG SET - '{}'", args[i])};
    }
    if (setting->has(kWhenLoaded) && loading_ && loading_()) {
      return base::Error{std::string(commands::errors::kLoading)};
    }
    if (setting->has(kImmutable)) return SetError(args[i], "can't set immutable config");
    if (setting->has(kProtected) && !Allowed(settings().enable_protected_configs, local)) {
      return SetError(args[i], "can't set protected config");
    }
    std::string name = base::ToLower(args[i]);
    if (std::ranges::find(assignments, name, &Assignment::name) != assignments.end()) {
      return SetError(args[i], "duplicate parameter");
    }
    assignments.push_back({setting, std::move(name), std::string(args[i + 1])});
  }
  return assignments;
}

base::Status Config::Set(std::span<const std::string_view> names_and_values, bool local) {
  if (names_and_values.empty() || names_and_values.size() % 2 != 0) {
    return base::Error{std::string(commands::errors::kSyntax)};
  }
  base::Result<std::vector<Assignment>> assignments = FindAssignments(names_and_values, local);
  if (!assignments) return base::Error{assignments.error()};

  ConfigState next = state_;
  for (const Assignment& one : *assignments) {
    base::Status status = ReadValue(*one.setting, {&one.value, 1}, Origin::kCommand, next);
    if (status) status = CheckBuilt(*one.setting, next);
    if (!status) return SetError(one.name, status.error());
  }
  std::erase_if(*assignments, [&](const Assignment& one) {
    return !one.setting->has(kNamesFile) && SameValue(*one.setting, state_, next);
  });
  std::swap(state_, next);
  return RunHooks(*assignments, next);
}

base::Status Config::RunHooks(std::span<const Assignment> changed, ConfigState& old_state) {
  std::vector<const HookEntry*> done;
  for (const Assignment& one : changed) {
    for (const HookEntry& entry : hooks_) {
      if (std::ranges::find(entry.settings, one.setting) == entry.settings.end()) continue;
      if (std::ranges::find(done, &entry) != done.end()) continue;
      const base::Status status = entry.hook(state_.settings);
      if (status) {
        done.push_back(&entry);
        continue;
      }
      std::swap(state_, old_state);
      for (const HookEntry* earlier : done) {
        // What was in effect a moment ago can be put into effect again; if not, the caller still
        // has to hear of the first error.
        static_cast<void>(earlier->hook(state_.settings));
      }
      return SetError(one.name, status.error());
    }
  }
  return {};
}

void Config::OnChange(std::initializer_list<std::string_view> names, Hook hook) {
  HookEntry entry;
  for (const std::string_view name : names) {
    entry.settings.push_back(FindSetting(name));
    assert(entry.settings.back() != nullptr);
  }
  entry.hook = std::move(hook);
  hooks_.push_back(std::move(entry));
}

}  // namespace sava::config
