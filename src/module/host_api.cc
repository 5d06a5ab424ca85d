#include "module/host_api.h"

namespace sava::module::host {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a definition
#define SAVA_HOST_DEFINE(result, name, parameters) result(*name) parameters = nullptr;
SAVA_HOST_FUNCTIONS(SAVA_HOST_DEFINE, SAVA_HOST_DEFINE)
#undef SAVA_HOST_DEFINE

namespace {

struct Wanted {
  const char* name;
  void** pointer;
  bool required;
};

bool is_bound = false;

}  // namespace

const char* Bind(LookUp look_up) {
#define SAVA_HOST_REQUIRED(result, name, parameters) \
  {"RedisModule_" #name, reinterpret_cast<void**>(&(name)), true},
#define SAVA_HOST_OPTIONAL(result, name, parameters) \
  {"RedisModule_" #name, reinterpret_cast<void**>(&(name)), false},
  const Wanted all[] = {SAVA_HOST_FUNCTIONS(SAVA_HOST_REQUIRED, SAVA_HOST_OPTIONAL)};
#undef SAVA_HOST_REQUIRED
#undef SAVA_HOST_OPTIONAL
  for (const Wanted& wanted : all) {
    void* found = nullptr;
    if (look_up(wanted.name, &found) != kOk) found = nullptr;
    if (found == nullptr && wanted.required) return wanted.name;
    *wanted.pointer = found;
  }
  is_bound = true;
  return nullptr;
}

bool bound() { return is_bound; }

bool IsValkey(LookUp look_up) {
  void* found = nullptr;
  return look_up("ValkeyModule_Log", &found) == kOk && found != nullptr;
}

}  // namespace sava::module::host
