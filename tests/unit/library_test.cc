// The installable library, by its public headers alone.
#include <gtest/gtest.h>
#include <sava/sava.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::int64_t kNow = 1'700'000'000'000;

std::string Name(std::size_t i) { return "item:" + std::to_string(i); }

// Every strict beginning of the bytes and every single byte changed: none may be taken for a value.
template <typename T>
void ExpectOnlyWholeBytesLoad(const std::string& bytes) {
  ASSERT_TRUE(T::Load(bytes).has_value());
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / 200);
  for (std::size_t size = 0; size < bytes.size(); size += step) {
    EXPECT_FALSE(T::Load(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_FALSE(T::Load(changed).has_value()) << at;
  }
  EXPECT_FALSE(T::Load(bytes + "x").has_value());
}

}  // namespace

TEST(Library, TellsItsVersion) { EXPECT_EQ(sava::Version(), SAVA_PROJECT_VERSION); }

// ---- AssociationCounter ----

TEST(LibraryAssociationCounter, OrdersMembersByFrequency) {
  sava::AssociationCounter counter;
  EXPECT_EQ(counter.Add("milk"), 1U);
  EXPECT_EQ(counter.Add("bread", 3), 3U);
  EXPECT_EQ(counter.Add("milk"), 2U);
  EXPECT_EQ(counter.Add("tea"), 1U);
  EXPECT_EQ(counter.Add("tea", 0), 1U);
  std::vector<std::pair<std::string, std::uint64_t>> top;
  for (const auto& entry : counter.Top(10)) top.emplace_back(entry.member, entry.count);
  const std::vector<std::pair<std::string, std::uint64_t>> expected = {
      {"bread", 3}, {"milk", 2}, {"tea", 1}};
  EXPECT_EQ(top, expected);
  EXPECT_EQ(counter.Top(1).size(), 1U);
  EXPECT_EQ(counter.Card(), 3U);
  EXPECT_EQ(counter.Total(), 6U);
  EXPECT_TRUE(counter.Remove("bread"));
  EXPECT_FALSE(counter.Remove("bread"));
  EXPECT_EQ(counter.Count("bread"), 0U);
}

TEST(LibraryAssociationCounter, RefusesOptionsThatContradict) {
  EXPECT_FALSE(sava::AssociationCounter::Make({.halflife_ms = 1, .window_ms = 1}).has_value());
  EXPECT_FALSE(sava::AssociationCounter::Make({.halflife_ms = -1}).has_value());
  auto bounded = sava::AssociationCounter::Make({.maxlen = 2});
  ASSERT_TRUE(bounded.has_value());
  for (std::size_t i = 0; i < 10; ++i) bounded->Add(Name(i));
  EXPECT_EQ(bounded->Card(), 2U);
  EXPECT_EQ(bounded->options().maxlen, 2U);
}

TEST(LibraryAssociationCounter, CountsOnlyWhatIsRecentWithAWindow) {
  auto counter = sava::AssociationCounter::Make({.window_ms = 1000}, kNow);
  counter->Add("old", 5, kNow);
  EXPECT_EQ(counter->Count("old", kNow + 500), 5U);
  EXPECT_EQ(counter->Count("old", kNow + 5000), 0U);
}

TEST(LibraryAssociationCounter, IsTheSameAfterSaveAndLoad) {
  sava::AssociationCounter counter;
  std::map<std::string, std::uint64_t> model;
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const std::string member = Name(random() % 3000);
    counter.Add(member);
    ++model[member];
  }
  auto loaded = sava::AssociationCounter::Load(counter.Save());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->Card(), model.size());
  for (const auto& [member, count] : model) EXPECT_EQ(loaded->Count(member), count);
  const auto top = counter.Top(50);
  const auto again = loaded->Top(50);
  for (std::size_t i = 0; i < top.size(); ++i) EXPECT_EQ(top[i].member, again[i].member);
  sava::AssociationCounter copy = counter.Clone();
  copy.Add("only in the copy");
  EXPECT_EQ(counter.Count("only in the copy"), 0U);
  EXPECT_GT(counter.memory(), 3000U);
}

