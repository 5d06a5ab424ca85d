#include "engine/observer.h"

#include <fmt/format.h>

#include <string>

#include "base/text.h"
#include "engine/engine.h"

namespace sava::engine {

using commands::Command;

Observer::Observer(Engine* engine)
    : engine_(*engine), nanos_per_tick_(1000.0 / base::TicksPerMicro()) {}

void Observer::Answered(Lane& lane, const Command& command, uint64_t nanos,
                        const protocol::Reply& reply) {
  lane.stats.commands.Add();
  CommandStats& stats = lane.stats.by_command[static_cast<size_t>(command.id)];
  stats.calls.Add();
  stats.nanos.Add(nanos);
  if (engine_.settings().latency_tracking) stats.Record(nanos);
  if (!reply.had_error()) return;
  stats.failed.Add();
  lane.stats.error_replies.Add();
  errors_.Add(reply.error_code());
}

void Observer::Rejected(Lane& lane, const Command* command, const protocol::Reply& reply) {
  errors_.Add(reply.error_code());
  lane.stats.error_replies.Add();
  if (command != nullptr) {
    lane.stats.by_command[static_cast<size_t>(command->id)].rejected.Add();
  }
}

bool Observer::MayBeSlow(uint64_t nanos) const {
  const int64_t slow = engine_.settings().slowlog_log_slower_than;
  return nanos >= 100000 || (slow >= 0 && slow < 100);
}

void Observer::NoteSlow(const Client& client, const Command& command, commands::Args args,
                        uint64_t nanos) {
  const config::Settings& settings = engine_.settings();
  const auto micros = static_cast<int64_t>(nanos / 1000);
  const int64_t unix_time = engine_.clock().WallMillis() / 1000;
  if (settings.slowlog_log_slower_than >= 0 && micros >= settings.slowlog_log_slower_than &&
      settings.slowlog_max_len > 0 && !command.has(commands::kSkipSlowlog)) {
    slowlog_.Add(unix_time, micros, args, client.has(kClientInScript) ? "?:0" : client.peer.addr,
                 client.has(kClientInScript) ? std::string() : client.name,
                 static_cast<size_t>(settings.slowlog_max_len));
  }
  if (settings.latency_monitor_threshold > 0) {
    latency_.Add(command.has(commands::kFast) ? "fast-command" : "command", unix_time,
                 micros / 1000, settings.latency_monitor_threshold);
  }
}

void Observer::FeedMonitors(const Client& client, commands::Args args, EffectGroup* group) {
  if (monitors_.load(std::memory_order_relaxed) == 0) return;
  const int64_t now = engine_.clock().WallMicros();
  std::string line = fmt::format("+{}.{:06} [{} {}]", now / 1000000, now % 1000000, client.db,
                                 client.has(kClientInScript)     ? "lua"
                                 : client.has(kClientUnixSocket) ? "unix:" + client.peer.addr
                                                                 : client.peer.addr);
  for (const std::string_view arg : args) {
    line += ' ';
    line += base::Quoted(arg);
  }
  line += "\r\n";
  auto message = std::make_shared<Message>();
  message->resp2 = std::move(line);
  if (group != nullptr) {
    group->TellMonitors(std::move(message));
  } else {
    PostToMonitors(message, client.sending.wrote);
  }
}

void Observer::PostToMonitors(const std::shared_ptr<const Message>& line, uint64_t ticket) {
  for (auto& lane : engine_.lanes()) {
    lane->mailbox.Post({Mail::Kind::kMessage, 0, line, 0, ticket});
  }
}

}  // namespace sava::engine
