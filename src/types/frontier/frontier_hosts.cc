// The hosts of a Frontier, what it knows of URLs, and adding them.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/if_memory.h"
#include "base/prefetch.h"
#include "types/frontier/frontier_core.h"

namespace sava::types {

namespace {

// The steps of asking for a URL's memory, and how many URLs lie between two of them.
constexpr size_t kSteps = 5;
constexpr size_t kApart = 6;
constexpr size_t kAhead = 32;
static_assert(kSteps * kApart < kAhead);
// Of 64 bits all are kept of URLs ever seen; pending ones are fewer, and kept in fewer bytes.
constexpr unsigned kSeenBits = 64;
constexpr unsigned kPendingBits = 56;

}  // namespace

uint32_t FrontierNames::Add(std::string_view name) {
  const size_t size = (sizeof(uint16_t) + name.size() + 3) / 4 * 4;
  if (used_ + size > kBlock) {
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    used_ = 0;
  }
  char* const at = blocks_.back().get() + used_;
  const auto length = static_cast<uint16_t>(name.size());
  memcpy(at, &length, sizeof length);
  memcpy(at + sizeof length, name.data(), name.size());
  const auto number = static_cast<uint32_t>((blocks_.size() - 1) << 12 | used_ / 4);
  used_ += size;
  return number;
}

void FrontierNames::Clear() {
  blocks_.clear();
  blocks_.shrink_to_fit();
  used_ = kBlock;
}

size_t FrontierNames::bytes() const {
  return blocks_.size() * kBlock + blocks_.capacity() * sizeof(void*);
}

Frontier::Core::Core(const Options& options) : options_(options) {
  if (options.dedup == Dedup::kBloom) {
    Bloom::Options bloom;
    bloom.error = options.bloom_error;
    bloom_ = Bloom::Make(bloom);
  } else {
    set_ = std::make_unique<FrontierSet>(options.dedup == Dedup::kSeen ? kSeenBits : kPendingBits);
  }
}

// ---- hosts ----

uint32_t Frontier::Core::FindHost(std::string_view name, uint64_t hash) const {
  const uint32_t found = table_.Find(static_cast<uint32_t>(hash), [&](uint32_t number) {
    const Host& host = hosts_[number];
    const std::string_view known = names_.Get(host.name);
    Note(Part::kHost, number, false, &host, sizeof host);
    Note(Part::kHost, number, false, names_.Address(host.name), known.size());
    return known == name;
  });
  return found == TextTable::kNothing ? kNoHost : found;
}

uint32_t Frontier::Core::NewHost(std::string_view name, uint64_t hash) {
  const auto number = static_cast<uint32_t>(hosts_.size());
  // All memory first: without it there is no such host.
  table_.Reserve();
  hosts_.Reserve();
  ready_.Reserve(number);
  if (best_ != nullptr) best_->Reserve(number);
  if (top_ != nullptr) top_->Reserve(number);
  const uint32_t kept = names_.Add(name);
  Host& host = hosts_.Append();
  host = Host();
  host.name = kept;
  Note(Part::kHost, number, true, &host, sizeof host);
  Note(Part::kHost, number, true, names_.Address(host.name), name.size());
  table_.Insert(static_cast<uint32_t>(hash), number);
  return number;
}

bool Frontier::Core::AtLimit(const Host& host) const {
  const uint64_t limit = LimitOf(host);
  const uint64_t held = uint64_t{host.queued} + host.delayed;
  return (limit != 0 && held >= limit) || held >= kMaxPerHost;
}

void Frontier::Core::SetReady(uint32_t number, bool ready) {
  if (ready) {
    ready_.Set(number);
    ++ready_hosts_;
  } else {
    ready_.Reset(number);
    --ready_hosts_;
  }
  Note(Part::kHostCell, 0, true, ready_.Word(number), sizeof(uint64_t));
}

// Takes the memory that one Refresh needs.
void Frontier::Core::ReserveWaiting() {
  if (waiting_.size() == waiting_.capacity()) waiting_.reserve(2 * waiting_.size() + 1);
}

void Frontier::Core::Refresh(uint32_t number, bool moved) {
  const Host& host = hosts_[number];
  const bool ready = host.queued != 0 && host.ready_at() <= now_;
  if (ready != ready_.Has(number)) SetReady(number, ready);
  if (moved && host.queued != 0 && !ready) {
    waiting_.push_back({host.ready_at(), number});
    std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    if (waiting_.size() > 2 * hosts_.size() + 64) {
      // Most entries no longer hold.
      waiting_.clear();
      for (uint32_t i = 0; i < hosts_.size(); ++i) {
        const Host& other = hosts_[i];
        if (other.queued != 0 && !ready_.Has(i)) waiting_.push_back({other.ready_at(), i});
      }
      std::make_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    }
  }
  Rank(number);
}

void Frontier::Core::Rank(uint32_t number) {
  if (best_ == nullptr && top_ == nullptr) return;
  const Host& host = hosts_[number];
  const bool ready = ready_.Has(number);
  if (best_ != nullptr) best_->Set(number, ready ? host.queued : HostMaximum::kNothing);
  if (top_ != nullptr) {
    top_->Set(number, ready ? TopPriority(host) - INT16_MIN : HostMaximum::kNothing);
  }
}

void Frontier::Core::StartBest() {
  if (best_ != nullptr) return;
  best_ = std::make_unique<HostMaximum>();
  for (auto i = static_cast<uint32_t>(hosts_.size()); i-- > 0;) {
    best_->Set(i, ready_.Has(i) ? hosts_[i].queued : HostMaximum::kNothing);
  }
}

void Frontier::Core::StartPriority() {
  if (top_ != nullptr) return;
  top_ = std::make_unique<HostMaximum>();
  for (auto i = static_cast<uint32_t>(hosts_.size()); i-- > 0;) {
    top_->Set(i, ready_.Has(i) ? TopPriority(hosts_[i]) - INT16_MIN : HostMaximum::kNothing);
  }
}

bool Frontier::Core::ChangeHost(std::string_view name, const HostChange& change, int64_t now) {
  if (name.empty() || name.size() > kMaxHost) return false;
  Advance(now);
  const uint64_t hash = HashHost(name);
  uint32_t number = FindHost(name, hash);
  if (number == kNoHost) {
    if (hosts_.size() >= kMaxHosts || names_.full()) return false;
    number = NewHost(name, hash);
  }
  Host& host = hosts_.Edit(number);
  if (change.delay_ms) {
    host.delay = static_cast<int32_t>(std::clamp<int64_t>(*change.delay_ms, -1, kMaxDelay));
  }
  if (change.blocked_until) {
    host.blocked_until = std::clamp<int64_t>(*change.blocked_until, 0, kMaxTime);
  }
  if (change.limit) host.limit = static_cast<uint32_t>(std::min(*change.limit, kMaxPerHost));
  Refresh(number, true);
  Prune();
  return true;
}

// ---- dedup ----

bool Frontier::Core::Known(uint64_t hash) const {
  return set_ != nullptr ? set_->Has(hash) : bloom_->Has(hash);
}

bool Frontier::Core::Remember(uint64_t hash) {
  return set_ != nullptr ? set_->Insert(hash) : bloom_->Add(hash) == Bloom::Added::kNew;
}

void Frontier::Core::NoLongerPending(uint32_t host, std::string_view rest) {
  if (options_.dedup == Dedup::kPending) set_->Erase(HashUrl(host, rest));
}

bool Frontier::Core::Seen(const Url& url) const {
  return Known(HashUrl(url.rest, HashHost(url.host)));
}

// ---- adding ----

// Asks for the memory that a URL will need, a step at a time: each step reads what the one before
// asked for.
void Frontier::Core::Plan(const Url& url, int step, Planned* plan) const {
  switch (step) {
    case 0:
      plan->host_hash = HashHost(url.host);
      plan->hash = HashUrl(url.rest, plan->host_hash);
      table_.Prefetch(static_cast<uint32_t>(plan->host_hash));
      if (set_ != nullptr) set_->PrefetchDirectory(plan->hash);
      return;
    case 1:
      plan->candidate = table_.Find(static_cast<uint32_t>(plan->host_hash),
                                    [](uint32_t /*number*/) { return true; });
      if (plan->candidate != TextTable::kNothing) {
        const char* const host = reinterpret_cast<const char*>(&hosts_[plan->candidate]);
        base::PrefetchForWrite(host);
        base::PrefetchForWrite(host + sizeof(Host) - 1);
      }
      set_ != nullptr ? set_->PrefetchPage(plan->hash) : bloom_->Prefetch(plan->hash);
      return;
    case 2:
      if (set_ != nullptr) set_->PrefetchSlot(plan->hash);
      return PlanHost(url, plan);
    default:
      return PlanQueue(url, plan);
  }
}

void Frontier::Core::PlanTail(const Queue& queue) const {
  base::PrefetchForWrite(arena_.Look(queue.tail));
  base::PrefetchForWrite(arena_.Data(queue.tail) + queue.tail_at);
}

void Frontier::Core::PlanHost(const Url& url, Planned* plan) const {
  plan->list = Arena::kNone;
  if (plan->candidate == TextTable::kNothing) return;
  const Host& host = hosts_[plan->candidate];
  base::Prefetch(names_.Address(host.name));
  if (host.queued == 0) return;
  if (host.first.depth == url.depth || host.more_count == 0) {
    PlanTail(host.first);
    return;
  }
  plan->list = host.more;
  base::PrefetchForWrite(arena_.Look(host.more));
}

// One chunk of the host's other FIFOs. They may have changed since the step before, for a URL in
// between: what is read here is only a guess.
void Frontier::Core::PlanQueue(const Url& url, Planned* plan) const {
  const Ref chunk = std::exchange(plan->list, Arena::kNone);
  if (chunk == Arena::kNone) return;
  const Host& host = hosts_[plan->candidate];
  if (host.more_count == 0) return;
  const bool first = chunk == host.more;
  const uint32_t here = first ? (host.more_count - 1) % kQueuesPerChunk + 1 : kQueuesPerChunk;
  for (uint32_t i = 0; i < here; ++i) {
    const Queue queue = GetQueue(host, {chunk, i});
    if (queue.depth != url.depth) continue;
    if (arena_.Valid(queue.tail)) PlanTail(queue);
    return;
  }
  if (!first || host.more_count <= here) return;
  plan->list = arena_.Link(chunk);
  base::PrefetchForWrite(arena_.Look(plan->list));
}

Frontier::Verdict Frontier::Core::Admit(const Url& url, uint64_t host_hash, uint64_t hash,
                                        uint32_t* host) {
  if (url.host.empty() || url.host.size() > kMaxHost || url.rest.size() > kMaxRest) {
    return Verdict::kInvalid;
  }
  *host = FindHost(url.host, host_hash);
  const bool full =
      *host != kNoHost ? AtLimit(hosts_[*host]) : hosts_.size() >= kMaxHosts || names_.full();
  if (full || arena_.full()) {
    const bool known = Known(hash);
    ++(known ? counts_.duplicates : counts_.over_limit);
    return known ? Verdict::kDuplicate : Verdict::kOverLimit;
  }
  if (!Remember(hash)) {
    ++counts_.duplicates;
    return Verdict::kDuplicate;
  }
  if (*host == kNoHost) *host = NewHost(url.host, host_hash);
  ++counts_.added;
  return Verdict::kAdded;
}

void Frontier::Core::Add(std::span<const Url> urls, const Attributes& attributes, int64_t now,
                         std::span<Verdict> verdicts) {
  Advance(now);
  if (attributes.meta.size() > kMaxMeta) {
    std::fill_n(verdicts.begin(), urls.size(), Verdict::kInvalid);
    return;
  }
  // Each turn takes one URL to the end and asks for some memory of those behind it: all at once
  // would be more than the processor keeps in mind.
  Planned plans[kAhead];
  for (size_t turn = 0; turn < urls.size() + kSteps * kApart; ++turn) {
    for (size_t step = 0; step < kSteps; ++step) {
      const size_t i = turn - step * kApart;
      if (i < urls.size()) Plan(urls[i], static_cast<int>(step), &plans[i % kAhead]);
    }
    const size_t i = turn - kSteps * kApart;
    if (i >= urls.size()) continue;
    const Url& url = urls[i];
    const Planned& plan = plans[i % kAhead];
    uint32_t host = kNoHost;
    verdicts[i] = Admit(url, plan.host_hash, plan.hash, &host);
    if (verdicts[i] != Verdict::kAdded) continue;
    const auto depth = static_cast<uint16_t>(std::min(url.depth, kMaxDepth));
    Record record;
    record.meta = attributes.meta;
    record.rest = url.rest;
    const bool kept = base::IfMemory(
        [&] { Delay(host, depth, attributes.priority, record, attributes.not_before); });
    if (kept) continue;
    // It may come again, where what was seen can be forgotten.
    if (set_ != nullptr) set_->Erase(plan.hash);
    --counts_.added;
    throw std::bad_alloc();
  }
}

Frontier::Verdict Frontier::Core::Import(const Entry& entry, int64_t now) {
  Advance(now);
  const Served& served = entry.url;
  if (served.meta.size() > kMaxMeta) return Verdict::kInvalid;
  const uint64_t host_hash = HashHost(served.url.host);
  uint32_t host = kNoHost;
  const Verdict verdict = Admit(served.url, host_hash, HashUrl(served.url.rest, host_hash), &host);
  if (verdict != Verdict::kAdded) return verdict;
  const auto depth = static_cast<uint16_t>(std::min(served.url.depth, kMaxDepth));
  Record record;
  record.failures = std::min(served.failures, kMaxRetries + 1);
  record.meta = served.meta;
  record.rest = served.url.rest;
  if (entry.state == State::kDead) {
    Bury(host, depth, served.priority, record, now_);
  } else {
    Delay(host, depth, served.priority, record, entry.state == State::kQueued ? 0 : entry.time);
  }
  return verdict;
}

// ---- forgetting ----

std::optional<uint64_t> Frontier::Core::Purge(std::string_view name, int64_t now) {
  Advance(now);
  const uint32_t number = FindHost(name, HashHost(name));
  if (number == kNoHost) return std::nullopt;
  Host& host = hosts_.Edit(number);
  const uint64_t gone = uint64_t{host.queued} + host.delayed;
  std::string scratch;
  for (const Queue& queue : SortedQueues(host)) {
    Ref chunk = queue.head;
    size_t at = queue.head_at;
    for (uint32_t i = 0; options_.dedup == Dedup::kPending && i < queue.count; ++i) {
      const Record record = Read(chunk, at, &scratch);
      NoLongerPending(number, record.rest);
      chunk = record.end;
      at = record.end_at;
    }
    FreeQueue(queue);
  }
  for (uint32_t left = host.more_count; left != 0;) {
    const Ref next = arena_.Link(host.more);
    arena_.Free(host.more);
    left -= (left - 1) % kQueuesPerChunk + 1;
    host.more = left == 0 ? Arena::kNone : next;
  }
  host.more_count = 0;
  host.first = Queue();
  queued_ -= host.queued;
  if (host.queued != 0) --busy_hosts_;
  host.queued = 0;
  for (uint32_t slot = 0; host.delayed != 0 && slot < items_.size(); ++slot) {
    if (items_[slot].state != ItemState::kDelayed || items_[slot].host != number) continue;
    NoLongerPending(number, Read(items_[slot].text, 0, &scratch).rest);
    FreeItem(slot);
  }
  if (queued_ == 0) cursor_ = 0;
  Refresh(number, false);
  Prune();
  return gone;
}

void Frontier::Core::Clear() {
  while (!SavePieces(SIZE_MAX)) continue;
  const uint64_t next_id = next_id_;
  FrontierObserver* const observer = observer_;
  Core empty(options_);
  hosts_.Clear();
  names_.Clear();
  table_ = TextTable();
  arena_.Clear();
  items_.Clear();
  free_items_ = {};
  dead_ = {};
  leases_ = {};
  events_ = {};
  waiting_ = {};
  set_ = std::move(empty.set_);
  bloom_ = std::move(empty.bloom_);
  ready_.Clear();
  best_.reset();
  top_.reset();
  queued_ = delayed_ = leased_ = ready_hosts_ = busy_hosts_ = 0;
  cursor_ = 0;
  counts_ = {};
  next_id_ = next_id;
  observer_ = observer;
}

}  // namespace sava::types
