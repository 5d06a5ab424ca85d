// How connected clients are found, described and chosen: the lines of CLIENT LIST, the filters of
// CLIENT KILL. A thread that looks at another thread's client has closed the gate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/client.h"
#include "engine/engine.h"

namespace sava::engine {

enum class ClientType : uint8_t { kNormal, kPubsub, kReplica, kMaster };

ClientType TypeOf(const Client& client);
// normal, pubsub, replica, slave or master, in any case.
std::optional<ClientType> ClientTypeByName(std::string_view name);

// One line in Redis's form, "id=7 addr=… lib-ver=", without a line end.
std::string ClientLine(const Client& client, int64_t now_ms);
// Every client of the loops. REQUIRES: the gate is closed.
void ForEachClient(engine::Engine& engine, const std::function<void(Client&)>& visit);
// Makes the client go away soon. REQUIRES: the gate is closed.
void CloseClient(engine::Engine& engine, Client& client);

// Memory held for the connection.
size_t ClientMemory(const Client& client);
// The same as far as it counts toward maxmemory-clients; nothing where the client is spared.
size_t ChargeableMemory(const Client& client);
// Makes that what the client counts with in its lane. On any thread.
void Charge(Lane& lane, Client& client, size_t bytes);
// Counts what every client takes toward maxmemory-clients. REQUIRES: the gate is closed.
void ChargeClients(engine::Engine& engine);
// A channel, pattern, watched key or prefix came to the client's, or left them. REQUIRES: on the
// client's thread.
void CountName(Client& client, std::string_view name);
void UncountName(Client& client, std::string_view name);

// Every condition that is set must hold.
struct ClientFilter {
  uint64_t id = 0;  // 0: any
  std::optional<std::string_view> addr;
  std::optional<std::string_view> laddr;
  std::optional<std::string_view> user;
  std::optional<ClientType> type;
  int64_t max_age = 0;  // seconds; 0: any. Only clients at least this old.

  bool Matches(const Client& client, int64_t now_ms) const;
};

}  // namespace sava::engine
