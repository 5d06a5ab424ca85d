// UrlFrontier: the queue of a crawler: which URL to fetch next. It is the value behind the server's
// FR.* commands.
//
//   auto frontier = sava::UrlFrontier::Make({});
//   frontier->Add("http://example.com/a", {}, now_ms);
//   for (const auto& url : frontier->Next({.count = 10}, now_ms)) Fetch(url.url);
//
// Hosts stand in order of discovery. A host's next URL is the one of lowest depth, of equal depths
// the one of highest priority. The strategy chooses the host: kDepth the first one that has a URL,
// kBreadth each in turn, kBest the one with most URLs, kPriority the one with the highest priority.
// A host may have a delay between two URLs; a URL may be leased, and comes back when the lease
// ends.
//
// Time is a parameter, in Unix milliseconds. Add is O(length of the URL); Next is O(1) each, with
// kBest and kPriority O(log hosts). Thread safety: one thread at a time for each object; const
// functions of one object may run at the same time; different objects are independent.
#pragma once

#include <sava/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sava {

class SAVA_EXPORT UrlFrontier {
 public:
  enum class Strategy { kDepth, kBreadth, kBest, kPriority };
  // What makes a URL a duplicate: that it is pending, or that it was ever added.
  enum class Dedup { kPending, kSeen };
  // How URLs are normalised: by the rules of document S1, or by RFC 3986.
  enum class Norm { kUfmg, kRfc3986 };
  enum class Verdict { kAdded, kDuplicate, kInvalid, kOverLimit };

  struct Options {
    Strategy strategy = Strategy::kDepth;
    Dedup dedup = Dedup::kPending;
    Norm norm = Norm::kUfmg;
    std::int64_t delay_ms = 0;       // between two URLs of one host
    std::uint64_t max_per_host = 0;  // URLs waiting; 0: any number
    std::int64_t lease_ms = 0;       // 0: what is served is done
    std::uint32_t retries = 3;       // failures after which a URL is tried again
  };
  struct Attributes {
    std::int16_t priority = 0;
    std::int64_t not_before = 0;  // a time; 0: at once
    std::string_view meta = {};   // comes back with the URL
  };
  struct Request {
    std::size_t count = 1;
    std::string_view host = {};  // only of this one; empty: of any
  };
  struct Served {
    std::string url;
    std::string host;
    std::uint32_t depth = 0;  // slashes in its path
    std::int16_t priority = 0;
    std::uint32_t failures = 0;
    std::string meta;
    std::uint64_t lease = 0;  // for Ack and Nack; 0: none
  };
  struct Host {
    std::string name;
    std::uint64_t queued = 0;
    std::uint64_t delayed = 0;
    std::uint64_t leased = 0;
  };
  struct Stats {
    std::uint64_t hosts = 0;
    std::uint64_t queued = 0;
    std::uint64_t delayed = 0;
    std::uint64_t leased = 0;
    std::uint64_t dead = 0;  // failed too often
    std::uint64_t added = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t served = 0;
  };

  // Nothing when an option is out of bounds: times up to 2^31 - 1 ms, at most 1,000,000 retries.
  static std::optional<UrlFrontier> Make(const Options& options);
  UrlFrontier(UrlFrontier&& other) noexcept;
  UrlFrontier& operator=(UrlFrontier&& other) noexcept;
  ~UrlFrontier();

  Verdict Add(std::string_view url, const Attributes& attributes, std::int64_t now_ms);
  std::vector<Served> Next(const Request& request, std::int64_t now_ms);
  // The earliest time at which Next may serve something; nothing when only an Add can help.
  std::optional<std::int64_t> NextWake(std::int64_t now_ms) const;
  // The URL is done; false when the lease is not known (any more).
  bool Ack(std::uint64_t lease, std::int64_t now_ms);
  // Fetching failed: it comes again at `retry_at` (0: after a pause that doubles).
  bool Nack(std::uint64_t lease, std::int64_t retry_at, std::int64_t now_ms);
  // Whether a URL added now would be a duplicate.
  bool Seen(std::string_view url) const;
  // Hosts from number `start` on, in order of discovery.
  std::vector<Host> Hosts(std::uint64_t start, std::uint64_t count) const;
  // Forgets a host's waiting URLs; how many. The host stays known.
  std::uint64_t Purge(std::string_view host, std::int64_t now_ms);
  // Forgets everything but the options.
  void Clear();
  Stats stats() const;
  Options options() const;
  std::size_t memory() const;

  // A URL as the frontier would keep it; nothing when it would refuse it. Safe from any thread.
  static std::optional<std::string> Normalize(Norm norm, std::string_view url);

  UrlFrontier Clone() const;
  // The bytes of the server's DUMP, which its RESTORE takes.
  std::string Save() const;
  // Nothing when the bytes are not those of a frontier.
  static std::optional<UrlFrontier> Load(std::string_view bytes);

 private:
  struct Impl;
  explicit UrlFrontier(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
