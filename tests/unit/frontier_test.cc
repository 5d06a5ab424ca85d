// Frontier: the rules one by one, and random histories of all calls against a plain model, with
// saving, loading and cutting in between.
#include "types/frontier/frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "frontier_model.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

using Strategy = Frontier::Strategy;
using Dedup = Frontier::Dedup;
using Verdict = Frontier::Verdict;
using Look = Frontier::Look;

std::string SavedBytes(const Object& object) {
  std::string bytes;
  {
    Writer out(&bytes);
    object.Save(out);
  }
  return bytes;
}

std::unique_ptr<Frontier> LoadedFrom(std::string_view bytes) {
  Reader in(bytes);
  if (in.Length() != Frontier::Type().module_id) return nullptr;
  std::unique_ptr<Object> object = Frontier::Type().load(kRdbModule, in);
  if (object == nullptr || !in.ok() || in.remaining() != 0) return nullptr;
  return std::unique_ptr<Frontier>(static_cast<Frontier*>(object.release()));
}

std::string DigestText(const Object& object) {
  std::string all;
  object.Digest([&all](std::string_view part) { all.append(part).append(1, '\n'); });
  return all;
}

// "host/rest" of each.
std::vector<std::string> Take(Frontier& frontier, const Frontier::NextRequest& request,
                              int64_t now = 1) {
  std::vector<std::string> urls;
  const size_t count = frontier.Next(request, now, [&](const Frontier::Served& served) {
    urls.push_back(std::string(served.url.host) + std::string(served.url.rest));
  });
  EXPECT_EQ(count, urls.size());
  return urls;
}

Frontier::NextRequest Request(size_t count, Strategy strategy) {
  Frontier::NextRequest request;
  request.count = count;
  request.strategy = strategy;
  return request;
}

using Texts = std::vector<std::string>;

void AddAll(Frontier& frontier, const std::vector<std::pair<std::string, std::string>>& urls,
            const Frontier::Attributes& attributes = {}, int64_t now = 1) {
  for (const auto& [host, rest] : urls) {
    const auto depth = static_cast<uint32_t>(std::count(rest.begin(), rest.end(), '/'));
    EXPECT_EQ(frontier.AddOne({host, rest, depth}, attributes, now), Verdict::kAdded)
        << host << rest;
  }
}

// ---- the rules ----

TEST(Frontier, DepthExhaustsHostsInOrderOfDiscovery) {
  Frontier frontier{Frontier::Options{}};
  AddAll(frontier, {{"b", "/1/2/3"}, {"a", "/x"}, {"b", "/1"}, {"b", "/1/2"}, {"b", "/2"}});
  EXPECT_EQ(Take(frontier, Request(3, Strategy::kDepth)), (Texts{"b/1", "b/2", "b/1/2"}));
  AddAll(frontier, {{"b", "/3"}});
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kDepth)), (Texts{"b/3", "b/1/2/3", "a/x"}));
  EXPECT_EQ(frontier.host_count(), 2U);
}

TEST(Frontier, BreadthGoesOnBehindTheLastHostServed) {
  Frontier frontier{Frontier::Options{}};
  AddAll(frontier, {{"a", "/1"}, {"b", "/1"}, {"c", "/1"}, {"a", "/2"}, {"b", "/2"}, {"b", "/3"}});
  EXPECT_EQ(Take(frontier, Request(2, Strategy::kBreadth)), (Texts{"a/1", "b/1"}));
  Frontier::NextRequest of_a = Request(1, Strategy::kBreadth);
  of_a.host = "a";
  EXPECT_EQ(Take(frontier, of_a), (Texts{"a/2"}));
  EXPECT_EQ(Take(frontier, Request(2, Strategy::kBreadth)), (Texts{"c/1", "b/2"}));
  AddAll(frontier, {{"a", "/4"}, {"c", "/4"}});
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kBreadth)), (Texts{"c/4", "a/4", "b/3"}));
  AddAll(frontier, {{"a", "/5"}, {"c", "/5"}});
  EXPECT_EQ(Take(frontier, Request(1, Strategy::kBreadth)), (Texts{"a/5"}));
  AddAll(frontier, {{"a", "/6"}});
  Frontier::NextRequest again = Request(1, Strategy::kBreadth);
  again.restart = true;
  EXPECT_EQ(Take(frontier, again), (Texts{"a/6"}));
}

