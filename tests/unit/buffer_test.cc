// Bytes come out as they went in, in pieces of any size.
#include "base/buffer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sava::base {
namespace {

TEST(Buffer, GivesBackWhatItGot) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Buffer buffer;
    std::string model;
    for (int step = 0; step < 2000; ++step) {
      const size_t n = random() % 200;
      switch (random() % 4) {
        case 0: {
          std::string bytes(n, '\0');
          for (char& c : bytes) c = static_cast<char>(random());
          buffer.Append(bytes);
          model += bytes;
          break;
        }
        case 1: {
          char* const p = buffer.Reserve(n + 50);
          for (size_t i = 0; i < n; ++i) p[i] = static_cast<char>(i);
          model.append(p, n);
          buffer.Grow(n);
          break;
        }
        case 2: {
          const size_t gone = std::min(n, model.size());
          buffer.Consume(gone);
          model.erase(0, gone);
          break;
        }
        default:
          if (n < 100) break;
          if (n < 105) {
            buffer.Clear(random() % 2000);
            model.clear();
          } else if (n < 110 && !model.empty()) {
            buffer.Shrink(1);
            model.pop_back();
          }
      }
      ASSERT_EQ(buffer.view(), model) << "seed " << seed << " step " << step;
      ASSERT_EQ(buffer.size(), model.size());
      ASSERT_EQ(buffer.data(), buffer.view().data());
      ASSERT_LE(buffer.size(), buffer.capacity());
    }
  }
}

}  // namespace
}  // namespace sava::base
