// The inside of a Frontier: its structures and the work on them. Only the frontier's own files
// include it; frontier.h says what the calls mean.
//
// Layout: hosts, items (delayed, leased and dead URLs) and the arena with all records consist of
// blocks of up to 16 KB, which is what a snapshot saves; everything else is found again from them.
//
//   host        its settings, the first of its FIFOs and a list of the others
//   FIFO        chunks of the arena, records behind each other; a record may go on in the next
//               chunk. A chunk's link is the next one; the last one's is the one before it, so that
//               it can be replaced by a larger one: last chunks grow until they have full size
//   record      varint size of the rest * 2 + 1 if there is more; then (varint failures, varint
//               size of meta, meta); the rest
//   item        where a record stands, its host, state, time and number
//
// Invariants: a host's first FIFO is the lowest in order of Before, and empty only when the host
// has nothing queued; no other one is empty. ready_ holds the hosts that have something queued and
// whose time has come (as of now_). Of every other host with something queued there is an entry in
// waiting_ with its time; entries that no longer hold are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/huge_blocks.h"
#include "types/filters/bloom.h"
#include "types/frontier/frontier.h"
#include "types/frontier/frontier_arena.h"
#include "types/frontier/frontier_blocks.h"
#include "types/frontier/frontier_index.h"
#include "types/frontier/frontier_set.h"
#include "types/sketches/text_table.h"
#include "types/value/block_cut.h"

namespace sava::types {

class Frontier::Core {
 public:
  explicit Core(const Options& options);

  void Add(std::span<const Url> urls, const Attributes& attributes, int64_t now,
           std::span<Verdict> verdicts);
  size_t Next(const NextRequest& request, int64_t now, const Serve& serve);
  int64_t NextWake(int64_t now, std::optional<std::string_view> host) const;
  size_t Ack(std::span<const uint64_t> ids, int64_t refetch_at, int64_t now);
  size_t Nack(std::span<const uint64_t> ids, int64_t retry_at, int64_t now);
  size_t Extend(std::span<const uint64_t> ids, int64_t until, int64_t now);
  std::optional<HostInfo> InfoOf(std::string_view host) const;
  HostInfo InfoOf(uint32_t number) const;
  bool ChangeHost(std::string_view host, const HostChange& change, int64_t now);
  Look Peek(std::string_view host, uint64_t start, uint64_t count, const Serve& visit) const;
  bool Seen(const Url& url) const;
  void Dead(uint64_t start, uint64_t count, const Serve& visit) const;
  uint64_t ForgetDead(int64_t now);
  Stats stats() const;
  std::optional<uint64_t> Purge(std::string_view host, int64_t now);
  void Clear();
  uint64_t Export(uint64_t cursor, uint64_t count,
                  const std::function<void(const Entry& entry)>& visit) const;
  Verdict Import(const Entry& entry, int64_t now);

  size_t bytes() const;
  uint64_t size() const { return queued_ + delayed_ + leased_ + dead_.size(); }
  void Save(Writer& out) const;
  static std::unique_ptr<Core> Load(Reader& in);
  void Digest(const std::function<void(std::string_view)>& add) const;
  void BeginCut(const PieceSink& sink);
  bool SavePieces(size_t budget);
  void AbortCut();

  const Options& options() const { return options_; }
  uint64_t host_count() const { return hosts_.size(); }
  uint64_t next_id() const { return next_id_; }
  void set_next_id(uint64_t id) { next_id_ = id; }
  void set_observer(FrontierObserver* observer) { observer_ = observer; }

 private:
  using Arena = FrontierArena;
  using Ref = Arena::Ref;
  using Part = FrontierObserver::Part;