TEST(Frontier, BestServesTheHostWithMost) {
  Frontier frontier{Frontier::Options{}};
  AddAll(frontier, {{"a", "/1"}, {"b", "/1"}, {"b", "/2"}, {"c", "/1"}, {"c", "/2"}});
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kBest)),
            (Texts{"b/1", "c/1", "a/1", "b/2", "c/2"}));
}

TEST(Frontier, PriorityServesTheHighestFirst) {
  Frontier frontier{Frontier::Options{}};
  Frontier::Attributes high;
  high.priority = 7;
  Frontier::Attributes low;
  low.priority = -3;
  AddAll(frontier, {{"a", "/1"}, {"a", "/1/2"}});
  AddAll(frontier, {{"b", "/low"}}, low);
  AddAll(frontier, {{"b", "/1/high"}, {"a", "/1/2/high"}}, high);
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kPriority)),
            (Texts{"a/1/2/high", "b/1/high", "a/1", "a/1/2", "b/low"}));
}

TEST(Frontier, PerHostCapsOneCall) {
  Frontier frontier{Frontier::Options{}};
  for (const Strategy strategy :
       {Strategy::kDepth, Strategy::kBreadth, Strategy::kBest, Strategy::kPriority}) {
    AddAll(frontier,
           {{"a", "/1"}, {"a", "/2"}, {"a", "/3"}, {"b", "/1"}, {"b", "/2"}, {"b", "/3"}});
    Frontier::NextRequest request = Request(9, strategy);
    request.per_host = 2;
    EXPECT_EQ(Take(frontier, request).size(), 4U);
    EXPECT_EQ(Take(frontier, Request(9, strategy)).size(), 2U);
  }
}

TEST(Frontier, LooksAtPositions) {
  Frontier frontier{Frontier::Options{}};
  const auto none = [](const Frontier::Served&) { FAIL(); };
  EXPECT_EQ(frontier.Peek("a", 0, 1, none), Look::kUnknownHost);
  AddAll(frontier, {{"a", "/1/2"}, {"a", "/1"}, {"a", "/2"}});
  EXPECT_EQ(frontier.Peek("a", 3, 1, none), Look::kInvalidPosition);
  Texts seen;
  EXPECT_EQ(
      frontier.Peek("a", 1, 9,
                    [&](const Frontier::Served& served) { seen.emplace_back(served.url.rest); }),
      Look::kFound);
  EXPECT_EQ(seen, (Texts{"/2", "/1/2"}));
  EXPECT_EQ(frontier.Purge("a", 1), 3U);
  EXPECT_EQ(frontier.Peek("a", 0, 1, none), Look::kEmpty);
  EXPECT_EQ(frontier.host_count(), 1U);
  EXPECT_EQ(frontier.Purge("b", 1), std::nullopt);
  frontier.Clear();
  EXPECT_EQ(frontier.host_count(), 0U);
}

TEST(Frontier, KnowsDuplicates) {
  const Frontier::Url url{"a", "/1", 1};
  for (const Dedup dedup : {Dedup::kPending, Dedup::kSeen, Dedup::kBloom}) {
    Frontier::Options options;
    options.dedup = dedup;
    Frontier frontier(options);
    EXPECT_FALSE(frontier.Seen(url));
    EXPECT_EQ(frontier.AddOne(url, {}, 1), Verdict::kAdded);
    EXPECT_EQ(frontier.AddOne(url, {}, 1), Verdict::kDuplicate);
    EXPECT_EQ(frontier.AddOne({"a/", "1", 1}, {}, 1), Verdict::kAdded);
    Take(frontier, Request(9, Strategy::kDepth));
    EXPECT_EQ(frontier.Seen(url), dedup != Dedup::kPending);
    EXPECT_EQ(frontier.AddOne(url, {}, 1),
              dedup == Dedup::kPending ? Verdict::kAdded : Verdict::kDuplicate);
  }
}

