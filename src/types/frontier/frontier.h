// Frontier: the queue of a crawler: which URL to fetch next.
//
// Hosts stand in order of discovery and stay known. A host has one FIFO per depth and priority; its
// next URL is the first of the lowest depth, of equal depths of the highest priority. (With equal
// priorities that is order of depth, then of arrival.) Strategies choose the host:
//
//   depth     the first known host that has a URL, until it has none
//   breadth   one URL of each host in turn, from the host after the last one served, also in the
//             next call; when nothing is queued any more it begins again at the first
//   best      the host with most URLs queued; of equal ones the first known
//   priority  the highest priority of all; of equal ones the first known host. Within the host the
//             highest priority goes first, then the lowest depth
//
// A URL is queued (may be served), delayed (until its time; then it goes to the end of its FIFO),
// leased (a worker has it; it comes back when the lease ends) or dead (failed too often). The
// first three count as pending. URLs come normalised and split; nothing is parsed here.
//
// Time: Unix milliseconds, always a parameter; nothing reads a clock. A call first lets happen what
// was due by then (delayed URLs, leases that end), in the order of those times; a time before the
// last call's counts as that one's. So the same changing calls with the same times give the same
// state, and calls that served nothing can be left out.
//
// Costs: add O(length); next O(1) (depth, breadth) or O(log hosts) (best, priority) each; a host
// with k depths and priorities adds O(k) steps of a short list. Thread safety: as every Object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "types/value/object.h"

namespace sava::types {

// Is told every access to the structures of a Frontier, for studies of locality.
class FrontierObserver {
 public:
  enum class Part : uint8_t {
    kHostCell,  // tables by which hosts are found and chosen
    kListCell,  // a host's list of FIFOs, and the heads of their chunks
    kHost,      // a host's own record and name
    kUrl,       // a URL's record
  };
  // `host` is the host's number in order of discovery, from 0; 0 for kHostCell.
  virtual void Access(Part part, uint32_t host, bool write, const void* address, size_t size) = 0;

 protected:
  ~FrontierObserver() = default;
};

class Frontier final : public Object {
 public:
  enum class Strategy : uint8_t { kDepth, kBreadth, kBest, kPriority };
  // What makes a URL a duplicate: that it is pending; that it was ever added (kSeen: by fingerprint
  // of 64 bits; kBloom: by a filter with a given rate of errors).
  enum class Dedup : uint8_t { kPending, kSeen, kBloom };

  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr size_t kMaxHost = 1024;  // bytes
  static constexpr size_t kMaxRest = 65535;
  static constexpr size_t kMaxMeta = 65535;
  static constexpr uint32_t kMaxDepth = 65535;  // deeper ones count as this
  static constexpr uint32_t kMaxRetries = 1000000;
  static constexpr int64_t kMaxTime = int64_t{1} << 52;  // of every time
  static constexpr int64_t kMaxDelay = INT32_MAX;        // of delays and leases, in ms
  static constexpr uint64_t kMaxHosts = uint64_t{1} << 31;
  static constexpr uint64_t kMaxPerHost = UINT32_MAX - 1;
  static constexpr int64_t kFirstBackoff = 1000;  // ms after the first failure, then doubled
  static constexpr int64_t kMaxBackoff = 3600000;

  struct Options {
    Strategy strategy = Strategy::kDepth;
    Dedup dedup = Dedup::kPending;
    double bloom_error = 0.01;
    uint8_t norm = 0;           // how URLs are normalised: a number of the caller's, only kept
    int64_t delay_ms = 0;       // between two URLs of one host
    uint64_t max_per_host = 0;  // URLs queued and delayed; 0: any number
    int64_t lease_ms = 0;       // for Next calls that say nothing; 0: no lease
    uint32_t retries = 3;       // failures after which a URL is tried again
    bool operator==(const Options&) const = default;
  };

  // A normalised URL in parts, as NormalizeUrl gives them (types/frontier/url.h); two URLs are the
  // same when host and rest are.
  struct Url {
    std::string_view host;
    std::string_view rest;  // path, query and scheme
    uint32_t depth = 0;
  };
  // What FR.ADD gives to all its URLs.
  struct Attributes {
    int16_t priority = 0;
    int64_t not_before = 0;  // at or before now: at once
    std::string_view meta;
  };
  // The numbers are those of FR.ADD's reply. kInvalid: a part is too long, or the host is empty.
  enum class Verdict : int8_t { kAdded = 1, kDuplicate = 0, kInvalid = -1, kOverLimit = -2 };

  struct Served {
    Url url;
    int16_t priority = 0;
    uint32_t failures = 0;  // so far
    std::string_view meta;
    uint64_t lease = 0;  // 0: none
  };
  struct NextRequest {
    size_t count = 1;
    std::optional<Strategy> strategy;      // else that of the options
    std::optional<std::string_view> host;  // only of this one; does not move breadth's place
    uint64_t per_host = 0;                 // at most that many of one host; 0: any number
    std::optional<int64_t> lease_ms;       // else that of the options; 0: no lease
    bool restart = false;                  // breadth begins at the first host, if it serves any
  };

  // REQUIRES: options within the limits above; 0 < bloom_error < 1 for kBloom.
  explicit Frontier(const Options& options);
  ~Frontier() override;

  const Options& options() const;

