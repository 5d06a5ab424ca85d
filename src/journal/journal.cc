#include "journal/journal.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/prefetch.h"

namespace sava::journal {

namespace {
using Clock = std::chrono::steady_clock;

constexpr size_t kChunkBytes = 128 * 1024;
constexpr size_t kLinesAhead = 4;
// Read chunks that a lane keeps for its writer.
constexpr size_t kSpares = 4;
// A writer looks at the backlog of all after so much of its own.
constexpr uint64_t kLookEvery = 64 * 1024;
// The sink gets its Pause after so much even when there is more.
constexpr size_t kRunBytes = 1 << 20;
constexpr std::chrono::microseconds kShortNap{1000};
constexpr std::chrono::microseconds kLongNap{10'000};
constexpr std::chrono::milliseconds kLongestWithoutPause{100};
constexpr std::chrono::microseconds kLongestPatience{1000};
}  // namespace

// Written by one thread up to `filled` records, read by the merging thread. Effects stand from the
// front, headers from the back: who merges goes through the headers, four in a line of memory, and
// the effects stay in their writer's cache until the sink wants them.
struct Journal::Chunk {
  struct Header {
    uint64_t ticket;
    uint32_t size;  // kLong: it stands before the effects, in 8 bytes
    uint32_t groups;
  };
  static constexpr uint32_t kLong = UINT32_MAX;

  explicit Chunk(size_t room) : bytes(room), data(new Header[room / sizeof(Header)]) {}
  char* effects() { return reinterpret_cast<char*>(data.get()); }
  Header* header(size_t record) { return data.get() + bytes / sizeof(Header) - 1 - record; }

  const size_t bytes;  // a multiple of a header's
  const std::unique_ptr<Header[]> data;
  size_t used = 0;  // bytes of effects; the writer's
  alignas(64) std::atomic<size_t> filled{0};
  std::atomic<Chunk*> next{nullptr};
};

struct Journal::Lane {
  Lane() : write(new Chunk(kChunkBytes)), read(write) {}
  ~Lane() {
    while (read != nullptr) {
      Chunk* next = read->next.load();
      delete read;
      read = next;
    }
    for (auto& spare : spares) delete spare.load();
  }

  // The writer's: a chunk with room for so much more.
  Chunk* ChunkFor(size_t size);
  // The merger's: a chunk that was read, for the writer to use again.
  void Recycle(Chunk* chunk);

