// MIGRATE: moves keys to another server, while this one goes on (replication/migration.h).
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/dump.h"
#include "commands/family.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "replication/families.h"
#include "replication/migration.h"

namespace sava::replication {

namespace {

using commands::Args;
using commands::Context;
using engine::EngineContext;

constexpr size_t kFirstOption = 6;
constexpr int64_t kUsualTimeout = 1000;

// ---- its words ----

// Where the keys are. False: the words KEYS and a key contradict each other.
bool KeyRange(Args args, size_t* first, size_t* count) {
  *first = 3;
  *count = 1;
  for (size_t i = kFirstOption; i < args.size(); ++i) {
    if (base::EqualsNoCase(args[i], "keys")) {
      if (!args[3].empty()) return false;
      *first = i + 1;
      *count = args.size() - i - 1;
      return true;
    }
    if (base::EqualsNoCase(args[i], "auth")) i += 1;
    if (base::EqualsNoCase(args[i], "auth2")) i += 2;
  }
  return true;
}

// A call that names its keys twice has none: its handler says why.
bool FindKeys(Args args, std::vector<int>* indexes) {
  size_t first = 0;
  size_t count = 0;
  if (args.size() < kFirstOption || !KeyRange(args, &first, &count)) return true;
  for (size_t i = first; i < first + count; ++i) indexes->push_back(static_cast<int>(i));
  return true;
}

struct Words {
  Migration::Target target;
  bool copy = false;
  std::vector<size_t> secrets;  // arguments that are not to be shown
};

// Replies the error and returns false when the arguments are not right.
bool Parse(Context& ctx, Words* words) {
  Migration::Target& target = words->target;
  const auto secret = [&](size_t i) {
    words->secrets.push_back(i);
    ctx.Redact(i);
    return std::string(ctx.arg(i));
  };
  for (size_t i = kFirstOption; i < ctx.argc(); ++i) {
    const size_t more = ctx.argc() - i - 1;
    if (ctx.ArgIs(i, "COPY")) {
      words->copy = true;
    } else if (ctx.ArgIs(i, "REPLACE")) {
      target.replace = true;
    } else if (ctx.ArgIs(i, "AUTH") && more >= 1) {
      target.authenticates = true;
      target.password = secret(++i);
    } else if (ctx.ArgIs(i, "AUTH2") && more >= 2) {
      target.authenticates = true;
      target.user = secret(++i);
      target.password = secret(++i);
    } else if (ctx.ArgIs(i, "KEYS")) {
      if (ctx.arg(3).empty()) break;
      ctx.Error(
          "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
      return false;
    } else {
      ctx.Error(commands::errors::kSyntax);
      return false;
    }
  }
  if (!ctx.IntArg(5, &target.timeout_ms) || !ctx.IntArg(4, &target.db)) return false;
  if (target.timeout_ms <= 0) target.timeout_ms = kUsualTimeout;
  target.host = ctx.arg(1);
  if (!base::ParseInt(ctx.arg(2), &target.port)) target.port = 0;
  return true;
}

// ---- the first run: the values are saved, and the client waits ----

void Leave(Context& ctx, const Words& words, const std::shared_ptr<Migration>& migration) {
  engine::Client& client = EngineContext::Of(ctx).client();
  Migrations::Place place = {migration};
  // The words that are kept do not have the password.
  std::vector<std::string_view> kept(ctx.args().begin(), ctx.args().end());
  for (const size_t i : words.secrets) kept[i] = "(redacted)";
  ctx.Block({.keys = {}, .args = kept});
  migration->waiter = client.wait.waiter;
  ctx.part<Migrations>().Add(std::move(place));
  migration->Start();
}

// Deletes what has been taken and is as it was. Returns how many keys have changed meanwhile.
size_t DeleteTaken(Context& ctx, Migration& migration) {
  size_t stay = 0;
  std::vector<std::string_view> gone = {"DEL"};
  gone.reserve(migration.keys.size() + 1);
  for (const Migration::Key& key : migration.keys) {
    if (!key.taken || migration.copy) continue;
    if (key.changed) {
      const bool expired =
          key.expire_at != commands::kNoExpiry && ctx.Past(key.expire_at) && !ctx.Exists(key.name);
      if (!expired) ++stay;
      continue;
    }
    if (!ctx.Delete(key.name)) continue;
    ctx.Notify(commands::kNotifyGeneric, "del", key.name);
    gone.push_back(key.name);
  }
  if (gone.size() > 1) {
    ctx.Effect(Args(gone));
    ctx.Changed(static_cast<int64_t>(gone.size() - 1));
  }
  return stay;
}

// Whoever holds locks, as a transaction or a script does, keeps them, and its thread, until the
// target has answered.
void AllAtOnce(Context& ctx, Migration& migration) {
  migration.TravelHere();
  DeleteTaken(ctx, migration);
  if (!migration.error.empty()) return ctx.Error(migration.error);
  ctx.reply().Ok();
}

void Begin(Context& ctx) {
  Words words;
  if (!Parse(ctx, &words)) return;
  size_t first = 0;
  size_t count = 0;
  KeyRange(ctx.args(), &first, &count);
  auto migration =
      std::make_shared<Migration>(&EngineContext::Of(ctx).engine(), ctx.db(), words.target,
                                  words.copy, ctx.part<Migrations>().tls());
  const bool full = ctx.part<Migrations>().full();
  for (size_t i = first; i < first + count; ++i) {
    const commands::Value value = ctx.Find(ctx.arg(i), commands::Access::kRead);
    if (!value) continue;
    if (full) return ctx.Error("ERR too many MIGRATE commands are under way");
    migration->keys.push_back({std::string(ctx.arg(i)), commands::DumpOf(value), value.expire_at});
  }
  if (migration->keys.empty()) return ctx.reply().Simple("NOKEY");
  if (!ctx.can_block()) return AllAtOnce(ctx, *migration);
  try {
    for (const Migration::Key& key : migration->keys) migration->watched.Add(key.name);
    Leave(ctx, words, migration);
  } catch (const std::bad_alloc&) {  // it never began
    migration->watched.End();
    throw;
  }
}

// ---- the second run: the target has answered ----

void Finish(Context& ctx) {
  const auto migration = ctx.part<Migrations>().Take(ctx.session().id);
  if (migration == nullptr) return ctx.Error("ERR the migration has been given up");
  for (size_t i = 0; i < migration->keys.size(); ++i) {
    migration->keys[i].changed = migration->watched.Changed(i);
  }
  migration->watched.End();  // before anything that takes memory
  const size_t stay = DeleteTaken(ctx, *migration);
  if (stay > 0) {
    ctx.Warn(
        fmt::format("MIGRATE: {} keys were changed while they travelled: they stay here, the "
                    "target has them as they were.",
                    stay));
  }
  if (!migration->error.empty()) return ctx.Error(migration->error);
  if (stay > 0) {
    return ctx.Error(
        fmt::format("ERR {} of the keys were changed while they travelled and were "
                    "not deleted; the target has them as they were before. Try "
                    "again with REPLACE",
                    stay));
  }
  ctx.reply().Ok();
}

void Migrate(Context& ctx) { ctx.runs_again() ? Finish(ctx) : Begin(ctx); }

constexpr uint16_t kKeyUse = commands::kKeyRw | commands::kKeyAccess | commands::kKeyDelete;

constexpr commands::CommandSpec kRows[] = {
    {.name = "migrate",
     .handler = Migrate,
     .arity = -6,
     .flags = commands::kWrite,
     .acl = commands::kAclKeyspace | commands::kAclDangerous,
     .keys = {commands::KeyAt(3, kKeyUse),
              {.flags = kKeyUse | commands::kKeyIncomplete,
               .last = -1,
               .keyword = "KEYS",
               .keyword_from = -2}},
     .find_keys = FindKeys,
     .group = "generic",
     .since = "2.6.0",
     .summary = "Moves keys to another server.",
     .complexity = "O(N) for values of N bytes, here and at the target",
     .arguments = "host port (key-selector: key | \"\") destination-db:integer timeout:integer "
                  "[COPY] [REPLACE] [authentication: AUTH password | AUTH2 username password] "
                  "[KEYS keys:key ...]",
     .reply = "OK, or NOKEY when no key is there",
     .example = "MIGRATE 127.0.0.1 6380 nothing-here 0 1000",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const commands::CommandSpec> MigrationCommands() { return kRows; }

}  // namespace sava::replication
