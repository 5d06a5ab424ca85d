// A frontier as plain as can be: one list of URLs that is searched for everything. What the real
// one must agree with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "types/frontier/frontier.h"

namespace sava::types {

class FrontierModel {
 public:
  using Strategy = Frontier::Strategy;
  using State = Frontier::State;

  struct Host {
    std::string name;
    int64_t delay = -1;
    std::optional<uint64_t> limit;
    int64_t blocked_until = 0;
    int64_t next_at = 0;
  };
  struct Entry {
    size_t host = 0;
    std::string rest;
    std::string meta;
    uint32_t depth = 0;
    int priority = 0;
    uint32_t failures = 0;
    State state = State::kQueued;
    int64_t time = 0;
    uint64_t id = 0;  // arrival in its FIFO for queued ones
  };

  explicit FrontierModel(const Frontier::Options& options) : options_(options) {}

  int Add(const Frontier::Url& url, const Frontier::Attributes& attributes, int64_t now) {
    Advance(now);
    if (url.host.empty()) return -1;
    const std::pair<std::string, std::string> key(url.host, url.rest);
    std::optional<size_t> host = Find(url.host);
    if (Known(key)) return 0;
    if (host && AtLimit(*host)) return -2;
    if (!host) {
      host = hosts_.size();
      hosts_.emplace_back();
      hosts_.back().name = url.host;
    }
    seen_.insert(key);
    Entry entry;
    entry.host = *host;
    entry.rest = url.rest;
    entry.meta = attributes.meta;
    entry.depth = url.depth;
    entry.priority = attributes.priority;
    Put(entry, attributes.not_before);
    return 1;
  }

  // host, rest, lease id.
  using Served = std::tuple<std::string, std::string, uint64_t>;
  std::vector<Served> Next(const Frontier::NextRequest& request, int64_t now) {
    Advance(now);
    const size_t cursor_before = cursor_;
    if (request.restart && !request.host) cursor_ = 0;
    const Strategy strategy = request.strategy.value_or(options_.strategy);
    const int64_t lease = request.lease_ms.value_or(options_.lease_ms);
    std::map<size_t, uint64_t> taken;
    std::vector<Served> served;
    while (served.size() < request.count) {
      std::optional<size_t> host = Choose(request, strategy, taken);
      if (!host) break;
      if (strategy == Strategy::kBreadth && !request.host) cursor_ = *host + 1;
      ++taken[*host];
      const size_t at = First(*host, strategy == Strategy::kPriority);
      Entry& entry = entries_[at];
      uint64_t id = 0;
      if (lease > 0) {
        id = next_id_++;
        served.emplace_back(hosts_[*host].name, entry.rest, id);
        entry.state = State::kLeased;
        entry.time = now_ + lease;
        entry.id = id;
      } else {
        served.emplace_back(hosts_[*host].name, entry.rest, 0);
        entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(at));
      }
      const int64_t delay = hosts_[*host].delay < 0 ? options_.delay_ms : hosts_[*host].delay;
      if (delay != 0) hosts_[*host].next_at = now_ + delay;
      if (Count(State::kQueued) == 0) cursor_ = 0;
    }
    if (served.empty()) cursor_ = cursor_before;
    return served;
  }

  bool Ack(uint64_t id, int64_t refetch_at, int64_t now) {
    Advance(now);
    const auto at = FindLease(id);
    if (!at) return false;
    Entry entry = Take(*at);
    if (refetch_at != 0) {
      entry.failures = 0;
      Put(entry, refetch_at);
    }
    return true;
  }

  bool Nack(uint64_t id, int64_t retry_at, int64_t now) {
    Advance(now);
    const auto at = FindLease(id);
    if (!at) return false;
    int64_t backoff = 1000;
    for (uint32_t i = 0; i < entries_[*at].failures; ++i)
      backoff = std::min(backoff * 2, int64_t{3600000});
    Fail(*at, retry_at != 0 ? retry_at : now_ + backoff);
    return true;
  }

  bool Extend(uint64_t id, int64_t until, int64_t now) {
    Advance(now);
    const auto at = FindLease(id);
    if (!at) return false;
    entries_[*at].time = std::max(until, now_);
    return true;
  }

  void ChangeHost(const std::string& name, const Frontier::HostChange& change, int64_t now) {
    Advance(now);
    if (!Find(name)) {
      hosts_.emplace_back();
      hosts_.back().name = name;
    }
    Host& host = hosts_[*Find(name)];
    if (change.delay_ms) host.delay = *change.delay_ms < 0 ? -1 : *change.delay_ms;
    if (change.blocked_until) host.blocked_until = *change.blocked_until;
    if (change.limit) host.limit = *change.limit;
  }

