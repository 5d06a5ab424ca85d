// The crash report: written from a handler, whatever state the thread is in.

#include "admin/crash_report.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "base/alternate_stack.h"

namespace sava::admin {
namespace {

// Uses up the stack; what it returns is wanted by nobody, but keeps it a recursion.
int Deeper(volatile int* depth) {  // NOLINT(misc-no-recursion)
  volatile char frame[4096];
  *depth = *depth + 1;
  frame[0] = 1;
  return *depth > 0 ? Deeper(depth) + frame[0] : 0;
}

// Reports on standard error, which the tests see, and leaves no core behind.
void Install() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  InstallCrashReport("/dev/stderr");
}

class CrashReport : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCrashReports) GTEST_SKIP() << "sanitizers report by themselves";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(CrashReport, AThreadWithoutStackLeftIsReported) {
  EXPECT_EXIT(
      {
        Install();
        std::thread([] {
          const base::AlternateStack stack;
          volatile int depth = 0;
          Deeper(&depth);
        }).join();
      },
      testing::KilledBySignal(SIGSEGV),
      "signal 11 .SIGSEGV.(.|\n)*6Deeper(.|\n)*=== CRASH REPORT ENDS");
}

TEST_F(CrashReport, HoldsTheInfoThatWasKeptLast) {
  EXPECT_EXIT(
      {
        Install();
        KeepInfoForCrash("# Server\r\nthe_first:1\r\n");
        KeepInfoForCrash("# Server\r\nthe_second:2\r\n");
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "# Server\nthe_second:2\n=== CRASH REPORT ENDS");
}

TEST_F(CrashReport, IsNotWrittenAnyMoreOnceRemoved) {
  EXPECT_EXIT(
      {
        Install();
        RemoveCrashReport();
        raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "^$");
}

}  // namespace
}  // namespace sava::admin
