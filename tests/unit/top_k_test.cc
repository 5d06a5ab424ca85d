// The list of the most frequent items: against the algorithm written down plainly, its bounds on
// Zipf streams, and what enters and leaves the list.
#include "types/sketches/top_k.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sketch_streams.h"

namespace sava::types {
namespace {

#ifdef SAVA_SANITIZED
constexpr size_t kEvents = 100'000;
#else
constexpr size_t kEvents = 1'000'000;
#endif

std::string ListOf(const TopK& top) {
  std::string text;
  for (const TopK::Item& item : top.List()) {
    if (!text.empty()) text += ' ';
    text += std::string(item.text) + "=" + std::to_string(item.count);
  }
  return text;
}

// Space-Saving as it is written down, with linear searches.
class Model {
 public:
  Model(size_t k, size_t capacity) : k_(k), capacity_(capacity) {}

  std::optional<std::string> Add(const std::string& item, uint64_t n) {
    ++turn_;
    auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& c) { return c.item == item; });
    if (at == all_.end() && all_.size() < capacity_) {
      all_.push_back({item, 0, 0, 0, Listed() < k_});
      at = all_.end() - 1;
    } else if (at == all_.end()) {
      at = Lowest(false);
      at->item = item;
      at->error = at->count;
    }
    at->count += n;
    at->turn = turn_;
    if (at->listed) return std::nullopt;
    const auto last = Lowest(true);
    if (at->count < last->count) return std::nullopt;
    at->listed = true;
    last->listed = false;
    return last->item;
  }

  // item, count, error of those in the list, in its order.
  std::vector<std::tuple<std::string, uint64_t, uint64_t>> List() const {
    std::vector<Counter> listed;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(listed),
                 [](const Counter& c) { return c.listed; });
    std::sort(listed.begin(), listed.end(), [](const Counter& a, const Counter& b) {
      return a.count != b.count ? a.count > b.count : a.turn < b.turn;
    });
    std::vector<std::tuple<std::string, uint64_t, uint64_t>> out;
    for (const Counter& c : listed) out.emplace_back(c.item, c.count, c.error);
    return out;
  }
  uint64_t Count(const std::string& item) const {
    for (const Counter& c : all_) {
      if (c.item == item) return c.count;
    }
    return 0;
  }

 private:
  struct Counter {
    std::string item;
    uint64_t count;
    uint64_t error;
    uint64_t turn;
    bool listed;
  };
  size_t Listed() const {
    return static_cast<size_t>(
        std::count_if(all_.begin(), all_.end(), [](const Counter& c) { return c.listed; }));
  }
  std::vector<Counter>::iterator Lowest(bool listed) {
    auto lowest = all_.end();
    for (auto at = all_.begin(); at != all_.end(); ++at) {
      if (at->listed != listed) continue;
      if (lowest == all_.end() || at->count < lowest->count ||
          (at->count == lowest->count && at->turn < lowest->turn)) {
        lowest = at;
      }
    }
    return lowest;
  }

  size_t k_;
  size_t capacity_;
  uint64_t turn_ = 0;
  std::vector<Counter> all_;
};

TEST(TopK, ListsTheMostFrequent) {
  TopK top({.k = 2, .width = 50, .depth = 5});
  EXPECT_EQ(top.Add("a", 1), std::nullopt);
  EXPECT_EQ(top.Add("b", 1), std::nullopt);
  EXPECT_EQ(top.Add("a", 1), std::nullopt);
  EXPECT_EQ(ListOf(top), "a=2 b=1");
  EXPECT_EQ(top.Add("c", 10), "b");
  EXPECT_EQ(ListOf(top), "c=10 a=2");
  EXPECT_TRUE(top.Listed("a"));
  EXPECT_FALSE(top.Listed("b"));
  EXPECT_EQ(top.Count("b"), 1U);
  EXPECT_EQ(top.Count("nothing"), 0U);
  // An equal count is enough to enter.
  EXPECT_EQ(top.Add("b", 1), "a");
  EXPECT_EQ(ListOf(top), "c=10 b=2");
}

TEST(TopK, KeepsCountersForMoreThanItLists) {
  EXPECT_EQ(TopK({.k = 3}).capacity(), 30U);
  EXPECT_EQ(TopK({.k = 3, .width = 2000}).capacity(), 2003U);
  EXPECT_EQ(TopK({.k = UINT32_MAX, .width = UINT32_MAX}).capacity(), UINT32_MAX - 2U);
}

