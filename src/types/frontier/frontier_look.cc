// Looking at a Frontier without changing it.
#include <algorithm>

#include "types/frontier/frontier_core.h"

namespace sava::types {

namespace {

// A cursor of Export: the host's number and a position in it, or behind this bit an item's number.
constexpr uint64_t kItemCursor = uint64_t{1} << 63;

}  // namespace

Frontier::HostInfo Frontier::Core::InfoOf(uint32_t number) const {
  const Host& host = hosts_[number];
  HostInfo info;
  info.name = names_.Get(host.name);
  info.number = number;
  info.queued = host.queued;
  info.delayed = host.delayed;
  info.leased = host.leased;
  info.delay_ms = DelayOf(host);
  info.limit = LimitOf(host);
  info.blocked_until = host.blocked_until > now_ ? host.blocked_until : 0;
  info.next_at = host.ready_at() > now_ ? host.ready_at() : 0;
  Note(Part::kHost, number, false, &host, sizeof host);
  Note(Part::kHost, number, false, names_.Address(host.name), info.name.size());
  return info;
}

std::optional<Frontier::HostInfo> Frontier::Core::InfoOf(std::string_view host) const {
  const uint32_t number = FindHost(host, HashHost(host));
  if (number == kNoHost) return std::nullopt;
  return InfoOf(number);
}

Frontier::Look Frontier::Core::Peek(std::string_view name, uint64_t start, uint64_t count,
                                    const Serve& visit) const {
  const uint32_t number = FindHost(name, HashHost(name));
  if (number == kNoHost) return Look::kUnknownHost;
  const Host& host = hosts_[number];
  if (host.queued == 0) return Look::kEmpty;
  if (start >= host.queued) return Look::kInvalidPosition;
  const uint64_t end = start + std::min<uint64_t>(count, host.queued - start);
  std::string scratch;
  uint64_t position = 0;
  for (const Queue& queue : SortedQueues(host)) {
    if (position + queue.count <= start) {
      position += queue.count;
      continue;
    }
    Ref chunk = queue.head;
    size_t at = queue.head_at;
    for (uint32_t i = 0; i < queue.count && position < end; ++i, ++position) {
      const Record record = Read(chunk, at, &scratch);
      Note(Part::kListCell, number, false, arena_.Look(chunk), Arena::kLink);
      Note(Part::kUrl, number, false, record.rest.data(), record.rest.size());
      if (position >= start) visit(MakeServed(number, queue.depth, queue.priority, record));
      chunk = record.end;
      at = record.end_at;
    }
    if (position >= end) break;
  }
  return Look::kFound;
}

void Frontier::Core::Dead(uint64_t start, uint64_t count, const Serve& visit) const {
  std::string scratch;
  for (uint64_t i = start; i < dead_.size() && i - start < count; ++i) {
    const Item& item = items_[dead_[i]];
    visit(MakeServed(item.host, item.depth, item.priority, Read(item.text, 0, &scratch)));
  }
}

uint64_t Frontier::Core::Export(uint64_t cursor, uint64_t count,
                                const std::function<void(const Entry& entry)>& visit) const {
  count = std::max<uint64_t>(count, 1);
  uint64_t visited = 0;
  if ((cursor & kItemCursor) == 0) {
    uint64_t start = cursor & UINT32_MAX;
    for (uint64_t i = cursor >> 32; i < hosts_.size(); ++i, start = 0) {
      const auto number = static_cast<uint32_t>(i);
      const uint64_t left = count - visited;
      Peek(names_.Get(hosts_[number].name), start, left, [&](const Served& served) {
        ++visited;
        visit({served, State::kQueued, 0});
      });
      if (visited == count) return i << 32 | (start + left);
    }
    cursor = kItemCursor;
  }
  std::string scratch;
  for (uint64_t slot = cursor & ~kItemCursor; slot < items_.size(); ++slot) {
    if (visited == count) return kItemCursor | slot;
    const Item& item = items_[slot];
    if (item.state == ItemState::kFree) continue;
    Entry entry;
    entry.url = MakeServed(item.host, item.depth, item.priority, Read(item.text, 0, &scratch));
    entry.state = item.state == ItemState::kDelayed  ? State::kDelayed
                  : item.state == ItemState::kLeased ? State::kLeased
                                                     : State::kDead;
    if (item.state == ItemState::kLeased) entry.url.lease = item.id;
    if (item.state != ItemState::kDead) entry.time = item.time;
    ++visited;
    visit(entry);
  }
  return 0;
}

Frontier::Stats Frontier::Core::stats() const {
  Stats stats = counts_;
  stats.hosts.known = hosts_.size();
  stats.hosts.ready = ready_hosts_;
  stats.hosts.waiting = busy_hosts_ - ready_hosts_;
  stats.queued = queued_;
  stats.delayed = delayed_;
  stats.leased = leased_;
  stats.dead = dead_.size();
  stats.seen = set_ != nullptr ? set_->size() : bloom_->items();
  stats.bytes = bytes();
  return stats;
}

size_t Frontier::Core::bytes() const {
  size_t bytes = sizeof(*this) + hosts_.bytes() + names_.bytes() + table_.bytes() + arena_.bytes() +
                 items_.bytes() + ready_.bytes();
  bytes += (free_items_.capacity() + dead_.capacity()) * sizeof(uint32_t);
  bytes += events_.capacity() * sizeof(Event) + waiting_.capacity() * sizeof(Waiting);
  // A node of the map and its bucket.
  bytes += leases_.size() * 4 * sizeof(void*) + leases_.bucket_count() * sizeof(void*);
  if (set_ != nullptr) bytes += set_->bytes();
  if (bloom_ != nullptr) bytes += bloom_->MemoryUsage(0);
  if (best_ != nullptr) bytes += best_->bytes();
  if (top_ != nullptr) bytes += top_->bytes();
  return bytes;
}

void Frontier::Core::Digest(const std::function<void(std::string_view)>& add) const {
  std::string line;
  const auto put = [&](auto number) { line.append(std::to_string(number)).append(1, ' '); };
  const auto put_text = [&](const Served& served) {
    put(served.url.depth);
    put(served.priority);
    put(served.failures);
    put(served.meta.size());
    line.append(served.meta).append(served.url.rest);
  };
  const auto done = [&] {
    add(line);
    line.clear();
  };
  put(static_cast<int>(options_.strategy));
  put(static_cast<int>(options_.dedup));
  put(options_.norm);
  put(options_.delay_ms);
  put(options_.max_per_host);
  put(options_.lease_ms);
  put(options_.retries);
  put(next_id_);
  put(cursor_);
  done();
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    const std::string_view name = names_.Get(host.name);
    put(host.delay);
    put(host.limit);
    put(host.next_at);
    put(host.blocked_until);
    line.append(name);
    done();
    Peek(name, 0, UINT64_MAX, [&](const Served& served) {
      put_text(served);
      done();
    });
  }
  std::vector<std::pair<uint64_t, uint32_t>> order;
  for (uint32_t slot = 0; slot < items_.size(); ++slot) {
    if (items_[slot].state != ItemState::kFree) order.emplace_back(items_[slot].id, slot);
  }
  std::sort(order.begin(), order.end());
  std::string scratch;
  for (const auto& [id, slot] : order) {
    const Item& item = items_[slot];
    put(static_cast<int>(item.state));
    put(item.time);
    put(id);
    put(item.host);
    put_text(MakeServed(item.host, item.depth, item.priority, Read(item.text, 0, &scratch)));
    done();
  }
  if (bloom_ != nullptr) bloom_->Digest(add);
  if (options_.dedup != Dedup::kSeen) return;
  uint64_t sum = 0;
  set_->ForEach([&sum](uint64_t hash) { sum += (hash ^ hash >> 29) * 0x9e3779b97f4a7c15; });
  put(set_->size());
  put(sum);
  done();
}

}  // namespace sava::types