TEST(LibraryAssociationCounter, RefusesDamagedBytes) {
  sava::AssociationCounter counter;
  counter.Add("a", 2);
  counter.Add("b");
  ExpectOnlyWholeBytesLoad<sava::AssociationCounter>(counter.Save());
}

TEST(LibraryAssociationCounter, DifferentOnesMayBeUsedByDifferentThreads) {
  // Counters of this size name their members in the table that all of them share.
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> totals(4);
  for (std::size_t t = 0; t < totals.size(); ++t) {
    threads.emplace_back([t, &totals] {
      sava::AssociationCounter counter;
      for (std::size_t i = 0; i < 6000; ++i) counter.Add(Name(i % 2500));
      totals[t] = counter.Clone().Total();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t total : totals) EXPECT_EQ(total, 6000U);
}

// ---- filters ----

TEST(LibraryBloom, NeverForgetsAnItemAndKeepsItsRate) {
  auto filter = sava::Bloom::Make({.error = 0.01, .capacity = 10'000});
  ASSERT_TRUE(filter.has_value());
  for (std::size_t i = 0; i < 10'000; ++i) filter->Add(Name(i));
  int wrong = 0;
  for (std::size_t i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(filter->Has(Name(i)));
    wrong += filter->Has(Name(1'000'000 + i)) ? 1 : 0;
  }
  EXPECT_LT(wrong, 200);
  EXPECT_GT(filter->stats().bits, 0U);
  auto loaded = sava::Bloom::Load(filter->Save());
  ASSERT_TRUE(loaded.has_value());
  for (std::size_t i = 0; i < 10'000; ++i) EXPECT_TRUE(loaded->Has(Name(i)));
}

TEST(LibraryBloom, RefusesBadOptions) {
  EXPECT_FALSE(sava::Bloom::Make({.error = 0}).has_value());
  EXPECT_FALSE(sava::Bloom::Make({.error = 1}).has_value());
  EXPECT_FALSE(sava::Bloom::Make({.error = std::nan("")}).has_value());
  EXPECT_FALSE(sava::Bloom::Make({.capacity = 0}).has_value());
  EXPECT_FALSE(sava::Bloom::Make({.capacity = UINT64_MAX}).has_value());
  EXPECT_FALSE(sava::Bloom::MakeClassic(0, 3).has_value());
  EXPECT_FALSE(sava::Bloom::MakeClassic(1000, 0).has_value());
}

TEST(LibraryBloom, RemovesOnlyWhenDeletable) {
  auto plain = sava::Bloom::Make({});
  plain->Add("a");
  EXPECT_FALSE(plain->Remove("a"));
  EXPECT_TRUE(plain->Has("a"));
  auto deletable = sava::Bloom::Make({.deletable = true});
  deletable->Add("a");
  EXPECT_TRUE(deletable->Remove("a"));
  EXPECT_FALSE(deletable->Has("a"));
  EXPECT_FALSE(plain->Merge(*deletable));
}

TEST(LibraryBloom, MergesAndClones) {
  auto a = sava::Bloom::MakeClassic(10'000, 3);
  auto b = a->Clone();
  a->Add("in a");
  b.Add("in b");
  EXPECT_TRUE(a->Merge(b));
  EXPECT_TRUE(a->Merge(*a));
  EXPECT_TRUE(a->Has("in a"));
  EXPECT_TRUE(a->Has("in b"));
  EXPECT_FALSE(b.Has("in a"));
  ExpectOnlyWholeBytesLoad<sava::Bloom>(a->Save());
}

TEST(LibraryBloomFilter, SetsTheThreeBitsOfTheDocument) {
  using Filter = sava::BloomFilter<std::string, 137>;
  const std::uint64_t hash = std::hash<std::string>{}("duffy@acme.com");
  std::bitset<137> bits;
  bits.set(hash % 137).set((hash >> 16) % 137).set((hash >> 32) % 137);
  Filter filter;
  filter.Insert("duffy@acme.com");
  EXPECT_EQ(filter.bits(), bits);
  EXPECT_TRUE(filter.IsElement("duffy@acme.com"));
  filter.Create();
  EXPECT_TRUE(filter.bits().none());
  EXPECT_EQ((sava::BloomFilter<int>::kBits), 1000U);
}

TEST(LibraryBloomFilter, ReadsAndWritesTheTextOfABitset) {
  sava::BloomFilter<int> filter;
  for (int i = 0; i < 50; ++i) filter.Insert(i * 1'000'003);
  std::ostringstream text;
  text << filter;
  EXPECT_EQ(text.str(), filter.bits().to_string());
  EXPECT_EQ(text.str().size(), 1000U);
  std::istringstream in(text.str());
  sava::BloomFilter<int> read;
  ASSERT_TRUE(in >> read);
  EXPECT_TRUE(read == filter);
  std::istringstream none("words");
  EXPECT_FALSE(none >> read);
}

TEST(LibraryCuckoo, CountsCopiesAndDeletesThem) {
  sava::Cuckoo filter;
  EXPECT_TRUE(filter.Add("a"));
  EXPECT_TRUE(filter.Add("a"));
  EXPECT_EQ(filter.Count("a"), 2U);
  EXPECT_TRUE(filter.Remove("a"));
  EXPECT_TRUE(filter.Has("a"));
  EXPECT_TRUE(filter.Remove("a"));
  EXPECT_FALSE(filter.Has("a"));
  EXPECT_FALSE(filter.Remove("a"));
  EXPECT_EQ(filter.items(), 0U);
  EXPECT_FALSE(sava::Cuckoo::Make({.capacity = 0}).has_value());
  auto small = sava::Cuckoo::Make({.capacity = 8, .grows = false});
  std::size_t fit = 0;
  while (fit < 1000 && small->Add(Name(fit))) ++fit;
  EXPECT_LT(fit, 1000U);
  ExpectOnlyWholeBytesLoad<sava::Cuckoo>(small->Save());
}

// ---- sketches ----

TEST(LibraryCountMin, NeverEstimatesTooLow) {
  auto sketch = sava::CountMin::Make(500, 5);
  ASSERT_TRUE(sketch.has_value());
  std::map<std::string, std::uint64_t> truth;
  for (std::size_t i = 0; i < 5000; ++i) ++truth[Name(i % 997)], sketch->Add(Name(i % 997));
  for (const auto& [item, count] : truth) EXPECT_GE(sketch->Estimate(item), count);
  EXPECT_EQ(sketch->total(), 5000U);
  auto twice = sketch->Clone();
  EXPECT_TRUE(twice.Merge(*sketch));
  EXPECT_EQ(twice.total(), 10'000U);
  EXPECT_FALSE(twice.Merge(*sava::CountMin::Make(501, 5)));
  EXPECT_FALSE(twice.Merge(*sketch, -3));
  EXPECT_EQ(sava::CountMin::Load(sketch->Save())->Estimate(Name(1)), sketch->Estimate(Name(1)));
  EXPECT_FALSE(sava::CountMin::Make(0, 5).has_value());
  EXPECT_FALSE(sava::CountMin::Make(UINT64_MAX, 2).has_value());
  EXPECT_FALSE(sava::CountMin::Make(1, UINT64_MAX).has_value());
}

TEST(LibraryTopK, KeepsTheMostFrequent) {
  auto top = sava::TopK::Make(3);
  ASSERT_TRUE(top.has_value());
  for (std::size_t i = 0; i < 10; ++i) top->Add(Name(i), i + 1);
  std::vector<std::string> items;
  for (const auto& entry : top->List()) items.push_back(entry.item);
  EXPECT_EQ(items, (std::vector<std::string>{Name(9), Name(8), Name(7)}));
  EXPECT_TRUE(top->Has(Name(9)));
  EXPECT_FALSE(top->Has(Name(0)));
  EXPECT_EQ(top->Add(Name(0), 100), Name(7));
  EXPECT_EQ(top->Add(Name(0), 0), std::nullopt);
  EXPECT_EQ(sava::TopK::Load(top->Save())->List().size(), 3U);
  EXPECT_FALSE(sava::TopK::Make(0).has_value());
}

TEST(LibrarySimHash, FindsTextsThatAreNearlyTheSame) {
  sava::SimHash pages;
  const std::uint64_t first = sava::SimHash::FingerprintOf("the cat sat on the mat all day");
  EXPECT_TRUE(pages.Add("a", first));
  EXPECT_FALSE(pages.Add("a", first));
  EXPECT_TRUE(pages.Add("b", first ^ 5));
  EXPECT_TRUE(pages.Add("c", ~first));
  const auto near = pages.Near(first, 3);
  ASSERT_EQ(near.size(), 2U);
  EXPECT_EQ(near[0].id, "a");
  EXPECT_EQ(near[1].distance, 2);
  EXPECT_EQ(pages.Near(first, 3, 1).size(), 1U);
  EXPECT_TRUE(pages.Remove("a"));
  EXPECT_EQ(pages.Get("a"), std::nullopt);
  EXPECT_EQ(sava::SimHash::Load(pages.Save())->Get("b"), first ^ 5);
  EXPECT_EQ(pages.size(), 2U);
}

TEST(LibraryHyperLogLog, EstimatesWithinItsError) {
  sava::HyperLogLog a;
  sava::HyperLogLog b;
  EXPECT_EQ(a.Count(), 0U);
  for (std::size_t i = 0; i < 50'000; ++i) a.Add(Name(i));
  for (std::size_t i = 25'000; i < 75'000; ++i) b.Add(Name(i));
  EXPECT_NEAR(static_cast<double>(a.Count()), 50'000, 2000);
  a.Merge(b);
  EXPECT_NEAR(static_cast<double>(a.Count()), 75'000, 3000);
  auto same = sava::HyperLogLog::FromBytes(a.bytes());
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->Count(), a.Count());
  EXPECT_FALSE(sava::HyperLogLog::FromBytes("HYLL").has_value());
  std::string damaged = sava::HyperLogLog().bytes();
  damaged.pop_back();
  EXPECT_FALSE(sava::HyperLogLog::FromBytes(damaged).has_value());
}

// ---- TokenBucket ----

TEST(LibraryTokenBucket, GivesItsTokensBackWithTime) {
  auto bucket = sava::TokenBucket::Make({.limit = 10, .period_ms = 1000}, kNow);
  ASSERT_TRUE(bucket.has_value());
  EXPECT_TRUE(bucket->Take(10, kNow).allowed);
  const auto refused = bucket->Take(1, kNow);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_ms, 100);
  EXPECT_TRUE(bucket->Peek(1, kNow + 100).allowed);
  EXPECT_TRUE(bucket->Take(1, kNow + 100).allowed);
  EXPECT_FALSE(bucket->Take(1, kNow + 100).allowed);
  EXPECT_TRUE(bucket->Refund(1, kNow + 100));
  auto loaded = sava::TokenBucket::Load(bucket->rule(), bucket->Save());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(loaded->Take(1, kNow + 100).allowed);
  EXPECT_FALSE(loaded->Take(1, kNow + 100).allowed);
  EXPECT_FALSE(sava::TokenBucket::Load(bucket->rule(), "no state").has_value());
}

TEST(LibraryTokenBucket, ServesAllAlgorithmsAndRefusesBadRules) {
  using Algorithm = sava::TokenBucket::Algorithm;
  for (const Algorithm algorithm :
       {Algorithm::kWindow, Algorithm::kToken, Algorithm::kGcra, Algorithm::kSliding}) {
    auto bucket =
        sava::TokenBucket::Make({.algorithm = algorithm, .limit = 3, .period_ms = 60'000}, kNow);
    ASSERT_TRUE(bucket.has_value());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket->Take(1, kNow).allowed);
    EXPECT_FALSE(bucket->Take(1, kNow).allowed);
    EXPECT_EQ(bucket->Take(4, kNow).retry_ms, -1);
    EXPECT_TRUE(bucket->Clone().Take(1, kNow + 120'000).allowed);
  }
  EXPECT_FALSE(sava::TokenBucket::Make({.limit = 0}).has_value());
  EXPECT_FALSE(sava::TokenBucket::Make({.limit = 1, .period_ms = 0}).has_value());
  EXPECT_FALSE(sava::TokenBucket::Make(
                   {.algorithm = Algorithm::kWindow, .limit = 1, .period_ms = 1, .capacity = 2})
                   .has_value());
}

// ---- UrlFrontier ----

TEST(LibraryUrlFrontier, ServesHostByHostAndDepthByDepth) {
  auto frontier = sava::UrlFrontier::Make({});
  ASSERT_TRUE(frontier.has_value());
  using Verdict = sava::UrlFrontier::Verdict;
  EXPECT_EQ(frontier->Add("http://www.a.com/x/y", {}, kNow), Verdict::kAdded);
  EXPECT_EQ(frontier->Add("http://b.com/", {}, kNow), Verdict::kAdded);
  EXPECT_EQ(frontier->Add("http://a.com/z", {.meta = "m"}, kNow), Verdict::kAdded);
  EXPECT_EQ(frontier->Add("http://a.com/z#part", {}, kNow), Verdict::kDuplicate);
  EXPECT_EQ(frontier->Add("ftp://a.com/z", {}, kNow), Verdict::kInvalid);
  EXPECT_EQ(frontier->Add("http://a.com/" + std::string(70'000, 'x'), {}, kNow), Verdict::kInvalid);
  EXPECT_TRUE(frontier->Seen("http://a.com/z"));
  const auto hosts = frontier->Hosts(0, 10);
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0].name, "a.com");
  EXPECT_EQ(hosts[0].queued, 2U);
  std::vector<std::string> urls;
  for (const auto& served : frontier->Next({.count = 10}, kNow)) urls.push_back(served.url);
  EXPECT_EQ(urls, (std::vector<std::string>{"http://a.com/z", "http://a.com/x/y", "http://b.com"}));
  EXPECT_EQ(frontier->NextWake(kNow), std::nullopt);
  EXPECT_EQ(frontier->stats().served, 3U);
}

TEST(LibraryUrlFrontier, BringsLeasedUrlsBack) {
  auto frontier = sava::UrlFrontier::Make(
      {.strategy = sava::UrlFrontier::Strategy::kBreadth, .lease_ms = 1000, .retries = 1});
  frontier->Add("http://a.com/1", {}, kNow);
  auto served = frontier->Next({}, kNow);
  ASSERT_EQ(served.size(), 1U);
  EXPECT_TRUE(frontier->Next({}, kNow).empty());
  EXPECT_EQ(frontier->NextWake(kNow), kNow + 1000);
  served = frontier->Next({.host = "a.com"}, kNow + 1000);
  ASSERT_EQ(served.size(), 1U);
  EXPECT_EQ(served[0].failures, 1U);
  EXPECT_TRUE(frontier->Ack(served[0].lease, kNow + 1001));
  EXPECT_FALSE(frontier->Ack(served[0].lease, kNow + 1001));
  frontier->Add("http://a.com/2", {}, kNow + 1001);
  served = frontier->Next({}, kNow + 1001);
  EXPECT_TRUE(frontier->Nack(served[0].lease, kNow + 5000, kNow + 1002));
  EXPECT_EQ(frontier->stats().delayed, 1U);
  auto loaded = sava::UrlFrontier::Load(frontier->Save());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->options().lease_ms, 1000);
  EXPECT_EQ(loaded->Next({}, kNow + 5000).size(), 1U);
  EXPECT_EQ(frontier->Purge("a.com", kNow + 2000), 1U);
  frontier->Clear();
  EXPECT_EQ(frontier->stats().hosts, 0U);
}

TEST(LibraryUrlFrontier, NormalisesInTwoWays) {
  using Norm = sava::UrlFrontier::Norm;
  EXPECT_EQ(sava::UrlFrontier::Normalize(Norm::kUfmg, "HTTP://www.A.com/b/"), "http://a.com/b");
  EXPECT_EQ(sava::UrlFrontier::Normalize(Norm::kRfc3986, "https://A.com/b/../c"),
            "https://a.com/c");
  EXPECT_EQ(sava::UrlFrontier::Normalize(Norm::kUfmg, "nothing"), std::nullopt);
  EXPECT_FALSE(sava::UrlFrontier::Make({.delay_ms = -1}).has_value());
  EXPECT_FALSE(sava::UrlFrontier::Make({.retries = 2'000'000}).has_value());
}

// ---- encodings ----

TEST(LibraryVarint, RoundTripsAndRefusesWhatIsCutOff) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                                    std::uint64_t{300}, std::uint64_t{1} << 35, UINT64_MAX}) {
    std::string bytes;
    sava::AppendVarint(&bytes, value);
    EXPECT_EQ(bytes.size(), sava::VarintSize(value));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      std::string_view cut = std::string_view(bytes).substr(0, size);
      EXPECT_EQ(sava::TakeVarint(&cut), std::nullopt);
      EXPECT_EQ(cut.size(), size);
    }
    bytes += "rest";
    std::string_view rest = bytes;
    EXPECT_EQ(sava::TakeVarint(&rest), value);
    EXPECT_EQ(rest, "rest");
  }
  std::string_view too_large = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
  EXPECT_EQ(sava::TakeVarint(&too_large), std::nullopt);
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    std::string bytes;
    sava::AppendSignedVarint(&bytes, value);
    std::string_view rest = bytes;
    EXPECT_EQ(sava::TakeSignedVarint(&rest), value);
  }
}

TEST(LibraryDictionary, RoundTripsAndRefusesWhatIsDamaged) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 1000; ++i) texts.push_back("a value that repeats " + Name(i % 5));
  const std::vector<std::string_view> values(texts.begin(), texts.end());
  const std::string bytes = sava::EncodeDictionary(values);
  const sava::DictionarySizes sizes = sava::MeasureDictionary(values);
  EXPECT_EQ(bytes.size(), sizes.encoded);
  EXPECT_LT(sizes.encoded * 20, sizes.plain);
  EXPECT_EQ(sava::DecodeDictionary(bytes), values);
  EXPECT_EQ(sava::DecodeDictionary(bytes, 999), std::nullopt);
  EXPECT_EQ(sava::DecodeDictionary(bytes, 1000, 100), std::nullopt);
  EXPECT_EQ(sava::DecodeDictionary(bytes + "x"), std::nullopt);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(sava::DecodeDictionary(std::string_view(bytes).substr(0, size)), std::nullopt);
  }
}

// ---- all of them ----

TEST(LibraryTypes, MoveLeavesWhatCanBeAssignedAndDestroyed) {
  sava::AssociationCounter counter;
  counter.Add("a");
  sava::AssociationCounter moved = std::move(counter);
  counter = sava::AssociationCounter();
  EXPECT_EQ(counter.Card(), 0U);
  EXPECT_EQ(moved.Count("a"), 1U);
  sava::Cuckoo filter;
  sava::Cuckoo other = std::move(filter);
  filter = std::move(other);
  EXPECT_TRUE(filter.Add("a"));
}
