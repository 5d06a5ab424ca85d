// Fingerprints of texts, and the search for near ones: everything within the distance is found,
// with and without the index, whatever was added, replaced and removed.
#include "types/sketches/simhash.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "types/sketches/simhash_text.h"

namespace sava::types {
namespace {

// ---- fingerprints ----

TEST(SimHashText, CutsWords) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(WordsOf("The quick-brown FOX, 2 times!"),
            (Words{"the", "quick", "brown", "fox", "2", "times"}));
  EXPECT_EQ(WordsOf(""), Words{});
  EXPECT_EQ(WordsOf(" \t.,;"), Words{});
  EXPECT_EQ(WordsOf("ŠUMA Đak Ægir ΣΊΣΥΦΟΣ ПРИМЕР"),
            (Words{"šuma", "đak", "ægir", "σίσυφοσ", "пример"}));
  EXPECT_EQ(WordsOf("naïve\xffword"), (Words{"naïve", "word"}));
  EXPECT_EQ(WordsOf("数据库 İstanbul"), (Words{"数据库", "istanbul"}));
}

TEST(SimHashText, FollowsItsDescription) {
  // Three words are one feature: the fingerprint is its hash.
  EXPECT_EQ(FingerprintOfText("The quick BROWN"), base::HashBytes("the quick brown", 0));
  EXPECT_EQ(FingerprintOfText("word"), base::HashBytes("word", 0));
  EXPECT_EQ(FingerprintOfText(""), 0U);
  // Two words: bits that both have (a sum of 0 is not above 0).
  EXPECT_EQ(FingerprintOfText("left right"),
            base::HashBytes("left", 0) & base::HashBytes("right", 0));
  FingerprintBuilder builder;
  builder.Add("a b c", 2);
  builder.Add("b c a", 1);
  builder.Add("c a b", 1);
  EXPECT_EQ(FingerprintOfText("a b c a b c"), builder.Fingerprint());
}

TEST(SimHashText, SimilarTextsHaveSimilarFingerprints) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word" + std::to_string(i * i % 1009) + " ";
  const std::string changed = text + "and one more";
  std::string other;
  for (int i = 0; i < 300; ++i) other += "term" + std::to_string(i * 7 % 1009) + " ";
  const uint64_t fingerprint = FingerprintOfText(text);
  EXPECT_LE(std::popcount(fingerprint ^ FingerprintOfText(changed)), 6);
  EXPECT_GE(std::popcount(fingerprint ^ FingerprintOfText(other)), 16);
}

TEST(SimHashText, WritesAndReadsHex) {
  EXPECT_EQ(FingerprintText(0), "0000000000000000");
  EXPECT_EQ(FingerprintText(0x0123456789abcdef), "0123456789abcdef");
  uint64_t value = 0;
  EXPECT_TRUE(ParseFingerprint("0123456789ABCdef", &value));
  EXPECT_EQ(value, 0x0123456789abcdefU);
  for (const char* bad : {"", "0", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg",
                          " 123456789abcdef", "0x23456789abcdef", "@123456789abcdef"}) {
    EXPECT_FALSE(ParseFingerprint(bad, &value)) << bad;
  }
}

// ---- searching ----

using Found = std::vector<std::pair<std::string, int>>;

Found NearIn(const SimHash& documents, uint64_t fingerprint, int distance,
             size_t limit = SIZE_MAX) {
  Found found;
  for (const SimHash::Match& match : documents.Near(fingerprint, distance, limit)) {
    found.emplace_back(match.id, match.distance);
  }
  return found;
}

