#include "journal/journal.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/alternate_stack.h"
#include "base/prefetch.h"
#include "base/text.h"

namespace sava::journal {

namespace {
using Clock = std::chrono::steady_clock;

constexpr size_t kChunkBytes = 128 * 1024;
constexpr size_t kLinesAhead = 4;
// Read chunks that a lane keeps for its writer.
constexpr size_t kSpares = 4;
// A writer checks the backlog of all threads each time it has added this many bytes.
constexpr uint64_t kLookEvery = 64 * 1024;
constexpr uint64_t kOnItsWay = 1;
constexpr int kLooks = 32;
constexpr uint64_t kNone = UINT64_MAX;  // no ticket
// The consumers get their Pause after that many bytes even when there are more.
constexpr size_t kRunBytes = 1 << 20;
// Of the journal's thread, unless it is nudged: after it found records, and after it found none.
constexpr std::chrono::milliseconds kShortNap{1};
constexpr std::chrono::milliseconds kLongNap{10};
constexpr std::chrono::milliseconds kLongestWithoutPause{100};
}  // namespace

// Written by one thread up to `filled` effects, read by the merging thread. Their bytes stand from
// the front, their headers from the back: the thread that merges goes through the headers, four in
// a line of memory, and the bytes stay in their writer's cache until a consumer wants them.
struct Journal::Chunk {
  using Header = EffectHeader;

  explicit Chunk(size_t room) : bytes(room), data(new Header[room / sizeof(Header)]) {}
  char* effects() { return reinterpret_cast<char*>(data.get()); }
  Header* header(size_t effect) { return data.get() + bytes / sizeof(Header) - 1 - effect; }

  const size_t bytes;  // a multiple of a header's
  const std::unique_ptr<Header[]> data;
  alignas(64) std::atomic<size_t> filled{0};
  std::atomic<Chunk*> next{nullptr};
};

struct Journal::Lane {
  Lane()
      : write(new Chunk(kChunkBytes)),
        open(write),
        begin(write->effects()),
        end(begin),
        first(write->header(0)),
        next(first),
        read(write) {}
  ~Lane() {
    if (open != write) delete open;
    while (read != nullptr) {
      Chunk* const follower = read->next.load();
      delete read;
      read = follower;
    }
    for (auto& spare : spares) delete spare.load();
  }

  // The writer's: room for one more effect of the open record.
  char* Room(size_t size);
  void Added(size_t size, uint32_t database, Destinations to);
  void Discard();
  void MoveOpen(size_t size);
  Chunk* ChunkFor(size_t room);
  Chunk* NewChunk(size_t room);
  void Delete(Chunk* chunk);
  // The merger's: a chunk that was read, for the writer to use again.
  void Recycle(Chunk* chunk);