  std::optional<uint64_t> Purge(const std::string& name, int64_t now) {
    Advance(now);
    const auto host = Find(name);
    if (!host) return std::nullopt;
    const size_t before = entries_.size();
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.host == *host &&
             (entry.state == State::kQueued || entry.state == State::kDelayed);
    });
    if (Count(State::kQueued) == 0) cursor_ = 0;
    return before - entries_.size();
  }

  uint64_t ForgetDead(int64_t now) {
    Advance(now);
    return std::erase_if(entries_, [](const Entry& entry) { return entry.state == State::kDead; });
  }

  void Clear() {
    hosts_.clear();
    entries_.clear();
    seen_.clear();
    cursor_ = 0;
  }

  std::optional<size_t> Find(std::string_view name) const {
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i].name == name) return i;
    }
    return std::nullopt;
  }
  const std::vector<Host>& hosts() const { return hosts_; }
  uint64_t Count(State state, std::optional<size_t> host = std::nullopt) const {
    return static_cast<uint64_t>(
        std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
          return entry.state == state && (!host || entry.host == *host);
        }));
  }
  // Queued URLs of a host in the order in which depth serves them.
  std::vector<Entry> Queued(size_t host) const {
    std::vector<Entry> queued;
    for (const Entry& entry : entries_) {
      if (entry.host == host && entry.state == State::kQueued) queued.push_back(entry);
    }
    std::sort(queued.begin(), queued.end(), [](const Entry& a, const Entry& b) {
      return std::tuple(a.depth, -a.priority, a.id) < std::tuple(b.depth, -b.priority, b.id);
    });
    return queued;
  }
  std::vector<Entry> Dead() const {
    std::vector<Entry> dead;
    for (const Entry& entry : entries_) {
      if (entry.state == State::kDead) dead.push_back(entry);
    }
    std::sort(dead.begin(), dead.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
    return dead;
  }
  bool Known(const std::pair<std::string, std::string>& key) const {
    if (options_.dedup != Frontier::Dedup::kPending) return seen_.contains(key);
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.state != State::kDead && hosts_[entry.host].name == key.first &&
             entry.rest == key.second;
    });
  }
  // When something may be served, if nothing is added.
  int64_t Wake(int64_t now) const {
    int64_t wake = Frontier::kNever;
    for (const Entry& entry : entries_) {
      if (entry.state == State::kQueued) wake = std::min(wake, ReadyAt(entry.host));
      if (entry.state == State::kDelayed || entry.state == State::kLeased) {
        wake = std::min(wake, entry.time);
      }
    }
    return std::max(wake, now);
  }

 private:
  int64_t ReadyAt(size_t host) const {
    return std::max(hosts_[host].next_at, hosts_[host].blocked_until);
  }
  bool AtLimit(size_t host) const {
    const uint64_t limit = hosts_[host].limit.value_or(options_.max_per_host);
    return limit != 0 && Count(State::kQueued, host) + Count(State::kDelayed, host) >= limit;
  }
  std::optional<size_t> FindLease(uint64_t id) const {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].state == State::kLeased && entries_[i].id == id) return i;
    }
    return std::nullopt;
  }
  Entry Take(size_t at) {
    Entry entry = entries_[at];
    entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(at));
    return entry;
  }
  void Put(Entry entry, int64_t time) {
    if (time > now_) {
      entry.state = State::kDelayed;
      entry.time = time;
      entry.id = next_id_++;
    } else {
      entry.state = State::kQueued;
      entry.id = arrivals_++;
    }
    entries_.push_back(entry);
  }
  void Fail(size_t at, int64_t retry_at) {
    Entry entry = Take(at);
    if (++entry.failures > options_.retries) {
      entry.state = State::kDead;
      entry.id = next_id_++;
      entries_.push_back(entry);
    } else {
      Put(entry, retry_at);
    }
  }

  void Advance(int64_t now) {
    now_ = std::max(now_, now);
    while (true) {
      std::optional<size_t> due;
      for (size_t i = 0; i < entries_.size(); ++i) {
        const Entry& entry = entries_[i];
        if (entry.state != State::kDelayed && entry.state != State::kLeased) continue;
        if (entry.time > now_) continue;
        if (!due ||
            std::tuple(entry.time, entry.id) < std::tuple(entries_[*due].time, entries_[*due].id)) {
          due = i;
        }
      }
      if (!due) return;
      if (entries_[*due].state == State::kLeased) {
        Fail(*due, entries_[*due].time);
      } else {
        Put(Take(*due), 0);
      }
    }
  }

  std::optional<size_t> Choose(const Frontier::NextRequest& request, Strategy strategy,
                               const std::map<size_t, uint64_t>& taken) const {
    std::vector<size_t> able;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if (request.host && hosts_[i].name != *request.host) continue;
      if (ReadyAt(i) > now_ || Count(State::kQueued, i) == 0) continue;
      const auto found = taken.find(i);
      if (request.per_host != 0 && found != taken.end() && found->second >= request.per_host) {
        continue;
      }
      able.push_back(i);
    }
    if (able.empty()) return std::nullopt;
    size_t best = able[0];
    for (const size_t i : able) {
      if (strategy == Strategy::kBest && Count(State::kQueued, i) > Count(State::kQueued, best)) {
        best = i;
      }
      if (strategy == Strategy::kPriority &&
          entries_[First(i, true)].priority > entries_[First(best, true)].priority) {
        best = i;
      }
      if (strategy == Strategy::kBreadth && best < cursor_ && i >= cursor_) best = i;
    }
    return best;
  }

  size_t First(size_t host, bool by_priority) const {
    std::optional<size_t> first;
    const auto rank = [&](size_t i) {
      const Entry& entry = entries_[i];
      const int depth = static_cast<int>(entry.depth);
      return by_priority ? std::tuple(-entry.priority, depth, entry.id)
                         : std::tuple(depth, -entry.priority, entry.id);
    };
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].host != host || entries_[i].state != State::kQueued) continue;
      if (!first || rank(i) < rank(*first)) first = i;
    }
    return *first;
  }

  Frontier::Options options_;
  std::vector<Host> hosts_;
  std::vector<Entry> entries_;
  std::set<std::pair<std::string, std::string>> seen_;
  int64_t now_ = 0;
  uint64_t next_id_ = 1;
  uint64_t arrivals_ = 0;
  size_t cursor_ = 0;
};

}  // namespace sava::types
