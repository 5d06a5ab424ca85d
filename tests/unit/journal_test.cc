// The journal: records of several threads reach the consumers once, whole and in ticket order.
#include "journal/journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "journal_text.h"

namespace sava::journal {
namespace {

struct Recorder final : Consumer {
  void Receive(const Record& record) override {
    in_order = in_order && record.ticket() >= last && record.ticket() >= next;
    last = record.ticket();
    texts.push_back(TextOf(record));
  }
  // Nothing below it is to come.
  void EndRun(uint64_t now) override {
    in_order = in_order && now >= next && (texts.empty() || now > last || runs_cut);
    next = now;
  }
  void Pause() override { pauses.fetch_add(1); }

  uint64_t last = 0;
  std::atomic<uint64_t> next{0};  // read by the test while records may come
  bool runs_cut = false;  // so many records that a run may end between two with the same ticket
  bool in_order = true;
  std::vector<std::string> texts;
  std::atomic<int> pauses{0};
};

// What a lock hands on, as a stripe does.
struct Place {
  std::mutex lock;
  uint64_t seen = 0;
  int count = 0;
};

// Records of the same place, and those of the same lane, arrive in their order, each once.
TEST(Journal, MergesLanesInTheOrderOfTheirLocks) {
  Recorder sink;
  sink.runs_cut = true;
  constexpr size_t kLanes = 3;
  constexpr int kEach = 20'000;
  constexpr size_t kPlaces = 5;
  Journal journal(kLanes);
  journal.Attach(sink);
  std::array<Place, kPlaces> places;
  {
    std::vector<std::jthread> writers;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      writers.emplace_back([&, lane] {
        base::Rng rng(lane + 1);
        uint64_t seen = 0;
        for (int i = 0; i < kEach; ++i) {
          // Now and then one that is larger than a chunk.
          const std::string text(i % 5000 == 7 ? 300'000 : static_cast<size_t>(i % 90), 'x');
          const size_t at = rng.Below(kPlaces);
          Place& place = places[at];
          const std::lock_guard lock(place.lock);
          seen = std::max(seen, place.seen);
          const uint64_t before = seen;
          seen =
              AppendText(journal, lane,
                         {fmt::format("{} {} {} {} {}", lane, i, at, place.count++, text)}, seen);
          EXPECT_GT(seen, before);
          place.seen = seen;
          if (i % 100 == 0) journal.Nudge();
          if (i % 333 == 0) journal.MergeHere();
        }
      });
    }
  }
  const uint64_t next = journal.next_ticket();
  journal.Detach(sink);  // delivers everything first
  EXPECT_FALSE(journal.enabled());
  EXPECT_EQ(journal.backlog(), 0);
  ASSERT_EQ(sink.texts.size(), kLanes * kEach);
  EXPECT_TRUE(sink.in_order);
  EXPECT_EQ(sink.next, next);
  std::array<int, kLanes> of_lane{};
  std::array<int, kPlaces> of_place{};
  for (const std::string& text : sink.texts) {
    size_t lane = 0;
    size_t at = 0;
    int number = 0;
    int count = 0;
    ASSERT_EQ(sscanf(text.c_str(), "1:%zu %d %zu %d", &lane, &number, &at, &count), 4);
    ASSERT_EQ(number, of_lane[lane]++);
    ASSERT_EQ(count, of_place[at]++);
  }
}

// What comes after a cut has later tickets than all before it, whoever writes.
TEST(Journal, ACutDividesRecords) {
  Recorder sink;
  Journal journal(3);
  journal.Attach(sink);
  uint64_t last = 0;
  for (int i = 0; i < 10; ++i) last = AppendText(journal, 0, {"before"}, last);
  last = std::max(last, AppendText(journal, 1, {"elsewhere"}, 0));
  const uint64_t cut = journal.Cut();
  EXPECT_EQ(cut, last + 1);
  EXPECT_GE(AppendText(journal, 2, {"after"}, 0), cut);
  EXPECT_GE(AppendText(journal, 1, {"after"}, 0), cut);
  journal.Detach(sink);
  EXPECT_TRUE(sink.in_order);
  ASSERT_EQ(sink.texts.size(), 13U);
  EXPECT_EQ(sink.texts[11], "1:after");
  EXPECT_EQ(sink.texts[12], "1:after");
}

// A lane that never writes holds nobody up.
TEST(Journal, AnIdleLaneIsNotWaitedFor) {
  Recorder sink;
  Journal journal(4);
  journal.Attach(sink);
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) last = AppendText(journal, 1, {"x"}, last);
  while (!journal.MergeHere()) std::this_thread::yield();
  EXPECT_EQ(sink.next, last + 1);
  // It was told: its first record comes after those that were delivered.
  EXPECT_GT(AppendText(journal, 3, {"y"}, 0), last);
  journal.Detach(sink);
  EXPECT_TRUE(sink.in_order);
  EXPECT_EQ(sink.texts.size(), 1001U);
}

TEST(Journal, PausesAfterRecordsAndWithoutThem) {
  Recorder sink;
  Journal journal(1);
  journal.Attach(sink);
  const auto wait_for = [&sink](int pauses) {
    for (int i = 0; i < 10'000 && sink.pauses.load() < pauses; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return sink.pauses.load() >= pauses;
  };
  EXPECT_TRUE(wait_for(2));  // nothing came
  AppendText(journal, 0, {"a"}, 0);
  journal.Flush();
  journal.Detach(sink);
  EXPECT_EQ(sink.texts, std::vector<std::string>{"1:a"});

  // Another consumer goes on with the next ticket.
  Recorder next;
  next.next = journal.next_ticket();
  journal.Attach(next);
  AppendText(journal, 0, {"b", "c"}, 0);
  journal.Detach(next);
  EXPECT_TRUE(next.in_order);
  EXPECT_EQ(next.texts, std::vector<std::string>{"2:b c"});
  EXPECT_GE(next.pauses.load(), 1);
}

// Who waits merges on its own thread: everything appended before is delivered when it returns true.
TEST(Journal, MergesOnTheThreadOfWhoWaits) {
  Recorder sink;
  Journal journal(2);
  EXPECT_FALSE(journal.MergeHere());  // there is no consumer
  journal.Attach(sink);
  AppendText(journal, 0, {"a"}, 0);
  AppendText(journal, 1, {"b"}, 0);
  while (!journal.MergeHere()) std::this_thread::yield();
  EXPECT_EQ(journal.backlog(), 0);
  EXPECT_GE(sink.pauses.load(), 1);
  journal.Detach(sink);
  EXPECT_EQ(sink.texts, (std::vector<std::string>{"1:a", "1:b"}));
}

// Several who merge by themselves: who finds another thread at it need only wait, for that one
// tells it or the journal's thread sees to it; who merges has its record delivered, unless
// another's with an earlier ticket is still on its way.
TEST(Journal, WhoCannotMergeIsNotForgotten) {
  struct Last final : Consumer {
    void Receive(const Record& record) override {
      in_order = in_order && record.ticket() >= taken;
      ++count;
    }
    void EndRun(uint64_t next) override { taken = next; }
    void Pause() override {
      done = taken;
      done.notify_all();
    }
    bool in_order = true;
    uint64_t count = 0;
    uint64_t taken = 0;
    std::atomic<uint64_t> done{0};
  };
  Last sink;
  constexpr size_t kWriters = 4;
  constexpr uint64_t kEach = 500;
  Journal journal(kWriters);
  journal.Attach(sink);
  {
    std::vector<std::jthread> writers;
    for (size_t lane = 0; lane < kWriters; ++lane) {
      writers.emplace_back([&, lane] {
        for (uint64_t i = 0; i < kEach; ++i) {
          const uint64_t ticket = AppendText(journal, lane, {"x"}, 0);
          if (journal.MergeHere() && sink.done <= ticket) journal.Nudge();
          for (uint64_t seen = sink.done; seen <= ticket; seen = sink.done) sink.done.wait(seen);
        }
      });
    }
  }
  journal.Detach(sink);
  EXPECT_TRUE(sink.in_order);
  EXPECT_EQ(sink.count, kWriters * kEach);
}

// More than one run of records: all of it is delivered.
TEST(Journal, MergesAllThatWasThere) {
  Recorder sink;
  Journal journal(1);
  journal.Attach(sink);
  constexpr size_t kRecords = 40;
  for (size_t i = 0; i < kRecords; ++i) AppendText(journal, 0, {std::string(100'000, 'x')}, 0);
  while (!journal.MergeHere()) std::this_thread::yield();
  EXPECT_EQ(journal.backlog(), 0);
  journal.Detach(sink);
  EXPECT_EQ(sink.texts.size(), kRecords);
}

// Writers that wait for a Pause share it, and none waits for ever.
TEST(Journal, WaitingWritersShareAPause) {
  struct Slow final : Consumer {
    void Receive(const Record&) override { ++count; }
    void EndRun(uint64_t next) override { taken = next; }
    void Pause() override {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (done.exchange(taken) != taken) shared.fetch_add(1);
      done.notify_all();
    }
    uint64_t count = 0;
    uint64_t taken = 0;
    std::atomic<uint64_t> done{0};
    std::atomic<uint64_t> shared{0};
  };
  Slow sink;
  constexpr size_t kWriters = 8;
  constexpr int kEach = 200;
  Journal journal(kWriters);
  journal.Attach(sink);
  {
    std::vector<std::jthread> writers;
    for (size_t lane = 0; lane < kWriters; ++lane) {
      writers.emplace_back([&, lane] {
        for (int i = 0; i < kEach; ++i) {
          const uint64_t ticket = AppendText(journal, lane, {"x"}, 0);
          journal.Nudge();
          for (uint64_t seen = sink.done; seen <= ticket; seen = sink.done) sink.done.wait(seen);
        }
      });
    }
  }
  EXPECT_EQ(sink.count, kWriters * kEach);
  EXPECT_LT(sink.shared, kWriters * kEach);
  journal.Detach(sink);
}

TEST(Journal, EachNudgeIsFollowedByAPause) {
  Recorder sink;
  Journal journal(1);
  journal.Attach(sink);
  for (int i = 0; i < 50; ++i) {
    const int before = sink.pauses.load();
    journal.Nudge();
    for (int j = 0; j < 50'000 && sink.pauses.load() == before; ++j) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    ASSERT_GT(sink.pauses.load(), before);
  }
  journal.Detach(sink);
}

// A record of many effects, and of large ones, is handed over whole, wherever a chunk ends.
TEST(Journal, RecordsOfManyEffectsStayWhole) {
  Recorder sink;
  Journal journal(1);
  journal.Attach(sink);
  base::Rng rng(5);
  std::vector<std::string> expected;
  uint64_t last = 0;
  for (int i = 0; i < 300; ++i) {
    TextWords words;
    const size_t count = i % 50 == 49 ? 5000 : 1 + rng.Below(40);
    for (size_t j = 0; j < count; ++j) {
      const size_t size = rng.Below(60) == 0 ? rng.Below(100'000) : rng.Below(200);
      words.push_back(fmt::format("{}.{}:{}", i, j, std::string(size, 'x')));
    }
    std::string text = std::to_string(count) + ":";
    for (const std::string& word : words) text += word + " ";
    text.pop_back();
    expected.push_back(std::move(text));
    last = AppendText(journal, 0, words, last);
    if (i % 7 == 0) journal.MergeHere();
  }
  journal.Detach(sink);
  EXPECT_TRUE(sink.in_order);
  ASSERT_EQ(sink.texts.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_TRUE(sink.texts[i] == expected[i]) << i;
}

TEST(Journal, WhatIsDiscardedIsNotRecorded) {
  Recorder sink;
  Journal journal(1);
  journal.Attach(sink);
  const auto add = [&](const std::string& word) {
    const std::string_view view = word;
    journal.Add(0, {&view, 1}, 0);
  };
  for (const size_t size : {10, 1'000'000}) {
    AppendText(journal, 0, {"before"}, 0);
    add("gone");
    add(std::string(size, 'x'));
    journal.Discard(0);
    AppendText(journal, 0, {"a", "b"}, 0);
  }
  journal.Detach(sink);
  EXPECT_EQ(sink.texts, (std::vector<std::string>{"1:before", "2:a b", "1:before", "2:a b"}));
  EXPECT_EQ(journal.backlog(), 0);
}

// Each consumer gets what is appended from its coming to its going, in the same order.
TEST(Journal, ConsumersComeAndGo) {
  Recorder first;
  Recorder second;
  Journal journal(2);
  journal.Detach(second);  // it never came
  EXPECT_FALSE(journal.enabled());
  journal.Attach(first);
  uint64_t last = AppendText(journal, 0, {"a"}, 0);
  journal.Attach(second);
  EXPECT_EQ(first.texts, std::vector<std::string>{"1:a"});
  last = AppendText(journal, 1, {"b"}, last);
  last = AppendText(journal, 0, {"c"}, last);
  journal.Detach(first);
  EXPECT_EQ(first.texts, (std::vector<std::string>{"1:a", "1:b", "1:c"}));
  EXPECT_GE(first.pauses.load(), 1);
  EXPECT_TRUE(journal.enabled());
  AppendText(journal, 1, {"d"}, last);
  journal.Flush();
  journal.Detach(second);
  EXPECT_FALSE(journal.enabled());
  EXPECT_EQ(first.texts.size(), 3U);
  EXPECT_EQ(second.texts, (std::vector<std::string>{"1:b", "1:c", "1:d"}));
  EXPECT_TRUE(first.in_order);
  EXPECT_TRUE(second.in_order);
}

}  // namespace
}  // namespace sava::journal