TEST(Frontier, RefusesWhatIsTooLong) {
  Frontier frontier{Frontier::Options{}};
  const std::string host(Frontier::kMaxHost + 1, 'h');
  const std::string rest(Frontier::kMaxRest + 1, 'r');
  EXPECT_EQ(frontier.AddOne({host, "/", 1}, {}, 1), Verdict::kInvalid);
  EXPECT_EQ(frontier.AddOne({"a", rest, 1}, {}, 1), Verdict::kInvalid);
  EXPECT_EQ(frontier.AddOne({"", "/", 1}, {}, 1), Verdict::kInvalid);
  Frontier::Attributes attributes;
  attributes.meta = rest;
  EXPECT_EQ(frontier.AddOne({"a", "/", 1}, attributes, 1), Verdict::kInvalid);
  EXPECT_EQ(frontier.host_count(), 0U);
  attributes.meta = std::string_view(rest).substr(1);
  const Frontier::Url longest{std::string_view(host).substr(1), std::string_view(rest).substr(1),
                              1U << 20};
  EXPECT_EQ(frontier.AddOne(longest, attributes, 1), Verdict::kAdded);
  const auto again = LoadedFrom(SavedBytes(frontier));
  ASSERT_NE(again, nullptr);
  again->Next(Request(1, Strategy::kDepth), 1, [&](const Frontier::Served& served) {
    EXPECT_EQ(served.url.host, longest.host);
    EXPECT_EQ(served.url.rest, longest.rest);
    EXPECT_EQ(served.url.depth, Frontier::kMaxDepth);
    EXPECT_EQ(served.meta, attributes.meta);
  });
  EXPECT_EQ(again->size(), 0U);
}

TEST(Frontier, KeepsHostsApartInTime) {
  Frontier::Options options;
  options.delay_ms = 100;
  Frontier frontier(options);
  AddAll(frontier, {{"a", "/1"}, {"a", "/2"}, {"b", "/1"}, {"b", "/2"}}, {}, 1000);
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kDepth), 1000), (Texts{"a/1", "b/1"}));
  EXPECT_EQ(frontier.NextWake(1000), 1100);
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kDepth), 1099), Texts{});
  Frontier::HostChange change;
  change.blocked_until = 2000;
  EXPECT_TRUE(frontier.ChangeHost("a", change, 1099));
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kBest), 1100), (Texts{"b/2"}));
  EXPECT_EQ(frontier.NextWake(1100), 2000);
  EXPECT_EQ(frontier.NextWake(1100, "b"), Frontier::kNever);
  EXPECT_EQ(frontier.FindHost("a")->blocked_until, 2000);
  EXPECT_EQ(Take(frontier, Request(9, Strategy::kBest), 2000), (Texts{"a/2"}));
  EXPECT_EQ(frontier.NextWake(2000), Frontier::kNever);
}

TEST(Frontier, LimitsHosts) {
  Frontier::Options options;
  options.max_per_host = 2;
  Frontier frontier(options);
  AddAll(frontier, {{"a", "/1"}, {"a", "/2"}, {"b", "/1"}});
  EXPECT_EQ(frontier.AddOne({"a", "/3", 1}, {}, 1), Verdict::kOverLimit);
  EXPECT_EQ(frontier.AddOne({"a", "/2", 1}, {}, 1), Verdict::kDuplicate);
  Frontier::HostChange change;
  change.limit = 3;
  frontier.ChangeHost("a", change, 1);
  EXPECT_EQ(frontier.AddOne({"a", "/3", 1}, {}, 1), Verdict::kAdded);
  EXPECT_EQ(frontier.AddOne({"a", "/4", 1}, {}, 1), Verdict::kOverLimit);
  EXPECT_FALSE(frontier.Seen({"a", "/4", 1}));
}

