// AUTH, and what HELLO shares with it.
#include <string>

#include "access/acl_log.h"
#include "access/authenticate.h"
#include "access/families.h"
#include "access/users.h"
#include "commands/family.h"
#include "config/settings.h"

namespace sava::access {

using commands::Context;

bool Authenticate(Context& ctx, std::string_view user, std::string_view password) {
  if (ctx.part<Users>().Authenticate(user, password) != nullptr) {
    ctx.session().authenticated = true;
    ctx.session().user = user;
    ctx.UserChanged();
    return true;
  }
  AclLogEntry entry;
  entry.context = ctx.in_transaction() ? "multi" : "toplevel";
  entry.object = ctx.arg(0);
  entry.username = user;
  entry.client_info = ctx.DescribeSession();
  const auto& settings = ctx.part<const config::Settings>();
  ctx.part<AclLog>().Add(std::move(entry), ctx.now_ms(),
                         static_cast<size_t>(settings.acllog_max_len));
  ctx.Error("WRONGPASS invalid username-password pair or user is disabled.");
  return false;
}

namespace {

void Auth(Context& ctx) {
  if (ctx.argc() > 3) return ctx.Error(commands::errors::kSyntax);
  for (size_t i = 1; i < ctx.argc(); ++i) ctx.Redact(i);
  if (ctx.argc() == 2 && ctx.part<Users>().default_user().nopass) {
    return ctx.Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  const std::string_view user = ctx.argc() == 3 ? ctx.arg(1) : "default";
  if (Authenticate(ctx, user, ctx.arg(ctx.argc() - 1))) ctx.reply().Ok();
}

constexpr uint32_t kHandshake =
    commands::kConnectionFlags | commands::kFast | commands::kNoAuth | commands::kAllowBusy;

constexpr commands::CommandSpec kRows[] = {
    {.name = "auth",
     .handler = Auth,
     .arity = -2,
     .flags = kHandshake,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Says who is there, with a password.",
     .complexity = "O(N) for a password of N bytes",
     .arguments = "[username] password",
     .reply = "OK, or an error when user and password do not fit",
     .example = "AUTH default secret"},
};

}  // namespace

std::span<const commands::CommandSpec> AuthCommands() { return kRows; }

}  // namespace sava::access
