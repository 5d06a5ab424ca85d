// The part of EventLoop that counts the memory of its clients: toward maxmemory, and for
// maxmemory-clients, which closes the largest of them.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "engine/client_list.h"
#include "front/event_loop.h"

namespace sava::front {

using engine::Client;

// Eviction uses the present size of clients' buffers; the allocator's figures are read only now and
// then.
void EventLoop::CountBuffers(Connection& connection) {
  Client& client = connection.client;
  ChargeMemory(connection);
  const size_t bytes = connection.closed ? 0
                                         : connection.input.capacity() + client.out.block_bytes() +
                                               client.transaction.queue_bytes;
  if (bytes == client.memory.counted_bytes) return;
  lane_.memory.buffer_bytes.Add(bytes - client.memory.counted_bytes);
  client.memory.counted_bytes = bytes;
}

void EventLoop::ChargeMemory(Connection& connection) {
  Client& client = connection.client;
  const bool limited = limits_.client_memory.load(std::memory_order_relaxed) > 0;
  if (!limited && client.memory.charged_bytes == 0) [[likely]]
    return;
  client.memory.query_capacity = connection.input.capacity();
  const size_t bytes = limited && !connection.closed ? engine::ChargeableMemory(client) : 0;
  engine::Charge(lane_, client, bytes);
}

namespace {

uint64_t ChargedBytes(const engine::Engine& engine) {
  uint64_t total = 0;
  for (const auto& lane : engine.lanes()) total += lane->memory.client_bytes.load();
  return total;
}

// REQUIRES: the gate is closed. Loops outside it go on counting: each client's bytes are read once,
// and those that are closed already count no more.
void CloseLargest(engine::Engine& engine, uint64_t limit, int64_t now_ms) {
  std::vector<std::pair<size_t, Client*>> clients;
  uint64_t total = 0;
  engine::ForEachClient(engine, [&](Client& client) {
    const size_t bytes = client.memory.charged_bytes.load();
    if (bytes == 0 || client.has(engine::kClientCloseNow)) return;
    clients.emplace_back(bytes, &client);
    total += bytes;
  });
  std::ranges::sort(clients, std::greater(), [](const auto& one) { return one.first; });
  for (const auto& [bytes, client] : clients) {
    if (total <= limit) break;
    spdlog::info("Evicting client: {}", engine::ClientLine(*client, now_ms));
    engine::Lane& lane = *engine.lanes()[client->lane];
    total -= bytes;
    engine::Charge(lane, *client, 0);
    lane.stats.clients.evicted.Add();
    engine::CloseClient(engine, *client);
  }
}

}  // namespace

void EventLoop::KeepClientsWithinMemory() {
  if (ChargedBytes(engine_) <= limits_.client_memory.load(std::memory_order_relaxed)) return;
  // What was configured while this loop waited for the gate counts.
  engine_.Exclusively(lane_, [&] {
    const uint64_t limit = limits_.client_memory.load(std::memory_order_relaxed);
    if (limit > 0) CloseLargest(engine_, limit, lane_.now_ms);
  });
  DeliverMail();
}

}  // namespace sava::front