  std::array<std::atomic<Chunk*>, kSpares> spares{};
  // The last ticket of this lane, or a later one of another that the merger has told it of; shifted
  // by one. The lowest bit: its record is not there yet.
  alignas(64) std::atomic<uint64_t> clock{0};
  // The writer's. The record that has no ticket yet is in `open` behind the filled effects: that is
  // `write`, or a chunk that will follow it. Its bytes are begin to end; its headers go from
  // `first` down to `next`, which is not one of them.
  Chunk* write;
  Chunk* open;
  char* begin;
  char* end;
  Chunk::Header* first;
  Chunk::Header* next;
  std::atomic<int64_t> more{0};       // bytes of chunks besides the first
  std::atomic<uint64_t> appended{0};  // bytes, by the writer
  uint64_t looked_at = 0;             // `appended` when the writer last looked at the backlog
  alignas(64) Chunk* read;            // the merger's
  size_t effect = 0;                  // the merger's, in read
  size_t ready = 0;                   // that many effects of it are known to be there
  size_t position = 0;                // the merger's, of their bytes
  std::atomic<uint64_t> consumed{0};  // bytes, by the merger
};

char* Journal::Lane::Room(size_t size) {
  // The header takes the place of `next`.
  if (reinterpret_cast<char*>(next) - end < static_cast<ptrdiff_t>(size)) MoveOpen(size);
  return end;
}

void Journal::Lane::Added(size_t size, uint32_t database, Destinations to) {
  if (next != first) next[1].last = 0;
  *next-- = {0, size, database, to, 1};
  end += size;
}

// A record is in one chunk: the part of the open one that exists goes to a chunk that has room for
// an effect of that size, too.
void Journal::Lane::MoveOpen(size_t size) {
  using Header = Chunk::Header;
  const auto bytes = static_cast<size_t>(end - begin);
  const auto effects = static_cast<size_t>(first - next);
  const size_t wanted = bytes + std::max(size, bytes) + (effects + 1) * sizeof(Header);
  Chunk* const fresh = ChunkFor((wanted + sizeof(Header) - 1) / sizeof(Header) * sizeof(Header));
  memcpy(fresh->effects(), begin, bytes);
  Header* const fresh_next = fresh->header(0) - effects;
  memcpy(fresh_next + 1, next + 1, effects * sizeof(Header));
  if (open != write) Delete(open);
  open = fresh;
  begin = fresh->effects();
  end = begin + bytes;
  first = fresh->header(0);
  next = fresh_next;
}

void Journal::Lane::Discard() {
  end = begin;
  next = first;
}

Journal::Chunk* Journal::Lane::NewChunk(size_t room) {
  auto* const chunk = new Chunk(room);
  more.fetch_add(static_cast<int64_t>(room), std::memory_order_relaxed);
  return chunk;
}

void Journal::Lane::Delete(Chunk* chunk) {
  more.fetch_sub(static_cast<int64_t>(chunk->bytes), std::memory_order_relaxed);
  delete chunk;
}

Journal::Chunk* Journal::Lane::ChunkFor(size_t room) {
  if (room > kChunkBytes) return NewChunk(room);
  for (auto& spare : spares) {
    if (spare.load(std::memory_order_relaxed) == nullptr) continue;
    Chunk* const chunk = spare.exchange(nullptr, std::memory_order_acquire);
    chunk->filled.store(0, std::memory_order_relaxed);
    chunk->next.store(nullptr, std::memory_order_relaxed);
    return chunk;
  }
  return NewChunk(kChunkBytes);
}

void Journal::Lane::Recycle(Chunk* chunk) {
  if (chunk->bytes == kChunkBytes) {
    for (auto& spare : spares) {
      if (spare.load(std::memory_order_relaxed) != nullptr) continue;
      spare.store(chunk, std::memory_order_release);
      return;
    }
  }
  Delete(chunk);
}

Journal::Journal(size_t lanes) {
  for (size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<Lane>());
}

Journal::~Journal() {
  while (!consumers_.empty()) Detach(*consumers_.back());
}

void Journal::Attach(Consumer& consumer) {
  const std::lock_guard lock(merge_mutex_);
  if (!consumers_.empty()) Drain();
  consumers_.push_back(&consumer);
  enabled_.store(true);
  if (thread_.joinable()) return;
  last_pause_ = Clock::now();
  thread_ = std::thread([this] {
    const base::AlternateStack stack;
    Merge();
  });
}

void Journal::Detach(Consumer& consumer) {
  {
    const std::lock_guard lock(merge_mutex_);
    const auto at = std::ranges::find(consumers_, &consumer);
    if (at == consumers_.end()) return;
    Drain();
    consumers_.erase(at);
    if (!consumers_.empty()) return;
    enabled_.store(false);
  }
  StopThread();
}

void Journal::StopThread() {
  stopping_.store(true);
  Nudge();
  thread_.join();
  stopping_.store(false);
}

void Journal::Drain() {
  while (MergeAvailable() != 0) Pause();
  Pause();
}

// In RESP: *N, then $length and bytes of each word.
void Journal::Add(size_t lane_index, std::span<const std::string_view> words, uint32_t database,
                  Destinations to) {
  Lane& lane = *lanes_[lane_index];
  size_t most = 24;
  for (const std::string_view word : words) most += word.size() + 28;
  char* const begin = lane.Room(most);
  char* p = begin;
  const auto number = [&p](char mark, size_t value) {
    *p++ = mark;
    p += base::FormatInt(static_cast<int64_t>(value), p);
    *p++ = '\r';
    *p++ = '\n';
  };
  number('*', words.size());
  for (const std::string_view word : words) {
    number('$', word.size());
    memcpy(p, word.data(), word.size());
    p += word.size();
    *p++ = '\r';
    *p++ = '\n';
  }
  lane.Added(static_cast<size_t>(p - begin), database, to);
}

void Journal::Reserve(size_t lane, size_t bytes) {
  constexpr size_t kEffects = 16;
  static_cast<void>(lanes_[lane]->Room(bytes + kEffects * sizeof(Chunk::Header)));
}

void Journal::Discard(size_t lane) { lanes_[lane]->Discard(); }

uint64_t Journal::Append(size_t lane_index, uint64_t after) {
  Lane& lane = *lanes_[lane_index];
  Chunk* const chunk = lane.open;
  if (chunk != lane.write) {
    lane.write->next.store(chunk, std::memory_order_release);
    lane.write = chunk;
  }
  after = std::max(after, floor_.load(std::memory_order_relaxed));
  uint64_t clock = lane.clock.load(std::memory_order_relaxed);
  uint64_t ticket;
  do {
    ticket = std::max(clock >> 1, after) + 1;
  } while (!lane.clock.compare_exchange_weak(clock, ticket << 1 | kOnItsWay,
                                             std::memory_order_acq_rel, std::memory_order_relaxed));
  lane.first->ticket = ticket;
  chunk->filled.store(static_cast<size_t>(chunk->header(0) - lane.next), std::memory_order_release);
  lane.clock.store(ticket << 1, std::memory_order_release);
  // The thread that merged the chunk's last use has these lines: the next record's are asked for
  // back early.
  base::PrefetchForWrite(lane.next - 7);
  for (size_t line = 1; line <= kLinesAhead; ++line) base::PrefetchForWrite(lane.end + line * 64);
  const auto size = static_cast<uint64_t>(lane.end - lane.begin) +
                    static_cast<uint64_t>(lane.first - lane.next) * sizeof(Chunk::Header);
  lane.appended.store(lane.appended.load(std::memory_order_relaxed) + size,
                      std::memory_order_relaxed);
  lane.begin = lane.end;
  lane.first = lane.next;
  return ticket;
}

uint64_t Journal::LastTicket() const {
  uint64_t last = 0;
  for (const auto& lane : lanes_) {
    last = std::max(last, lane->clock.load(std::memory_order_acquire) >> 1);
  }
  return last;
}

uint64_t Journal::Cut() {
  const uint64_t last = LastTicket();
  floor_.store(last, std::memory_order_relaxed);
  return last + 1;
}

bool Journal::Full(size_t lane_index) {
  Lane& lane = *lanes_[lane_index];
  const uint64_t appended = lane.appended.load(std::memory_order_relaxed);
  if (appended - lane.looked_at < kLookEvery) return false;
  if (backlog() > kBacklogLimit) return true;
  lane.looked_at = appended;
  return false;
}

bool Journal::HasUnmerged(size_t lane) const {
  return lanes_[lane]->appended.load(std::memory_order_relaxed) !=
         lanes_[lane]->consumed.load(std::memory_order_relaxed);
}

size_t Journal::memory() const {
  int64_t total = 0;
  for (const auto& lane : lanes_) total += lane->more.load(std::memory_order_relaxed);
  return static_cast<size_t>(std::max<int64_t>(0, total));
}

int64_t Journal::backlog() const {
  uint64_t total = 0;
  for (const auto& lane : lanes_) {
    total += lane->appended.load(std::memory_order_relaxed) -
             lane->consumed.load(std::memory_order_relaxed);
  }
  return static_cast<int64_t>(total);
}

// Every record with a ticket up to the returned one can be read, and no further one will come.
// Lanes that are behind are told the last ticket of all, so that an idle lane stops no other.
uint64_t Journal::Complete() {
  const uint64_t last = LastTicket();
  uint64_t complete = last;
  for (auto& lane : lanes_) {
    uint64_t clock = lane->clock.load(std::memory_order_acquire);
    // A record on its way is there in a moment, unless its thread has lost its core.
    for (int i = 0; i < kLooks && (clock & kOnItsWay) != 0 && clock >> 1 <= last; ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      clock = lane->clock.load(std::memory_order_acquire);
    }
    while ((clock & kOnItsWay) == 0 && clock >> 1 < last &&
           !lane->clock.compare_exchange_weak(clock, last << 1, std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
    }
    if ((clock & kOnItsWay) != 0) complete = std::min(complete, (clock >> 1) - 1);
  }
  return complete;
}

// The ticket of the lane's next record; kNone when there is none.
uint64_t Journal::Head(Lane& lane) {
  while (lane.effect == lane.ready) {
    Chunk* const chunk = lane.read;
    Chunk* const next = chunk->next.load(std::memory_order_acquire);
    lane.ready = chunk->filled.load(std::memory_order_acquire);
    if (lane.effect != lane.ready) break;
    // Loaded before `filled`, so that nothing was filled in between.
    if (next == nullptr) return kNone;
    lane.read = next;
    lane.effect = lane.ready = lane.position = 0;
    lane.Recycle(chunk);
  }
  return lane.read->header(lane.effect)->ticket;
}

// Takes this lane's records with tickets up to `last`; returns their bytes. The counters are
// updated once per run: writers read them.
size_t Journal::MergeRun(Lane& lane, uint64_t last, uint64_t* head) {
  size_t bytes = 0;
  while (*head <= last && bytes < kRunBytes) {
    Chunk& chunk = *lane.read;
    const EffectHeader* const header = chunk.header(lane.effect);
    // Later ones are with the core that wrote them.
    base::Prefetch(header - 16);
    const Record record(header, chunk.effects() + lane.position);
    for (Consumer* const consumer : consumers_) consumer->Receive(record);
    lane.effect += record.size();
    lane.position += record.bytes().size();
    bytes += record.bytes().size() + record.size() * sizeof(EffectHeader);
    *head = Head(lane);
  }
  return bytes;
}

// Returns the number of bytes merged.
size_t Journal::MergeAvailable() {
  const uint64_t complete = Complete();
  size_t total = 0;
  for (Consumer* const consumer : consumers_) consumer->BeginRun();
  heads_.clear();
  for (auto& lane : lanes_) heads_.push_back(Head(*lane));
  taken_.assign(lanes_.size(), 0);
  uint64_t first = 0;
  while (true) {
    // The first record of all, and how far its lane goes before another's comes.
    size_t at = 0;
    uint64_t second = kNone;
    for (size_t i = 1; i < heads_.size(); ++i) {
      if (heads_[i] < heads_[at]) {
        second = heads_[at];
        at = i;
      } else {
        second = std::min(second, heads_[i]);
      }
    }
    first = heads_[at];
    if (first > complete || total >= kRunBytes) break;
    const size_t bytes = MergeRun(*lanes_[at], std::min(second, complete), &heads_[at]);
    taken_[at] += bytes;
    total += bytes;
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (taken_[i] == 0) continue;
    std::atomic<uint64_t>& consumed = lanes_[i]->consumed;
    consumed.store(consumed.load(std::memory_order_relaxed) + taken_[i], std::memory_order_relaxed);
  }
  const uint64_t next = std::min(first, complete + 1);
  for (Consumer* const consumer : consumers_) consumer->EndRun(next);
  merged_.store(next, std::memory_order_release);
  return total;
}

bool Journal::MergeHere() {
  bool merged = false;
  std::unique_lock lock(merge_mutex_, std::defer_lock);
  // The second time for threads that came meanwhile; the caller wakes one that comes later, or the
  // journal's thread serves it.
  for (int pass = 0; pass < 2 && (!merged || missed_.load()); ++pass) {
    if (!lock.try_lock()) {
      // The thread that merges must look once more before it stops.
      missed_.store(true);
      if (!lock.try_lock()) break;
    }
    if (consumers_.empty()) break;
    missed_.exchange(false);
    const uint64_t wanted = next_ticket();
    while (MergeAvailable() != 0 && merged_.load(std::memory_order_relaxed) < wanted) Pause();
    Pause();
    merged = true;
    lock.unlock();
  }
  if (merged && missed_.load()) Nudge();
  return merged;
}

// One turn of the journal's thread. kMore: the next follows at once.
Journal::Found Journal::MergeTurn(bool nudged, bool stop) {
  const std::lock_guard lock(merge_mutex_);
  const size_t bytes = MergeAvailable();
  const bool any = bytes != 0 || merged_.load(std::memory_order_relaxed) != paused_at_;
  if (any || nudged || Clock::now() - last_pause_ >= kLongestWithoutPause) Pause();
  if (!any) return Found::kNothing;
  return stop || bytes >= kRunBytes ? Found::kMore : Found::kSome;
}

void Journal::Merge() {
  while (true) {
    const bool stop = stopping_.load(std::memory_order_acquire);
    const bool missed = missed_.exchange(false);
    const bool nudged = nudged_.exchange(false) || missed;
    const Found found = MergeTurn(nudged, stop);
    if (found == Found::kMore) continue;
    if (stop) return;
    Sleep(found == Found::kSome ? kShortNap : kLongNap);
  }
}

void Journal::Pause() {
  paused_at_ = merged_.load(std::memory_order_relaxed);
  for (Consumer* const consumer : consumers_) consumer->Pause();
  last_pause_ = Clock::now();
}

// Either Nudge sees that this thread sleeps, or this thread sees the nudge before it does.
void Journal::Sleep(std::chrono::microseconds nap) {
  std::unique_lock lock(sleep_mutex_);
  sleeping_.store(true);
  sleep_.wait_for(lock, nap, [this] { return nudged_.load() || missed_.load(); });
  sleeping_.store(false);
}

void Journal::Nudge() {
  const bool again = nudged_.exchange(true);
  if (again || !sleeping_.load()) return;
  const std::lock_guard lock(sleep_mutex_);
  sleep_.notify_one();
}

void Journal::Flush() {
  if (!enabled()) return;
  const uint64_t target = next_ticket();
  while (merged_.load(std::memory_order_acquire) < target) {
    Nudge();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace sava::journal
