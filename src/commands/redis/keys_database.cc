// Commands on whole databases: SELECT SWAPDB DBSIZE FLUSHDB FLUSHALL.
#include "commands/redis/keys.h"

namespace sava::commands::keys {

namespace {

void Select(Context& context) {
  int db = 0;
  if (!Int32Arg(context, 1, &db)) return;
  if (!context.SelectDb(db)) return context.Error(errors::kDbIndex);
  context.reply().Ok();
}

void Swapdb(Context& context) {
  int first = 0;
  int second = 0;
  if (!Int32Arg(context, 1, &first, "ERR invalid first DB index") ||
      !Int32Arg(context, 2, &second, "ERR invalid second DB index")) {
    return;
  }
  const int count = context.database_count();
  if (first < 0 || first >= count || second < 0 || second >= count) {
    return context.Error(errors::kDbIndex);
  }
  if (first != second) context.SwapDb(first, second);
  context.Changed();
  context.reply().Ok();
}

void Dbsize(Context& context) { context.reply().Int(context.DbSize()); }

// False, after the error, when there are other options than one of ASYNC and SYNC.
bool FlushOption(Context& context, bool* async) {
  if (context.argc() == 1) {
    *async = context.lazy_user_flush();
  } else if (context.argc() == 2 && context.ArgIs(1, "ASYNC")) {
    *async = true;
  } else if (context.argc() == 2 && context.ArgIs(1, "SYNC")) {
    *async = false;
  } else {
    context.Error(errors::kSyntax);
    return false;
  }
  return true;
}

void Flushdb(Context& context) {
  bool async = false;
  if (!FlushOption(context, &async)) return;
  const int64_t gone = context.Flush(context.db(), async);
  if (gone > 0) context.Changed(gone);
  // Replicas hear of it even when there was nothing.
  context.Effect(context.args());
  context.reply().Ok();
}

void Flushall(Context& context) {
  bool async = false;
  if (!FlushOption(context, &async)) return;
  // It counts as a change even when there was nothing.
  context.Changed(context.Flush(-1, async) + 1);
  context.reply().Ok();
}

constexpr CommandSpec kRows[] = {
    {.name = "select",
     .handler = Select,
     .arity = 2,
     .flags = kLoading | kStale | kFast,
     .traits = kSelectsDatabase,
     .acl = kAclConnection,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Chooses the database that this connection works on.",
     .complexity = "O(1)",
     .arguments = "index",
     .reply = "OK",
     .example = "SELECT 1"},
    {.name = "swapdb",
     .handler = Swapdb,
     .arity = 3,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace | kAclDangerous,
     .lock = LockClass::kAll,
     .group = "server",
     .since = "4.0.0",
     .summary = "Exchanges two databases for everybody at once.",
     .complexity = "O(N) for N clients that watch or wait for keys of them",
     .arguments = "index1:integer index2:integer",
     .reply = "OK",
     .example = "SWAPDB 0 1"},
    {.name = "dbsize",
     .handler = Dbsize,
     .arity = 1,
     .flags = kReadonly | kFast,
     .acl = kAclKeyspace,
     .lock = LockClass::kNone,
     .group = "server",
     .since = "1.0.0",
     .summary = "Counts the keys of the selected database.",
     .complexity = "O(1)",
     .reply = "integer: how many keys",
     .example = "DBSIZE",
     .tips = "request_policy:all_shards,response_policy:agg_sum"},
    {.name = "flushdb",
     .handler = Flushdb,
     .arity = -1,
     .flags = kWrite,
     .acl = kAclKeyspace | kAclDangerous,
     .lock = LockClass::kAll,
     .group = "server",
     .since = "1.0.0",
     .summary = "Deletes all keys of the selected database.",
     .complexity = "O(N) for N keys, which ASYNC does in the background",
     .arguments = "[flush-type: ASYNC | SYNC]",
     .reply = "OK",
     .example = "FLUSHDB",
     .tips = "request_policy:all_shards,response_policy:all_succeeded"},
    {.name = "flushall",
     .handler = Flushall,
     .arity = -1,
     .flags = kWrite,
     .acl = kAclKeyspace | kAclDangerous,
     .lock = LockClass::kAll,
     .group = "server",
     .since = "1.0.0",
     .summary = "Deletes all keys of all databases.",
     .complexity = "O(N) for N keys, which ASYNC does in the background",
     .arguments = "[flush-type: ASYNC | SYNC]",
     .reply = "OK",
     .example = "FLUSHALL ASYNC",
     .tips = "request_policy:all_shards,response_policy:all_succeeded"},
};

}  // namespace

std::span<const CommandSpec> DatabaseRows() { return kRows; }

}  // namespace sava::commands::keys
