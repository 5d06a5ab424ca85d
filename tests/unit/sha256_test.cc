// SHA-256 against the examples of FIPS 180-4 and lengths around the block's edge.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace sava::base {
namespace {

TEST(Sha256, GivesTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  for (const size_t size : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 121, 128, 1000}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(i * 7);
    Sha256 byte_by_byte;
    for (const char c : text) byte_by_byte.Add({&c, 1});
    const Sha256::Digest digest = byte_by_byte.Finish();
    EXPECT_EQ(HexText(digest.data(), digest.size()), Sha256Hex(text)) << size << " bytes";
  }
}

}  // namespace
}  // namespace sava::base
