// Journal: the order in which changes happened. A writer, still under its locks, puts its effects
// into its own thread's buffer, as RESP, then takes a ticket for them: that makes a record
// (record.h). One thread at a time merges the buffers by ticket and hands the records to the
// consumers (the log, replicas). No buffer is shared, so writers do not wait for one another.
// The thread that merges is one that has something to wait for (MergeHere), else the journal's own,
// which looks from time to time and when it is nudged.
//
// Tickets come from a clock per lane, not from one that all share: a ticket is later than those of
// this lane before it, and than those of all records that touched the same keys before, which the
// writer knows from its locks (`after`). So records that depend on one another have tickets in
// their order; others may have the same ticket, and their order does not matter. Where it does for
// all, no other thread writes meanwhile: Cut.
//
// Without a consumer nothing is recorded.
//
// Thread safety: Add, Append and Discard on the lane's own thread; Attach and Detach as they say;
// the rest on any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "journal/record.h"

namespace sava::journal {

// Receives records in ticket order, on one thread at a time.
class Consumer {
 public:
  virtual ~Consumer() = default;
  // Around the records that are delivered together. `next`: everything with a lower ticket has been
  // delivered.
  virtual void BeginRun() {}
  virtual void EndRun(uint64_t next) { (void)next; }
  // The record's bytes stay where they are until this returns.
  virtual void Receive(const Record& record) = 0;
  // Everything available has been delivered, or a good deal of it: a moment to write. Also called
  // after a Nudge, and about every 100 ms when nothing comes.
  virtual void Pause() {}
};

class Journal {
 public:
  explicit Journal(size_t lanes);
  ~Journal();

  // Records appended from now on go to this consumer, too. REQUIRES: no writer is active (at
  // start, or with the gate closed).
  void Attach(Consumer& consumer);
  // All records appended before go to this consumer, and a Pause follows, before this
  // returns. Nothing happens when it is not attached. REQUIRES: no writer is active.
  void Detach(Consumer& consumer);
  // Whether there is a consumer.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Adds an effect to the lane's next record: a command, encoded here. REQUIRES: enabled().
  void Add(size_t lane, std::span<const std::string_view> words, uint32_t database,
           Destinations to = kToAll);
  // Makes a record of the effects that were added, with a ticket later than `after`: the last
  // tickets of earlier work under the same locks. Never fails. REQUIRES: an effect was
  // added; the locks of what changed.
  uint64_t Append(size_t lane, uint64_t after);
  // The next record takes no memory if it has no more than that many bytes, and few effects. On the
  // lane's own thread. REQUIRES: enabled().
  void Reserve(size_t lane, size_t bytes);
  // Forgets the effects that were added.
  void Discard(size_t lane);

  // Later than the tickets of all that can be seen.
  uint64_t next_ticket() const { return LastTicket() + 1; }
  // The same, and records to come will have it or a later one. REQUIRES: no writer is active.
  uint64_t Cut();

  // Has the journal's thread look for records now rather than after its nap. Cheap while it is
  // awake.
  void Nudge();
  // Merges the records appended before and calls the consumers' Pause, on this thread; except
  // those behind a ticket whose record a thread has not finished yet. False when another thread
  // is at it, or there is no consumer. REQUIRES: the caller holds no locks.
  bool MergeHere();

  // Bytes appended and not yet merged: above kBacklogLimit writers are to wait before locking.
  static constexpr int64_t kBacklogLimit = 64 << 20;
  int64_t backlog() const;
  // Of the records on their way, beyond what every thread has from the beginning.
  size_t memory() const;
  // Whether the lane's writer is to wait; one that has not appended much since it last looked need
  // not, and does not move the others' counters. On the lane's own thread.
  bool Full(size_t lane);
  // Whether the lane has appended something that is not merged yet. On the lane's own thread.
  bool HasUnmerged(size_t lane) const;
  // Waits until every record appended before the call has reached the consumers.
  void Flush();

 private:
  struct Chunk;
  struct Lane;

  void StopThread();
  void Merge();
  enum class Found : uint8_t { kNothing, kSome, kMore };
  Found MergeTurn(bool nudged, bool stop);
  // ---- merge_mutex_ is held ----
  size_t MergeAvailable();
  void Drain();
  size_t MergeRun(Lane& lane, uint64_t last, uint64_t* head);
  uint64_t Complete();
  static uint64_t Head(Lane& lane);
  void Pause();
  // ---- it is not ----
  void Sleep(std::chrono::microseconds nap);
  uint64_t LastTicket() const;

  std::vector<std::unique_ptr<Lane>> lanes_;
  // Read by all, seldom written.
  alignas(64) std::atomic<bool> enabled_{false};
  std::atomic<uint64_t> floor_{0};               // tickets to come are later
  alignas(64) std::atomic<uint64_t> merged_{0};  // every ticket below it
  std::atomic<bool> stopping_{false};
  std::atomic<bool> nudged_{false};
  std::atomic<bool> missed_{false};  // a thread found another one merging
  std::atomic<bool> sleeping_{false};
  std::mutex sleep_mutex_;
  std::condition_variable sleep_;
  std::mutex merge_mutex_;       // one thread merges; all below but thread_
  uint64_t paused_at_ = 0;       // every ticket below it had its Pause
  std::vector<uint64_t> heads_;  // scratch: the next ticket of each lane
  std::vector<size_t> taken_;    // scratch: bytes of each
  std::chrono::steady_clock::time_point last_pause_{};
  std::vector<Consumer*> consumers_;
  std::thread thread_;
};

}  // namespace sava::journal
