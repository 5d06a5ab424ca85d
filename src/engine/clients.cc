#include "engine/clients.h"

#include <array>

#include "engine/engine_context.h"

namespace sava::engine {

Client& BlockForReply(commands::Context& ctx, int64_t until,
                      std::function<void(Client&)> on_timeout) {
  EngineContext& ec = EngineContext::Of(ctx);
  Client& client = ec.client();
  ec.lane().waits.AwaitAnswer(client, until, std::move(on_timeout));
  return client;
}

void LaneStats::Reset() {
  const auto reset = [](auto counters) {
    for (Counter* counter : counters) counter->Reset();
  };
  reset(std::array{&commands, &error_replies, &unexpected_errors});
  reset(std::array{&published, &ratelimit_refused, &parked});
  reset(keys.resettable());
  reset(clients.resettable());
  reset(net.resettable());
  reset(upkeep.resettable());
  reset(rounds.resettable());
  rounds.nanos.Reset();
  for (CommandStats& command : by_command) {
    command.calls.Reset();
    command.nanos.Reset();
    command.rejected.Reset();
    command.failed.Reset();
    if (Histogram* histogram = command.histogram.load()) histogram->Reset();
  }
}

void ResetStats(Engine& engine) {
  engine.ForEachLane([](Lane& lane) { lane.stats.Reset(); });
  engine.observer().errors().Reset();
  engine.background().ResetDone();
}

}  // namespace sava::engine
