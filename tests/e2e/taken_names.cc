// A module that has commands of two names of ours, as a host with such commands of its own would:
// one in the middle of the Bloom filters' family, and INCREX.
#include <cstring>

namespace {

using LookUp = int (*)(const char* name, void** pointer);
using Run = int (*)(void* ctx, void** argv, int argc);

int (*reply_with_simple_string)(void* ctx, const char* text) = nullptr;

int Answer(void* ctx, void** /*argv*/, int /*argc*/) {
  return reply_with_simple_string(ctx, "the other module's");
}

template <typename Function>
bool Find(LookUp look_up, const char* name, Function** function) {
  return look_up(name, reinterpret_cast<void**>(function)) == 0;
}

}  // namespace

extern "C" int RedisModule_OnLoad(void* ctx, void** /*argv*/, int /*argc*/) {
  LookUp look_up = nullptr;
  memcpy(&look_up, ctx, sizeof look_up);
  int (*set_attributes)(void*, const char*, int, int) = nullptr;
  int (*create)(void*, const char*, Run, const char*, int, int, int) = nullptr;
  if (!Find(look_up, "RedisModule_SetModuleAttribs", &set_attributes) ||
      !Find(look_up, "RedisModule_CreateCommand", &create) ||
      !Find(look_up, "RedisModule_ReplyWithSimpleString", &reply_with_simple_string)) {
    return 1;
  }
  set_attributes(ctx, "taken", 1, 1);
  return create(ctx, "bf.madd", Answer, "", 0, 0, 0) + create(ctx, "increx", Answer, "", 0, 0, 0);
}
