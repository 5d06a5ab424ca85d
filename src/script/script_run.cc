#include "script/script_run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "engine/access_check.h"
#include "journal/record.h"

namespace sava::script {

using commands::Args;
using commands::Command;
using commands::LockClass;
using engine::Client;
using keyspace::Keyspace;

static_assert(journal::kToLog == 1 && journal::kToReplicas == 2);  // as redis.set_repl has them

namespace {

// What a client has in its own name, and lends to its script.
class Lent {
 public:
  Lent(Client& client, protocol::OutBuffer& replies, int resp, bool logged)
      : client_(client), replies_(replies), resp_(client.resp), origin_(client.origin) {
    std::swap(client.out, replies);
    client.resp = resp;
    client.origin.blocks = false;
    client.origin.logged = client.origin.logged && logged;
    client.set(engine::kClientInScript);
  }
  ~Lent() {
    client_.set(engine::kClientInScript, false);
    client_.origin = origin_;
    client_.resp = resp_;
    std::swap(client_.out, replies_);
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  Client& client_;
  protocol::OutBuffer& replies_;
  const int resp_;
  const engine::Origin origin_;
};

void MoveOut(protocol::OutBuffer& from, std::string* to) {
  constexpr size_t kKept = 64 << 10;
  iovec vectors[64];
  while (!from.empty()) {
    size_t total = 0;
    const size_t parts = from.Gather(vectors, 64);
    for (size_t i = 0; i < parts; ++i) {
      to->append(static_cast<char*>(vectors[i].iov_base), vectors[i].iov_len);
      total += vectors[i].iov_len;
    }
    from.Consume(total);
  }
  from.ReleaseIfEmpty(kKept);
}

// The text of a reply that is an error: without "-", up to the line's end.
std::string_view ErrorIn(std::string_view reply) {
  if (!reply.starts_with('-')) return {};
  return reply.substr(1, reply.find('\r') - 1);
}

}  // namespace

ScriptRun::ScriptRun(Scripts& scripts, engine::EngineContext& context)
    : scripts_(scripts),
      context_(context),
      engine_(scripts.engine()),
      lane_(context.lane()),
      client_(context.client()),
      own_(scripts.of(context.lane())),
      in_transaction_(!context.invocation().outermost()),
      ready_(std::exchange(own_.ready, Ready())) {
  if (lane_.exclusive() && ready_.conduct().load(std::memory_order_relaxed) == Conduct::kStrays) {
    strayed_ = true;  // there is nothing to learn
    return;
  }
  for (const std::string_view key : context.args().subspan(3, ready_.keys)) {
    declared_.Add(Keyspace::StripeOf(engine_.keyspace().Hash(key)));
  }
}

void ScriptRun::Go() {
  const uint64_t began = lane_.locks.timer().last();
  lua::RunResult result = RunOnce();
  if (stop_ == Stop::kAlone && in_transaction_) {
    own_.counters.restarted.Add();
    ready_.conduct().store(Conduct::kStrays, std::memory_order_relaxed);
    lane_.batch.transaction.again = true;
    return;
  }
  if (stop_ == Stop::kAlone) {
    BeginAlone();
    result = RunOnce();
  }
  lane_.locks.timer().BeganAt(began);
  // The server ends with it: no half of a script is logged.
  if (stop_ == Stop::kKilled && writes_ && scripts_.running().ending()) {
    context_.invocation().effects().Drop(engine_.journal(), lane_.index);
  }
  if (left_) lane_.batch.transaction.left = true;
  Count();
  Learn(result);
  Answer(result);
}

lua::RunResult ScriptRun::RunOnce() {
  struct Scope {  // also when there is no memory
    ~Scope() {
      if (run.busy_) run.engine_.admission().EndBusy();
      run.scripts_.running().End(run.lane_.index);
      run.client_.db = db;
    }
    ScriptRun& run;
    const int db;
  } const scope{*this, client_.db};
  stop_ = Stop::kNone;
  lines_ = context_.invocation().effects().notices();
  busy_ = writes_ = left_ = false;
  replication_ = journal::kToAll;
  slot_ = &scripts_.running().Begin(lane_.index,
                                    ready_.function != nullptr ? Kind::kFunction : Kind::kScript,
                                    engine_.clock().MonotonicMicros());
  const Args rest = context_.args().subspan(3);
  const lua::Call call{.handle = ready_.handle,
                       .name = ready_.name(),
                       .function = ready_.function != nullptr,
                       .keys = rest.first(ready_.keys),
                       .args = rest.subspan(ready_.keys),
                       .client_resp = client_.resp};
  own_.reply.clear();
  const lua::RunResult result = ready_.interpreter->Run(call, this, &own_.reply);
  if (result == lua::RunResult::kKilled && stop_ == Stop::kNone) stop_ = Stop::kKilled;
  return result;
}

// It has asked for what is not locked, and has left nothing behind but keys whose time was over: it
// runs again with the gate closed. The set of locks is the runner's, which gives them back.
void ScriptRun::BeginAlone() {
  own_.counters.restarted.Add();
  context_.invocation().effects().DropLines(lines_);
  ready_.conduct().store(Conduct::kStrays, std::memory_order_relaxed);
  context_.invocation().Commit();
  engine_.waiting().ServeReady(lane_);
  engine::LockSet& locked = *lane_.batch.locked;
  lane_.locks.Unlock(locked);
  locked.AddAll();
  lane_.locks.CloseGate();
}

void ScriptRun::Count() {
  (lane_.exclusive() ? own_.counters.exclusive : own_.counters.declared).Add();
  engine::Counter& memory =
      ready_.function != nullptr ? own_.counters.vm_functions : own_.counters.vm_eval;
  memory.Reset();
  memory.Add(ready_.interpreter->memory());
}

// A run that came to its end and touched only keys that it was given: it may share the server.
void ScriptRun::Learn(lua::RunResult result) {
  std::atomic<Conduct>& conduct = ready_.conduct();
  if (strayed_) {
    conduct.store(Conduct::kStrays, std::memory_order_relaxed);
  } else if (result == lua::RunResult::kReplied &&
             conduct.load(std::memory_order_relaxed) == Conduct::kUnknown) {
    conduct.store(Conduct::kDeclared, std::memory_order_relaxed);
  }
}

// ---- answering ----

void ScriptRun::Answer(lua::RunResult result) {
  if (stop_ == Stop::kClash) return AnswerError(clash_);
  if (stop_ == Stop::kKilled) {
    return AnswerError(fmt::format("ERR Script killed by user with {} KILL... script: {}",
                                   ready_.function != nullptr ? "FUNCTION" : "SCRIPT",
                                   ready_.name()));
  }
  if (result == lua::RunResult::kFailed) return AnswerError(own_.reply);
  if (const std::string_view error = ErrorIn(own_.reply); !error.empty()) {
    return AnswerError(error);
  }
  context_.reply().Raw(own_.reply);
  constexpr size_t kKept = 64 << 10;
  if (own_.reply.capacity() > kKept) own_.reply = std::string();
}

// An error that a command of the script was answered with has been counted.
void ScriptRun::AnswerError(std::string_view text) {
  if (stop_ != Stop::kNone || !ready_.interpreter->error_counted()) return context_.Error(text);
  protocol::Reply(&client_.out, client_.resp).Error(text);
  lane_.stats.by_command[static_cast<size_t>(context_.invocation().work().command->id)]
      .failed.Add();
}

// ---- what the script asks ----

bool ScriptRun::Interrupted() {
  if (killed()) return true;
  const int64_t limit = engine_.settings().busy_reply_threshold;
  if (!busy_) {
    const int64_t micros =
        engine_.clock().MonotonicMicros() - slot_->began_us.load(std::memory_order_relaxed);
    if (limit <= 0 || micros < limit * 1000) return false;
    spdlog::warn(
        "Slow script detected: still in execution after {} milliseconds. You can try killing the "
        "script using the {} command. Script name is: {}.",
        micros / 1000, ready_.function != nullptr ? "FUNCTION KILL" : "SCRIPT KILL", ready_.name());
    scripts_.running().TooLong(lane_.index, ready_.name(), context_.args());
    engine_.admission().DeclareBusy(ready_.function != nullptr ? kBusyFunction : kBusyScript);
    busy_ = true;
  }
  engine_.keyspace().gate().Serve(lane_.index, 0);  // other clients of this thread
  return killed();
}

void ScriptRun::Log(int level, std::string_view text) {
  static constexpr spdlog::level::level_enum kLevels[] = {
      spdlog::level::trace, spdlog::level::debug, spdlog::level::info, spdlog::level::warn};
  spdlog::log(kLevels[std::clamp(level, 0, 3)], "{}", text);
}

lua::Host::Access ScriptRun::CheckAccess(std::span<const std::string_view> args) {
  const Command* const command = engine_.table().Resolve(args);
  if (command == nullptr || command->spec->handler == nullptr || !command->ArityOk(args.size())) {
    return Access::kUnknown;
  }
  return engine::CheckAccess(client_, *command, args).allowed() ? Access::kAllowed
                                                                : Access::kDenied;
}

lua::Host::CallResult ScriptRun::Call(std::span<const std::string_view> args, int resp,
                                      std::string* reply) {
  reply->clear();
  const Command* const command = engine_.table().Resolve(args);
  if (command != nullptr) args = OwnWords(*command, args);
  if (const std::string objection = Objection(command, args); !objection.empty()) {
    return Refuse(command, objection, reply);
  }
  std::string refusal;
  hashes_.clear();
  if ((!strayed_ || !lane_.exclusive()) && !MayTouch(*command, args, &refusal)) {
    if (stop_ != Stop::kNone) return CallResult::kUnwind;
    return Refuse(command, refusal, reply);
  }
  if (command->has(commands::kWrite)) {
    if (!writes_ && !Running::MayWrite(*slot_)) {
      stop_ = Stop::kKilled;
      return CallResult::kUnwind;
    }
    writes_ = left_ = true;
  } else if (command->has(commands::kMayReplicate)) {
    left_ = true;
  }
  Perform(*command, args, resp, reply);
  return CallResult::kReplied;
}

// Scripts call commands by the names that rename-command gives them. Whatever comes after, the log
// and replicas above all, sees a command's own name.
Args ScriptRun::OwnWords(const Command& command, Args args) {
  const Command& top = command.parent == nullptr ? command : *command.parent;
  if (!top.renamed) return args;
  words_.assign(args.begin(), args.end());
  words_[0] = top.spec->name;
  return words_;
}

void ScriptRun::Perform(const Command& command, Args args, int resp, std::string* reply) {
  const Lent lent(client_, own_.replies, resp, replication_ != 0);
  engine_.runner().Call(lane_, {.client = &client_,
                                .command = &command,
                                .args = args,
                                .hashes = command.simple_keys ? std::span<const uint64_t>(hashes_)
                                                              : std::span<const uint64_t>(),
                                .outer = &context_.invocation(),
                                .to = static_cast<journal::Destinations>(replication_)});
  MoveOut(client_.out, reply);
}

lua::Host::CallResult ScriptRun::Refuse(const Command* command, std::string_view error,
                                        std::string* reply) {
  protocol::OutBuffer out;
  protocol::Reply answer(&out, 2);
  answer.Error(error);
  engine_.observer().Rejected(lane_, command, answer);
  MoveOut(out, reply);
  return CallResult::kReplied;
}

std::string ScriptRun::Objection(const Command* command, Args args) {
  if (command == nullptr || (command->spec->handler == nullptr && command->ArityOk(args.size()))) {
    return "ERR Unknown Redis command called from script";
  }
  if (!command->ArityOk(args.size())) {
    return "ERR Wrong number of args calling Redis command from script";
  }
  if (command->has(commands::kNoscript) &&
      !engine_.switches().any_in_scripts.load(std::memory_order_relaxed)) {
    return "ERR This Redis command is not allowed from script";
  }
  if (engine_.admission().stale() && !command->has(commands::kStale) && !client_.origin.admitted) {
    return "ERR Can not execute the command on a stale replica";
  }
  const access::Verdict verdict = engine::CheckAccess(client_, *command, args);
  if (!verdict.allowed()) {
    engine::NoteRefused(engine_, client_, *command, args, verdict, engine::AccessContext::kScript,
                        lane_.now_ms);
    return "ERR ACL failure in script: " +
           access::RefusalText(verdict, client_.user, *command, args, false);
  }
  return WriteObjection(*command);
}

// Reasons to refuse writes are checked before the first write only, so that a script does not stop
// half way.
std::string ScriptRun::WriteObjection(const Command& command) {
  if (ready_.read_only && command.has(commands::kWrite | commands::kMayReplicate)) {
    return "ERR Write commands are not allowed from read-only scripts.";
  }
  if (!command.has(commands::kWrite) || writes_ || client_.origin.admitted) return {};
  const bool replica = engine_.role().replica();
  if (replica && engine_.settings().replica_read_only) {
    return std::string(commands::errors::kReadOnly);
  }
  if (engine_.admission().refuses_writes()) {
    if (std::string refusal = engine_.admission().refusal(); !refusal.empty()) return refusal;
  }
  if (!replica && engine_.admission().lacks_replicas()) {
    return std::string(commands::errors::kNoReplicas);
  }
  if (ready_.no_room && command.has(commands::kDenyOom)) {
    return std::string(commands::errors::kOom);
  }
  return {};
}

// ---- keys ----

bool ScriptRun::MayTouch(const Command& command, Args args, std::string* refusal) {
  LockClass lock = command.lock;
  if (command.spec->choose_lock != nullptr) lock = command.spec->choose_lock(args);
  if (WantsEverything(command, lock)) return Stray(command, {}, refusal);
  if (lock == LockClass::kNone) return true;
  bool fine = true;
  indexes_.clear();
  commands::ForEachKey(command, args, &indexes_, [&](size_t index) {
    const uint64_t hash = engine_.keyspace().Hash(args[index]);
    hashes_.push_back(hash);
    if (!fine || declared_.has(Keyspace::StripeOf(hash))) return;
    fine = Stray(command, args[index], refusal);
    if (fine && !lane_.exclusive()) fine = Extend(args[index], hash);
  });
  return fine;
}

// It wants a key that it was not given, or more than keys (no key). True when it may go on, once it
// has the key's stripe.
bool ScriptRun::Stray(const Command& command, std::string_view key, std::string* refusal) {
  if (engine_.settings().script_keys == config::ScriptKeys::kStrict) {
    *refusal = "ERR script tried accessing undeclared key";
    return false;
  }
  strayed_ = true;
  if (lane_.exclusive()) return true;
  if (!left_ && (!in_transaction_ || !lane_.batch.transaction.left)) {
    stop_ = Stop::kAlone;
    return false;
  }
  if (key.data() != nullptr) return true;
  own_.counters.clashed.Add();
  stop_ = Stop::kClash;
  clash_ = fmt::format(
      "ERR script called {} after writing, which it never did before; from now on it runs alone",
      base::ToUpper(command.full_name));
  return false;
}

// It cannot begin again.
bool ScriptRun::Extend(std::string_view key, uint64_t hash) {
  const size_t stripe = Keyspace::StripeOf(hash);
  engine::LockSet& locked = *lane_.batch.locked;
  if (locked.has(stripe)) {  // for another command of the transaction
    declared_.Add(stripe);
    return true;
  }
  switch (lane_.locks.Extend(&locked, stripe, [&] { return Interrupted(); })) {
    case engine::Locks::Extended::kYes:
      own_.counters.extended.Add();
      declared_.Add(stripe);
      lane_.batch.key_hashes.push_back(hash);
      return true;
    case engine::Locks::Extended::kStopped:
      stop_ = Stop::kKilled;
      return false;
    case engine::Locks::Extended::kTaken:
      break;
  }
  own_.counters.clashed.Add();
  stop_ = Stop::kClash;
  clash_ = fmt::format(
      "ERR script touched undeclared key '{}' after writing, while another one did; from now on it "
      "runs alone",
      key);
  return false;
}

}  // namespace sava::script