TEST(Frontier, LeasesComeBackUntilTheyAreDead) {
  Frontier::Options options;
  options.lease_ms = 50;
  options.retries = 2;
  Frontier frontier(options);
  AddAll(frontier, {{"a", "/1"}}, {}, 1000);
  uint64_t id = 0;
  uint32_t failures = 9;
  const auto lease = [&](int64_t now) {
    return frontier.Next(Request(1, Strategy::kDepth), now, [&](const Frontier::Served& served) {
      id = served.lease;
      failures = served.failures;
    });
  };
  ASSERT_EQ(lease(1000), 1U);
  EXPECT_EQ(failures, 0U);
  EXPECT_EQ(frontier.AddOne({"a", "/1", 1}, {}, 1001), Verdict::kDuplicate);
  EXPECT_EQ(frontier.Extend({&id, 1}, 2000, 1040), 1U);
  EXPECT_EQ(lease(1999), 0U);
  EXPECT_EQ(frontier.NextWake(1999), 2000);
  const uint64_t ended = id;
  ASSERT_EQ(lease(2000), 1U);
  EXPECT_EQ(failures, 1U);
  EXPECT_EQ(frontier.Ack({&ended, 1}, 0, 2001), 0U);
  EXPECT_EQ(frontier.Nack({&id, 1}, 0, 2010), 1U);
  EXPECT_EQ(frontier.NextWake(2010), 2010 + 2 * Frontier::kFirstBackoff);
  ASSERT_EQ(lease(5000), 1U);
  EXPECT_EQ(failures, 2U);
  EXPECT_EQ(frontier.Nack({&id, 1}, 5001, 5000), 1U);
  EXPECT_EQ(frontier.stats().dead, 1U);
  EXPECT_EQ(lease(9000), 0U);
  Texts dead;
  frontier.Dead(0, 9, [&](const Frontier::Served& served) {
    dead.emplace_back(served.url.rest);
    EXPECT_EQ(served.failures, 3U);
  });
  EXPECT_EQ(dead, Texts{"/1"});
  EXPECT_EQ(frontier.AddOne({"a", "/1", 1}, {}, 9001), Verdict::kAdded);
  EXPECT_EQ(frontier.ForgetDead(9001), 1U);
  ASSERT_EQ(lease(9001), 1U);
  EXPECT_EQ(frontier.Ack({&id, 1}, 9500, 9002), 1U);
  EXPECT_EQ(lease(9499), 0U);
  EXPECT_EQ(lease(9500), 1U);
}

TEST(Frontier, TellsItsObserver) {
  class Counter final : public FrontierObserver {
   public:
    void Access(Part part, uint32_t host, bool write, const void* address, size_t size) override {
      ++accesses[static_cast<size_t>(part)][write ? 1 : 0];
      EXPECT_NE(address, nullptr);
      EXPECT_NE(size, 0U);
      EXPECT_LT(host, 2U);
    }
    int accesses[4][2] = {};
  };
  Counter counter;
  Frontier frontier{Frontier::Options{}};
  frontier.set_observer(&counter);
  AddAll(frontier, {{"a", "/1"}, {"b", "/1"}, {"a", "/2"}, {"a", "/1/2"}});
  EXPECT_EQ(counter.accesses[3][1], 4);
  Take(frontier, Request(9, Strategy::kDepth));
  EXPECT_EQ(counter.accesses[3][0], 4);
  for (const auto& part : counter.accesses) EXPECT_NE(part[0] + part[1], 0);
  frontier.set_observer(nullptr);
  AddAll(frontier, {{"a", "/1"}});
  EXPECT_EQ(counter.accesses[3][1], 4);
}

// ---- random histories ----

class Histories : public testing::TestWithParam<int> {
 protected:
  Histories() : rng_(static_cast<uint64_t>(GetParam())) {
    options_.strategy = static_cast<Strategy>(rng_.Below(4));
    options_.dedup = static_cast<Dedup>(rng_.Below(3));
    if (rng_.Below(3) == 0) options_.delay_ms = static_cast<int64_t>(1 + rng_.Below(50));
    if (rng_.Below(3) == 0) options_.max_per_host = 1 + rng_.Below(20);
    if (rng_.Below(2) == 0) options_.lease_ms = static_cast<int64_t>(1 + rng_.Below(300));
    options_.retries = static_cast<uint32_t>(rng_.Below(3));
    hosts_ = 1 + rng_.Below(rng_.Below(2) == 0 ? 5 : 60);
    frontier_ = std::make_unique<Frontier>(options_);
    model_ = std::make_unique<FrontierModel>(options_);
  }

  std::string Host() { return "h" + std::to_string(rng_.Below(hosts_)); }
  int64_t Later() { return now_ + static_cast<int64_t>(rng_.Below(400)); }