  std::array<std::atomic<Chunk*>, kSpares> spares{};
  alignas(64) Chunk* write;           // the writer's
  std::atomic<uint64_t> appended{0};  // bytes, by the writer
  uint64_t looked_at = 0;             // `appended` when the writer last looked at the backlog
  alignas(64) Chunk* read;            // the merger's
  size_t record = 0;                  // the merger's, in read
  size_t position = 0;                // the merger's, of its effects
  std::atomic<uint64_t> consumed{0};  // bytes, by the merger
};

Journal::Chunk* Journal::Lane::ChunkFor(size_t size) {
  const size_t room =
      (size + 2 * sizeof(Chunk::Header) - 1) / sizeof(Chunk::Header) * sizeof(Chunk::Header);
  if (room > kChunkBytes) return new Chunk(room);
  for (auto& spare : spares) {
    if (spare.load(std::memory_order_relaxed) == nullptr) continue;
    Chunk* const chunk = spare.exchange(nullptr, std::memory_order_acquire);
    chunk->used = 0;
    chunk->filled.store(0, std::memory_order_relaxed);
    chunk->next.store(nullptr, std::memory_order_relaxed);
    return chunk;
  }
  return new Chunk(kChunkBytes);
}

void Journal::Lane::Recycle(Chunk* chunk) {
  if (chunk->bytes == kChunkBytes) {
    for (auto& spare : spares) {
      if (spare.load(std::memory_order_relaxed) != nullptr) continue;
      spare.store(chunk, std::memory_order_release);
      return;
    }
  }
  delete chunk;
}

Journal::Journal(size_t lanes) {
  for (size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<Lane>());
}

Journal::~Journal() { SetSink(nullptr); }

void Journal::SetSink(Sink* sink) {
  if (thread_.joinable()) {
    stopping_.store(true);
    Nudge();
    thread_.join();
    stopping_.store(false);
  }
  {
    const std::lock_guard lock(merge_mutex_);
    sink_ = sink;
    last_pause_ = Clock::now();
  }
  enabled_.store(sink != nullptr);
  if (sink != nullptr) thread_ = std::thread([this] { Merge(); });
}

uint64_t Journal::Append(size_t lane_index, uint32_t groups, std::string_view effects) {
  using Header = Chunk::Header;
  Lane& lane = *lanes_[lane_index];
  const bool is_long = effects.size() >= Chunk::kLong;
  const size_t size = effects.size() + (is_long ? sizeof(uint64_t) : 0);
  Chunk* chunk = lane.write;
  size_t record = chunk->filled.load(std::memory_order_relaxed);
  if (chunk->bytes - chunk->used - record * sizeof(Header) < size + sizeof(Header)) {
    Chunk* const fresh = lane.ChunkFor(size);
    chunk->next.store(fresh, std::memory_order_release);
    lane.write = chunk = fresh;
    record = 0;
  }
  char* p = chunk->effects() + chunk->used;
  const uint64_t ticket = next_ticket_.fetch_add(1, std::memory_order_acq_rel);
  if (is_long) {
    const uint64_t bytes = effects.size();
    memcpy(p, &bytes, sizeof(bytes));
    p += sizeof(bytes);
  }
  memcpy(p, effects.data(), effects.size());
  Header* const header = chunk->header(record);
  *header = {ticket, is_long ? Chunk::kLong : static_cast<uint32_t>(effects.size()), groups};
  chunk->used += size;
  chunk->filled.store(record + 1, std::memory_order_release);
  // Who merged the chunk's last use has these lines: the next record's are asked for back early.
  base::PrefetchForWrite(header - 8);
  for (size_t line = 1; line <= kLinesAhead; ++line) {
    base::PrefetchForWrite(p + effects.size() + line * 64);
  }
  lane.appended.store(lane.appended.load(std::memory_order_relaxed) + size + sizeof(Header),
                      std::memory_order_relaxed);
  return ticket;
}

bool Journal::Full(size_t lane_index) {
  Lane& lane = *lanes_[lane_index];
  const uint64_t appended = lane.appended.load(std::memory_order_relaxed);
  if (appended - lane.looked_at < kLookEvery) return false;
  if (backlog() > kBacklogLimit) return true;
  lane.looked_at = appended;
  return false;
}

int64_t Journal::backlog() const {
  uint64_t total = 0;
  for (const auto& lane : lanes_) {
    total += lane->appended.load(std::memory_order_relaxed) -
             lane->consumed.load(std::memory_order_relaxed);
  }
  return static_cast<int64_t>(total);
}

// Takes this lane's records as long as they carry the next tickets; how many bytes it were. What
// was taken is published once per run: writers read these counters.
size_t Journal::MergeRun(Lane& lane, uint64_t* expected) {
  using Header = Chunk::Header;
  size_t bytes = 0;
  while (bytes < kRunBytes) {
    Chunk* const chunk = lane.read;
    const size_t filled = chunk->filled.load(std::memory_order_acquire);
    if (lane.record == filled) {
      Chunk* const next = chunk->next.load(std::memory_order_acquire);
      // The writer may have filled more between the two loads: look again before moving on.
      if (next == nullptr || chunk->filled.load(std::memory_order_acquire) != filled) break;
      lane.read = next;
      lane.record = lane.position = 0;
      lane.Recycle(chunk);
      continue;
    }
    const size_t before = bytes;
    for (; lane.record < filled && bytes < kRunBytes; ++lane.record, ++*expected) {
      const Header header = *chunk->header(lane.record);
      if (header.ticket != *expected) break;
      // They are with the core that wrote them.
      base::Prefetch(chunk->header(lane.record) - 16);
      const char* p = chunk->effects() + lane.position;
      uint64_t size = header.size;
      if (header.size == Chunk::kLong) {
        memcpy(&size, p, sizeof(size));
        p += sizeof(size);
      }
      sink_->Record(header.ticket, header.groups, {p, size});
      const size_t all = static_cast<size_t>(p - chunk->effects()) + size - lane.position;
      lane.position += all;
      bytes += all + sizeof(Header);
    }
    if (bytes == before) break;
  }
  if (bytes != 0) {
    lane.consumed.store(lane.consumed.load(std::memory_order_relaxed) + bytes,
                        std::memory_order_relaxed);
  }
  return bytes;
}

// How many bytes it were.
size_t Journal::MergeAvailable() {
  size_t total = 0;
  uint64_t expected = merged_.load(std::memory_order_relaxed);
  sink_->BeginRun();
  for (bool progress = true; progress && total < kRunBytes;) {
    progress = false;
    for (auto& lane : lanes_) {
      const size_t bytes = MergeRun(*lane, &expected);
      total += bytes;
      progress = progress || bytes != 0;
    }
  }
  sink_->EndRun();
  merged_.store(expected, std::memory_order_release);
  return total;
}

bool Journal::MergeHere() {
  std::unique_lock lock(merge_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    // The journal's thread must not fall asleep over what it did not see.
    missed_.store(true);
    if (!lock.try_lock()) return false;
  }
  if (sink_ == nullptr) return false;
  const uint64_t wanted = next_ticket();
  while (MergeAvailable() != 0 && merged_.load(std::memory_order_relaxed) < wanted) Pause();
  Pause();
  return true;
}

// One turn of the journal's thread; kMore: the next is to follow at once, or after `*gather`, in
// which more records may come.
Journal::Found Journal::MergeTurn(bool nudged, bool stop, std::chrono::microseconds* gather) {
  const std::lock_guard lock(merge_mutex_);
  const size_t bytes = MergeAvailable();
  const bool any = bytes != 0 || merged_.load(std::memory_order_relaxed) != paused_at_;
  if (any && !stop && bytes < kRunBytes && (*gather = GatherFor()).count() > 0) return Found::kMore;
  if (any || nudged || Clock::now() - last_pause_ >= kLongestWithoutPause) Pause();
  if (!any) return Found::kNothing;
  // Records that nobody waits for are taken many at a time: looking for each would keep the
  // writers' lines of memory moving between the cores.
  const bool more = stop || bytes >= kRunBytes;
  return more ? Found::kMore : Found::kSome;
}

void Journal::Merge() {
  std::chrono::microseconds nap = kShortNap;
  while (true) {
    const bool stop = stopping_.load(std::memory_order_acquire);
    const bool missed = missed_.exchange(false);
    const bool nudged = nudged_.exchange(false) || missed;
    std::chrono::microseconds gather{0};
    const Found found = MergeTurn(nudged, stop, &gather);
    if (gather.count() > 0) {
      Sleep(gather);
      awaited_.store(0);
    } else if (found == Found::kNothing) {
      if (stop) return;
      // A ticket whose record is on its way will be there soon.
      const bool coming = next_ticket() != merged_.load(std::memory_order_relaxed);
      Sleep(coming ? kShortNap / 10 : nap);
      nap = std::min(nap * 2, kLongNap);
      continue;
    } else if (found == Found::kSome) {
      Sleep(kShortNap);
    }
    nap = kShortNap;
  }
}

void Journal::Pause() {
  const uint64_t before = std::exchange(paused_at_, merged_.load(std::memory_order_relaxed));
  sink_->Pause();
  last_pause_ = Clock::now();
  outstanding_ = std::max(next_ticket() - before, outstanding_ - (outstanding_ + 7) / 8);
}

// Group commit: writers that wait for one Pause come back at about the same time. With half of
// them in a Pause the other half can work; with fewer, most of the time goes to the disk. How long
// to wait for them, in which case there is more to merge then.
std::chrono::microseconds Journal::GatherFor() {
  constexpr std::chrono::microseconds kNot{0};
  const uint64_t goal = paused_at_ + outstanding_ / 2;
  if (next_ticket() >= goal) return kNot;
  const std::chrono::microseconds patience = std::min(sink_->Patience(), kLongestPatience);
  const auto left =
      std::chrono::duration_cast<std::chrono::microseconds>(last_pause_ + patience - Clock::now());
  if (left <= kNot) return kNot;
  awaited_.store(goal);
  return left;
}

// Either Nudge sees that this thread sleeps, or this thread sees the nudge before it does. While it
// gathers, nudges are left for later: that is over within kLongestPatience.
void Journal::Sleep(std::chrono::microseconds nap) {
  std::unique_lock lock(sleep_mutex_);
  sleeping_.store(true);
  sleep_.wait_for(lock, nap, [this] {
    const uint64_t awaited = awaited_.load();
    return awaited != 0 ? next_ticket_.load() >= awaited : nudged_.load() || missed_.load();
  });
  sleeping_.store(false);
}

void Journal::Nudge() {
  const bool again = nudged_.exchange(true);
  if (!sleeping_.load()) return;
  const uint64_t awaited = awaited_.load();
  if (awaited != 0 ? next_ticket_.load() < awaited : again) return;
  const std::lock_guard lock(sleep_mutex_);
  sleep_.notify_one();
}

void Journal::Flush() {
  const uint64_t target = next_ticket_.load(std::memory_order_acquire);
  while (merged_.load(std::memory_order_acquire) < target) {
    Nudge();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace sava::journal