TEST(TopK, CountsStopAtTheMost) {
  TopK top({.k = 1});
  top.Add("a", TopK::kMaxCount);
  top.Add("a", 1);
  EXPECT_EQ(top.Count("a"), TopK::kMaxCount);
}

// Any history gives what the algorithm written down plainly gives, call by call.
TEST(TopK, IsSpaceSaving) {
  EXPECT_TRUE(rc::check([] {
    const auto k = *rc::gen::inRange<uint64_t>(1, 4);
    TopK top({.k = k, .width = 1});
    Model model(k, top.capacity());
    const auto events = *rc::gen::container<std::vector<std::pair<int, uint64_t>>>(
        rc::gen::pair(rc::gen::inRange(0, 60), rc::gen::inRange<uint64_t>(1, 5)));
    for (const auto& [item, n] : events) {
      const std::string name = std::to_string(item);
      RC_ASSERT(top.Add(name, n) == model.Add(name, n));
    }
    const auto expected = model.List();
    const auto listed = top.List();
    RC_ASSERT(listed.size() == expected.size());
    for (size_t i = 0; i < listed.size(); ++i) {
      RC_ASSERT(std::make_tuple(std::string(listed[i].text), listed[i].count, listed[i].error) ==
                expected[i]);
    }
    for (int item = 0; item < 60; ++item) {
      RC_ASSERT(top.Count(std::to_string(item)) == model.Count(std::to_string(item)));
    }
  }));
}

// count - error <= truth <= count, error <= N / capacity, nothing above that is missing; and the
// list has nearly all that belong there.
TEST(TopK, KeepsItsBoundsOnZipfStreams) {
  for (const double exponent : {0.9, 1.1, 1.4}) {
    constexpr size_t kListed = 50;
    TopK top({.k = kListed, .width = 2000});
    ZipfStream stream(100'000, exponent, 11);
    for (size_t i = 0; i < kEvents; ++i) top.Add(ZipfStream::Name(stream.Next()), 1);
    const uint64_t bound = stream.total() / top.capacity();
    std::map<std::string, uint64_t> truth;
    std::vector<uint64_t> counts;
    for (size_t i = 0; i < stream.items(); ++i) {
      truth[ZipfStream::Name(i)] = stream.count(i);
      counts.push_back(stream.count(i));
      if (stream.count(i) > bound) {
        EXPECT_GE(top.Count(ZipfStream::Name(i)), stream.count(i)) << i;
      }
    }
    std::sort(counts.rbegin(), counts.rend());
    const std::vector<TopK::Item> listed = top.List();
    ASSERT_EQ(listed.size(), kListed);
    size_t right = 0;
    for (const TopK::Item& item : listed) {
      const uint64_t count = truth.at(std::string(item.text));
      EXPECT_LE(item.error, bound) << exponent;
      EXPECT_GE(item.count, count);
      EXPECT_LE(item.count - item.error, count);
      right += count >= counts[kListed - 1] ? 1 : 0;
    }
    EXPECT_GE(right, kListed - 2) << exponent;
  }
}

TEST(TopK, CopiesGoOnAlike) {
  TopK top({.k = 5, .width = 10});
  ZipfStream stream(500, 1.0, 3);
  for (int i = 0; i < 5000; ++i) top.Add(ZipfStream::Name(stream.Next()), 1);
  const auto copy = top.Copy();
  auto& other = static_cast<TopK&>(*copy);
  for (int i = 0; i < 5000; ++i) {
    const std::string item = ZipfStream::Name(stream.Next());
    ASSERT_EQ(top.Add(item, 1), other.Add(item, 1));
  }
  EXPECT_EQ(ListOf(top), ListOf(other));
}

TEST(TopK, TakesAnyItem) {
  TopK top({.k = 3});
  const std::string odd("\0\r\n\xff", 4);
  top.Add("", 1);
  top.Add(odd, 2);
  top.Add(std::string(100'000, 'x'), 3);
  EXPECT_TRUE(top.Listed(""));
  EXPECT_EQ(top.Count(odd), 2U);
  EXPECT_EQ(top.List()[0].text.size(), 100'000U);
  EXPECT_GT(top.MemoryUsage(0), 100'000U);
}

}  // namespace
}  // namespace sava::types
