#include <sava/url_frontier.h>

#include <algorithm>
#include <utility>

#include "library/saved.h"
#include "types/frontier/frontier.h"
#include "types/frontier/url.h"

namespace sava {

namespace {

using types::Frontier;

Frontier::Strategy StrategyOf(UrlFrontier::Strategy strategy) {
  switch (strategy) {
    case UrlFrontier::Strategy::kBreadth:
      return Frontier::Strategy::kBreadth;
    case UrlFrontier::Strategy::kBest:
      return Frontier::Strategy::kBest;
    case UrlFrontier::Strategy::kPriority:
      return Frontier::Strategy::kPriority;
    case UrlFrontier::Strategy::kDepth:
      break;
  }
  return Frontier::Strategy::kDepth;
}

UrlFrontier::Strategy StrategyOf(Frontier::Strategy strategy) {
  switch (strategy) {
    case Frontier::Strategy::kBreadth:
      return UrlFrontier::Strategy::kBreadth;
    case Frontier::Strategy::kBest:
      return UrlFrontier::Strategy::kBest;
    case Frontier::Strategy::kPriority:
      return UrlFrontier::Strategy::kPriority;
    case Frontier::Strategy::kDepth:
      break;
  }
  return UrlFrontier::Strategy::kDepth;
}

UrlFrontier::Verdict VerdictOf(Frontier::Verdict verdict) {
  switch (verdict) {
    case Frontier::Verdict::kAdded:
      return UrlFrontier::Verdict::kAdded;
    case Frontier::Verdict::kDuplicate:
      return UrlFrontier::Verdict::kDuplicate;
    case Frontier::Verdict::kOverLimit:
      return UrlFrontier::Verdict::kOverLimit;
    case Frontier::Verdict::kInvalid:
      break;
  }
  return UrlFrontier::Verdict::kInvalid;
}

types::UrlNorm NormOf(UrlFrontier::Norm norm) {
  return norm == UrlFrontier::Norm::kRfc3986 ? types::UrlNorm::kRfc3986 : types::UrlNorm::kUfmg;
}

types::UrlNorm NormOf(const Frontier& frontier) {
  constexpr auto kRfc3986 = static_cast<std::uint8_t>(types::UrlNorm::kRfc3986);
  return frontier.options().norm == kRfc3986 ? types::UrlNorm::kRfc3986 : types::UrlNorm::kUfmg;
}

bool Within(std::int64_t value, std::int64_t most) { return value >= 0 && value <= most; }

// A URL taken apart, with the bytes its parts may stand in.
struct Normalized {
  Normalized(types::UrlNorm norm, std::string_view url)
      : room(
            std::make_unique<char[]>(types::UrlRoom(std::min(url.size(), types::kMaxUrlSize + 1)))),
        split(url.size() > types::kMaxUrlSize
                  ? types::SplitUrl{.fault = types::UrlFault::kTooLong, .host = {}, .rest = {}}
                  : types::NormalizeUrl(norm, url, room.get())) {}

  Frontier::Url url() const { return {split.host, split.rest, split.depth}; }

