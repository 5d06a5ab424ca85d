// CLIENT LIST, KILL, PAUSE, UNPAUSE and UNBLOCK: what one client may learn of the others and do to
// them. All of these run alone, so that other threads' clients may be looked at and changed.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "commands/blocking.h"
#include "commands/family.h"
#include "engine/client_list.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "front/client_commands.h"
#include "front/families.h"
#include "front/front_host.h"

namespace sava::front::client {

namespace {

using commands::Context;
using engine::Client;
using engine::EngineContext;

bool TypeArg(Context& ctx, size_t i, std::optional<engine::ClientType>* type) {
  *type = engine::ClientTypeByName(ctx.arg(i));
  if (type->has_value()) return true;
  ctx.Error("ERR Unknown client type '" + std::string(ctx.arg(i)) + "'");
  return false;
}

// The filters of CLIENT KILL from argument 2 on, in pairs.
bool ParseKillFilters(Context& ctx, engine::ClientFilter* filter, bool* skip_me) {
  for (size_t i = 2; i < ctx.argc(); i += 2) {
    if (i + 1 == ctx.argc()) {
      ctx.Error(commands::errors::kSyntax);
      return false;
    }
    const std::string_view value = ctx.arg(i + 1);
    if (ctx.ArgIs(i, "ID")) {
      int64_t id = 0;
      if (!base::ParseInt(value, &id) || id < 1) {
        ctx.Error("ERR client-id should be greater than 0");
        return false;
      }
      filter->id = static_cast<uint64_t>(id);
    } else if (ctx.ArgIs(i, "TYPE")) {
      if (!TypeArg(ctx, i + 1, &filter->type)) return false;
    } else if (ctx.ArgIs(i, "ADDR")) {
      filter->addr = value;
    } else if (ctx.ArgIs(i, "LADDR")) {
      filter->laddr = value;
    } else if (ctx.ArgIs(i, "USER")) {
      if (EngineContext::Of(ctx).engine().users().Find(value) == nullptr) {
        ctx.Error("ERR No such user '" + std::string(value) + "'");
        return false;
      }
      filter->user = value;
    } else if (ctx.ArgIs(i, "MAXAGE")) {
      if (!ctx.IntArg(i + 1, &filter->max_age, "ERR maxage is not an integer or out of range")) {
        return false;
      }
      if (filter->max_age <= 0) {
        ctx.Error("ERR maxage should be greater than 0");
        return false;
      }
    } else if (ctx.ArgIs(i, "SKIPME") && (ctx.ArgIs(i + 1, "yes") || ctx.ArgIs(i + 1, "no"))) {
      *skip_me = ctx.ArgIs(i + 1, "yes");
    } else {
      ctx.Error(commands::errors::kSyntax);
      return false;
    }
  }
  return true;
}

// Answers a blocked client and lets its thread go on with it.
void EndWaiting(engine::Engine& engine, Client& client, bool with_error) {
  if (with_error) {
    protocol::Reply(&client.out, client.resp)
        .Error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
  } else if (client.wait.on_timeout != nullptr) {
    client.wait.on_timeout(client);
  }
  client.set(engine::kClientBlocked, false);
  client.wait.deadline_ms = 0;
  client.wait.on_timeout = nullptr;
  engine.lanes()[client.lane]->mailbox.Post({engine::Mail::Kind::kWake, client.id, nullptr});
}

}  // namespace

void List(Context& ctx) {
  std::optional<engine::ClientType> type;
  std::vector<uint64_t> ids;
  if (ctx.argc() == 4 && ctx.ArgIs(2, "TYPE")) {
    if (!TypeArg(ctx, 3, &type)) return;
  } else if (ctx.argc() > 3 && ctx.ArgIs(2, "ID")) {
    for (size_t i = 3; i < ctx.argc(); ++i) {
      int64_t id = 0;
      if (!ctx.IntArg(i, &id, "ERR Invalid client ID")) return;
      ids.push_back(static_cast<uint64_t>(id));
    }
  } else if (ctx.argc() != 2) {
    return ctx.Error(commands::errors::kSyntax);
  }
  std::ranges::sort(ids);
  EngineContext::Of(ctx).client().activity.last_command =
      ctx.command_table().ResolveOwnName(ctx.args());
  std::map<uint64_t, std::string> lines;
  engine::ForEachClient(EngineContext::Of(ctx).engine(), [&](const Client& client) {
    if (type.has_value() && engine::TypeOf(client) != *type) return;
    if (!ids.empty() && !std::ranges::binary_search(ids, client.id)) return;
    if (client.has(engine::kClientCloseNow)) return;  // killed
    lines.emplace(client.id, engine::ClientLine(client, ctx.now_ms()));
  });
  std::string text;
  for (const auto& [id, line] : lines) text.append(line) += '\n';
  ctx.reply().Verbatim("txt", text);
}

void Kill(Context& ctx) {
  engine::Engine& engine = EngineContext::Of(ctx).engine();
  Client& self = EngineContext::Of(ctx).client();
  engine::ClientFilter filter;
  const bool old_form = ctx.argc() == 3;
  bool skip_me = !old_form;
  if (old_form) {
    filter.addr = ctx.arg(2);
  } else if (!ParseKillFilters(ctx, &filter, &skip_me)) {
    return;
  }
  int64_t killed = 0;
  engine::ForEachClient(engine, [&](Client& client) {
    if (!filter.Matches(client, ctx.now_ms()) || (skip_me && &client == &self)) return;
    ++killed;
    if (&client == &self) {
      self.set(engine::kClientCloseAfterReply);
    } else {
      engine::CloseClient(engine, client);
    }
  });
  if (!old_form) return ctx.reply().Int(killed);
  killed > 0 ? ctx.reply().Ok() : ctx.Error("ERR No such client");
}

void Pause(Context& ctx) {
  if (ctx.argc() > 4) return commands::WrongSubcommand(ctx);
  bool writes_only = false;
  if (ctx.argc() == 4) {
    writes_only = ctx.ArgIs(3, "WRITE");
    if (!writes_only && !ctx.ArgIs(3, "ALL")) {
      return ctx.Error("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
  }
  int64_t until = 0;
  if (!commands::TimeoutMillis(ctx, 2, &until)) return;
  engine::Engine& engine = EngineContext::Of(ctx).engine();
  // A pause in force is only made longer and stricter.
  if (engine.admission().pause_until() > ctx.now_ms()) {
    until = std::max(until, engine.admission().pause_until());
    writes_only = writes_only && engine.admission().pause_writes_only();
  }
  engine.admission().Pause(until, writes_only);
  ctx.reply().Ok();
}

void Unpause(Context& ctx) {
  if (!ctx.part<FrontHost>().ending()) EngineContext::Of(ctx).engine().admission().Unpause();
  ctx.reply().Ok();
}

void Unblock(Context& ctx) {
  if (ctx.argc() > 4) return commands::WrongSubcommand(ctx);
  bool error = false;
  if (ctx.argc() == 4) {
    error = ctx.ArgIs(3, "ERROR");
    if (!error && !ctx.ArgIs(3, "TIMEOUT")) {
      return ctx.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
  }
  int64_t id = 0;
  if (!ctx.IntArg(2, &id)) return;
  bool found = false;
  engine::ForEachClient(EngineContext::Of(ctx).engine(), [&](Client& client) {
    if (client.id != static_cast<uint64_t>(id) || !client.has(engine::kClientBlocked)) return;
    if (client.wait.waiter != nullptr) {
      EngineContext& ec = EngineContext::Of(ctx);
      found = ec.engine().waiting().Unblock(ec.lane(), client, error);
      return;
    }
    // A client that waits for a save or for the end of the server has no answer to give before
    // that.
    if (client.wait.on_timeout == nullptr) return;
    found = true;
    EndWaiting(EngineContext::Of(ctx).engine(), client, error);
  });
  ctx.reply().Int(found ? 1 : 0);
}

}  // namespace sava::front::client
