#include "module/module_commands.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "commands/native/families.h"
#include "commands/registry.h"
#include "module/blocked_clients.h"
#include "module/command_info.h"
#include "module/module_types.h"

namespace sava::module {

namespace {

using commands::CommandSpec;

// The host calls a function and does not say for which command: each command has its own.
constexpr size_t kMostCommands = 128;
std::vector<const CommandSpec*> specs;

// The host only wants to know which arguments are keys.
void TellKeys(host::Ctx* ctx, host::String** argv, int argc, const CommandSpec& spec) {
  std::vector<std::string_view> words;
  for (int i = 0; i < argc; ++i) {
    size_t size = 0;
    const char* const bytes = host::StringPtrLen(argv[i], &size);
    words.emplace_back(bytes, size);
  }
  commands::CommandTable table;
  table.Add({&spec, 1});
  std::vector<int> indexes;
  if (!commands::KeyIndexes(*table.all()[0], words, &indexes)) return;
  for (const int index : indexes) {
    host::KeyAtPosWithFlags(ctx, index, spec.keys.items[0].flags);
  }
}

template <size_t I>
int RunAt(host::Ctx* ctx, host::String** argv, int argc) {
  if (host::IsKeysPositionRequest(ctx) != 0) {
    TellKeys(ctx, argv, argc, *specs[I]);
    return host::kOk;
  }
  return RunCommand(ctx, argv, argc, *specs[I]);
}

template <size_t... I>
constexpr std::array<host::CommandFunction, sizeof...(I)> Runners(
    std::index_sequence<I...> /*all*/) {
  return {RunAt<I>...};
}

constexpr auto kRunners = Runners(std::make_index_sequence<kMostCommands>());

std::string_view FamilyOf(const CommandSpec& spec) {
  return spec.name.substr(0, spec.name.find('.'));
}

struct Family {
  std::string_view name;
  std::vector<const CommandSpec*> specs;
};

std::vector<Family> AllFamilies() {
  std::vector<Family> families;
  for (const std::span<const CommandSpec> rows : commands::NativeFamilies()) {
    for (const CommandSpec& spec : rows) {
      const std::string_view name = FamilyOf(spec);
      auto at = std::ranges::find(families, name, &Family::name);
      if (at == families.end()) at = families.insert(at, Family{name, {}});
      at->specs.push_back(&spec);
    }
  }
  return families;
}

// COMMAND INFO has a null for a name that the host does not know.
bool HostHas(host::Ctx* ctx, std::string_view name) {
  host::CallReply* const reply = host::Call(ctx, "COMMAND", "cb", "INFO", name.data(), name.size());
  if (reply == nullptr) return false;
  host::CallReply* const first = host::CallReplyArrayElement(reply, 0);
  const bool has = first != nullptr && host::CallReplyType(first) != host::kReplyNull;
  host::FreeCallReply(reply);
  return has;
}

// The categories that the host has: it refuses a list that names another one.
std::vector<std::string> AskCategories(host::Ctx* ctx) {
  std::vector<std::string> names;
  host::CallReply* const reply = host::Call(ctx, "ACL", "c", "CAT");
  if (reply == nullptr) return names;
  for (size_t i = 0;; ++i) {
    host::CallReply* const name = host::CallReplyArrayElement(reply, i);
    size_t size = 0;
    const char* const bytes = name == nullptr ? nullptr : host::CallReplyStringPtr(name, &size);
    if (bytes == nullptr) break;
    names.emplace_back(bytes, size);
  }
  host::FreeCallReply(reply);
  return names;
}

// Those of our own are added where the host takes any (from 7.4 on).
bool HasCategory(host::Ctx* ctx, const std::string& name) {
  static std::vector<std::string> known = AskCategories(ctx);
  if (std::ranges::find(known, name) != known.end()) return true;
  if (host::AddACLCategory == nullptr || host::AddACLCategory(ctx, name.c_str()) != host::kOk) {
    return false;
  }
  known.push_back(name);
  return true;
}

// What a host before 7.2 does not ask for: there these commands have no categories.
void SetCategories(host::Ctx* ctx, host::Command* command, const CommandSpec& spec) {
  if (host::SetCommandACLCategories == nullptr) return;
  commands::CommandTable table;
  table.Add({&spec, 1});
  std::string names;
  for (const std::string_view category : commands::CategoryNames(table.all()[0]->acl)) {
    const std::string name(category);
    if (!HasCategory(ctx, name)) continue;
    if (!names.empty()) names += ' ';
    names += name;
  }
  if (host::SetCommandACLCategories(command, names.c_str()) != host::kOk) {
    const std::string command_name(spec.name);
    host::Log(ctx, "warning", "the host does not take the categories of %s", command_name.c_str());
  }
}

bool Create(host::Ctx* ctx, const CommandSpec& spec) {
  if (specs.size() == kMostCommands || spec.handler.on_keys() == nullptr) return false;
  int first = 0;
  int last = 0;
  int step = 0;
  if (spec.keys.count > 0) {
    const commands::KeySpec& keys = spec.keys.items[0];
    first = keys.first + (keys.keynum ? keys.keynum_first : 0);
    last = keys.keynum ? first : keys.last < 0 ? keys.last : keys.first + keys.last;
    step = keys.step;
  }
  const std::string name(spec.name);
  specs.push_back(&spec);
  if (host::CreateCommand(ctx, name.c_str(), kRunners[specs.size() - 1], HostFlags(spec).c_str(),
                          first, last, step) != host::kOk) {
    specs.pop_back();
    return false;
  }
  host::Command* const command = host::GetCommand(ctx, name.c_str());
  const CommandDescription description(spec);
  if (command == nullptr || host::SetCommandInfo(command, &description.info()) != host::kOk) {
    host::Log(ctx, "warning", "the host does not take the description of %s", name.c_str());
  }
  if (command != nullptr) SetCategories(ctx, command, spec);
  return true;
}

bool RegisterFamily(host::Ctx* ctx, const Family& family) {
  for (const CommandSpec* spec : family.specs) {
    if (HostHas(ctx, spec->name)) return false;
  }
  const types::TypeInfo* const type = TypeOfFamily(family.name);
  if (type != nullptr && !RegisterType(ctx, *type)) return false;
  return std::ranges::all_of(family.specs,
                             [ctx](const CommandSpec* spec) { return Create(ctx, *spec); });
}

}  // namespace

Families RegisterFamilies(host::Ctx* ctx, const std::vector<std::string>& wanted,
                          std::string* unknown) {
  const std::vector<Family> all = AllFamilies();
  for (const std::string& name : wanted) {
    if (std::ranges::find(all, name, &Family::name) == all.end()) *unknown = name;
  }
  Families families;
  if (!unknown->empty()) return families;
  for (const Family& family : all) {
    const std::string name(family.name);
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    (RegisterFamily(ctx, family) ? families.registered : families.taken).push_back(name);
  }
  return families;
}

}  // namespace sava::module
