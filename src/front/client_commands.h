// The handlers of CLIENT's subcommands: those about the connection itself (client_commands.cc),
// those of client-side caching (client_tracking.cc) and those about others (client_others.cc).
#pragma once

#include <algorithm>
#include <string_view>

#include "commands/context.h"

namespace sava::front {

// What may stand in a client's name and its kin: printable ASCII without spaces.
inline bool IsPlainName(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; });
}

namespace client {

void Caching(commands::Context& ctx);
void Getname(commands::Context& ctx);
void Getredir(commands::Context& ctx);
void Id(commands::Context& ctx);
void Info(commands::Context& ctx);
void NoEvict(commands::Context& ctx);
void NoTouch(commands::Context& ctx);
void Reply(commands::Context& ctx);
void Setinfo(commands::Context& ctx);
void Setname(commands::Context& ctx);
void Tracking(commands::Context& ctx);
void Trackinginfo(commands::Context& ctx);
commands::LockClass TrackingLock(commands::Args args);

// These run alone, with the gate closed.
void Kill(commands::Context& ctx);
void List(commands::Context& ctx);
void Pause(commands::Context& ctx);
void Unblock(commands::Context& ctx);
void Unpause(commands::Context& ctx);

}  // namespace client

}  // namespace sava::front
