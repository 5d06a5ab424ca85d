// Journal: the order in which changes happened. A writer, still under its locks, takes a ticket and
// appends {ticket, effects} to its own thread's buffer; one thread merges the buffers by ticket and
// hands the records to the sink (the log file, replicas). Nobody shares a buffer, so writers do not
// wait for one another.
//
//   record: u64 ticket · u32 bytes · u32 words-groups · groups
//   group:  u32 database · u32 words · (u32 length · bytes)*
//
// Tickets are dense: every ticket taken is appended. Without a sink nothing is recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sava::journal {

// Receives records in ticket order, on the journal's thread.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Record(uint64_t ticket, uint32_t groups, std::string_view effects) = 0;
  // Everything available has been delivered: a moment to write.
  virtual void Pause() {}
};

class Journal {
 public:
  explicit Journal(size_t lanes);
  ~Journal();

  // REQUIRES: no writer is active (at start, or with the gate closed).
  void SetSink(Sink* sink);
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Takes the next ticket and appends the record. REQUIRES: enabled(), the locks of what changed.
  uint64_t Append(size_t lane, uint32_t groups, std::string_view effects);

  // Bytes appended and not yet merged: above kBacklogLimit writers are to wait before locking.
  static constexpr int64_t kBacklogLimit = 64 << 20;
  int64_t backlog() const;
  // Waits until every record appended before the call has reached the sink.
  void Flush();

 private:
  struct Chunk;
  struct Lane;

  void Merge();
  bool MergeAvailable();
  bool MergeRun(Lane& lane, uint64_t* expected);

  std::vector<std::unique_ptr<Lane>> lanes_;
  alignas(64) std::atomic<uint64_t> next_ticket_{0};
  alignas(64) std::atomic<uint64_t> merged_{0};
  std::atomic<bool> enabled_{false};
  std::atomic<bool> stopping_{false};
  Sink* sink_ = nullptr;
  std::thread thread_;
};

}  // namespace sava::journal
