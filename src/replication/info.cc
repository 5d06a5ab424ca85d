// INFO's section about replication: the master's part, and whatever the other half adds.
#include "engine/info.h"

#include <algorithm>

#include "replication/families.h"
#include "replication/master.h"

namespace sava::replication {

namespace {

using engine::InfoWriter;

std::string_view StateName(const Replica& replica) {
  switch (replica.state.load()) {
    case Replica::State::kWaits:
      return "wait_bgsave";
    case Replica::State::kTransfer:
      return "send_bulk";
    case Replica::State::kOnline:
      break;
  }
  return "online";
}

void Replicas(InfoWriter& out, const Master& master) {
  const auto replicas = master.replicas();
  out.Field("connected_slaves", replicas.size());
  const config::Settings& settings = out.engine.settings();
  if (settings.min_replicas_to_write > 0 && settings.min_replicas_max_lag > 0) {
    out.Field("min_slaves_good_slaves", master.good_replicas());
  }
  size_t number = 0;
  for (const auto& replica : replicas) {
    const int64_t lag = replica->online() && replica->identity.psync
                            ? (out.now_ms - replica->acks.at_ms.load()) / 1000
                            : 0;
    out.Line("slave{}:ip={},port={},state={},offset={},lag={}", number++, replica->identity.ip,
             replica->identity.port, StateName(*replica), replica->acks.bytes.load(),
             std::max<int64_t>(lag, 0));
  }
}

void ReplicationSection(InfoWriter& out) {
  Master& master = out.part<Master>();
  const bool replica = master.following().is_replica();
  out.Field("role", replica ? "slave" : "master");
  if (replica) master.following().WriteInfo(out);
  Replicas(out, master);
  const History history = master.stream().history();
  const ChangeStream::Figures stream = master.stream().figures();
  out.Field("master_failover_state", master.failover().state_name());
  out.Field("master_replid", history.id);
  out.Field("master_replid2", history.second_id);
  out.Field("master_repl_offset", history.offset);
  out.Field("second_repl_offset", history.second_offset);
  out.Field("repl_backlog_active", stream.active ? 1 : 0);
  out.Field("repl_backlog_size", out.engine.settings().repl_backlog_size);
  out.Field("repl_backlog_first_byte_offset", stream.active ? stream.first + 1 : 0);
  out.Field("repl_backlog_histlen", stream.length);
  const Master::Figures figures = master.figures();
  if (figures.keys_left_out + stream.foreign > 0) {
    out.Field("sava_repl_native_keys_left_out", figures.keys_left_out);
    out.Field("sava_repl_native_commands", stream.foreign);
  }
}

}  // namespace

const engine::InfoSection kReplicationInfo{"replication", "Replication", ReplicationSection};

}  // namespace sava::replication