  void Add() {
    std::vector<std::pair<std::string, std::string>> texts(1 + rng_.Below(60));
    std::vector<Frontier::Url> urls;
    const std::string meta(rng_.Below(4) == 0 ? rng_.Below(100) : 0, 'm');
    for (auto& [host, rest] : texts) {
      host = Host();
      rest = "/" + std::to_string(rng_.Below(300));
      if (rng_.Below(50) == 0) rest.append(rng_.Below(3000), 'x');
      const auto depth = static_cast<uint32_t>(rng_.Below(rng_.Below(9) == 0 ? 40 : 4));
      urls.push_back({host, rest, depth});
    }
    Frontier::Attributes attributes;
    if (rng_.Below(3) == 0) attributes.priority = static_cast<int16_t>(rng_.Below(7)) - 3;
    if (rng_.Below(3) == 0) attributes.not_before = Later();
    attributes.meta = meta;
    std::vector<Verdict> verdicts(urls.size());
    frontier_->Add(urls, attributes, now_, verdicts);
    for (size_t i = 0; i < urls.size(); ++i) {
      ASSERT_EQ(static_cast<int>(verdicts[i]), model_->Add(urls[i], attributes, now_)) << i;
    }
  }

  void Next() {
    Frontier::NextRequest request;
    request.count = rng_.Below(40);
    if (rng_.Below(2) == 0) request.strategy = static_cast<Strategy>(rng_.Below(4));
    const std::string host = Host();
    if (rng_.Below(4) == 0) request.host = host;
    if (rng_.Below(3) == 0) request.per_host = 1 + rng_.Below(4);
    if (rng_.Below(3) == 0) request.lease_ms = static_cast<int64_t>(rng_.Below(200));
    request.restart = rng_.Below(5) == 0;
    std::vector<FrontierModel::Served> served;
    frontier_->Next(request, now_, [&](const Frontier::Served& url) {
      served.emplace_back(url.url.host, url.url.rest, url.lease);
      if (url.lease != 0) leases_.push_back(url.lease);
    });
    ASSERT_EQ(served, model_->Next(request, now_));
  }

  void Answer() {
    if (leases_.empty()) return;
    const size_t at = rng_.Below(leases_.size());
    const uint64_t id = leases_[at];
    if (rng_.Below(3) == 0) leases_.erase(leases_.begin() + static_cast<ptrdiff_t>(at));
    const int64_t time = rng_.Below(2) == 0 ? 0 : Later();
    switch (rng_.Below(3)) {
      case 0:
        ASSERT_EQ(frontier_->Ack({&id, 1}, time, now_), model_->Ack(id, time, now_) ? 1U : 0U);
        break;
      case 1:
        ASSERT_EQ(frontier_->Nack({&id, 1}, time, now_), model_->Nack(id, time, now_) ? 1U : 0U);
        break;
      default:
        ASSERT_EQ(frontier_->Extend({&id, 1}, time, now_),
                  model_->Extend(id, time, now_) ? 1U : 0U);
    }
  }

  void Rare() {
    const std::string host = Host();
    Frontier::HostChange change;
    switch (rng_.Below(12)) {
      case 0:
        if (rng_.Below(10) == 0) {
          frontier_->Clear();
          model_->Clear();
        }
        break;
      case 1:
        ASSERT_EQ(frontier_->ForgetDead(now_), model_->ForgetDead(now_));
        break;
      case 2:
      case 3:
        ASSERT_EQ(frontier_->Purge(host, now_), model_->Purge(host, now_));
        break;
      case 4:
        frontier_ = LoadedFrom(SavedBytes(*frontier_));
        ASSERT_NE(frontier_, nullptr);
        break;
      case 5: {
        auto copy = frontier_->Copy();
        ASSERT_NE(copy, nullptr);
        ASSERT_EQ(DigestText(*copy), DigestText(*frontier_));
        frontier_.reset(static_cast<Frontier*>(copy.release()));
        break;
      }
      case 6:
      case 7:
        Cut();
        break;
      default:
        if (rng_.Below(2) == 0) change.delay_ms = static_cast<int64_t>(rng_.Below(60)) - 1;
        if (rng_.Below(2) == 0) change.blocked_until = Later();
        if (rng_.Below(2) == 0) change.limit = rng_.Below(30);
        ASSERT_TRUE(frontier_->ChangeHost(host, change, now_));
        model_->ChangeHost(host, change, now_);
    }
  }

