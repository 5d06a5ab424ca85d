// The texts of one GUID, and texts that are none.
#include "http/guid.h"

#include <gtest/gtest.h>

#include <string>

namespace sava::http {
namespace {

constexpr const char* kCanonical = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

TEST(Guid, AllTextsOfOneAreTheSame) {
  for (const char* text :
       {"3f2504e0-4f89-11d3-9a0c-0305e82c3301", "3F2504E0-4F89-11D3-9A0C-0305E82C3301",
        "3f2504e04f8911d39a0c0305e82c3301", "{3F2504e0-4f89-11d3-9a0c-0305e82c3301}",
        "(3f2504e0-4f89-11d3-9a0c-0305e82c3301)"}) {
    std::string canonical;
    EXPECT_TRUE(CanonicalGuid(text, &canonical)) << text;
    EXPECT_EQ(canonical, kCanonical) << text;
  }
}

TEST(Guid, OtherTextsAreNone) {
  for (const char* text :
       {"", "user", "3f2504e0-4f89-11d3-9a0c-0305e82c330", "3f2504e0-4f89-11d3-9a0c-0305e82c33011",
        "3f2504e0-4f89-11d3-9a0c-0305e82c330g", "3f2504e04-f89-11d3-9a0c-0305e82c3301",
        "3f2504e0_4f89-11d3-9a0c-0305e82c3301", "{3f2504e0-4f89-11d3-9a0c-0305e82c3301)",
        "{3f2504e04f8911d39a0c0305e82c3301}", "[3f2504e0-4f89-11d3-9a0c-0305e82c3301]",
        "3f2504e0-4f89-11d3-9a0c0305e82c33011"}) {
    std::string canonical = "as it was";
    EXPECT_FALSE(CanonicalGuid(text, &canonical)) << text;
    EXPECT_EQ(canonical, "as it was");
  }
}

}  // namespace
}  // namespace sava::http
