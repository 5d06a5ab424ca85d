// LATENCY: events that took long, and how long commands take.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "admin/command_totals.h"
#include "admin/families.h"
#include "admin/latency_graph.h"
#include "commands/family.h"
#include "commands/help.h"
#include "engine/engine_context.h"

namespace sava::admin {

namespace {

using commands::Context;
using engine::EngineContext;
using Series = engine::LatencyMonitor::Series;

engine::LatencyMonitor& MonitorOf(Context& ctx) {
  return EngineContext::Of(ctx).engine().observer().latency();
}

void Latest(Context& ctx) {
  const std::vector<Series> all = MonitorOf(ctx).All();
  ctx.reply().Array(static_cast<int64_t>(all.size()));
  for (const Series& series : all) {
    ctx.reply().Array(4);
    ctx.reply().Bulk(series.event);
    ctx.reply().Int(series.samples.back().unix_time);
    ctx.reply().Int(series.samples.back().millis);
    ctx.reply().Int(series.max);
  }
}

void History(Context& ctx) {
  Series series;
  MonitorOf(ctx).Get(ctx.arg(2), &series);
  ctx.reply().Array(static_cast<int64_t>(series.samples.size()));
  for (const engine::LatencySample& sample : series.samples) {
    ctx.reply().Array(2);
    ctx.reply().Int(sample.unix_time);
    ctx.reply().Int(sample.millis);
  }
}

void Reset(Context& ctx) {
  const commands::Args names = ctx.args().subspan(2);
  ctx.reply().Int(MonitorOf(ctx).Reset({names.begin(), names.end()}));
}

void Graph(Context& ctx) {
  Series series;
  if (!MonitorOf(ctx).Get(ctx.arg(2), &series)) {
    return ctx.Error("ERR No samples available for event '" + std::string(ctx.arg(2)) + "'");
  }
  ctx.reply().Verbatim("txt", LatencyGraph(series, ctx.now_ms() / 1000));
}

// One line about an event: how often, how long, how regular.
std::string Diagnosis(const Series& series, int64_t now_seconds) {
  double sum = 0;
  for (const engine::LatencySample& sample : series.samples) sum += sample.millis;
  const auto count = static_cast<double>(series.samples.size());
  const double average = sum / count;
  double deviation = 0;
  for (const engine::LatencySample& sample : series.samples) {
    deviation += std::abs(sample.millis - average);
  }
  const auto period = static_cast<double>(now_seconds - series.samples.front().unix_time) / count;
  return fmt::format(
      "{}: {} spikes, {:.0f} ms on average (mean deviation {:.0f} ms), one in {:.2f} seconds, "
      "worst "
      "ever {} ms.\n",
      series.event, series.samples.size(), average, deviation / count, period, series.max);
}

// What may help against the events that were seen.
std::string Advice(const std::vector<Series>& all, const config::Settings& settings) {
  std::string text;
  const auto seen = [&](std::string_view event) {
    return std::ranges::find(all, event, &Series::event) != all.end();
  };
  if (seen("command") || seen("fast-command")) {
    const int64_t threshold = settings.latency_monitor_threshold * 1000;
    if (settings.slowlog_log_slower_than < 0 || settings.slowlog_log_slower_than > threshold) {
      text += fmt::format(
          "- The slow log does not show commands as fast as these. CONFIG SET "
          "slowlog-log-slower-than {} makes it.\n",
          threshold);
    }
    text += "- SLOWLOG GET shows which commands took long.\n";
  }
  if (seen("expire-cycle")) {
    text += "- Many keys expire at the same time. Spread their expiry a little.\n";
  }
  if (seen("eviction-cycle") || seen("eviction-del")) {
    text += "- Keys are evicted to stay below maxmemory. More memory or fewer keys would help.\n";
  }
  return text;
}

void Doctor(Context& ctx) {
  const std::vector<Series> all = MonitorOf(ctx).All();
  const config::Settings& settings = EngineContext::Of(ctx).engine().settings();
  std::string text;
  if (all.empty() && settings.latency_monitor_threshold == 0) {
    text =
        "Latency is not being watched. CONFIG SET latency-monitor-threshold <milliseconds> makes "
        "the server note every event that takes at least that long.\n";
  } else if (all.empty()) {
    text = fmt::format("No event took {} ms or longer since the watch began. All is well.\n",
                       settings.latency_monitor_threshold);
  } else {
    text = "Events that took long:\n\n";
    int number = 0;
    for (const Series& series : all) {
      text += fmt::format("{}. {}", ++number, Diagnosis(series, ctx.now_ms() / 1000));
    }
    const std::string advice = Advice(all, settings);
    if (!advice.empty()) text += "\nWhat may help:\n\n" + advice;
  }
  ctx.reply().Verbatim("txt", text);
}

// Writes the command's histogram, if it was ever called; whether it was.
bool ReplyHistogram(Context& ctx, const commands::Command& command) {
  const CommandTotals totals = TotalsOf(EngineContext::Of(ctx).engine(), command);
  if (totals.samples == 0) return false;
  protocol::Reply& reply = ctx.reply();
  reply.Bulk(command.full_name);
  reply.Map(2);
  reply.Bulk("calls");
  reply.Int(static_cast<int64_t>(totals.samples));
  reply.Bulk("histogram_usec");
  const auto steps = totals.Cumulative();
  reply.Map(static_cast<int64_t>(steps.size()));
  for (const auto& [micros, count] : steps) {
    reply.Int(micros);
    reply.Int(count);
  }
  return true;
}

void Histogram(Context& ctx) {
  std::vector<const commands::Command*> wanted;
  if (ctx.argc() == 2) {
    for (const auto& command : ctx.command_table().by_id()) wanted.push_back(command.get());
  }
  for (const std::string_view name : ctx.args().subspan(2)) {
    const commands::Command* command = ctx.command_table().FindFullName(name);
    if (command == nullptr) continue;
    wanted.push_back(command);
    wanted.insert(wanted.end(), command->subcommands.begin(), command->subcommands.end());
  }
  const size_t mark = ctx.reply().Mark();
  int64_t count = 0;
  for (const commands::Command* command : wanted) count += ReplyHistogram(ctx, *command) ? 1 : 0;
  ctx.reply().MapAt(mark, count);
}

constexpr std::string_view kReportTips =
    "nondeterministic_output,request_policy:all_nodes,response_policy:special";

constexpr commands::CommandSpec kSubcommands[] = {
    {.name = "doctor",
     .handler = Doctor,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "2.8.13",
     .summary = "Tells in words what took long, and what may help.",
     .complexity = "O(N) for N samples",
     .reply = "text",
     .example = "LATENCY DOCTOR",
     .tips = kReportTips},
    {.name = "graph",
     .handler = Graph,
     .arity = 3,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "2.8.13",
     .summary = "Draws the samples of an event.",
     .complexity = "O(N) for N samples",
     .arguments = "event",
     .reply = "text",
     .example = "LATENCY GRAPH command",
     .tips = kReportTips},
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kAnytime,
     .group = "server",
     .since = "2.8.13",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "LATENCY HELP"},
    {.name = "histogram",
     .handler = Histogram,
     .arity = -2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "7.0.0",
     .summary = "Shows how long the calls of some commands took, or of all.",
     .complexity = "O(N) for N commands",
     .arguments = "[command ...]",
     .reply = "map: each command with its calls and how many took at most so many microseconds",
     .example = "LATENCY HISTOGRAM set get",
     .tips = kReportTips},
    {.name = "history",
     .handler = History,
     .arity = 3,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "2.8.13",
     .summary = "Shows the samples of an event.",
     .complexity = "O(N) for N samples",
     .arguments = "event",
     .reply = "array of time and milliseconds",
     .example = "LATENCY HISTORY command",
     .tips = kReportTips},
    {.name = "latest",
     .handler = Latest,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "2.8.13",
     .summary = "Shows the latest and the worst sample of every event.",
     .complexity = "O(N) for N events",
     .reply = "array of event, time, milliseconds, worst milliseconds",
     .example = "LATENCY LATEST",
     .tips = kReportTips},
    {.name = "reset",
     .handler = Reset,
     .arity = -2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "2.8.13",
     .summary = "Forgets the samples of some events, or of all.",
     .complexity = "O(N) for N events",
     .arguments = "[event ...]",
     .reply = "integer: how many events were forgotten",
     .example = "LATENCY RESET",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded"},
};

constexpr commands::CommandSpec kRows[] = {
    {.name = "latency",
     .arity = -2,
     .group = "server",
     .since = "2.8.13",
     .summary = "Shows what took long and how long commands take.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> LatencyCommands() { return kRows; }

}  // namespace sava::admin
