// OutputHold and HoldList: what may leave, and that a loop always learns that more is kept.
#include "front/output_hold.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <semaphore>
#include <thread>
#include <vector>

namespace sava::front {
namespace {

constexpr uint64_t kAll = UINT64_MAX;

TEST(OutputHold, LetsOutputLeaveAtOnceWhenItIsKept) {
  OutputHold hold(nullptr);
  EXPECT_EQ(hold.Produced(10, 0, 0), 10U);
  EXPECT_EQ(hold.Produced(15, 7, 7), 15U);
  EXPECT_FALSE(hold.waits());
}

TEST(OutputHold, KeepsTheOrderOfReplies) {
  OutputHold hold(nullptr);
  EXPECT_EQ(hold.Produced(10, 5, 4), 0U);
  // Kept itself, but it stands behind what is not.
  EXPECT_EQ(hold.Produced(12, 3, 4), 0U);
  EXPECT_EQ(hold.next_ticket(), 5U);
  hold.Kept(5);
  EXPECT_EQ(hold.writable(), 12U);
  EXPECT_FALSE(hold.waits());
}

TEST(OutputHold, TellsWhatIsKeptApartFromWhatWasSent) {
  OutputHold hold(nullptr);
  EXPECT_EQ(hold.Produced(10, 1, 1), 10U);
  hold.Sent(4);
  EXPECT_EQ(hold.Produced(6 + 5, 9, 1), 6U);
  hold.Sent(6);
  EXPECT_EQ(hold.writable(), 0U);
  EXPECT_TRUE(hold.waits());
  hold.Kept(8);
  EXPECT_EQ(hold.writable(), 0U);
  hold.Kept(9);
  EXPECT_EQ(hold.writable(), 5U);
}

TEST(OutputHold, LetsAllLeaveWithoutABarrier) {
  OutputHold hold(nullptr);
  EXPECT_EQ(hold.Produced(10, 5, 0), 0U);
  EXPECT_EQ(hold.Produced(10, 0, kAll), 10U);
  EXPECT_FALSE(hold.waits());
}

// Every byte has its ticket; a byte may leave once those of all before it, and its own, were kept.
struct Model {
  std::vector<uint64_t> tickets;
  size_t sent = 0;
  size_t released = 0;

  void Keep(uint64_t kept) {
    while (released < tickets.size() && tickets[released] <= kept) ++released;
  }
};

TEST(OutputHold, AgreesWithAModelOfSingleBytes) {
  EXPECT_TRUE(rc::check([] {
    OutputHold hold(nullptr);
    Model model;
    uint64_t ticket = 0;
    uint64_t kept = 0;
    const auto steps = *rc::gen::inRange(1, 200);
    for (int i = 0; i < steps; ++i) {
      switch (*rc::gen::inRange(0, 4)) {
        case 0:  // a reply that tells of more, or of nothing new
          ticket += *rc::gen::inRange<uint64_t>(0, 3);
          model.tickets.insert(model.tickets.end(), *rc::gen::inRange<size_t>(1, 20), ticket);
          [[fallthrough]];
        case 1: {  // looked at without anything new
          model.Keep(kept);
          RC_ASSERT(hold.Produced(model.tickets.size() - model.sent, ticket, kept) ==
                    model.released - model.sent);
          break;
        }
        case 2:
          kept = std::max(kept, *rc::gen::inRange<uint64_t>(0, ticket + 2));
          hold.Kept(kept);
          model.Keep(kept);
          break;
        default: {
          const auto most = model.released - model.sent;
          const auto bytes = *rc::gen::inRange<size_t>(0, most + 1);
          hold.Sent(bytes);
          model.sent += bytes;
        }
      }
      RC_ASSERT(hold.writable() == model.released - model.sent);
      RC_ASSERT(hold.waits() == (model.released < model.tickets.size()));
      if (hold.waits()) {
        RC_ASSERT(hold.next_ticket() == model.tickets[model.released]);
        RC_ASSERT(hold.last_ticket() == model.tickets.back());
      }
    }
    hold.Kept(kAll);
    RC_ASSERT(hold.writable() == model.tickets.size() - model.sent);
  }));
}

TEST(HoldList, GivesBackThoseOfWhichMoreMayLeave) {
  OutputHold early(nullptr);
  OutputHold late(nullptr);
  OutputHold gone(nullptr);
  HoldList list;
  early.Produced(1, 5, 0);
  late.Produced(1, 9, 0);
  gone.Produced(1, 5, 0);
  for (OutputHold* hold : {&early, &late, &gone}) list.Add(*hold, 1000);
  list.Add(early, 2000);  // it stands there already
  EXPECT_EQ(early.since_ms(), 1000);
  EXPECT_EQ(list.newest(), 9U);
  list.Remove(gone);
  EXPECT_TRUE(list.TakeKept(4).empty());
  EXPECT_EQ(list.TakeKept(5), std::vector<OutputHold*>{&early});
  EXPECT_TRUE(list.holding());
  EXPECT_EQ(list.TakeKept(kAll), std::vector<OutputHold*>{&late});
  EXPECT_FALSE(list.holding());
  EXPECT_TRUE(list.empty());
}

TEST(HoldList, IsToldOnceForEachWait) {
  HoldList list;
  EXPECT_FALSE(list.Tell());
  list.BeginWait();
  EXPECT_TRUE(list.Tell());
  EXPECT_FALSE(list.Tell());
  list.BeginWait();
  list.EndWait();
  EXPECT_FALSE(list.Tell());
}

// One thread keeps what the other wants and tells; the other waits for that without a time limit. A
// lost wake-up would leave both waiting for ever.
TEST(HoldList, NoWakeUpIsLost) {
  constexpr uint64_t kTickets = 100000;
  HoldList list;
  std::atomic<uint64_t> wanted{0};
  std::atomic<uint64_t> kept{0};
  std::counting_semaphore<> woken(0);
  std::thread keeper([&] {
    for (uint64_t ticket = 1; ticket <= kTickets; ++ticket) {
      while (wanted.load() < ticket) std::this_thread::yield();
      kept.store(ticket, std::memory_order_release);
      if (list.Tell()) woken.release();
    }
  });
  OutputHold hold(nullptr);
  for (uint64_t ticket = 1; ticket <= kTickets; ++ticket) {
    wanted.store(ticket);
    if (hold.Produced(1, ticket, kept.load(std::memory_order_acquire)) == 0) {
      list.Add(hold, 0);
      while (true) {
        list.BeginWait();
        if (!list.TakeKept(kept.load(std::memory_order_acquire)).empty()) break;
        woken.acquire();
      }
      list.EndWait();
      hold.Kept(ticket);
    }
    ASSERT_EQ(hold.writable(), 1U);
    hold.Sent(1);
  }
  keeper.join();
}

}  // namespace
}  // namespace sava::front
