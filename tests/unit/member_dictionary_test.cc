// The member dictionary: references, reuse of ids, pins, many threads.
#include "types/counters/member_dictionary.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"

namespace sava::types {
namespace {

using Id = MemberDictionary::Id;

Id Intern(MemberDictionary& dictionary, std::string_view text) {
  const Member member(text);
  return dictionary.Intern(member.kept(), dictionary.HashOf(member.kept()));
}

Id Find(const MemberDictionary& dictionary, std::string_view text) {
  const Member member(text);
  return dictionary.Find(member.kept(), dictionary.HashOf(member.kept()));
}

std::string TextOf(const MemberDictionary& dictionary, Id id) {
  UuidText scratch;
  return std::string(dictionary.Get(id).Text(scratch));
}

TEST(Member, PacksCanonicalUuidsOnly) {
  const std::string uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
  EXPECT_TRUE(Member(uuid).kept().uuid);
  EXPECT_EQ(Member(uuid).kept().bytes.size(), 16U);
  UuidText scratch;
  const Member kept(uuid);
  EXPECT_EQ(kept.kept().Text(scratch), uuid);
  for (const std::string_view other :
       {"0F8FAD5B-D9CB-469F-A165-70867728950E", "0f8fad5b-d9cb-469f-a165+70867728950e",
        "0f8fad5bd9cb-469f-a165-70867728950e-", "0f8fad5b-d9cb-469f-a165-70867728950g"}) {
    const Member member(other);
    EXPECT_FALSE(member.kept().uuid);
    EXPECT_EQ(member.kept().Text(scratch), other);
  }
}

TEST(MemberDictionary, KeepsAMemberAsLongAsItHasReferences) {
  MemberDictionary dictionary;
  EXPECT_EQ(Find(dictionary, "a"), MemberDictionary::kNone);
  const Id id = Intern(dictionary, "a");
  EXPECT_EQ(Intern(dictionary, "a"), id);
  dictionary.AddReference(id);
  dictionary.Release(id);
  dictionary.Release(id);
  EXPECT_EQ(Find(dictionary, "a"), id);
  dictionary.Release(id);
  EXPECT_EQ(Find(dictionary, "a"), MemberDictionary::kNone);
  EXPECT_EQ(dictionary.size(), 0U);
}

TEST(MemberDictionary, AgreesWithAMap) {
  MemberDictionary dictionary;
  std::map<std::string, std::pair<Id, int>> model;
  base::Rng rng(3);
  for (int i = 0; i < 300000; ++i) {
    std::string text = std::to_string(rng.Below(5000));
    if (text.size() > 3) text.append(text.back() == '7' ? 5000 : rng.Below(3), 'x');
    const auto known = model.find(text);
    if (rng.Below(2) == 0) {
      const Id id = Intern(dictionary, text);
      if (known == model.end()) {
        model[text] = {id, 1};
      } else {
        ASSERT_EQ(id, known->second.first);
        ++known->second.second;
      }
    } else if (known != model.end()) {
      ASSERT_EQ(TextOf(dictionary, known->second.first), text);
      dictionary.Release(known->second.first);
      if (--known->second.second == 0) model.erase(known);
    }
  }
  EXPECT_EQ(dictionary.size(), model.size());
  for (const auto& [text, entry] : model) {
    ASSERT_EQ(Find(dictionary, text), entry.first);
    ASSERT_EQ(TextOf(dictionary, entry.first), text);
  }
}

TEST(MemberDictionary, APinKeepsMembersWithoutReferences) {
  MemberDictionary dictionary;
  const Id gone = Intern(dictionary, "gone");
  const Id back = Intern(dictionary, "back");
  dictionary.Pin();
  dictionary.Release(gone);
  dictionary.Release(back);
  EXPECT_EQ(TextOf(dictionary, gone), "gone");
  EXPECT_EQ(Intern(dictionary, "back"), back);
  dictionary.Release(back);
  EXPECT_EQ(Intern(dictionary, "back"), back);
  dictionary.Unpin();
  EXPECT_EQ(Find(dictionary, "gone"), MemberDictionary::kNone);
  EXPECT_EQ(Find(dictionary, "back"), back);
  EXPECT_EQ(dictionary.size(), 1U);
}

TEST(MemberDictionary, GivesBackWhatNobodyNeeds) {
  MemberDictionary dictionary;
  std::vector<Id> ids;
  for (int i = 0; i < 100000; ++i) ids.push_back(Intern(dictionary, std::to_string(i)));
  const size_t full = dictionary.bytes();
  for (const Id id : ids) dictionary.Release(id);
  EXPECT_LT(dictionary.bytes() * 100, full);
  EXPECT_EQ(TextOf(dictionary, Intern(dictionary, "again")), "again");
}

// Pins come and go while a member does: it is forgotten once, and only when nobody has it.
TEST(MemberDictionary, PinsMeetReleases) {
  MemberDictionary dictionary;
  std::atomic<bool> stop{false};
  std::thread pinner([&] {
    while (!stop.load()) {
      dictionary.Pin();
      dictionary.Unpin();
    }
  });
  for (int i = 0; i < 20000; ++i) dictionary.Release(Intern(dictionary, "member"));
  stop.store(true);
  pinner.join();
  dictionary.Pin();
  dictionary.Unpin();
  EXPECT_EQ(dictionary.size(), 0U);
}

TEST(MemberDictionary, TellsSharedMembersFromOthers) {
  MemberDictionary dictionary;
  uint64_t shared = 0;
  uint64_t alone = 0;
  for (int i = 0; i < 200000; ++i) {
    const std::string text = "alone" + std::to_string(i);
    const Member member(text);
    dictionary.NoteSighting(dictionary.HashOf(member.kept()));
    alone = std::max<uint64_t>(alone, dictionary.Sightings(dictionary.HashOf(member.kept())));
  }
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 2000; ++i) {
      const std::string text = "shared" + std::to_string(i);
      const Member member(text);
      dictionary.NoteSighting(dictionary.HashOf(member.kept()));
      shared = std::max<uint64_t>(shared, dictionary.Sightings(dictionary.HashOf(member.kept())));
    }
  }
  EXPECT_LE(alone, 2U);
  EXPECT_GE(shared, 4U);
}

TEST(MemberDictionary, ManyThreads) {
  MemberDictionary dictionary;
  const auto work = [&](uint64_t seed) {
    base::Rng rng(seed);
    std::vector<std::pair<Id, std::string>> held;
    for (int i = 0; i < 20000; ++i) {
      if (held.size() < 50 || rng.Below(2) == 0) {
        const std::string text = "member" + std::to_string(rng.Below(300));
        held.emplace_back(Intern(dictionary, text), text);
      } else {
        const size_t at = rng.Below(held.size());
        ASSERT_EQ(TextOf(dictionary, held[at].first), held[at].second);
        dictionary.Release(held[at].first);
        held[at] = held.back();
        held.pop_back();
      }
    }
    for (const auto& [id, text] : held) {
      ASSERT_EQ(TextOf(dictionary, id), text);
      dictionary.Release(id);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dictionary.size(), 0U);
}

}  // namespace
}  // namespace sava::types
