// Pub/sub commands: SUBSCRIBE and its kin, PUBLISH, PUBSUB.
//
// A confirmation is one push (or array) per channel, in the order of the arguments. In RESP2 a
// subscribed client may only use this family, PING, QUIT and RESET; the engine sees to that.
#include <memory>
#include <optional>
#include <string>

#include "engine/engine_context.h"

namespace sava::engine {

namespace {

using commands::Context;

// Without a channel: there was nothing to unsubscribe from.
void Confirm(Context& ctx, std::string_view kind, std::optional<std::string_view> channel,
             size_t count) {
  const size_t mark = ctx.reply().Mark();
  ctx.reply().Push(3);
  ctx.reply().Bulk(kind);
  channel ? ctx.reply().Bulk(*channel) : ctx.reply().Null();
  ctx.reply().Int(static_cast<int64_t>(count));
  EngineContext::Of(ctx).client().KeepPush(mark);
}

void Subscribe(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  for (size_t i = 1; i < ctx.argc(); ++i) {
    ec.engine().pubsub().Subscribe(ec.client(), ctx.arg(i), false);
    Confirm(ctx, "subscribe", ctx.arg(i), ec.client().subscriptions.count());
  }
}

void Ssubscribe(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  for (size_t i = 1; i < ctx.argc(); ++i) {
    ec.engine().pubsub().Subscribe(ec.client(), ctx.arg(i), true);
    Confirm(ctx, "ssubscribe", ctx.arg(i), ec.client().subscriptions.shard_channels.size());
  }
}

void Psubscribe(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  for (size_t i = 1; i < ctx.argc(); ++i) {
    ec.engine().pubsub().SubscribePattern(ec.client(), ctx.arg(i));
    Confirm(ctx, "psubscribe", ctx.arg(i), ec.client().subscriptions.count());
  }
}

void UnsubscribeChannels(Context& ctx, bool shard) {
  auto& ec = EngineContext::Of(ctx);
  Client& client = ec.client();
  const std::string_view kind = shard ? "sunsubscribe" : "unsubscribe";
  const auto count = [&] {
    return shard ? client.subscriptions.shard_channels.size() : client.subscriptions.count();
  };
  if (ctx.argc() > 1) {
    for (size_t i = 1; i < ctx.argc(); ++i) {
      ec.engine().pubsub().Unsubscribe(client, ctx.arg(i), shard);
      Confirm(ctx, kind, ctx.arg(i), count());
    }
    return;
  }
  auto& mine = shard ? client.subscriptions.shard_channels : client.subscriptions.channels;
  if (mine.empty()) {
    Confirm(ctx, kind, std::nullopt, count());
    return;
  }
  while (!mine.empty()) {
    const std::string channel = *mine.begin();
    ec.engine().pubsub().Unsubscribe(client, channel, shard);
    Confirm(ctx, kind, channel, count());
  }
}

void Unsubscribe(Context& ctx) { UnsubscribeChannels(ctx, false); }
void Sunsubscribe(Context& ctx) { UnsubscribeChannels(ctx, true); }

void Punsubscribe(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  Client& client = ec.client();
  if (ctx.argc() > 1) {
    for (size_t i = 1; i < ctx.argc(); ++i) {
      ec.engine().pubsub().UnsubscribePattern(client, ctx.arg(i));
      Confirm(ctx, "punsubscribe", ctx.arg(i), client.subscriptions.count());
    }
    return;
  }
  if (client.subscriptions.patterns.empty()) {
    Confirm(ctx, "punsubscribe", std::nullopt, client.subscriptions.count());
    return;
  }
  while (!client.subscriptions.patterns.empty()) {
    const std::string pattern = *client.subscriptions.patterns.begin();
    ec.engine().pubsub().UnsubscribePattern(client, pattern);
    Confirm(ctx, "punsubscribe", pattern, client.subscriptions.count());
  }
}

void PublishTo(Context& ctx, bool shard) {
  auto& ec = EngineContext::Of(ctx);
  Client& client = ec.client();
  PubSub& pubsub = ec.engine().pubsub();
  int64_t receivers = 0;
  if (client.has(kClientInExec | kClientInScript)) {
    receivers = pubsub.Receivers(ctx.arg(1), shard);
    ec.invocation().effects().TellFrom(client, std::string(ctx.arg(1)), ctx.arg(2), shard);
  } else {
    const size_t mark = client.out.Mark();
    const uint64_t ticket = std::max(client.sending.wrote, client.sending.saw);
    const auto deliver = [&](const std::shared_ptr<const Message>& message) {
      // Messages posted to this lane earlier come before this one.
      ec.engine().ReceiveMail(ec.lane());
      client.out.Append(client.resp == 3 ? message->resp3 : message->resp2);
    };
    receivers = pubsub.Publish(ctx.arg(1), ctx.arg(2), shard, ticket, &client, deliver);
    client.KeepPush(mark);
  }
  // Replicas get it when the stream of changes has it: the journal is on while there are some.
  const journal::Destinations to = ec.invocation().work().to & journal::kToReplicas;
  if (pubsub.replicated() && client.origin.logged && to != 0) {
    const std::string_view words[] = {shard ? "SPUBLISH" : "PUBLISH", ctx.arg(1), ctx.arg(2)};
    ec.invocation().effects().Add(ec.engine().journal(), ec.lane().index, words, client.db, to);
  }
  ec.lane().stats.published.Add();
  ctx.reply().Int(receivers);
}

void Publish(Context& ctx) { PublishTo(ctx, false); }
void Spublish(Context& ctx) { PublishTo(ctx, true); }

void ReplyChannels(Context& ctx, bool shard) {
  if (ctx.argc() > 3) {
    ctx.Error(commands::errors::UnknownSubcommand(ctx.arg(1), "PUBSUB"));
    return;
  }
  const std::string_view pattern = ctx.argc() > 2 ? ctx.arg(2) : std::string_view();
  const auto names = EngineContext::Of(ctx).engine().pubsub().Channels(pattern, shard);
  ctx.reply().Array(static_cast<int64_t>(names.size()));
  for (const std::string& name : names) ctx.reply().Bulk(name);
}

void ReplyNumsub(Context& ctx, bool shard) {
  ctx.reply().Array(static_cast<int64_t>(ctx.argc() - 2) * 2);
  for (size_t i = 2; i < ctx.argc(); ++i) {
    ctx.reply().Bulk(ctx.arg(i));
    ctx.reply().Int(EngineContext::Of(ctx).engine().pubsub().Subscribers(ctx.arg(i), shard));
  }
}

void PubsubChannels(Context& ctx) { ReplyChannels(ctx, false); }
void PubsubShardchannels(Context& ctx) { ReplyChannels(ctx, true); }
void PubsubNumsub(Context& ctx) { ReplyNumsub(ctx, false); }
void PubsubShardnumsub(Context& ctx) { ReplyNumsub(ctx, true); }

void PubsubNumpat(Context& ctx) {
  ctx.reply().Int(EngineContext::Of(ctx).engine().pubsub().PatternCount());
}

void PubsubHelp(Context& ctx) {
  static constexpr std::string_view kLines[] = {
      "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "CHANNELS [<pattern>]",
      "    List the channels somebody is subscribed to, all or those matching <pattern>.",
      "NUMPAT",
      "    Count the distinct patterns clients are subscribed to.",
      "NUMSUB [<channel> ...]",
      "    Count the subscribers of each channel, patterns left aside.",
      "SHARDCHANNELS [<pattern>]",
      "    List the shard channels somebody is subscribed to.",
      "SHARDNUMSUB [<shardchannel> ...]",
      "    Count the subscribers of each shard channel.",
      "HELP",
      "    Print this help."};
  ctx.reply().Array(std::size(kLines));
  for (const std::string_view line : kLines) ctx.reply().Simple(line);
}

using commands::CommandSpec;
using commands::KeySpec;
constexpr uint32_t kListen =
    commands::kPubsub | commands::kNoscript | commands::kLoading | commands::kStale;
constexpr uint32_t kAsk = commands::kPubsub | commands::kLoading | commands::kStale;

constexpr KeySpec ShardChannel(int16_t last) {
  return {.flags = commands::kKeyNotKey, .first = 1, .last = last};
}

constexpr CommandSpec kPubsubSubcommands[] = {
    {.name = "channels",
     .handler = PubsubChannels,
     .arity = -2,
     .flags = kAsk,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Lists the channels that have subscribers.",
     .complexity = "O(N) where N is the number of channels",
     .arguments = "[pattern:pattern]",
     .reply = "array of channel names",
     .example = "PUBSUB CHANNELS"},
    {.name = "help",
     .handler = PubsubHelp,
     .arity = 2,
     .flags = commands::kLoading | commands::kStale,
     .group = "pubsub",
     .since = "6.2.0",
     .summary = "Explains the subcommands of PUBSUB.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "PUBSUB HELP"},
    {.name = "numpat",
     .handler = PubsubNumpat,
     .arity = 2,
     .flags = kAsk,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Counts the patterns that have subscribers.",
     .complexity = "O(1)",
     .reply = "integer",
     .example = "PUBSUB NUMPAT"},
    {.name = "numsub",
     .handler = PubsubNumsub,
     .arity = -2,
     .flags = kAsk,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Counts the subscribers of channels.",
     .complexity = "O(N) for N channels",
     .arguments = "[channel ...]",
     .reply = "array of channel, count",
     .example = "PUBSUB NUMSUB news"},
    {.name = "shardchannels",
     .handler = PubsubShardchannels,
     .arity = -2,
     .flags = kAsk,
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Lists the shard channels that have subscribers.",
     .complexity = "O(N) where N is the number of shard channels",
     .arguments = "[pattern:pattern]",
     .reply = "array of channel names",
     .example = "PUBSUB SHARDCHANNELS"},
    {.name = "shardnumsub",
     .handler = PubsubShardnumsub,
     .arity = -2,
     .flags = kAsk,
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Counts the subscribers of shard channels.",
     .complexity = "O(N) for N channels",
     .arguments = "[shardchannel ...]",
     .reply = "array of channel, count",
     .example = "PUBSUB SHARDNUMSUB orders"},
};

constexpr CommandSpec kPubSubRows[] = {
    {.name = "subscribe",
     .handler = Subscribe,
     .arity = -2,
     .flags = kListen,
     .traits = commands::kWhileSubscribed | commands::kNamesChannels,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Listens to messages published to channels.",
     .complexity = "O(N) for N channels",
     .arguments = "channel ...",
     .reply = "one push per channel: subscribe, channel, subscriptions",
     .example = "SUBSCRIBE news"},
    {.name = "unsubscribe",
     .handler = Unsubscribe,
     .arity = -1,
     .flags = kListen,
     .traits = commands::kWhileSubscribed,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Stops listening to channels, or to all.",
     .complexity = "O(N) for N channels",
     .arguments = "[channel ...]",
     .reply = "one push per channel: unsubscribe, channel, subscriptions",
     .example = "UNSUBSCRIBE news"},
    {.name = "psubscribe",
     .handler = Psubscribe,
     .arity = -2,
     .flags = kListen,
     .traits = commands::kWhileSubscribed | commands::kNamesPatterns,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Listens to the channels whose names match patterns.",
     .complexity = "O(N) for N patterns",
     .arguments = "pattern:pattern ...",
     .reply = "one push per pattern: psubscribe, pattern, subscriptions",
     .example = "PSUBSCRIBE news.*"},
    {.name = "punsubscribe",
     .handler = Punsubscribe,
     .arity = -1,
     .flags = kListen,
     .traits = commands::kWhileSubscribed,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Stops listening to patterns, or to all.",
     .complexity = "O(N) for N patterns",
     .arguments = "[pattern:pattern ...]",
     .reply = "one push per pattern: punsubscribe, pattern, subscriptions",
     .example = "PUNSUBSCRIBE news.*"},
    {.name = "publish",
     .handler = Publish,
     .arity = 3,
     .flags = commands::kPubsub | commands::kLoading | commands::kStale | commands::kFast |
              commands::kMayReplicate,
     .traits = commands::kNamesChannel,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Sends a message to a channel's subscribers.",
     .complexity = "O(N+M) for N subscribers and M patterns",
     .arguments = "channel message",
     .reply = "integer: how many clients got it",
     .example = "PUBLISH news hello"},
    {.name = "ssubscribe",
     .handler = Ssubscribe,
     .arity = -2,
     .flags = kListen,
     .traits = commands::kWhileSubscribed | commands::kNamesChannels,
     .keys = {ShardChannel(-1)},
     .lock = commands::LockClass::kNone,
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Listens to messages published to shard channels.",
     .complexity = "O(N) for N channels",
     .arguments = "shardchannel ...",
     .reply = "one push per channel: ssubscribe, channel, subscriptions",
     .example = "SSUBSCRIBE orders"},
    {.name = "sunsubscribe",
     .handler = Sunsubscribe,
     .arity = -1,
     .flags = kListen,
     .traits = commands::kWhileSubscribed,
     .keys = {ShardChannel(-1)},
     .lock = commands::LockClass::kNone,
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Stops listening to shard channels, or to all.",
     .complexity = "O(N) for N channels",
     .arguments = "[shardchannel ...]",
     .reply = "one push per channel: sunsubscribe, channel, subscriptions",
     .example = "SUNSUBSCRIBE orders"},
    {.name = "spublish",
     .handler = Spublish,
     .arity = 3,
     .flags = commands::kPubsub | commands::kLoading | commands::kStale | commands::kFast |
              commands::kMayReplicate,
     .traits = commands::kNamesChannel,
     .keys = {ShardChannel(0)},
     .lock = commands::LockClass::kNone,
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Sends a message to a shard channel's subscribers.",
     .complexity = "O(N) for N subscribers",
     .arguments = "shardchannel message",
     .reply = "integer: how many clients got it",
     .example = "SPUBLISH orders hello"},
    {.name = "pubsub",
     .arity = -2,
     .flags = 0,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Tells about channels and subscribers.",
     .complexity = "Depends on subcommand.",
     .subcommands = kPubsubSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> PubSubCommands() { return kPubSubRows; }

}  // namespace sava::engine
