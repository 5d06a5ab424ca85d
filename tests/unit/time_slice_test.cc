#include "base/time_slice.h"

#include <gtest/gtest.h>

#include <thread>

namespace sava::base {
namespace {

TEST(TimeSlice, IsTheThreadsOwnAndCanBeGivenBack) {
  std::thread([] {
    const uint64_t usual = TimeSlice();
    SetTimeSlice(100'000);
    const uint64_t small = TimeSlice();
    SetTimeSlice(0);
    EXPECT_EQ(TimeSlice(), usual);
    if (small == usual) GTEST_SKIP() << "this system keeps no slices";
    EXPECT_EQ(small, 100'000U);
  }).join();
}

TEST(TimeSlice, OtherThreadsKeepTheirs) {
  const uint64_t usual = TimeSlice();
  std::thread([] { SetTimeSlice(100'000); }).join();
  EXPECT_EQ(TimeSlice(), usual);
}

}  // namespace
}  // namespace sava::base
