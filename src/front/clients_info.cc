// INFO's section about clients.
#include <algorithm>

#include "engine/clients.h"
#include "engine/info.h"
#include "front/families.h"
#include "front/front_host.h"

namespace sava::front {

namespace {

using engine::InfoWriter;

void ClientsSection(InfoWriter& out) {
  int64_t blocked = 0;
  int64_t with_deadline = 0;
  size_t replicas = 0;  // count by themselves
  uint64_t longest_input = 0;
  uint64_t longest_output = 0;
  if (out.lane.exclusive()) {
    const int64_t second = out.now_ms / 1000;
    for (const auto& lane : out.engine.lanes()) {
      longest_input = std::max(longest_input, lane->memory.recent_input.Get(second));
      longest_output = std::max(longest_output, lane->memory.recent_output.Get(second));
    }
    engine::ForEachClient(out.engine, [&](const engine::Client& client) {
      if (client.blocked() || client.has(engine::kClientPaused)) {
        ++blocked;
        if (client.wait.deadline_ms != 0) ++with_deadline;
      }
      if (client.has(engine::kClientReplica)) ++replicas;
      longest_input = std::max<uint64_t>(longest_input, client.memory.query_bytes);
      longest_output = std::max<uint64_t>(longest_output, client.out.pending());
    });
  }
  out.Field("connected_clients", out.part<FrontHost>().client_count() - replicas);
  out.Field("cluster_connections", 0);
  out.Field("maxclients", out.engine.settings().maxclients);
  out.Field("client_recent_max_input_buffer", longest_input);
  out.Field("client_recent_max_output_buffer", longest_output);
  out.Field("blocked_clients", blocked);
  out.Field("tracking_clients", out.engine.tracking().clients());
  out.Field("clients_in_timeout_table", with_deadline);
  out.Field("total_blocking_keys", out.engine.waiting().lines().keys());
  out.Field("total_blocking_keys_on_nokey", out.engine.waiting().lines().keys_on_deletion());
}

}  // namespace

const engine::InfoSection kClientsInfo{"clients", "Clients", ClientsSection};

}  // namespace sava::front
