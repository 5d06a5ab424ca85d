// Observer: records about the commands that ran: their time, slow ones, errors; and
// what monitors are told.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "commands/registry.h"
#include "engine/mailbox.h"
#include "engine/observe.h"
#include "protocol/reply.h"

namespace sava::engine {

class EffectGroup;
class Engine;
struct Client;
struct Lane;

class Observer {
 public:
  explicit Observer(Engine* engine);

  SlowLog& slowlog() { return slowlog_; }
  LatencyMonitor& latency() { return latency_; }
  ErrorStats& errors() { return errors_; }
  std::atomic<int>& monitors() { return monitors_; }

  uint64_t Nanos(uint64_t ticks) const {
    return static_cast<uint64_t>(static_cast<double>(ticks) * nanos_per_tick_);
  }
  // A command was run and answered, within that time.
  void Answered(Lane& lane, const commands::Command& command, uint64_t nanos,
                const protocol::Reply& reply);
  // A command was answered with an error and not run. command: nullptr when there is none.
  void Rejected(Lane& lane, const commands::Command* command, const protocol::Reply& reply);
  // Below a tenth of a millisecond only a very low slow log threshold can want it.
  bool MayBeSlow(uint64_t nanos) const;
  void NoteSlow(const Client& client, const commands::Command& command, commands::Args args,
                uint64_t nanos);

  // group: to which the line belongs; nullptr: it is posted at once.
  void FeedMonitors(const Client& client, commands::Args args, EffectGroup* group = nullptr);
  // A line for all monitors.
  void PostToMonitors(const std::shared_ptr<const Message>& line, uint64_t ticket);

 private:
  Engine& engine_;
  SlowLog slowlog_;
  LatencyMonitor latency_;
  ErrorStats errors_;
  std::atomic<int> monitors_{0};
  const double nanos_per_tick_;
};

}  // namespace sava::engine
