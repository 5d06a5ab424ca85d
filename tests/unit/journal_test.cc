// The journal: records of several threads reach the sink once, whole and in ticket order.
#include "journal/journal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace sava::journal {
namespace {

struct Recorder final : Sink {
  void Record(uint64_t ticket, uint32_t groups, std::string_view effects) override {
    in_order = in_order && ticket == first + texts.size();
    texts.push_back(std::to_string(groups) + ":" + std::string(effects));
  }
  void Pause() override { pauses.fetch_add(1); }

  uint64_t first = 0;
  bool in_order = true;
  std::vector<std::string> texts;
  std::atomic<int> pauses{0};
};

TEST(Journal, MergesLanesByTicket) {
  Recorder sink;
  Journal journal(3);
  journal.SetSink(&sink);
  constexpr int kEach = 20'000;
  std::vector<std::vector<uint64_t>> tickets(3);
  {
    std::vector<std::jthread> writers;
    for (size_t lane = 0; lane < 3; ++lane) {
      writers.emplace_back([&, lane] {
        for (int i = 0; i < kEach; ++i) {
          // Now and then one that is larger than a chunk.
          const std::string text(i % 5000 == 7 ? 300'000 : static_cast<size_t>(i % 90), 'x');
          tickets[lane].push_back(
              journal.Append(lane, 1, std::to_string(lane) + "." + std::to_string(i) + text));
          if (i % 100 == 0) journal.Nudge();
        }
      });
    }
  }
  EXPECT_EQ(journal.next_ticket(), 3U * kEach);
  journal.SetSink(nullptr);  // delivers everything first
  EXPECT_FALSE(journal.enabled());
  EXPECT_EQ(journal.backlog(), 0);
  ASSERT_EQ(sink.texts.size(), 3U * kEach);
  EXPECT_TRUE(sink.in_order);
  for (size_t lane = 0; lane < 3; ++lane) {
    for (int i = 0; i < kEach; ++i) {
      const std::string begin = "1:" + std::to_string(lane) + "." + std::to_string(i);
      ASSERT_TRUE(sink.texts[tickets[lane][static_cast<size_t>(i)]].starts_with(begin));
    }
  }
}

TEST(Journal, PausesAfterRecordsAndWithoutThem) {
  Recorder sink;
  Journal journal(1);
  journal.SetSink(&sink);
  const auto wait_for = [&sink](int pauses) {
    for (int i = 0; i < 10'000 && sink.pauses.load() < pauses; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return sink.pauses.load() >= pauses;
  };
  EXPECT_TRUE(wait_for(2));  // nothing came
  journal.Append(0, 1, "a");
  journal.Flush();
  journal.SetSink(nullptr);
  EXPECT_EQ(sink.texts, std::vector<std::string>{"1:a"});

  // Another sink goes on with the next ticket.
  Recorder next;
  next.first = journal.next_ticket();
  journal.SetSink(&next);
  journal.Append(0, 2, "b");
  journal.SetSink(nullptr);
  EXPECT_TRUE(next.in_order);
  EXPECT_EQ(next.texts, std::vector<std::string>{"2:b"});
  EXPECT_GE(next.pauses.load(), 1);
}

// Who waits merges on its own thread: everything appended before is delivered when it returns true.
TEST(Journal, MergesOnTheThreadOfWhoWaits) {
  Recorder sink;
  Journal journal(2);
  EXPECT_FALSE(journal.MergeHere());  // there is no sink
  journal.SetSink(&sink);
  journal.Append(0, 1, "a");
  journal.Append(1, 1, "b");
  while (!journal.MergeHere()) std::this_thread::yield();
  EXPECT_EQ(journal.backlog(), 0);
  EXPECT_GE(sink.pauses.load(), 1);
  journal.SetSink(nullptr);
  EXPECT_EQ(sink.texts, (std::vector<std::string>{"1:a", "1:b"}));
}

// Several who merge by themselves: who finds another thread at it need only wait, for that one
// tells it or the journal's thread sees to it; who merges has its record delivered, unless
// another's with an earlier ticket is still on its way.
TEST(Journal, WhoCannotMergeIsNotForgotten) {
  struct Last final : Sink {
    void Record(uint64_t ticket, uint32_t, std::string_view) override {
      in_order = in_order && ticket == taken;
      taken = ticket + 1;
    }
    void Pause() override {
      done = taken;
      done.notify_all();
    }
    bool in_order = true;
    uint64_t taken = 0;
    std::atomic<uint64_t> done{0};
  };
  Last sink;
  constexpr size_t kWriters = 4;
  constexpr uint64_t kEach = 500;
  Journal journal(kWriters);
  journal.SetSink(&sink);
  {
    std::vector<std::jthread> writers;
    for (size_t lane = 0; lane < kWriters; ++lane) {
      writers.emplace_back([&, lane] {
        for (uint64_t i = 0; i < kEach; ++i) {
          const uint64_t ticket = journal.Append(lane, 1, "x");
          if (journal.MergeHere() && sink.done <= ticket) journal.Nudge();
          for (uint64_t seen = sink.done; seen <= ticket; seen = sink.done) sink.done.wait(seen);
        }
      });
    }
  }
  journal.SetSink(nullptr);
  EXPECT_TRUE(sink.in_order);
  EXPECT_EQ(sink.done, kWriters * kEach);
}

// More than one run of records: all of it is delivered.
TEST(Journal, MergesAllThatWasThere) {
  Recorder sink;
  Journal journal(1);
  journal.SetSink(&sink);
  constexpr size_t kRecords = 40;
  for (size_t i = 0; i < kRecords; ++i) journal.Append(0, 1, std::string(100'000, 'x'));
  while (!journal.MergeHere()) std::this_thread::yield();
  EXPECT_EQ(journal.backlog(), 0);
  journal.SetSink(nullptr);
  EXPECT_EQ(sink.texts.size(), kRecords);
}

// Writers that wait for a Pause share it, and none waits for ever.
TEST(Journal, WaitingWritersShareAPause) {
  struct Slow final : Sink {
    void Record(uint64_t ticket, uint32_t, std::string_view) override { taken = ticket + 1; }
    void Pause() override {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (done.exchange(taken) != taken) shared.fetch_add(1);
      done.notify_all();
    }
    std::chrono::microseconds Patience() const override { return std::chrono::milliseconds(1); }
    uint64_t taken = 0;
    std::atomic<uint64_t> done{0};
    std::atomic<uint64_t> shared{0};
  };
  Slow sink;
  constexpr size_t kWriters = 8;
  constexpr int kEach = 200;
  Journal journal(kWriters);
  journal.SetSink(&sink);
  {
    std::vector<std::jthread> writers;
    for (size_t lane = 0; lane < kWriters; ++lane) {
      writers.emplace_back([&, lane] {
        for (int i = 0; i < kEach; ++i) {
          const uint64_t ticket = journal.Append(lane, 1, "x");
          journal.Nudge();
          for (uint64_t seen = sink.done; seen <= ticket; seen = sink.done) sink.done.wait(seen);
        }
      });
    }
  }
  EXPECT_EQ(sink.done, kWriters * kEach);
  EXPECT_LT(sink.shared, kWriters * kEach);
  journal.SetSink(nullptr);
}

// After many came at once, one that comes alone is not made to wait for others for ever.
TEST(Journal, ABurstIsForgotten) {
  struct Patient final : Sink {
    void Record(uint64_t ticket, uint32_t, std::string_view) override { taken = ticket + 1; }
    void Pause() override {
      done = taken;
      done.notify_all();
    }
    std::chrono::microseconds Patience() const override {
      asked.fetch_add(1);  // only while it might wait
      return std::chrono::milliseconds(1);
    }
    uint64_t taken = 0;
    std::atomic<uint64_t> done{0};
    mutable std::atomic<int> asked{0};
  };
  Patient sink;
  Journal journal(1);
  journal.SetSink(&sink);
  const auto write = [&](int count) {
    uint64_t ticket = 0;
    for (int i = 0; i < count; ++i) ticket = journal.Append(0, 1, "x");
    journal.Nudge();
    for (uint64_t seen = sink.done; seen <= ticket; seen = sink.done) sink.done.wait(seen);
  };
  write(1000);
  for (int i = 0; i < 100; ++i) write(1);
  const int before = sink.asked;
  for (int i = 0; i < 100; ++i) write(1);
  EXPECT_EQ(sink.asked, before);
  journal.SetSink(nullptr);
}

TEST(Journal, EachNudgeIsFollowedByAPause) {
  Recorder sink;
  Journal journal(1);
  journal.SetSink(&sink);
  for (int i = 0; i < 50; ++i) {
    const int before = sink.pauses.load();
    journal.Nudge();
    for (int j = 0; j < 50'000 && sink.pauses.load() == before; ++j) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    ASSERT_GT(sink.pauses.load(), before);
  }
  journal.SetSink(nullptr);
}

}  // namespace
}  // namespace sava::journal