Found NearIn(const std::map<std::string, uint64_t>& truth, uint64_t fingerprint, int distance) {
  Found found;
  for (const auto& [id, other] : truth) {
    const int bits = std::popcount(fingerprint ^ other);
    if (bits <= distance) found.emplace_back(id, bits);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  return found;
}

uint64_t WithFlips(base::Rng& rng, uint64_t fingerprint, int flips) {
  for (int i = 0; i < flips; ++i) fingerprint ^= uint64_t{1} << rng.Below(64);
  return fingerprint;
}

TEST(SimHash, AddsReplacesAndRemoves) {
  SimHash documents;
  EXPECT_TRUE(documents.Add("a", 1));
  EXPECT_TRUE(documents.Add("", 2));
  EXPECT_FALSE(documents.Add("a", 7));
  EXPECT_EQ(documents.Get("a"), 7U);
  EXPECT_EQ(documents.Get("nothing"), std::nullopt);
  EXPECT_EQ(documents.size(), 2U);
  EXPECT_EQ(NearIn(documents, 6, 1), (Found{{"", 1}, {"a", 1}}));
  EXPECT_EQ(NearIn(documents, 6, 1, 1), (Found{{"", 1}}));
  EXPECT_EQ(NearIn(documents, 6, 0), Found{});
  EXPECT_TRUE(documents.Remove("a"));
  EXPECT_FALSE(documents.Remove("a"));
  EXPECT_EQ(documents.Get("a"), std::nullopt);
  EXPECT_EQ(NearIn(documents, 0, 64), (Found{{"", 1}}));
}

// Recall is 100 %, and nothing further away is found: clusters of near fingerprints among random
// ones, with every distance, while documents come, change and go across the index's threshold.
TEST(SimHash, FindsAllWithinTheDistance) {
  base::Rng rng(1);
  SimHash documents;
  std::map<std::string, uint64_t> truth;
  std::vector<uint64_t> centres;
  for (int i = 0; i < 200; ++i) centres.push_back(rng.Next());
  const auto random = [&] {
    return rng.Below(2) == 0
               ? rng.Next()
               : WithFlips(rng, centres[rng.Below(centres.size())], static_cast<int>(rng.Below(6)));
  };
  const auto check = [&](int queries) {
    for (int i = 0; i < queries; ++i) {
      const uint64_t query =
          WithFlips(rng, centres[rng.Below(centres.size())], static_cast<int>(rng.Below(3)));
      const int distance = i % 8 == 7 ? static_cast<int>(rng.Below(20)) : i % 4;
      ASSERT_EQ(NearIn(documents, query, distance), NearIn(truth, query, distance));
    }
  };
#ifdef SAVA_SANITIZED
  constexpr int kQueries = 20;
#else
  constexpr int kQueries = 200;
#endif
  EXPECT_FALSE(documents.indexed());
  for (int i = 0; i < 9000; ++i) {
    const std::string id = "d" + std::to_string(i);
    truth[id] = random();
    EXPECT_TRUE(documents.Add(id, truth[id]));
  }
  check(kQueries);
  EXPECT_FALSE(documents.indexed());
  for (int i = 8000; i < 14'000; ++i) {
    const std::string id = "d" + std::to_string(i);
    const bool is_new = truth.count(id) == 0;
    truth[id] = random();
    EXPECT_EQ(documents.Add(id, truth[id]), is_new);
  }
  EXPECT_TRUE(documents.indexed());
  check(kQueries);
  for (int i = 0; i < 14'000; i += 2) {
    EXPECT_TRUE(documents.Remove("d" + std::to_string(i)));
    truth.erase("d" + std::to_string(i));
  }
  check(kQueries);
  for (int i = 0; i < 3000; ++i) {
    const std::string id = "again" + std::to_string(i);
    truth[id] = random();
    documents.Add(id, truth[id]);
  }
  EXPECT_TRUE(documents.indexed());
  check(kQueries);
  while (truth.size() > 4000) {
    documents.Remove(truth.begin()->first);
    truth.erase(truth.begin());
  }
  EXPECT_FALSE(documents.indexed());
  check(kQueries);
  EXPECT_EQ(documents.size(), truth.size());
  for (const auto& [id, fingerprint] : truth) ASSERT_EQ(documents.Get(id), fingerprint);
}

// Every pattern of up to three different bits is found through the index.
TEST(SimHash, TheIndexServesEveryPatternOfThreeBits) {
  SimHash documents;
  base::Rng rng(2);
  for (size_t i = 0; i <= SimHash::kIndexFrom; ++i) documents.Add(std::to_string(i), rng.Next());
  ASSERT_TRUE(documents.indexed());
  const uint64_t target = 0x0123456789abcdef;
  documents.Add("target", target);
  for (int a = 0; a < 64; ++a) {
    for (int b = a; b < 64; ++b) {
      for (int c = b; c < 64; ++c) {
        const uint64_t query =
            target ^ ((uint64_t{1} << a) | (uint64_t{1} << b) | (uint64_t{1} << c));
        const Found found = NearIn(documents, query, 3);
        ASSERT_EQ(std::count_if(found.begin(), found.end(),
                                [](const auto& match) { return match.first == "target"; }),
                  1)
            << a << ' ' << b << ' ' << c;
      }
    }
  }
}

// Many documents with one fingerprint: each stands in the same chains, and can be removed.
TEST(SimHash, ManyOfTheSameFingerprint) {
  SimHash documents;
  constexpr size_t kMany = 30'000;
  for (size_t i = 0; i < kMany; ++i) documents.Add(std::to_string(i), 42);
  EXPECT_EQ(documents.Near(42, 3, SIZE_MAX).size(), kMany);
  EXPECT_EQ(NearIn(documents, 43, 1, 2), (Found{{"0", 1}, {"1", 1}}));
  for (size_t i = 0; i < kMany; i += 3) EXPECT_TRUE(documents.Remove(std::to_string(i)));
  EXPECT_EQ(documents.Near(42, 0, SIZE_MAX).size(), kMany / 3 * 2);
}

TEST(SimHash, CopiesAreEqual) {
  SimHash documents;
  base::Rng rng(3);
  for (int i = 0; i < 12'000; ++i) documents.Add("d" + std::to_string(i), rng.Next());
  for (int i = 0; i < 12'000; i += 5) documents.Remove("d" + std::to_string(i));
  const auto copy = documents.Copy();
  const auto digest = [](const Object& object) {
    std::string all;
    object.Digest([&all](std::string_view part) { all.append(part).append("\n"); });
    return all;
  };
  EXPECT_EQ(digest(documents), digest(*copy));
  EXPECT_EQ(copy->size(), documents.size());
}

}  // namespace
}  // namespace sava::types
