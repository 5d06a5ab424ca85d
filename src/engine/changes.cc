#include "engine/changes.h"

#include <algorithm>

#include "engine/engine.h"

namespace sava::engine {

using keyspace::Keyspace;

namespace {

// A multiple of the stripes.
constexpr size_t kSlots = 64 * 1024;
static_assert(kSlots % Keyspace::kStripes == 0);

}  // namespace

void Changes::NoteTold(Lane& lane, Client& client, std::span<const uint64_t> keys, uint64_t wrote) {
  Keyspace& keyspace = engine_.keyspace();
  const bool changed = client.sending.wrote != wrote;
  const uint64_t end = lane.locks.seen() + 1;
  for (const uint64_t hash : keys) {
    uint64_t& last = tickets_[hash % kSlots];
    if (changed) {
      last = end;
      keyspace.stripe(Keyspace::StripeOf(hash)).changed.store(end, std::memory_order_relaxed);
    } else {
      client.sending.saw = std::max(client.sending.saw, last);
    }
  }
  if (!keys.empty()) return;
  if (changed) std::fill_n(tickets_.get(), kSlots, end);
  for (size_t i = 0; i < Keyspace::kStripes; ++i) {
    std::atomic<uint64_t>& last = keyspace.stripe(i).changed;
    if (changed) {
      last.store(end, std::memory_order_relaxed);
    } else {
      client.sending.saw = std::max(client.sending.saw, last.load(std::memory_order_relaxed));
    }
  }
}

void Changes::Track(bool on) {
  if (on == (tickets_ != nullptr)) return;
  tickets_.reset();
  if (!on) return;
  // What was changed before is not known.
  const uint64_t end = engine_.journal().next_ticket();
  tickets_.reset(new uint64_t[kSlots]);
  std::fill_n(tickets_.get(), kSlots, end);
  for (size_t i = 0; i < Keyspace::kStripes; ++i) {
    engine_.keyspace().stripe(i).changed.store(end, std::memory_order_relaxed);
  }
}

}  // namespace sava::engine