  std::unique_ptr<char[]> room;
  types::SplitUrl split;
};

UrlFrontier::Served ServedOf(const Frontier::Served& served) {
  UrlFrontier::Served copy{.url = {},
                           .host = std::string(served.url.host),
                           .depth = served.url.depth,
                           .priority = served.priority,
                           .failures = served.failures,
                           .meta = std::string(served.meta),
                           .lease = served.lease};
  types::AppendUrl(served.url.host, served.url.rest, &copy.url);
  return copy;
}

}  // namespace

struct UrlFrontier::Impl {
  std::unique_ptr<Frontier> frontier;
};

UrlFrontier::UrlFrontier(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UrlFrontier::UrlFrontier(UrlFrontier&& other) noexcept = default;
UrlFrontier& UrlFrontier::operator=(UrlFrontier&& other) noexcept = default;
UrlFrontier::~UrlFrontier() = default;

std::optional<UrlFrontier> UrlFrontier::Make(const Options& options) {
  if (!Within(options.delay_ms, Frontier::kMaxDelay)) return std::nullopt;
  if (!Within(options.lease_ms, Frontier::kMaxDelay)) return std::nullopt;
  if (options.max_per_host > Frontier::kMaxPerHost) return std::nullopt;
  if (options.retries > Frontier::kMaxRetries) return std::nullopt;
  const Frontier::Options made{
      .strategy = StrategyOf(options.strategy),
      .dedup = options.dedup == Dedup::kSeen ? Frontier::Dedup::kSeen : Frontier::Dedup::kPending,
      .norm = static_cast<std::uint8_t>(NormOf(options.norm)),
      .delay_ms = options.delay_ms,
      .max_per_host = options.max_per_host,
      .lease_ms = options.lease_ms,
      .retries = options.retries};
  return UrlFrontier(std::unique_ptr<Impl>(new Impl{std::make_unique<Frontier>(made)}));
}

UrlFrontier::Verdict UrlFrontier::Add(std::string_view url, const Attributes& attributes,
                                      std::int64_t now_ms) {
  const Normalized normalized(NormOf(*impl_->frontier), url);
  if (!normalized.split.ok()) return Verdict::kInvalid;
  const Frontier::Attributes given{
      .priority = attributes.priority,
      .not_before = std::clamp<std::int64_t>(attributes.not_before, 0, Frontier::kMaxTime),
      .meta = attributes.meta};
  return VerdictOf(impl_->frontier->AddOne(normalized.url(), given, now_ms));
}

std::vector<UrlFrontier::Served> UrlFrontier::Next(const Request& request, std::int64_t now_ms) {
  std::vector<Served> served;
  Frontier::NextRequest asked{.count = request.count, .strategy = {}, .host = {}, .lease_ms = {}};
  if (!request.host.empty()) asked.host = request.host;
  impl_->frontier->Next(
      asked, now_ms, [&served](const Frontier::Served& url) { served.push_back(ServedOf(url)); });
  return served;
}

std::optional<std::int64_t> UrlFrontier::NextWake(std::int64_t now_ms) const {
  const std::int64_t wake = impl_->frontier->NextWake(now_ms);
  if (wake == Frontier::kNever) return std::nullopt;
  return wake;
}

bool UrlFrontier::Ack(std::uint64_t lease, std::int64_t now_ms) {
  return impl_->frontier->Ack({&lease, 1}, 0, now_ms) != 0;
}

bool UrlFrontier::Nack(std::uint64_t lease, std::int64_t retry_at, std::int64_t now_ms) {
  return impl_->frontier->Nack(
             {&lease, 1}, std::clamp<std::int64_t>(retry_at, 0, Frontier::kMaxTime), now_ms) != 0;
}

bool UrlFrontier::Seen(std::string_view url) const {
  const Normalized normalized(NormOf(*impl_->frontier), url);
  return normalized.split.ok() && impl_->frontier->Seen(normalized.url());
}

std::vector<UrlFrontier::Host> UrlFrontier::Hosts(std::uint64_t start, std::uint64_t count) const {
  std::vector<Host> hosts;
  impl_->frontier->Hosts(start, count, [&hosts](const Frontier::HostInfo& host) {
    hosts.push_back({std::string(host.name), host.queued, host.delayed, host.leased});
  });
  return hosts;
}

std::uint64_t UrlFrontier::Purge(std::string_view host, std::int64_t now_ms) {
  return impl_->frontier->Purge(host, now_ms).value_or(0);
}

void UrlFrontier::Clear() { impl_->frontier->Clear(); }

UrlFrontier::Stats UrlFrontier::stats() const {
  const Frontier::Stats stats = impl_->frontier->stats();
  return {stats.hosts.known, stats.queued, stats.delayed,    stats.leased,
          stats.dead,        stats.added,  stats.duplicates, stats.served};
}

UrlFrontier::Options UrlFrontier::options() const {
  const Frontier::Options& options = impl_->frontier->options();
  return {
      .strategy = StrategyOf(options.strategy),
      .dedup = options.dedup == Frontier::Dedup::kPending ? Dedup::kPending : Dedup::kSeen,
      .norm = NormOf(*impl_->frontier) == types::UrlNorm::kRfc3986 ? Norm::kRfc3986 : Norm::kUfmg,
      .delay_ms = options.delay_ms,
      .max_per_host = options.max_per_host,
      .lease_ms = options.lease_ms,
      .retries = options.retries};
}

std::size_t UrlFrontier::memory() const { return library::MemoryOf(*impl_->frontier); }

std::optional<std::string> UrlFrontier::Normalize(Norm norm, std::string_view url) {
  const Normalized normalized(NormOf(norm), url);
  if (!normalized.split.ok()) return std::nullopt;
  std::string text;
  types::AppendUrl(normalized.split.host, normalized.split.rest, &text);
  return text;
}

UrlFrontier UrlFrontier::Clone() const {
  return UrlFrontier(std::unique_ptr<Impl>(new Impl{library::CopyOf(*impl_->frontier)}));
}

std::string UrlFrontier::Save() const { return library::SavedBytes(*impl_->frontier); }

std::optional<UrlFrontier> UrlFrontier::Load(std::string_view bytes) {
  std::unique_ptr<Frontier> frontier = library::LoadedFrom<Frontier>(bytes);
  if (frontier == nullptr) return std::nullopt;
  return UrlFrontier(std::unique_ptr<Impl>(new Impl{std::move(frontier)}));
}

}  // namespace sava
