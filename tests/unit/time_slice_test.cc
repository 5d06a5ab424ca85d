#include "base/time_slice.h"

#include <gtest/gtest.h>

#include <thread>

namespace sava::base {
namespace {

TEST(TimeSlice, IsTheThreadsOwnAndCanBeGivenBack) {
  std::thread([] {
    SetTimeSlice(0);
    const uint64_t usual = TimeSlice();
    if (usual == 0) GTEST_SKIP() << "this system keeps no slices";
    SetTimeSlice(100'000);
    EXPECT_EQ(TimeSlice(), 100'000U);
    SetTimeSlice(0);
    EXPECT_EQ(TimeSlice(), usual);
  }).join();
}

TEST(TimeSlice, OtherThreadsKeepTheirs) {
  const uint64_t usual = TimeSlice();
  std::thread([] { SetTimeSlice(100'000); }).join();
  EXPECT_EQ(TimeSlice(), usual);
}

}  // namespace
}  // namespace sava::base
