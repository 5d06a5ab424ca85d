// sava.so as a host loads it: which hosts it refuses, and what it exports. The host is a fake whose
// look-up function knows what the test says.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

namespace {

using OnLoad = int (*)(void* ctx, void** argv, int argc);
using LookUp = int (*)(const char* name, void** pointer);

std::set<std::string> asked;
std::set<std::string> unknown;
std::string logged;

void FakeLog(void* /*ctx*/, const char* /*level*/, const char* format, ...) {
  char text[500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  logged = text;
}

// What must not be called of a host that is refused.
void Trap() { FAIL() << "a function of a refused host was called"; }

int FakeLookUp(const char* name, void** pointer) {
  asked.insert(name);
  if (unknown.contains(name)) return 1;
  *pointer = std::string(name) == "RedisModule_Log" ? reinterpret_cast<void*>(FakeLog)
                                                    : reinterpret_cast<void*>(Trap);
  return 0;
}

int NoLookUp(const char* /*name*/, void** /*pointer*/) { return 1; }

class ModuleLoad : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sava.so";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "sava.so is not built here";
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    on_load_ = reinterpret_cast<OnLoad>(dlsym(library_, "RedisModule_OnLoad"));
    ASSERT_NE(on_load_, nullptr);
    asked.clear();
    unknown.clear();
    logged.clear();
  }

  int Load(LookUp look_up) {
    struct {
      LookUp look_up;
    } context = {look_up};
    return on_load_(&context, nullptr, 0);
  }

  void* library_ = nullptr;
  OnLoad on_load_ = nullptr;
};

TEST_F(ModuleLoad, AHostWithoutFunctionsIsRefused) { EXPECT_EQ(Load(NoLookUp), 1); }

TEST_F(ModuleLoad, AHostOlderThan7IsRefusedAndToldWhy) {
  // What 7.0 brought.
  for (const char* name :
       {"RedisModule_GetCommand", "RedisModule_SetCommandInfo", "RedisModule_TryAlloc"}) {
    unknown = {name};
    EXPECT_EQ(Load(FakeLookUp), 1) << name;
    EXPECT_NE(logged.find("7.0"), std::string::npos) << logged;
    EXPECT_NE(logged.find(name), std::string::npos) << logged;
  }
}

TEST_F(ModuleLoad, WhatCameAfter7IsOptional) {
  unknown = {"RedisModule_MallocUsableSize", "RedisModule_SetCommandACLCategories",
             "RedisModule_AddACLCategory", "RedisModule_CreateCommand"};
  EXPECT_EQ(Load(FakeLookUp), 1);
  EXPECT_NE(logged.find("CreateCommand"), std::string::npos) << logged;
  EXPECT_TRUE(asked.contains("RedisModule_MallocUsableSize"));
}

TEST_F(ModuleLoad, NothingButTheEntryIsExported) {
  EXPECT_EQ(dlsym(library_, "__wrap_malloc"), nullptr);
  EXPECT_EQ(dlsym(library_, "_ZN4sava6module4host4BindEPFiPKcPPvE"), nullptr);
}

}  // namespace
