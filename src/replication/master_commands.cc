// The commands by which other servers become replicas of this one, and those that wait for
// replicas: PSYNC, SYNC, REPLCONF, WAIT, WAITAOF, FAILOVER, ROLE.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

#include "base/text.h"
#include "commands/blocking.h"
#include "commands/family.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "replication/announce.h"
#include "replication/families.h"
#include "replication/master.h"
#include "replication/wire.h"

namespace sava::replication {

namespace {

using commands::Context;
using engine::Client;
using engine::EngineContext;

Client& ClientOf(Context& ctx) { return EngineContext::Of(ctx).client(); }
bool InExec(Context& ctx) { return ClientOf(ctx).has(engine::kClientInExec); }

// ---- PSYNC, SYNC ----

// Replies the error and returns false when the client cannot become a replica now.
bool MayFollow(Context& ctx) {
  Master& master = ctx.part<Master>();
  Client& client = ClientOf(ctx);
  if (master.failover().under_way()) {
    ctx.Error("NOMASTERLINK Can't SYNC while failing over");
    return false;
  }
  if (!client.origin.blocks) {
    ctx.Error("ERR SYNC and PSYNC need a connection of their own");
    return false;
  }
  if (master.following().is_replica() && !master.following().link_is_up()) {
    ctx.Error("NOMASTERLINK Can't SYNC while not connected with my master");
    return false;
  }
  if (client.out.pending() > 0) {
    ctx.Error("ERR SYNC and PSYNC are invalid with pending output");
    return false;
  }
  if (client.peer.announced != nullptr && client.peer.announced->filtered &&
      !client.peer.announced->eof) {
    ctx.Error("ERR Filtered replica requires EOF capability");
    return false;
  }
  return true;
}

bool AsksToTakeOver(commands::Args args) {
  return args.size() > 3 && base::EqualsNoCase(args[3], "failover");
}
// A server that takes over becomes a master: no other thread may be at work.
commands::LockClass PsyncLock(commands::Args args) {
  return AsksToTakeOver(args) ? commands::LockClass::kAll : commands::LockClass::kNone;
}

// This server's master asks it to become the master. False: the error was replied.
bool TakeOver(Context& ctx) {
  Master& master = ctx.part<Master>();
  if (!master.following().is_replica()) {
    ctx.Error("ERR PSYNC FAILOVER can't be sent to a master.");
    return false;
  }
  if (!base::EqualsNoCase(ctx.arg(1), master.stream().history().id)) {
    ctx.Error("ERR PSYNC FAILOVER replid must match my replid.");
    return false;
  }
  spdlog::info("Failover request received for replid {}.", ctx.arg(1));
  master.following().TakeOver();
  return true;
}

void Psync(Context& ctx) {
  Master& master = ctx.part<Master>();
  Client& client = ClientOf(ctx);
  if (client.has(engine::kClientReplica)) return;
  int64_t from = 0;
  const commands::Args words = EngineContext::Of(ctx).invocation().work().args;
  if (AsksToTakeOver(words) && !TakeOver(ctx)) return;
  if (!MayFollow(ctx) || !ctx.IntArg(2, &from)) return;
  // Bytes are counted from 1 on the wire.
  if (from > 0 && master.Resume(client, ctx.arg(1), from - 1)) return;
  master.SendCopy(client, true);
}

void Sync(Context& ctx) {
  Client& client = ClientOf(ctx);
  if (client.has(engine::kClientReplica) || !MayFollow(ctx)) return;
  // A replica that does not know PSYNC knows nothing that came later.
  if (client.peer.announced != nullptr) client.peer.announced->eof = false;
  ctx.part<Master>().SendCopy(client, false);
}

// ---- REPLCONF ----

// ACK offset [FACK offset]: there is no answer, right or wrong.
void Acknowledge(Context& ctx) {
  int64_t bytes = 0;
  int64_t on_disk = -1;
  if (!base::ParseInt(ctx.arg(2), &bytes)) return;
  if (ctx.argc() > 4 && ctx.ArgIs(3, "FACK")) base::ParseInt(ctx.arg(4), &on_disk);
  ctx.part<Master>().Acknowledged(ClientOf(ctx), bytes, on_disk);
}

void Replconf(Context& ctx) {
  if (ctx.argc() % 2 == 0) return ctx.Error(commands::errors::kSyntax);
  Client& client = ClientOf(ctx);
  if (ctx.argc() > 1 && ctx.ArgIs(1, "ACK")) {
    if (client.has(engine::kClientReplica)) Acknowledge(ctx);
    return;
  }
  // Meant for a replica, by its master.
  if (ctx.argc() > 1 && ctx.ArgIs(1, "GETACK")) return;
  if (client.peer.announced == nullptr)
    client.peer.announced = std::make_unique<engine::Announcement>();
  const commands::Args words = EngineContext::Of(ctx).invocation().work().args;
  const base::Status status = Announce(words.subspan(1), client.peer.announced.get());
  return status ? ctx.reply().Ok() : ctx.Error(status.error());
}

// ---- WAIT, WAITAOF ----

void AwaitOrAnswer(Context& ctx, const Master::Wanted& wanted, int64_t until) {
  Master& master = ctx.part<Master>();
  const Master::Answer answer = master.Now(wanted);
  if (answer.enough || InExec(ctx) || !ClientOf(ctx).origin.blocks)
    return Master::WriteAnswer(ctx.reply(), wanted, answer);
  const auto target = std::make_shared<std::atomic<int64_t>>(-1);
  const Client& client =
      engine::BlockForReply(ctx, until, [&master, wanted, target](Client& waiting) {
        protocol::Reply reply(&waiting.out, waiting.resp);
        Master::WriteAnswer(reply, wanted, master.Now(wanted, target->load()));
      });
  master.Await(client, wanted, target);
}

void Wait(Context& ctx) {
  if (ctx.part<Master>().following().is_replica()) {
    return ctx.Error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if "
        "a replica is configured to be writable (which is not the default) writes to replicas are "
        "just local and are not propagated.");
  }
  Master::Wanted wanted;
  int64_t until = 0;
  if (!ctx.IntArg(1, &wanted.replicas) || !commands::TimeoutMillis(ctx, 2, &until)) return;
  wanted.ticket = ClientOf(ctx).sending.wrote;
  AwaitOrAnswer(ctx, wanted, until);
}

void Waitaof(Context& ctx) {
  Master::Wanted wanted;
  wanted.on_disk = true;
  int64_t local = 0;
  int64_t until = 0;
  if (!ctx.IntArg(1, &local)) return;
  if (local < 0 || local > 1) {
    return ctx.Error("ERR value is out of range, value must between 0 and 1");
  }
  if (!ctx.IntArg(2, &wanted.replicas)) return;
  if (wanted.replicas < 0) return ctx.Error(commands::errors::kMustBePositive);
  if (!commands::TimeoutMillis(ctx, 3, &until)) return;
  if (ctx.part<Master>().following().is_replica()) {
    return ctx.Error(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
        "replicas are just local and are not propagated.");
  }
  wanted.local = local > 0;
  EngineContext& ec = EngineContext::Of(ctx);
  if (wanted.local && !ec.engine().settings().appendonly) {
    return ctx.Error(kNoLocalLog);
  }
  wanted.ticket = ec.client().sending.wrote;
  AwaitOrAnswer(ctx, wanted, until);
}

// ---- FAILOVER ----

struct FailoverWords {
  Failover::Wish wish;
  bool abort = false;
  bool others = false;
};

// Replies the error and returns false when the arguments are not right.
bool ParseFailover(Context& ctx, FailoverWords* words) {
  Failover::Wish& wish = words->wish;
  for (size_t i = 1; i < ctx.argc(); ++i) {
    const size_t more = ctx.argc() - i - 1;
    if (ctx.ArgIs(i, "TIMEOUT") && more >= 1 && wish.timeout_ms == 0) {
      if (!ctx.IntArg(++i, &wish.timeout_ms)) return false;
      if (wish.timeout_ms <= 0) {
        ctx.Error("ERR FAILOVER timeout must be greater than 0");
        return false;
      }
      words->others = true;
    } else if (ctx.ArgIs(i, "TO") && more >= 2 && wish.host.empty()) {
      wish.host = ctx.arg(i + 1);
      i += 2;
      if (!ctx.IntArg(i, &wish.port)) return false;
      words->others = true;
    } else if (ctx.ArgIs(i, "FORCE") && !wish.force) {
      wish.force = words->others = true;
    } else if (ctx.ArgIs(i, "ABORT") && !words->abort) {
      words->abort = true;
    } else {
      ctx.Error(commands::errors::kSyntax);
      return false;
    }
  }
  return true;
}

void RunFailover(Context& ctx) {
  FailoverWords words;
  if (!ParseFailover(ctx, &words)) return;
  Failover& failover = ctx.part<Master>().failover();
  if (words.abort) {
    if (words.others) return ctx.Error(commands::errors::kSyntax);
    if (!failover.Abort("Failover manually aborted")) {
      return ctx.Error("ERR No failover in progress.");
    }
    return ctx.reply().Ok();
  }
  const base::Status started = failover.Start(words.wish);
  return started ? ctx.reply().Ok() : ctx.Error(started.error());
}

// ---- ROLE ----

void Role(Context& ctx) {
  Master& master = ctx.part<Master>();
  if (master.following().is_replica()) return master.following().WriteRole(ctx.reply());
  auto replicas = master.replicas();
  std::erase_if(replicas, [](const auto& replica) { return !replica->online(); });
  ctx.reply().Array(3);
  ctx.reply().Bulk("master");
  ctx.reply().Int(master.stream().history().offset);
  ctx.reply().Array(static_cast<int64_t>(replicas.size()));
  for (const auto& replica : replicas) {
    ctx.reply().Array(3);
    ctx.reply().Bulk(replica->identity.ip);
    ctx.reply().Bulk(base::IntText(replica->identity.port));
    ctx.reply().Bulk(base::IntText(replica->acks.bytes.load()));
  }
}

constexpr uint32_t kSyncFlags =
    commands::kAdmin | commands::kNoscript | commands::kNoMulti | commands::kNoAsyncLoading;

constexpr commands::CommandSpec kRows[] = {
    {.name = "psync",
     .handler = Psync,
     .arity = -3,
     .flags = kSyncFlags,
     .choose_lock = PsyncLock,
     .group = "server",
     .since = "2.8.0",
     .summary = "Makes the connection that of a replica, which goes on where it was, if it can.",
     .complexity = "O(1)",
     .arguments = "replicationid offset:integer",
     .reply = "+FULLRESYNC and the data set, or +CONTINUE; then the stream of changes",
     .example = "PSYNC ? -1"},
    {.name = "sync",
     .handler = Sync,
     .arity = 1,
     .flags = kSyncFlags,
     .group = "server",
     .since = "1.0.0",
     .summary = "Sends the data set and then all changes.",
     .complexity = "O(N) for N keys",
     .reply = "the data set as a bulk string, then the stream of changes",
     .example = "SYNC"},
    {.name = "replconf",
     .handler = Replconf,
     .arity = -1,
     .flags = commands::kAdmin | commands::kNoscript | commands::kLoading | commands::kStale |
              commands::kAllowBusy,
     .group = "server",
     .since = "3.0.0",
     .summary = "What a replica says of itself, and acknowledges.",
     .complexity = "O(1)",
     .reply = "OK, or nothing",
     .example = "REPLCONF listening-port 6380"},
    {.name = "wait",
     .handler = Wait,
     .arity = 3,
     .acl = commands::kAclConnection,
     .group = "generic",
     .since = "3.0.0",
     .summary = "Waits until as many replicas have the connection's writes, or the time is over.",
     .complexity = "O(1)",
     .arguments = "numreplicas timeout",
     .reply = "integer: how many replicas have them",
     .example = "WAIT 0 100",
     .tips = "request_policy:all_shards,response_policy:agg_min"},
    {.name = "waitaof",
     .handler = Waitaof,
     .arity = 4,
     .flags = commands::kNoscript,
     .acl = commands::kAclConnection,
     .group = "generic",
     .since = "7.2.0",
     .summary = "Waits until what this connection has written is on disk, here and on replicas.",
     .complexity = "O(1)",
     .arguments = "numlocal:integer numreplicas:integer timeout:integer",
     .reply =
         "array: 1 when it is on this server's disk, number of replicas that have it on theirs",
     .example = "WAITAOF 1 0 1000",
     .tips = "request_policy:all_shards,response_policy:agg_min"},
    {.name = "failover",
     .handler = RunFailover,
     .arity = -1,
     .flags = commands::kAdmin | commands::kNoscript | commands::kStale,
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "6.2.0",
     .summary = "Hands the mastership to a replica that has everything.",
     .complexity = "O(1)",
     .arguments = "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
     .reply = "OK: it is under way; INFO tells how it goes on",
     .example = "FAILOVER"},
    {.name = "role",
     .handler = Role,
     .arity = 1,
     .flags = commands::kNoscript | commands::kAnytime | commands::kFast,
     .acl = commands::kAclAdmin | commands::kAclDangerous,
     .group = "server",
     .since = "2.8.12",
     .summary = "Tells whether the server is a master or a replica, and of whom.",
     .complexity = "O(1)",
     .reply = "array: master, offset, replicas; or slave, its master, state, offset",
     .example = "ROLE"},
};

}  // namespace

std::span<const commands::CommandSpec> MasterCommands() { return kRows; }

}  // namespace sava::replication
