#include "engine/access_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/client_list.h"
#include "engine/engine.h"

namespace sava::engine {

namespace {

constexpr std::string_view kContexts[] = {"toplevel", "multi", "lua"};

bool MayListen(const access::User& user, const Client& client) {
  const auto allowed = [&user](const auto& names, bool are_patterns) {
    return std::ranges::all_of(
        names, [&](const std::string& name) { return user.AllowsChannel(name, are_patterns); });
  };
  return allowed(client.subscriptions.channels, false) &&
         allowed(client.subscriptions.patterns, true) &&
         allowed(client.subscriptions.shard_channels, false);
}

void SetRules(Client& client, const access::User* rules) {
  client.acl = rules;
  if (client.wait.waiter != nullptr) client.wait.waiter->asker.acl = rules;
}

}  // namespace

void NoteRefused(Engine& engine, const Client& client, const commands::Command& command,
                 commands::Args args, const access::Verdict& verdict, AccessContext context,
                 int64_t now_ms) {
  access::AclLogEntry entry;
  entry.reason = verdict.reason;
  entry.context = kContexts[static_cast<size_t>(context)];
  entry.object = verdict.reason == access::Reason::kCommand ? std::string_view(command.full_name)
                                                            : args[verdict.arg];
  entry.username = client.user;
  entry.client_info = ClientLine(client, now_ms);
  engine.acl_log().Add(std::move(entry), now_ms,
                       static_cast<size_t>(engine.settings().acllog_max_len));
}

std::string RefusalError(const Client& client, const commands::Command& command,
                         commands::Args args, const access::Verdict& verdict) {
  return "NOPERM " + access::RefusalText(verdict, client.user, command, args, false);
}

void UseRulesOfUser(const Engine& engine, Client& client) {
  SetRules(client, client.origin.admitted ? nullptr : engine.users().RulesFor(client.user));
  client.rate.generation = 0;
}

void BecomeDefaultUser(const Engine& engine, Client& client) {
  client.user = "default";
  client.authenticated = engine.users().open();
  UseRulesOfUser(engine, client);
}

void FollowUsers(Engine& engine, uint64_t session) {
  const access::Users& users = engine.users();
  ForEachClient(engine, [&](Client& client) {
    if (client.origin.admitted) return;
    const access::User* const user = users.Find(client.user);
    if (user == nullptr) {
      SetRules(client, &access::Nobody());
    } else {
      const access::User* const rules = user->everything() ? nullptr : user;
      const bool as_before = client.acl == rules;
      SetRules(client, rules);
      // Clients without a password given need none any more.
      if (user == &users.default_user() && users.open()) client.authenticated = true;
      if (as_before || !client.subscribed() || MayListen(*user, client)) return;
    }
    if (client.id == session) {
      client.set(kClientCloseAfterReply);
    } else {
      CloseClient(engine, client);
    }
  });
}

}  // namespace sava::engine