  using Queue = FrontierQueue;
  using Host = FrontierHost;
  using Item = FrontierItem;
  using ItemState = FrontierItem::State;
  static constexpr uint32_t kDefaultLimit = FrontierHost::kDefaultLimit;
  static constexpr uint32_t kQueuesPerChunk = 3;
  // Where a FIFO is kept: with its host, or in one of the host's chunks.
  struct Place {
    Ref chunk = Arena::kNone;
    uint32_t index = 0;
  };
  struct Event {
    int64_t time;
    uint64_t id;
    uint32_t item;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : id > other.id;
    }
  };
  struct Waiting {
    int64_t time;
    uint32_t host;
    bool operator>(const Waiting& other) const {
      return time != other.time ? time > other.time : host > other.host;
    }
  };
  struct Record {
    uint32_t failures = 0;
    std::string_view meta;
    std::string_view rest;
    Ref end = Arena::kNone;  // the chunk it ends in, and where
    size_t end_at = 0;
  };
  // A URL of a batch on its way in.
  struct Planned {
    uint64_t host_hash;
    uint64_t hash;
    uint32_t candidate;  // a host with the same short hash
    Ref list;            // the chunk of its FIFOs to look at next
  };
  struct Tally;   // what one Next call took from each host
  struct Loader;  // what is read before it is put together

  static bool Before(const Queue& a, const Queue& b) {
    return a.depth != b.depth ? a.depth < b.depth : a.priority > b.priority;
  }
  static uint64_t HashHost(std::string_view host) { return base::HashBytes(host, 0); }
  static uint64_t HashUrl(std::string_view rest, uint64_t host_hash) {
    return base::HashBytes(rest, host_hash);
  }
  uint64_t HashUrl(uint32_t host, std::string_view rest) const {
    return HashUrl(rest, HashHost(names_.Get(hosts_[host].name)));
  }
  void Note(Part part, uint32_t host, bool write, const void* address, size_t bytes) const {
    if (observer_ != nullptr) [[unlikely]] {
      observer_->Access(part, host, write, address, bytes);
    }
  }

  // ---- time ----
  // Lets happen what is due.
  void Advance(int64_t now);
  void Happen(const Event& event);
  void WakeHosts();
  void Prune();

  // ---- hosts ----
  uint32_t FindHost(std::string_view name, uint64_t hash) const;
  uint32_t NewHost(std::string_view name, uint64_t hash);
  void DropEmptyQueue(Host& host, Place place);
  uint64_t LimitOf(const Host& host) const {
    return host.limit == kDefaultLimit ? options_.max_per_host : host.limit;
  }
  int64_t DelayOf(const Host& host) const {
    return host.delay < 0 ? options_.delay_ms : host.delay;
  }
  bool AtLimit(const Host& host) const;
  // After something about the host changed: whether it is ready, and its rank. `moved`: it has got
  // its first URL, or its time has changed.
  void Refresh(uint32_t number, bool moved);
  void SetReady(uint32_t number, bool ready);
  void Rank(uint32_t number);
  void StartBest();
  void StartPriority();
  int TopPriority(const Host& host) const;

  // ---- FIFOs ----
  Queue GetQueue(const Host& host, Place place) const;
  // For change; good until the host's FIFOs become more or fewer.
  Queue& EditQueue(Host& host, Place place);
  Place PushQueue(Host& host, const Queue& queue);
  void RemoveQueue(Host& host, Place place);
  // Of that depth and priority; a new one if need be.
  Place FindQueue(uint32_t number, Host& host, uint16_t depth, int16_t priority);
  // The one that is served next.
  Place NextQueue(const Host& host, bool by_priority) const;
  std::vector<Queue> SortedQueues(const Host& host) const;
  template <typename Visit>
  void ForEachQueue(const Host& host, const Visit& visit) const;
  void Push(uint32_t number, uint16_t depth, int16_t priority, const Record& record);
  void Pop(uint32_t number, Host& host, Place place, Queue queue, const Record& record);
  void FreeQueue(const Queue& queue);
  // Room for `bytes` more at the end, if they can have it in one chunk.
  void MakeRoom(Queue* queue, size_t bytes);
  void Write(Queue* queue, std::string_view bytes);
  void Cut(Queue* queue, const Queue& before, Ref link);

  // ---- records ----
  static size_t PutHead(const Record& record, char* head);
  // The record at a place. `scratch` holds it when it goes over several chunks.
  Record Read(Ref chunk, size_t at, std::string* scratch) const;
  Ref StoreText(const Record& record);
  void FreeText(Ref text);

