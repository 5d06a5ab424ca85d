// Journal: the order in which changes happened. A writer, still under its locks, takes a ticket and
// appends {ticket, effects} to its own thread's buffer; one thread at a time merges the buffers by
// ticket and hands the records to the sink (the log file, replicas). Nobody shares a buffer, so
// writers do not wait for one another. Who merges: a thread that has something to wait for
// (MergeHere), else the journal's own, which looks from time to time and when it is nudged.
//
// Tickets come from a clock per lane, not from one that all share: a ticket is later than those of
// this lane before it, and than those of all records that touched the same keys before, which the
// writer knows from its locks (`after`). So records that depend on one another have tickets in
// their order; others may have the same ticket, and their order does not matter. Where it does for
// all, nobody else writes meanwhile: Cut.
//
//   record: a header with ticket, bytes and count of groups · groups, elsewhere
//   group:  u32 database · u32 bytes · one command as RESP
//
// Without a sink nothing is recorded.
//
// Thread safety: Append on the lane's own thread; SetSink as it says; the rest on any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sava::journal {

// Receives records in ticket order, on one thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  // Around the records that are delivered together. `next`: everything with a lower ticket has been
  // delivered.
  virtual void BeginRun() {}
  virtual void EndRun(uint64_t next) { (void)next; }
  virtual void Record(uint64_t ticket, uint32_t groups, std::string_view effects) = 0;
  // Everything available has been delivered, or a good deal of it: a moment to write. Also called
  // after a Nudge, and about every 100 ms when nothing comes.
  virtual void Pause() {}
};

class Journal {
 public:
  explicit Journal(size_t lanes);
  ~Journal();

  // What was appended before goes to the sink of before, all of it, before this returns.
  // REQUIRES: no writer is active (at start, or with the gate closed).
  void SetSink(Sink* sink);
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // The next record takes no memory if it has no more effects than that. On the lane's own thread.
  void Reserve(size_t lane, size_t bytes);
  // Takes a ticket later than `after` and appends the record. after: the last ticket of what was
  // done before under the same locks. REQUIRES: enabled(), the locks of what changed.
  uint64_t Append(size_t lane, uint32_t groups, std::string_view effects, uint64_t after);

  // Later than the tickets of all that can be seen.
  uint64_t next_ticket() const { return LastTicket() + 1; }
  // The same, and records to come will have it or a later one. REQUIRES: no writer is active.
  uint64_t Cut();

  // Has the journal's thread look for records now rather than after its nap. Cheap while it is
  // awake.
  void Nudge();
  // Merges what was appended before and lets the sink have its Pause, on this thread; but for what
  // follows a ticket whose record a thread has not finished yet. False when another thread is
  // at it, or there is no sink. REQUIRES: the caller holds no locks.
  bool MergeHere();

  // Bytes appended and not yet merged: above kBacklogLimit writers are to wait before locking.
  static constexpr int64_t kBacklogLimit = 64 << 20;
  int64_t backlog() const;
  // Whether the lane's writer is to wait; one that has not appended much since it last looked need
  // not, and does not move the others' counters. On the lane's own thread.
  bool Full(size_t lane);
  // Waits until every record appended before the call has reached the sink.
  void Flush();

 private:
  struct Chunk;
  struct Lane;

  void Merge();
  enum class Found : uint8_t { kNothing, kSome, kMore };
  Found MergeTurn(bool nudged, bool stop);
  // ---- merge_mutex_ is held ----
  size_t MergeAvailable();
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
  std::atomic<bool> missed_{false};  // somebody found another thread merging
  std::atomic<bool> sleeping_{false};
  std::mutex sleep_mutex_;
  std::condition_variable sleep_;
  std::mutex merge_mutex_;       // one thread merges; all below but thread_
  uint64_t paused_at_ = 0;       // every ticket below it had its Pause
  std::vector<uint64_t> heads_;  // scratch: the next ticket of each lane
  std::vector<size_t> taken_;    // scratch: bytes of each
  std::chrono::steady_clock::time_point last_pause_{};
  Sink* sink_ = nullptr;
  std::thread thread_;
};

}  // namespace sava::journal
