#include "engine/waiter.h"

#include <algorithm>
#include <utility>

#include "engine/client.h"

namespace sava::engine {

bool Client::blocked() const {
  return has(kClientBlocked) && (wait.waiter == nullptr || wait.waiter->waiting());
}

Waiter::Taken Waiter::Take() {
  State seen = State::kWaiting;
  while (true) {
    if (state.compare_exchange_strong(seen, State::kServing)) return Taken::kYes;
    if (seen == State::kClaimed) return Taken::kGone;
    if (seen == State::kMissed) return Taken::kBusy;
    if (seen == State::kServing && state.compare_exchange_strong(seen, State::kMissed)) {
      return Taken::kBusy;
    }
    seen = State::kWaiting;
  }
}

Waiter::Taken Waiter::PutBack() {
  State seen = State::kServing;
  if (state.compare_exchange_strong(seen, State::kWaiting)) return Taken::kYes;
  if (seen == State::kMissed && state.compare_exchange_strong(seen, State::kWaiting)) {
    return Taken::kBusy;
  }
  return Taken::kGone;
}

size_t WaitLine::After(uint64_t order) const {
  // Mostly it is about the first of a long line.
  if (waiters.empty() || order < waiters.front()->order) return 0;
  if (order == waiters.front()->order) return 1;
  const auto at =
      std::upper_bound(waiters.begin(), waiters.end(), order,
                       [](uint64_t value, const WaiterPtr& one) { return value < one->order; });
  return static_cast<size_t>(at - waiters.begin());
}

WaitLine* WaitLines::Find(int db, size_t stripe, std::string_view key) {
  Lines& lines = stripes_[stripe].lines;
  if (lines.empty()) return nullptr;
  const auto it = lines.find(NameView{db, key});
  return it == lines.end() ? nullptr : &it->second;
}

void WaitLines::Add(int db, size_t stripe, std::string_view key, const WaiterPtr& waiter) {
  Lines& lines = stripes_[stripe].lines;
  auto it = lines.find(NameView{db, key});
  if (it != lines.end() && it->second.waiters.back() == waiter) return;
  if (it == lines.end()) {
    WaitLine fresh;
    fresh.place.push_back({db, stripe, std::string(key)});
    fresh.waiters.push_back(waiter);
    it = lines.emplace(Name{db, std::string(key)}, std::move(fresh)).first;
    keys_.fetch_add(1, std::memory_order_relaxed);
  } else {
    it->second.waiters.push_back(waiter);
  }
  WaitLine& line = it->second;
  waiter->lines.fetch_add(1, std::memory_order_relaxed);
  if (waiter->on_deletion && line.on_deletion++ == 0) {
    on_deletion_.fetch_add(1, std::memory_order_relaxed);
  }
}

void WaitLines::Erase(size_t stripe, Lines::iterator it, size_t position) {
  WaitLine& line = it->second;
  Waiter& waiter = *line.waiters[position];
  waiter.lines.fetch_sub(1, std::memory_order_release);
  if (waiter.on_deletion && --line.on_deletion == 0) {
    on_deletion_.fetch_sub(1, std::memory_order_relaxed);
  }
  line.waiters.erase(line.waiters.begin() + static_cast<ptrdiff_t>(position));
  if (!line.waiters.empty()) return;
  stripes_[stripe].lines.erase(it);
  keys_.fetch_sub(1, std::memory_order_relaxed);
}

void WaitLines::Remove(int db, size_t stripe, std::string_view key, const Waiter& waiter) {
  const auto it = stripes_[stripe].lines.find(NameView{db, key});
  if (it == stripes_[stripe].lines.end()) return;
  const size_t after = it->second.After(waiter.order);
  if (after > 0 && it->second.waiters[after - 1].get() == &waiter) Erase(stripe, it, after - 1);
}

void WaitLines::ForEach(int db, size_t stripe,
                        const std::function<void(const std::string& key, WaitLine& line)>& visit) {
  for (auto& [name, line] : stripes_[stripe].lines) {
    if (name.db == db) visit(name.key, line);
  }
}

}  // namespace sava::engine
