// CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO: the commands of client-side caching.
// engine/tracking does the work.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "commands/family.h"
#include "engine/client_list.h"
#include "engine/engine_context.h"
#include "front/client_commands.h"

namespace sava::front::client {

namespace {

using commands::Context;
using engine::EngineContext;
using engine::TrackingState;

engine::Client& Self(Context& ctx) { return EngineContext::Of(ctx).client(); }

struct Wanted {
  TrackingState state;
  std::vector<std::string_view> prefixes;
};

bool Refuse(Context& ctx, std::string_view error) {
  ctx.Error(error);
  return false;
}

bool ReadRedirect(Context& ctx, size_t arg, TrackingState* state) {
  if (state->redirect != 0) {
    return Refuse(ctx, "ERR A client can only redirect to a single other client");
  }
  int64_t id = 0;
  if (!ctx.IntArg(arg, &id)) return false;
  bool found = false;
  engine::ForEachClient(EngineContext::Of(ctx).engine(), [&](const engine::Client& client) {
    if (client.id != static_cast<uint64_t>(id)) return;
    found = true;
    state->redirect = client.id;
    state->redirect_lane = client.lane;
  });
  return found || Refuse(ctx, "ERR The client ID you want redirect to does not exist");
}

bool ParseTracking(Context& ctx, Wanted* wanted) {
  TrackingState& state = wanted->state;
  for (size_t i = 3; i < ctx.argc(); ++i) {
    const bool more = i + 1 < ctx.argc();
    if (ctx.ArgIs(i, "REDIRECT") && more) {
      if (!ReadRedirect(ctx, ++i, &state)) return false;
    } else if (ctx.ArgIs(i, "BCAST")) {
      state.broadcast = true;
    } else if (ctx.ArgIs(i, "OPTIN")) {
      state.opt_in = true;
    } else if (ctx.ArgIs(i, "OPTOUT")) {
      state.opt_out = true;
    } else if (ctx.ArgIs(i, "NOLOOP")) {
      state.no_loop = true;
    } else if (ctx.ArgIs(i, "PREFIX") && more) {
      wanted->prefixes.push_back(ctx.arg(++i));
    } else {
      return Refuse(ctx, commands::errors::kSyntax);
    }
  }
  return true;
}

// Whether one begins with the other.
bool Overlap(std::string_view a, std::string_view b) {
  return a.starts_with(b) || b.starts_with(a);
}

bool RefuseOverlap(Context& ctx, std::string_view prefix, std::string_view what,
                   std::string_view other) {
  std::string error = "ERR Prefix '";
  error += prefix;
  error += "' overlaps with ";
  error += what;
  error += " prefix '";
  error += other;
  error += "'. Prefixes for a single client must not overlap.";
  return Refuse(ctx, error);
}

bool CheckPrefixes(Context& ctx, const Wanted& wanted, const TrackingState* now) {
  for (size_t i = 0; i < wanted.prefixes.size(); ++i) {
    const std::string_view prefix = wanted.prefixes[i];
    if (now != nullptr) {
      for (const std::string& other : now->prefixes) {
        if (Overlap(prefix, other)) return RefuseOverlap(ctx, prefix, "an existing", other);
      }
    }
    for (size_t j = i + 1; j < wanted.prefixes.size(); ++j) {
      const std::string_view other = wanted.prefixes[j];
      if (Overlap(prefix, other)) return RefuseOverlap(ctx, prefix, "another provided", other);
    }
  }
  return true;
}

// Whether what is wanted fits together, and to how the client tracks now.
bool CheckTracking(Context& ctx, const Wanted& wanted, const TrackingState* now) {
  const TrackingState& state = wanted.state;
  if (!state.broadcast && !wanted.prefixes.empty()) {
    return Refuse(ctx, "ERR PREFIX option requires BCAST mode to be enabled");
  }
  if (now != nullptr && now->broadcast != state.broadcast) {
    return Refuse(ctx,
                  "ERR You can't switch BCAST mode on/off before disabling tracking for this "
                  "client, and then re-enabling it with a different mode.");
  }
  if (state.broadcast && (state.opt_in || state.opt_out)) {
    return Refuse(ctx, "ERR OPTIN and OPTOUT are not compatible with BCAST");
  }
  if (state.opt_in && state.opt_out) {
    return Refuse(ctx, "ERR You can't specify both OPTIN mode and OPTOUT mode");
  }
  if (now != nullptr && ((state.opt_in && now->opt_out) || (state.opt_out && now->opt_in))) {
    return Refuse(ctx,
                  "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this "
                  "client, and then re-enabling it with a different mode.");
  }
  return !state.broadcast || CheckPrefixes(ctx, wanted, now);
}

}  // namespace

// Clients of other threads are looked at for REDIRECT only.
commands::LockClass TrackingLock(commands::Args args) {
  const bool redirects = std::ranges::any_of(
      args, [](std::string_view word) { return base::EqualsNoCase(word, "redirect"); });
  return redirects ? commands::LockClass::kAll : commands::LockClass::kNone;
}

void Tracking(Context& ctx) {
  Wanted wanted;
  if (!ParseTracking(ctx, &wanted)) return;
  engine::Client& self = Self(ctx);
  engine::Tracking& tracking = EngineContext::Of(ctx).engine().tracking();
  if (ctx.ArgIs(2, "OFF")) {
    tracking.Disable(self);
    return ctx.reply().Ok();
  }
  if (!ctx.ArgIs(2, "ON")) return ctx.Error(commands::errors::kSyntax);
  if (!CheckTracking(ctx, wanted, self.tracking.get())) return;
  wanted.state.prefixes.insert(wanted.prefixes.begin(), wanted.prefixes.end());
  tracking.Enable(self, wanted.state);
  ctx.reply().Ok();
}

void Caching(Context& ctx) {
  TrackingState* const state = Self(ctx).tracking.get();
  if (state == nullptr) {
    return ctx.Error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  const bool yes = ctx.ArgIs(2, "YES");
  if (!yes && !ctx.ArgIs(2, "NO")) return ctx.Error(commands::errors::kSyntax);
  if (yes && !state->opt_in) {
    return ctx.Error(
        "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  }
  if (!yes && !state->opt_out) {
    return ctx.Error(
        "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  }
  state->caching = true;
  state->caching_family = ctx.command_table().ResolveOwnName(ctx.args())->parent;
  ctx.reply().Ok();
}

void Trackinginfo(Context& ctx) {
  const TrackingState* const state = Self(ctx).tracking.get();
  std::vector<std::string_view> flags;
  if (state == nullptr) {
    flags.emplace_back("off");
  } else {
    flags.emplace_back("on");
    if (state->broadcast) flags.emplace_back("bcast");
    if (state->opt_in) flags.emplace_back("optin");
    if (state->opt_in && state->caching) flags.emplace_back("caching-yes");
    if (state->opt_out) flags.emplace_back("optout");
    if (state->opt_out && state->caching) flags.emplace_back("caching-no");
    if (state->no_loop) flags.emplace_back("noloop");
    if (state->broken) flags.emplace_back("broken_redirect");
  }
  protocol::Reply& reply = ctx.reply();
  reply.Map(3);
  reply.Bulk("flags");
  reply.Set(static_cast<int64_t>(flags.size()));
  for (const std::string_view flag : flags) reply.Bulk(flag);
  reply.Bulk("redirect");
  reply.Int(state == nullptr ? -1 : static_cast<int64_t>(state->redirect));
  reply.Bulk("prefixes");
  reply.Array(state == nullptr ? 0 : static_cast<int64_t>(state->prefixes.size()));
  if (state == nullptr) return;
  for (const std::string& prefix : state->prefixes) reply.Bulk(prefix);
}

void Getredir(Context& ctx) {
  const TrackingState* const state = Self(ctx).tracking.get();
  ctx.reply().Int(state == nullptr ? -1 : static_cast<int64_t>(state->redirect));
}

}  // namespace sava::front::client
