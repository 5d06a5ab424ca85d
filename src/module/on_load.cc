// The entry of sava.so: what a Redis or Valkey server calls once, when it loads the module.
//
//   loadmodule /path/sava.so [families afc,bf,fr]
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "commands/idna.h"
#include "module/host_api.h"
#include "module/module_commands.h"
#include "module/module_types.h"
#include "types/counters/member_dictionary.h"

namespace sava::module {

namespace {

constexpr const char* kName = "sava";

Families families;

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ',';
    text += word;
  }
  return text;
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// False after a line in the host's log.
bool ReadArguments(host::Ctx* ctx, host::String** argv, int argc,
                   std::vector<std::string>* wanted) {
  for (int i = 0; i < argc; i += 2) {
    size_t size = 0;
    const char* bytes = host::StringPtrLen(argv[i], &size);
    const std::string name(bytes, size);
    if (name != "families" || i + 1 == argc) {
      host::Log(ctx, "warning", "unknown or incomplete module argument: %s", name.c_str());
      return false;
    }
    bytes = host::StringPtrLen(argv[i + 1], &size);
    *wanted = SplitAtCommas({bytes, size});
    std::ranges::transform(*wanted, wanted->begin(), [](std::string word) {
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
      return word;
    });
  }
  return true;
}

void TellInfo(host::InfoCtx* info, int /*for_crash_report*/) {
  host::InfoAddSection(info, "");
  host::InfoAddFieldCString(info, "version", base::kVersion.data());
  host::InfoAddFieldCString(info, "families", Joined(families.registered).c_str());
  host::InfoAddFieldCString(info, "families_left_out", Joined(families.taken).c_str());
  const types::MemberDictionary& dictionary = types::MemberDictionary::Shared();
  host::InfoAddFieldULongLong(info, "dictionary_members", dictionary.size());
  host::InfoAddFieldULongLong(info, "dictionary_bytes", dictionary.bytes());
}

int Load(host::Ctx* ctx, host::String** argv, int argc, bool valkey) {
  host::SetModuleOptions(ctx, host::kHandlesIoErrors | host::kNoImplicitModified |
                                  host::kHandlesAsyncLoad | host::kHandlesSlotMigration);
  std::vector<std::string> wanted;
  if (!ReadArguments(ctx, argv, argc, &wanted)) return host::kError;
  std::string unknown;
  families = RegisterFamilies(ctx, wanted, &unknown);
  if (!unknown.empty()) {
    host::Log(ctx, "warning", "there is no family '%s'", unknown.c_str());
    return host::kError;
  }
  for (const std::string& family : families.taken) {
    host::Log(ctx, "warning", "family '%s' is left out: this server has commands of its names",
              family.c_str());
  }
  if (families.registered.empty()) return host::kError;
  commands::InstallIdna();
  FollowLoading(ctx);
  host::RegisterInfoFunc(ctx, TellInfo);
  host::Log(ctx, "notice", "Sava %s in %s: %s", base::kVersion.data(), valkey ? "Valkey" : "Redis",
            Joined(families.registered).c_str());
  return host::kOk;
}

}  // namespace

}  // namespace sava::module

// A host older than 7.0 lacks some of what is asked for, and is told so if it can hear it.
extern "C" [[gnu::visibility("default")]] int RedisModule_OnLoad(sava::module::host::Ctx* ctx,
                                                                 sava::module::host::String** argv,
                                                                 int argc) {
  namespace host = sava::module::host;
  host::LookUp look_up = nullptr;
  memcpy(&look_up, ctx, sizeof look_up);
  const char* const missing = host::Bind(look_up);
  if (missing != nullptr) {
    if (host::Log != nullptr) {
      host::Log(ctx, "warning", "Sava needs Redis 7.0 or later: there is no %s", missing);
    }
    return host::kError;
  }
  if (host::IsModuleNameBusy(sava::module::kName) != 0) return host::kError;
  host::SetModuleAttribs(ctx, sava::module::kName, 1, host::kApiVersion);
  try {
    return sava::module::Load(ctx, argv, argc, host::IsValkey(look_up));
  } catch (const std::bad_alloc&) {
    return host::kError;
  }
}
