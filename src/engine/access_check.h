// Checks a client's commands against its ACL rules, for all code that runs commands for clients:
// admission, EXEC, waiters, scripts. Which arguments are keys is decided as for locks
// (commands::ForEachKey).
//
// A client's rules change only with the gate closed, so that a thread inside the gate may ask for
// clients of its lane, and for waiters. On the client's thread unless it says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "access/permissions.h"
#include "commands/registry.h"
#include "engine/client.h"

namespace sava::engine {

class Engine;

// Whether the client's user may run this command with these arguments, as far as commands, keys and
// channels go. Without effects. REQUIRES: the command's arity is right.
inline access::Verdict CheckAccess(const Client& client, const commands::Command& command,
                                   commands::Args args) {
  return client.acl == nullptr ? access::Verdict{} : client.acl->Check(command, args);
}

// Where a refused command came from, as ACL LOG shows it.
enum class AccessContext : uint8_t { kTopLevel, kMulti, kScript };

// Notes the refusal in ACL LOG and counts it. REQUIRES: it was refused.
void NoteRefused(Engine& engine, const Client& client, const commands::Command& command,
                 commands::Args args, const access::Verdict& verdict, AccessContext context,
                 int64_t now_ms);

// The error for the client: "NOPERM User u has no permissions to run the 'get' command".
// REQUIRES: it was refused.
std::string RefusalError(const Client& client, const commands::Command& command,
                         commands::Args args, const access::Verdict& verdict);

// The session's user was changed: that user's rules limit it from now on. No rules limit the
// server's own commands (Origin::admitted).
void UseRulesOfUser(const Engine& engine, Client& client);

// The client has no user of its own, or none any more: the default user, let in when that user
// needs no password.
void BecomeDefaultUser(const Engine& engine, Client& client);

// The users were changed: clients are limited by the new rules; those whose user is gone, or that
// listen to a channel they may not listen to any more, are closed. `session` made the change and is
// closed after its answer. REQUIRES: the gate is closed.
void FollowUsers(Engine& engine, uint64_t session);

}  // namespace sava::engine