  // Changes while it is saved in pieces; what was saved is the state at the beginning.
  void Cut() {
    const std::string before = DigestText(*frontier_);
    std::string pieces;
    frontier_->BeginCut([&pieces](std::string_view bytes) { pieces.append(bytes); }, false);
    const bool finish = rng_.Below(4) != 0;
    for (uint64_t i = rng_.Below(12); i > 0; --i) {
      Step();
      if (HasFatalFailure()) return;
      frontier_->SavePieces(1 + rng_.Below(30000));
    }
    if (!finish) {
      frontier_->AbortCut();
      return;
    }
    while (!frontier_->SavePieces(4000)) continue;
    const auto saved = LoadedFrom(pieces);
    ASSERT_NE(saved, nullptr);
    ASSERT_EQ(DigestText(*saved), before);
  }

  void Step() {
    if (rng_.Below(3) == 0) now_ += static_cast<int64_t>(rng_.Below(80));
    switch (rng_.Below(8)) {
      case 0:
      case 1:
        return Add();
      case 2:
      case 3:
        return Next();
      default:
        return Answer();
    }
  }

  void Compare() {
    ASSERT_EQ(frontier_->host_count(), model_->hosts().size());
    for (size_t i = 0; i < model_->hosts().size(); ++i) {
      const std::string& name = model_->hosts()[i].name;
      const auto info = frontier_->FindHost(name);
      ASSERT_TRUE(info.has_value());
      ASSERT_EQ(info->number, i);
      ASSERT_EQ(info->queued, model_->Count(Frontier::State::kQueued, i));
      ASSERT_EQ(info->delayed, model_->Count(Frontier::State::kDelayed, i));
      ASSERT_EQ(info->leased, model_->Count(Frontier::State::kLeased, i));
      const auto expected = model_->Queued(i);
      size_t at = 0;
      frontier_->Peek(name, 0, UINT64_MAX, [&](const Frontier::Served& served) {
        ASSERT_LT(at, expected.size());
        EXPECT_EQ(served.url.rest, expected[at].rest);
        EXPECT_EQ(served.meta, expected[at].meta);
        EXPECT_EQ(served.failures, expected[at].failures);
        EXPECT_EQ(served.priority, expected[at].priority);
        ++at;
      });
      ASSERT_EQ(at, expected.size());
    }
    const auto dead = model_->Dead();
    size_t at = 0;
    frontier_->Dead(0, UINT64_MAX, [&](const Frontier::Served& served) {
      ASSERT_LT(at, dead.size());
      EXPECT_EQ(served.url.rest, dead[at++].rest);
    });
    ASSERT_EQ(at, dead.size());
    uint64_t exported = 0;
    uint64_t cursor = 0;
    do {
      cursor = frontier_->Export(cursor, 7, [&](const Frontier::Entry&) { ++exported; });
    } while (cursor != 0);
    ASSERT_EQ(exported, frontier_->size());
  }

  base::Rng rng_;
  Frontier::Options options_;
  uint64_t hosts_ = 1;
  int64_t now_ = 1000;
  std::unique_ptr<Frontier> frontier_;
  std::unique_ptr<FrontierModel> model_;
  std::vector<uint64_t> leases_;
};

TEST_P(Histories, AgreeWithTheModel) {
  for (int i = 0; i < 100; ++i) {
    if (rng_.Below(10) == 0) {
      Rare();
    } else {
      Step();
    }
    ASSERT_FALSE(HasFatalFailure()) << "step " << i;
    if (i % 25 == 24) Compare();
    ASSERT_FALSE(HasFatalFailure()) << "after step " << i;
    // Serving nothing changes nothing that can be told later, except that time has passed.
    Frontier::NextRequest nothing;
    nothing.count = 0;
    if (rng_.Below(2) == 0) frontier_->Next(nothing, now_, [](const Frontier::Served&) {});
    if (rng_.Below(2) != 0) continue;
    model_->Next(nothing, now_);
    frontier_->Next(nothing, now_, [](const Frontier::Served&) {});
    const int64_t wake = frontier_->NextWake(now_);
    ASSERT_EQ(wake, model_->Wake(now_));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Histories, testing::Range(0, 24));

}  // namespace
}  // namespace sava::types
