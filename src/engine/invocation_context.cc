#include "engine/invocation_context.h"

#include <spdlog/spdlog.h>

#include "engine/access_check.h"
#include "engine/aging.h"
#include "engine/client_list.h"

namespace sava::engine {

InvocationContext::InvocationContext(Invocation& invocation)
    : invocation_(invocation), engine_(invocation.engine()), lane_(invocation.lane()) {
  const Work& work = invocation.work();
  args_ = work.args;
  db_ = invocation.db();
  now_ms_ = invocation.now_ms();
  past_ms_ = invocation.past_ms();
  if (work.command != nullptr) command_name_ = work.command->full_name;
  if (work.client == nullptr) return;
  reply_.set_out(&work.client->out);
  reply_.set_resp(work.client->resp);
}

// What is in the log had room once.
bool InvocationContext::RoomFor(uint64_t bytes) const {
  return invocation_.origin().admitted || engine_.memory().RoomFor(bytes);
}

bool InvocationContext::SelectDb(int db) {
  if (db < 0 || db >= engine_.keyspace().databases()) return false;
  client().db = db;
  return true;
}

int64_t InvocationContext::max_string_size() const {
  return static_cast<int64_t>(engine_.settings().proto_max_bulk_len);
}
const types::CollectionLimits& InvocationContext::collection_limits() const {
  return engine_.settings();
}
void InvocationContext::Warn(const std::string& text) { spdlog::warn("{}", text); }

bool InvocationContext::skips_checksums() const {
  return engine_.switches().skip_checksums.load(std::memory_order_relaxed);
}

bool InvocationContext::shares_numbers() const {
  const config::Settings& settings = engine_.settings();
  return settings.maxmemory == 0 ||
         !(UsesLfu(settings.maxmemory_policy) ||
           settings.maxmemory_policy == config::MaxmemoryPolicy::kAllkeysLru ||
           settings.maxmemory_policy == config::MaxmemoryPolicy::kVolatileLru);
}
bool InvocationContext::lazy_user_flush() const {
  return engine_.settings().lazyfree_lazy_user_flush;
}
const commands::CommandTable& InvocationContext::command_table() const { return engine_.table(); }

const commands::Parts& InvocationContext::parts() const {
  return engine_.host() == nullptr ? Context::parts() : engine_.host()->parts();
}

void InvocationContext::UserChanged() { UseRulesOfUser(engine_, client()); }

bool InvocationContext::MayReadEveryKey() {
  const access::User* const rules = client().acl;
  return rules == nullptr || rules->ReadsEveryKey(*invocation_.work().command, args_);
}

std::string InvocationContext::DescribeSession() {
  client().activity.last_command = command_table().ResolveOwnName(args_);
  return ClientLine(client(), now_ms_);
}

}  // namespace sava::engine
