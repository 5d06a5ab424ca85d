// Serving URLs of a Frontier: strategies, leases, and what happens when its time comes.
#include <algorithm>
#include <functional>
#include <new>

#include "base/if_memory.h"
#include "base/prefetch.h"
#include "types/frontier/frontier_core.h"

namespace sava::types {

// What one call took from hosts that may give only so much.
struct Frontier::Core::Tally {
  std::unordered_map<uint32_t, uint64_t> taken;
  std::vector<uint32_t> full;
};

// ---- time ----

void Frontier::Core::Advance(int64_t now) {
  now_ = std::clamp(now, now_, kMaxTime);
  while (!events_.empty() && events_.front().time <= now_) {
    const Event event = events_.front();
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    events_.pop_back();
    if (base::IfMemory([&] { Happen(event); })) continue;
    events_.push_back(event);  // into the room that it has left
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
    throw std::bad_alloc();
  }
  WakeHosts();
}

void Frontier::Core::Happen(const Event& event) {
  const Item item = items_[event.item];
  if (item.id != event.id || item.time != event.time) return;
  if (item.state == ItemState::kLeased) {
    Fail(event.item, event.time, event.time);
    ++counts_.expired;
  } else if (item.state == ItemState::kDelayed) {
    Push(item.host, item.depth, item.priority, Read(item.text, 0, &scratch_));
    FreeItem(event.item);
  }
}

// Removes entries at the front that no longer hold, so that NextWake is right.
void Frontier::Core::Prune() {
  while (!events_.empty()) {
    const Item& item = items_[events_.front().item];
    const bool holds = item.state == ItemState::kDelayed || item.state == ItemState::kLeased;
    if (holds && item.id == events_.front().id && item.time == events_.front().time) break;
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    events_.pop_back();
  }
  while (!waiting_.empty()) {
    const Host& host = hosts_[waiting_.front().host];
    if (host.queued != 0 && host.ready_at() == waiting_.front().time) break;
    std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    waiting_.pop_back();
  }
}

void Frontier::Core::WakeHosts() {
  while (!waiting_.empty() && waiting_.front().time <= now_) {
    const uint32_t number = waiting_.front().host;
    std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    waiting_.pop_back();
    Refresh(number, false);
  }
}

int64_t Frontier::Core::NextWake(int64_t now, std::optional<std::string_view> host) const {
  now = std::clamp(now, now_, kMaxTime);
  int64_t earliest = events_.empty() ? kNever : events_.front().time;
  if (host) {
    const uint32_t number = FindHost(*host, HashHost(*host));
    if (number == kNoHost) return kNever;
    if (hosts_[number].queued != 0) earliest = std::min(earliest, hosts_[number].ready_at());
  } else if (ready_hosts_ != 0) {
    return now;
  } else if (!waiting_.empty()) {
    earliest = std::min(earliest, waiting_.front().time);
  }
  return std::max(earliest, now);
}

// ---- serving ----

uint32_t Frontier::Core::Choose(Strategy strategy) const {
  switch (strategy) {
    case Strategy::kDepth:
      return ready_.From(0);
    case Strategy::kBreadth: {
      const uint32_t number = ready_.From(cursor_);
      return number == kNoHost ? ready_.From(0) : number;
    }
    case Strategy::kBest:
      return best_->Top();
    case Strategy::kPriority:
      return top_->Top();
  }
  return kNoHost;
}

Frontier::Served Frontier::Core::MakeServed(uint32_t host, uint16_t depth, int16_t priority,
                                            const Record& record) const {
  Served served;
  served.url.host = names_.Get(hosts_[host].name);
  served.url.rest = record.rest;
  served.url.depth = depth;
  served.priority = priority;
  served.failures = record.failures;
  served.meta = record.meta;
  return served;
}

void Frontier::Core::ServeOne(uint32_t number, bool by_priority, int64_t lease,
                              const Serve& serve) {
  Host& host = hosts_.Edit(number);
  Note(Part::kHost, number, true, &host, sizeof host);
  const Place place = NextQueue(host, by_priority);
  const Queue queue = GetQueue(host, place);
  const Record record = Read(queue.head, queue.head_at, &scratch_);
  Note(Part::kListCell, number, false, arena_.Look(queue.head), Arena::kLink);
  Note(Part::kUrl, number, false, record.rest.data(), record.rest.size());
  Served served = MakeServed(number, queue.depth, queue.priority, record);
  if (lease > 0) served.lease = next_id_;
  ReserveWaiting();
  serve(served);
  if (lease > 0) {
    Item item;
    item.time = std::min(now_ + lease, kMaxTime);
    item.id = next_id_;
    item.host = number;
    item.depth = queue.depth;
    item.priority = queue.priority;
    item.state = ItemState::kLeased;
    Enter(item, record);
    ++next_id_;
  } else if (options_.dedup == Dedup::kPending) {
    const uint64_t hash = HashUrl(number, record.rest);
    set_->PrefetchDirectory(hash);
    leaving_[leaving_count_++] = hash;
    if (leaving_count_ == kLeaving) Leave();
  }
  ++counts_.served;
  Pop(number, host, place, queue, record);
  const int64_t delay = DelayOf(host);
  if (delay != 0) host.next_at = std::min(now_ + delay, kMaxTime);
  Refresh(number, delay != 0);
}

void Frontier::Core::Leave() {
  for (size_t i = 0; i < leaving_count_; ++i) set_->PrefetchPage(leaving_[i]);
  for (size_t i = 0; i < leaving_count_; ++i) set_->PrefetchSlot(leaving_[i]);
  for (size_t i = 0; i < leaving_count_; ++i) set_->Erase(leaving_[i]);
  leaving_count_ = 0;
}

size_t Frontier::Core::NextOfHost(const NextRequest& request, int64_t lease, const Serve& serve) {
  const std::string_view name = request.host.value_or(std::string_view());
  const uint32_t number = FindHost(name, HashHost(name));
  if (number == kNoHost) return 0;
  const bool by_priority = request.strategy.value_or(options_.strategy) == Strategy::kPriority;
  uint64_t most = request.count;
  if (request.per_host != 0) most = std::min<uint64_t>(most, request.per_host);
  size_t served = 0;
  const bool done = base::IfMemory([&] {
    for (; served < most && ready_.Has(number); ++served) {
      ServeOne(number, by_priority, lease, serve);
    }
  });
  Leave();
  if (!done) throw std::bad_alloc();
  return served;
}

// Asks for the memory of hosts that come soon.
void Frontier::Core::Lookahead(Strategy strategy, uint32_t number) const {
  if (strategy != Strategy::kBreadth) return;
  const uint32_t next = ready_.From(number + 1);
  if (next == kNoHost) return;
  const Host& host = hosts_[next];
  base::Prefetch(arena_.Data(host.first.head) + host.first.head_at);
  base::Prefetch(names_.Address(host.name));
  uint32_t later = next;
  for (int i = 0; i < 3 && later != kNoHost; ++i) later = ready_.From(later + 1);
  if (later == kNoHost) return;
  const char* const there = reinterpret_cast<const char*>(&hosts_[later]);
  base::PrefetchForWrite(there);
  base::PrefetchForWrite(there + sizeof(Host) - 1);
}

size_t Frontier::Core::Next(const NextRequest& request, int64_t now, const Serve& serve) {
  Advance(now);
  const int64_t lease =
      std::clamp<int64_t>(request.lease_ms.value_or(options_.lease_ms), 0, kMaxDelay);
  if (request.host) return NextOfHost(request, lease, serve);
  const uint32_t before = cursor_;
  if (request.restart) cursor_ = 0;
  const Strategy strategy = request.strategy.value_or(options_.strategy);
  if (strategy == Strategy::kBest) StartBest();
  if (strategy == Strategy::kPriority) StartPriority();
  Tally tally;
  size_t served = 0;
  const bool done = base::IfMemory([&] {
    for (; served < request.count; ++served) {
      const uint32_t number = Choose(strategy);
      if (number == kNoHost) break;
      Note(Part::kHostCell, 0, false, ready_.Word(number), sizeof(uint64_t));
      Lookahead(strategy, number);
      if (strategy == Strategy::kBreadth) cursor_ = number + 1;
      ServeOne(number, strategy == Strategy::kPriority, lease, serve);
      if (request.per_host == 0 || !ready_.Has(number)) continue;
      if (++tally.taken[number] < request.per_host) continue;
      tally.full.push_back(number);
      SetReady(number, false);
      Rank(number);
    }
  });
  Leave();
  for (const uint32_t number : tally.full) Refresh(number, false);
  if (!done) throw std::bad_alloc();
  if (served == 0) cursor_ = before;  // a call that served nothing can be left out
  return served;
}

// ---- items ----

uint32_t Frontier::Core::Enter(Item item, const Record& record) {
  const bool appends = free_items_.empty();
  const uint32_t slot = appends ? static_cast<uint32_t>(items_.size()) : free_items_.back();
  if (appends) items_.Reserve();
  // FreeItem needs no memory.
  if (free_items_.capacity() <= items_.size()) free_items_.reserve(2 * items_.size() + 1);
  if (events_.size() == events_.capacity()) events_.reserve(2 * events_.size() + 1);
  item.text = StoreText(record);
  if (item.state == ItemState::kLeased) {
    if (!base::IfMemory([&] { leases_.emplace(item.id, slot); })) {
      FreeText(item.text);
      throw std::bad_alloc();
    }
  }
  // From here on there is memory for everything.
  if (appends) {
    items_.Append() = item;
  } else {
    free_items_.pop_back();
    items_.Edit(slot) = item;
  }
  Host& host = hosts_.Edit(item.host);
  if (item.state == ItemState::kLeased) {
    ++host.leased;
    ++leased_;
  } else if (item.state == ItemState::kDelayed) {
    ++host.delayed;
    ++delayed_;
  }
  if (item.state != ItemState::kDead) PushEvent(slot);
  return slot;
}

// Also takes it off its host's account.
void Frontier::Core::FreeItem(uint32_t slot) {
  Item& item = items_.Edit(slot);
  if (item.state == ItemState::kDelayed) {
    --hosts_.Edit(item.host).delayed;
    --delayed_;
  } else if (item.state == ItemState::kLeased) {
    --hosts_.Edit(item.host).leased;
    --leased_;
    leases_.erase(item.id);
  }
  FreeText(item.text);
  item = Item();
  free_items_.push_back(slot);
}

void Frontier::Core::PushEvent(uint32_t slot) {
  events_.push_back({items_[slot].time, items_[slot].id, slot});
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
  if (events_.size() <= 2 * (delayed_ + leased_) + 64) return;
  // Most entries no longer hold.
  std::erase_if(events_, [this](const Event& event) {
    const Item& item = items_[event.item];
    const bool holds = item.state == ItemState::kDelayed || item.state == ItemState::kLeased;
    return !holds || item.id != event.id || item.time != event.time;
  });
  std::make_heap(events_.begin(), events_.end(), std::greater<>());
}

void Frontier::Core::Delay(uint32_t host, uint16_t depth, int16_t priority, const Record& record,
                           int64_t time) {
  if (time <= now_) {
    Push(host, depth, priority, record);
    return;
  }
  Item item;
  item.time = std::min(time, kMaxTime);
  item.id = next_id_;
  item.host = host;
  item.depth = depth;
  item.priority = priority;
  item.state = ItemState::kDelayed;
  Enter(item, record);
  ++next_id_;
}

void Frontier::Core::Bury(uint32_t host, uint16_t depth, int16_t priority, const Record& record,
                          int64_t time) {
  Item item;
  item.time = time;
  item.id = next_id_;
  item.host = host;
  item.depth = depth;
  item.priority = priority;
  item.state = ItemState::kDead;
  if (dead_.size() == dead_.capacity()) dead_.reserve(2 * dead_.size() + 1);
  dead_.push_back(Enter(item, record));
  ++next_id_;
  NoLongerPending(host, record.rest);
}

void Frontier::Core::Fail(uint32_t slot, int64_t retry_at, int64_t time) {
  const Item item = items_[slot];
  Record record = Read(item.text, 0, &scratch_);
  ++record.failures;
  if (record.failures > options_.retries) {
    Bury(item.host, item.depth, item.priority, record, time);
  } else {
    Delay(item.host, item.depth, item.priority, record, retry_at);
  }
  FreeItem(slot);
}

uint32_t Frontier::Core::TakeLease(uint64_t id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? UINT32_MAX : found->second;
}

size_t Frontier::Core::Ack(std::span<const uint64_t> ids, int64_t refetch_at, int64_t now) {
  Advance(now);
  size_t known = 0;
  for (const uint64_t id : ids) {
    const uint32_t slot = TakeLease(id);
    if (slot == UINT32_MAX) continue;
    const Item item = items_[slot];
    Record record = Read(item.text, 0, &scratch_);
    if (refetch_at != 0) {
      record.failures = 0;
      Delay(item.host, item.depth, item.priority, record, refetch_at);
    } else {
      NoLongerPending(item.host, record.rest);
    }
    FreeItem(slot);
    ++known;
    ++counts_.acked;
  }
  Prune();
  return known;
}

size_t Frontier::Core::Nack(std::span<const uint64_t> ids, int64_t retry_at, int64_t now) {
  Advance(now);
  size_t known = 0;
  for (const uint64_t id : ids) {
    const uint32_t slot = TakeLease(id);
    if (slot == UINT32_MAX) continue;
    const uint32_t failures = Read(items_[slot].text, 0, &scratch_).failures;
    const int64_t backoff =
        failures >= 12 ? kMaxBackoff : std::min(kMaxBackoff, kFirstBackoff << failures);
    Fail(slot, retry_at != 0 ? retry_at : now_ + backoff, now_);
    ++known;
    ++counts_.failed;
  }
  Prune();
  return known;
}

size_t Frontier::Core::Extend(std::span<const uint64_t> ids, int64_t until, int64_t now) {
  Advance(now);
  until = std::clamp(until, now_, kMaxTime);
  size_t known = 0;
  for (const uint64_t id : ids) {
    const uint32_t slot = TakeLease(id);
    if (slot == UINT32_MAX) continue;
    ++known;
    if (items_[slot].time == until) continue;
    if (events_.size() == events_.capacity()) events_.reserve(2 * events_.size() + 1);
    items_.Edit(slot).time = until;
    PushEvent(slot);
  }
  Prune();
  return known;
}

uint64_t Frontier::Core::ForgetDead(int64_t now) {
  Advance(now);
  const uint64_t count = dead_.size();
  for (const uint32_t slot : dead_) FreeItem(slot);
  dead_.clear();
  return count;
}

}  // namespace sava::types