  // ---- adding and serving ----
  // One verdict per URL, in their order. A refused URL does not make its host known.
  // REQUIRES: verdicts.size() >= urls.size().
  void Add(std::span<const Url> urls, const Attributes& attributes, int64_t now,
           std::span<Verdict> verdicts);
  Verdict AddOne(const Url& url, const Attributes& attributes, int64_t now);

  // The views are good during the call only.
  using Serve = std::function<void(const Served& served)>;
  // How many were served. A host that waits (its delay, a block) serves nothing.
  size_t Next(const NextRequest& request, int64_t now, const Serve& serve);
  // The earliest time at which Next may serve something (of one host, when given): `now` when it
  // may do so already, kNever when only an Add can help.
  int64_t NextWake(int64_t now, std::optional<std::string_view> host = std::nullopt) const;

  // ---- leases: each gives how many of the ids were known ----
  // Done. refetch_at != 0: the URL comes again at that time, with no failures.
  size_t Ack(std::span<const uint64_t> ids, int64_t refetch_at, int64_t now);
  // Failed: comes again at retry_at (0: after kFirstBackoff * 2^failures ms), or is dead when that
  // was one failure too many. A lease that ends counts as a failure; the URL comes again at once.
  size_t Nack(std::span<const uint64_t> ids, int64_t retry_at, int64_t now);
  size_t Extend(std::span<const uint64_t> ids, int64_t until, int64_t now);

  // ---- hosts ----
  struct HostInfo {
    std::string_view name;
    uint32_t number = 0;  // in order of discovery
    uint64_t queued = 0;
    uint64_t delayed = 0;
    uint64_t leased = 0;
    int64_t delay_ms = 0;       // its own, or that of the options
    uint64_t limit = 0;         // likewise
    int64_t blocked_until = 0;  // 0: not blocked
    int64_t next_at = 0;        // when it may be served again; 0: any time
  };
  struct HostChange {
    std::optional<int64_t> delay_ms;  // negative: as the options say
    std::optional<int64_t> blocked_until;
    std::optional<uint64_t> limit;  // 0: any number
  };
  uint64_t host_count() const;
  std::optional<HostInfo> FindHost(std::string_view host) const;
  // Makes the host known if need be; false when its name is empty or too long.
  bool ChangeHost(std::string_view host, const HostChange& change, int64_t now);
  // Hosts from number `start` on, in order of discovery.
  void Hosts(uint64_t start, uint64_t count,
             const std::function<void(const HostInfo& host)>& visit) const;

  // ---- looking ----
  enum class Look : uint8_t { kFound, kUnknownHost, kEmpty, kInvalidPosition };
  // The host's queued URLs from position `start` on, in the order in which depth serves them.
  // kEmpty: it has none; kInvalidPosition: valid ones are 0 … FindHost(host)->queued - 1.
  Look Peek(std::string_view host, uint64_t start, uint64_t count, const Serve& visit) const;
  // Whether a URL added now would be a duplicate.
  bool Seen(const Url& url) const;
  // Dead URLs from position `start` on, in the order in which they died.
  void Dead(uint64_t start, uint64_t count, const Serve& visit) const;
  // Forgets them; how many.
  uint64_t ForgetDead(int64_t now);

  struct Stats {
    struct {
      uint64_t known = 0;
      uint64_t ready = 0;    // as of the last changing call
      uint64_t waiting = 0;  // have URLs queued, and wait for their time
    } hosts;
    uint64_t queued = 0;
    uint64_t delayed = 0;
    uint64_t leased = 0;
    uint64_t dead = 0;
    uint64_t seen = 0;  // fingerprints kept for dedup
    uint64_t added = 0;
    uint64_t duplicates = 0;
    uint64_t over_limit = 0;
    uint64_t served = 0;
    uint64_t acked = 0;
    uint64_t failed = 0;   // by Nack
    uint64_t expired = 0;  // leases that ended
    uint64_t bytes = 0;
  };
  Stats stats() const;

  // ---- forgetting ----
  // A host's queued and delayed URLs; it stays known, leases stay, and what was seen stays seen.
  // How many went; nothing when the host is not known.
  std::optional<uint64_t> Purge(std::string_view host, int64_t now);
  // Everything but the options, hosts and seen URLs included. Lease ids go on.
  void Clear();
  // What Clear would leave, as a new object: for callers that free the old one elsewhere.
  std::unique_ptr<Frontier> Emptied() const;

  // ---- carrying URLs elsewhere ----
  enum class State : uint8_t { kQueued, kDelayed, kLeased, kDead };
  struct Entry {
    Served url;
    State state = State::kQueued;
    int64_t time = 0;  // kDelayed: when it comes; kLeased: when the lease ends
  };
  // Visits about `count` entries from `cursor` on (0: the first) and gives where to go on, 0 at the
  // end: queued ones host by host, then the others. Complete when nothing changes meanwhile.
  uint64_t Export(uint64_t cursor, uint64_t count,
                  const std::function<void(const Entry& entry)>& visit) const;
  // Adds an entry with its failures and time; a leased one as delayed until its time.
  Verdict Import(const Entry& entry, int64_t now);

  // nullptr: none. It costs one test per access.
  void set_observer(FrontierObserver* observer);

  // ---- as an object ----
  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return "raw"; }
  size_t size() const override;  // URLs in any state
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  bool large() const override;
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override;
  void AbortCut() override;

 private:
  class Core;
  explicit Frontier(std::unique_ptr<Core> core);
  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);

  std::unique_ptr<Core> core_;
};

}  // namespace sava::types
