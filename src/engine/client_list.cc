#include "engine/client_list.h"

#include <fmt/format.h>

#include "base/text.h"

namespace sava::engine {

namespace {

// Output up to this size counts as the fixed buffer of a connection (obl), more as its list (omem).
constexpr size_t kFixedOutput = 16 * 1024;

// A name in a set, besides its bytes: its node, and its place in what maps names to clients.
constexpr size_t kNameBytes = 64 + sizeof(std::string);

std::string FlagLetters(const Client& client) {
  const std::pair<char, bool> letters[] = {
      {'M', client.has(engine::kClientMaster)},
      {'O', client.has(engine::kClientMonitor)},
      {'S', client.has(engine::kClientReplica)},
      {'P', client.subscribed()},
      {'x', client.has(engine::kClientMulti)},
      {'b', client.blocked() || client.has(engine::kClientPaused)},
      {'t', client.tracking != nullptr},
      {'R', client.tracking != nullptr && client.tracking->broken},
      {'B', client.tracking != nullptr && client.tracking->broadcast},
      {'d', client.transaction.watcher.dirty.load(std::memory_order_relaxed)},
      {'c', client.has(engine::kClientCloseAfterReply)},
      {'A', client.has(engine::kClientCloseNow)},
      {'U', client.has(engine::kClientUnixSocket)},
      {'e', client.has(engine::kClientNoEvict)},
      {'T', client.has(engine::kClientNoTouch)},
  };
  std::string flags;
  for (const auto& [letter, on] : letters) {
    if (on) flags += letter;
  }
  return flags.empty() ? "N" : flags;
}

int64_t Seconds(int64_t since_ms, int64_t now_ms) {
  return now_ms > since_ms ? (now_ms - since_ms) / 1000 : 0;
}

}  // namespace

ClientType TypeOf(const Client& client) {
  if (client.has(kClientMaster)) return ClientType::kMaster;
  if (client.has(kClientReplica)) return ClientType::kReplica;
  return client.subscribed() ? ClientType::kPubsub : ClientType::kNormal;
}

std::optional<ClientType> ClientTypeByName(std::string_view name) {
  if (base::EqualsNoCase(name, "normal")) return ClientType::kNormal;
  if (base::EqualsNoCase(name, "pubsub")) return ClientType::kPubsub;
  if (base::EqualsNoCase(name, "replica")) return ClientType::kReplica;
  if (base::EqualsNoCase(name, "slave")) return ClientType::kReplica;
  if (base::EqualsNoCase(name, "master")) return ClientType::kMaster;
  return std::nullopt;
}

void CountName(Client& client, std::string_view name) {
  ++client.memory.names_counted;
  client.memory.names_bytes += name.size();
}

void UncountName(Client& client, std::string_view name) {
  --client.memory.names_counted;
  client.memory.names_bytes -= name.size();
}

size_t ClientMemory(const Client& client) {
  return sizeof(Client) + client.memory.query_capacity + client.memory.argument_bytes +
         client.transaction.queue_bytes +
         client.transaction.queue.capacity() * sizeof(QueuedCommand) + client.memory.names_bytes +
         client.memory.names_counted * kNameBytes + client.out.memory();
}

size_t ChargeableMemory(const Client& client) {
  if (client.has(kClientNoEvict | kClientCloseNow)) return 0;
  const ClientType type = TypeOf(client);
  return type == ClientType::kNormal || type == ClientType::kPubsub ? ClientMemory(client) : 0;
}

void Charge(Lane& lane, Client& client, size_t bytes) {
  lane.memory.client_bytes.fetch_add(bytes - client.memory.charged_bytes.exchange(bytes));
}

void ChargeClients(engine::Engine& engine) {
  engine.ForEachLane([](Lane& lane) {
    for (auto& [id, client] : lane.clients) {
      Charge(lane, *client, ChargeableMemory(*client));
    }
  });
}

std::string ClientLine(const Client& client, int64_t now_ms) {
  const size_t held = client.out.memory();
  const size_t pending = client.out.pending();
  const bool fixed = held <= kFixedOutput;
  const size_t fed = client.sending.feed == nullptr ? 0 : client.sending.feed->pending();
  const size_t query_free = client.memory.query_capacity > client.memory.query_bytes
                                ? client.memory.query_capacity - client.memory.query_bytes
                                : 0;
  std::string line;
  const auto add = [&line]<typename... T>(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(line), format, std::forward<T>(values)...);
  };
  add("id={} addr={} laddr={} fd={} name={}", client.id, client.peer.addr, client.peer.laddr,
      client.peer.fd, client.name);
  add(" age={} idle={} flags={} db={}", Seconds(client.activity.created_ms, now_ms),
      Seconds(client.activity.last_active_ms, now_ms), FlagLetters(client), client.db);
  add(" sub={} psub={} ssub={} multi={}", client.subscriptions.channels.size(),
      client.subscriptions.patterns.size(), client.subscriptions.shard_channels.size(),
      client.has(engine::kClientMulti) ? static_cast<int64_t>(client.transaction.queue.size())
                                       : -1);
  add(" qbuf={} qbuf-free={} argv-mem={} multi-mem={}", client.memory.query_bytes, query_free,
      client.memory.argument_bytes, client.transaction.queue_bytes);
  add(" rbs={} rbp={} obl={} oll={} omem={} tot-mem={}", fixed ? held : 0, fixed ? held : 0,
      fixed ? pending : 0, (fixed ? 0 : 1) + (fed > 0 ? 1 : 0), (fixed ? 0 : held) + fed,
      ClientMemory(client) + fed);
  add(" events={} cmd={} user={} redir={} resp={}", pending > 0 ? "rw" : "r",
      client.activity.last_command != nullptr
          ? std::string_view(client.activity.last_command->full_name)
          : "NULL",
      client.user,
      client.tracking == nullptr ? -1 : static_cast<int64_t>(client.tracking->redirect),
      client.resp);
  add(" lib-name={} lib-ver={}", client.peer.lib_name, client.peer.lib_ver);
  return line;
}

void ForEachClient(engine::Engine& engine, const std::function<void(Client&)>& visit) {
  engine.ForEachLane([&](Lane& lane) {
    for (auto& [id, client] : lane.clients) visit(*client);
  });
}

void CloseClient(engine::Engine& engine, Client& client) {
  client.set(engine::kClientCloseNow);
  if (client.sending.feed != nullptr) client.sending.feed->Drop();
  engine.LaneOf(client).mailbox.Post({engine::Mail::Kind::kWake, client.id, nullptr});
}

bool ClientFilter::Matches(const Client& client, int64_t now_ms) const {
  if (client.has(kClientCloseNow)) return false;  // another kill was first
  if (id != 0 && client.id != id) return false;
  if (addr.has_value() && client.peer.addr != *addr) return false;
  if (laddr.has_value() && client.peer.laddr != *laddr) return false;
  if (user.has_value() && client.user != *user) return false;
  if (type.has_value() && TypeOf(client) != *type) return false;
  return max_age == 0 || Seconds(client.activity.created_ms, now_ms) >= max_age;
}

}  // namespace sava::engine
