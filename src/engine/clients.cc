#include "engine/clients.h"

#include "engine/engine_context.h"

namespace sava::engine {

Client& BlockForReply(commands::Context& ctx, int64_t until,
                      std::function<void(Client&)> on_timeout) {
  EngineContext& ec = EngineContext::Of(ctx);
  Client& client = ec.client();
  ec.lane().waits.AwaitAnswer(client, until, std::move(on_timeout));
  return client;
}

void ResetStats(Engine& engine) {
  engine.ForEachLane([](Lane& lane) {
    LaneStats& stats = lane.stats;
    for (Counter* counter : {&stats.commands,
                             &stats.connections,
                             &stats.rejected_connections,
                             &stats.hits,
                             &stats.misses,
                             &stats.expired,
                             &stats.expired_parts,
                             &stats.evicted,
                             &stats.evicted_clients,
                             &stats.net_input,
                             &stats.net_output,
                             &stats.reads,
                             &stats.writes,
                             &stats.error_replies,
                             &stats.unexpected_errors,
                             &stats.output_limit_disconnections,
                             &stats.query_limit_disconnections,
                             &stats.published,
                             &stats.ratelimit_refused,
                             &stats.parked,
                             &stats.compacted,
                             &stats.expire_cycles_capped,
                             &stats.expire_nanos,
                             &stats.eviction_stalls_nanos,
                             &stats.loop_max_nanos,
                             &stats.loop_over_5ms,
                             &stats.loop_rounds,
                             &stats.loop_busy_nanos}) {
      counter->Reset();
    }
    stats.loop.Reset();
    for (CommandStats& command : stats.by_command) {
      command.calls.Reset();
      command.nanos.Reset();
      command.rejected.Reset();
      command.failed.Reset();
      if (Histogram* histogram = command.histogram.load()) histogram->Reset();
    }
  });
  engine.observer().errors().Reset();
  engine.background().ResetDone();
}

}  // namespace sava::engine
