// The families of commands that need the server itself: connections, administration, observation.
// What several of them share stands here too.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "commands/context.h"
#include "engine/client.h"
#include "engine/settings.h"

namespace sava::server {

std::span<const commands::CommandSpec> ClientCommands();       // CLIENT
std::span<const commands::CommandSpec> ConfigCommands();       // CONFIG
std::span<const commands::CommandSpec> InfoCommands();         // INFO
std::span<const commands::CommandSpec> SlowlogCommands();      // SLOWLOG
std::span<const commands::CommandSpec> LatencyCommands();      // LATENCY
std::span<const commands::CommandSpec> MemoryCommands();       // MEMORY
std::span<const commands::CommandSpec> DebugCommands();        // DEBUG
std::span<const commands::CommandSpec> AclCommands();          // ACL
std::span<const commands::CommandSpec> ClusterCommands();      // CLUSTER READONLY READWRITE ASKING
std::span<const commands::CommandSpec> PersistenceCommands();  // SAVE BGSAVE BGREWRITEAOF WAITAOF …
// Every family of this folder, those above and server.h's.
std::vector<std::span<const commands::CommandSpec>> ServerFamilies();

// Flags that most rows of this folder have.
inline constexpr uint32_t kAnytime = commands::kLoading | commands::kStale;
inline constexpr uint32_t kConnectionFlags = commands::kNoscript | kAnytime;
inline constexpr uint32_t kAdminFlags = commands::kAdmin | commands::kNoscript | kAnytime;

// "ERR unknown subcommand or wrong number of arguments for 'x'. Try CLIENT HELP."
void WrongSubcommand(commands::Context& ctx);

// Argument i as milliseconds from now: *until is then a Unix time, 0 when the argument is 0.
// Replies the error and returns false when it is no such number.
bool TimeoutArg(commands::Context& ctx, size_t i, int64_t* until);

// The calling client waits for an answer by mail (Mail::Kind::kReply with its block_token).
// `until`: Unix ms, 0: for ever; then on_timeout answers. REQUIRES: not inside EXEC.
engine::Client& BlockForReply(commands::Context& ctx, int64_t until = 0,
                              void (*on_timeout)(engine::Client&) = nullptr);

// What may stand in a client's name and its kin: printable ASCII without spaces.
bool IsPlainName(std::string_view name);

}  // namespace sava::server