  // ---- dedup ----
  bool Known(uint64_t hash) const;
  // False when it was known.
  bool Remember(uint64_t hash);
  // A URL is no longer pending.
  void NoLongerPending(uint32_t host, std::string_view rest);
  Verdict Admit(const Url& url, uint64_t host_hash, uint64_t hash, uint32_t* host);
  void Plan(const Url& url, int step, Planned* plan) const;
  void PlanHost(const Url& url, Planned* plan) const;
  void PlanQueue(const Url& url, Planned* plan) const;
  void PlanTail(const Queue& queue) const;

  // ---- serving ----
  uint32_t Choose(Strategy strategy) const;
  void ServeOne(uint32_t number, bool by_priority, int64_t lease, const Serve& serve);
  // Takes the URLs in leaving_ out of the set.
  void Leave();
  size_t NextOfHost(const NextRequest& request, int64_t lease, const Serve& serve);
  void Lookahead(Strategy strategy, uint32_t number) const;
  Served MakeServed(uint32_t host, uint16_t depth, int16_t priority, const Record& record) const;

  // ---- items ----
  // Makes it with its text, event and lease; without memory nothing has changed.
  uint32_t Enter(Item item, const Record& record);
  void ReserveWaiting();
  void FreeItem(uint32_t slot);
  void PushEvent(uint32_t slot);
  // Delayed until that time; queued when it has come.
  void Delay(uint32_t host, uint16_t depth, int16_t priority, const Record& record, int64_t time);
  void Bury(uint32_t host, uint16_t depth, int16_t priority, const Record& record, int64_t time);
  // A lease that ended without success: `retry_at` is when the URL comes again.
  void Fail(uint32_t slot, int64_t retry_at, int64_t time);
  uint32_t TakeLease(uint64_t id) const;

  // ---- saving ----
  std::string Head() const;
  void SaveHosts(size_t block, size_t end, std::string* out) const;
  void SaveItems(size_t block, size_t end, std::string* out) const;
  void SaveArena(size_t block, std::string* out) const;
  bool LoadHead(std::string_view head, Loader* loader);
  bool LoadPiece(std::string_view piece, Loader* loader);
  bool LoadHosts(std::string_view piece, Loader* loader);
  bool LoadItems(std::string_view piece, Loader* loader);
  bool LoadArena(std::string_view piece, Loader* loader);
  bool Assemble(Loader* loader);
  bool AdoptHost(uint32_t number, Loader* loader);
  bool AdoptQueue(uint32_t number, const Queue& queue, Loader* loader);
  bool AdoptItem(uint32_t slot, Loader* loader);
  static bool ParseRecord(std::string_view* bytes, Record* record);

  Options options_;
  int64_t now_ = 0;
  uint64_t next_id_ = 1;
  uint32_t cursor_ = 0;  // breadth goes on here

  FrontierArray<Host, 128> hosts_;
  FrontierNames names_;
  TextTable table_;  // host numbers by name
  Arena arena_;
  FrontierArray<Item, 256> items_;
  std::vector<uint32_t> free_items_;
  std::vector<uint32_t> dead_;                     // items, in the order in which they died
  std::unordered_map<uint64_t, uint32_t> leases_;  // items by id
  std::vector<Event> events_;                      // a heap, the earliest first
  std::vector<Waiting> waiting_;                   // likewise
  std::unique_ptr<FrontierSet> set_;               // pending or seen URLs
  std::unique_ptr<Bloom> bloom_;

  HostBitmap ready_;
  std::unique_ptr<HostMaximum> best_;  // made when a strategy asks for it
  std::unique_ptr<HostMaximum> top_;

  uint64_t queued_ = 0;
  uint64_t delayed_ = 0;
  uint64_t leased_ = 0;
  uint64_t ready_hosts_ = 0;
  uint64_t busy_hosts_ = 0;  // have something queued
  Stats counts_;             // only what is counted over time

  std::unique_ptr<PieceSink> cut_;
  static constexpr size_t kLeaving = 32;
  uint64_t
      leaving_[kLeaving];  // URLs served in this call that set_ still has; none outside of Next
  size_t leaving_count_ = 0;
  FrontierObserver* observer_ = nullptr;
  std::string scratch_;
};

}  // namespace sava::types
