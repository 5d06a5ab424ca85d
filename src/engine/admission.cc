#include "engine/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/text.h"
#include "engine/access_check.h"
#include "engine/engine.h"

namespace sava::engine {

using commands::Command;

namespace {

// Output of a client that has not authenticated, between two writes to its socket.
constexpr size_t kStrangerOutput = 16 * 1024;

// No command, or a container without its subcommand.
bool NamesNothing(const Request& request) {
  const Command* const command = request.command;
  return command == nullptr ||
         (command->spec->handler == nullptr && command->ArityOk(request.args.size()));
}

}  // namespace

Admission::Admission(Engine* engine) : engine_(*engine), settings_(engine->settings()) {}

// ---- a command ----

Admission::Answer Admission::Admit(Lane& lane, Client& client, const Request& request) {
  const Command* command = request.command;
  if (NamesNothing(request)) {
    UnknownCommand(lane, client, request);
    return Answer::kAnswered;
  }
  if (!BeyondObjection(lane, client, request)) [[unlikely]] {
    if (const auto objection = Objection(lane, client, request)) {
      return RejectRequest(lane, client, request, *objection);
    }
  }
  if (client.has(kClientMulti) && !command->is(commands::kInsideMulti)) {
    return Queue(lane, client, request);
  }
  if (client.origin.admitted || client.has(kClientReplica)) return Answer::kRun;
  if (pause_until() != 0 &&
      Paused(Does(client, *command, request.args, commands::kWrite | commands::kMayReplicate),
             lane.now_ms)) {
    lane.waits.Add(client, kClientPaused);
    return Answer::kWait;
  }
  if (lane.batch.journal_full && (Does(client, *command, request.args, commands::kWrite) ||
                                  command->is(commands::kRunsScript))) {
    lane.waits.Add(client, kClientParked);
    return Answer::kWait;
  }
  return Answer::kRun;
}

Admission::Answer Admission::AdmitBusy(Lane& lane, Client& client, const Request& request) {
  if (NamesNothing(request)) {
    UnknownCommand(lane, client, request);
    return Answer::kAnswered;
  }
  const Command& command = *request.command;
  auto objection = FormalObjection(client, request);
  if (!objection) objection = AccessObjection(lane, client, request);
  if (!objection) objection = SubscribedObjection(client, command);
  // Keys cannot be locked.
  const bool allowed =
      command.has(commands::kAllowBusy) && command.lock == commands::LockClass::kNone;
  if (!objection && !allowed) objection = busy_error();
  if (objection) return RejectRequest(lane, client, request, *objection);
  if (client.has(kClientMulti) && !command.is(commands::kInsideMulti)) {
    return Queue(lane, client, request);
  }
  return Answer::kRun;
}

Admission::Answer Admission::RejectRequest(Lane& lane, Client& client, const Request& request,
                                           std::string_view error) {
  Reject(lane, client, request.command, error);
  // Monitors have seen its MULTI.
  if (request.command->is(commands::kRunsQueue)) {
    engine_.observer().FeedMonitors(client, request.args);
  }
  return Answer::kAnswered;
}

Admission::Answer Admission::Queue(Lane& lane, Client& client, const Request& request) {
  try {
    engine_.transactions().Queue(client, *request.command, request.args);
  } catch (const std::bad_alloc&) {
    Reject(lane, client, request.command, commands::errors::kNoMemory);
  }
  return Answer::kAnswered;
}

std::optional<std::string> Admission::FormalObjection(const Client& client,
                                                      const Request& request) const {
  const Command& command = *request.command;
  if (!command.ArityOk(request.args.size())) {
    return commands::errors::WrongArity(command.full_name);
  }
  if (!client.authenticated && !command.has(commands::kNoAuth)) {
    return std::string(commands::errors::kNoAuth);
  }
  if (command.has(commands::kProtected) && !Permitted(client, command)) {
    const std::string_view feature =
        command.parent != nullptr ? command.parent->spec->name : command.spec->name;
    return fmt::format(
        "ERR {} command not allowed. If the enable-{}-command option is set to \"local\", you can "
        "run it from a local connection, otherwise you need to set this option in the "
        "configuration file, and then restart the server.",
        base::ToUpper(feature), feature);
  }
  if (client.has(kClientMulti) && command.has(commands::kNoMulti)) {
    return "ERR Command not allowed inside a transaction";
  }
  return std::nullopt;
}

std::optional<std::string> Admission::AccessObjection(const Lane& lane, Client& client,
                                                      const Request& request) {
  if (client.acl == nullptr) return std::nullopt;
  const access::Verdict verdict = client.acl->Check(*request.command, request.args);
  if (verdict.allowed()) return std::nullopt;
  client.activity.last_command = request.command;
  const AccessContext context =
      client.has(kClientMulti) ? AccessContext::kMulti : AccessContext::kTopLevel;
  NoteRefused(engine_, client, *request.command, request.args, verdict, context, lane.now_ms);
  return RefusalError(client, *request.command, request.args, verdict);
}

bool Admission::StillAllowed(Lane& lane, Client& client, const Command& command,
                             commands::Args args) {
  const access::Verdict verdict = CheckAccess(client, command, args);
  if (verdict.allowed()) return true;
  const std::string_view reason =
      verdict.reason == access::Reason::kCommand
          ? "no permission to execute the command or subcommand"
      : verdict.reason == access::Reason::kKey
          ? "no permission to touch the specified keys"
          : "no permission to access one of the channels used as arguments";
  protocol::Reply reply(&client.out, client.resp);
  reply.Error(
      fmt::format("NOPERM ACLs rules changed between the moment the transaction was accumulated "
                  "and the EXEC call. This command is no longer allowed for the following reason: "
                  "{}",
                  reason));
  NoteRefused(engine_, client, command, args, verdict, AccessContext::kMulti, lane.now_ms);
  engine_.observer().Rejected(lane, &command, reply);
  return false;
}

std::optional<std::string> Admission::SubscribedObjection(const Client& client,
                                                          const Command& command) const {
  if (client.resp != 2 || !client.subscribed() || command.is(commands::kWhileSubscribed)) {
    return std::nullopt;
  }
  return fmt::format(
      "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
      "allowed in this context",
      base::ToLower(command.full_name));
}

bool Admission::BeyondObjection(const Lane& lane, const Client& client,
                                const Request& request) const {
  const Command& command = *request.command;
  return command.ArityOk(request.args.size()) && client.authenticated && client.acl == nullptr &&
         !command.has(commands::kProtected) && !client.has(kClientMulti | kClientReplica) &&
         !lane.memory.limited && !refuses_writes() && !lacks_replicas() &&
         (client.resp != 2 || !client.subscribed()) && !loading() && !engine_.role().replica();
}

std::optional<std::string> Admission::Objection(Lane& lane, Client& client,
                                                const Request& request) {
  const Command& command = *request.command;
  if (auto formal = FormalObjection(client, request)) return formal;
  if (auto forbidden = AccessObjection(lane, client, request)) return forbidden;
  if (lane.memory.limited && Does(client, command, request.args, commands::kDenyOom) &&
      !engine_.memory().HasRoom(lane, request.args)) {
    return std::string(commands::errors::kOom);
  }
  if (refuses_writes() && !client.origin.admitted) {
    if (auto refused = Refusal(client, request)) return refused;
  }
  if (lacks_replicas() && !engine_.role().replica() && !client.origin.admitted &&
      Does(client, command, request.args, commands::kWrite)) {
    return std::string(commands::errors::kNoReplicas);
  }
  if (auto refused = ReplicaRefusal(client, request)) return refused;
  if (client.has(kClientReplica) &&
      Does(client, command, request.args,
           commands::kWrite | commands::kReadonly | commands::kMayReplicate)) {
    return "ERR Replica can't interact with the keyspace";
  }
  if (auto subscribed = SubscribedObjection(client, command)) return subscribed;
  if (auto refused = StaleRefusal(client, request)) return refused;
  if (loading() && !client.origin.admitted && !command.has(commands::kLoading)) {
    return std::string(commands::errors::kLoading);
  }
  return std::nullopt;
}

bool Admission::Permitted(const Client& client, const Command& command) const {
  const config::Allow allow = command.is(commands::kDebugging) ? settings_.enable_debug_command
                                                               : settings_.enable_module_command;
  return allow == config::Allow::kYes ||
         (allow == config::Allow::kLocal && client.has(kClientLocal));
}

bool Admission::MayRemoveExpired(int64_t now_ms) const {
  return engine_.role().writes_by_itself() && !Paused(true, now_ms);
}

bool Admission::stale() const {
  return engine_.role().replica() && !engine_.role().linked() &&
         !settings_.replica_serve_stale_data;
}

std::optional<std::string> Admission::ReplicaRefusal(const Client& client,
                                                     const Request& request) const {
  if (!engine_.role().replica() || client.origin.admitted || !settings_.replica_read_only ||
      !Does(client, *request.command, request.args, commands::kWrite)) {
    return std::nullopt;
  }
  return std::string(commands::errors::kReadOnly);
}

std::optional<std::string> Admission::StaleRefusal(const Client& client,
                                                   const Request& request) const {
  if (!stale() || client.origin.admitted ||
      !DoesWithout(client, *request.command, request.args, commands::kStale)) {
    return std::nullopt;
  }
  return std::string(commands::errors::kMasterDown);
}

std::optional<std::string> Admission::Refusal(const Client& client, const Request& request) {
  if (!Does(client, *request.command, request.args, commands::kWrite) &&
      !request.command->is(commands::kTellsHealth)) {
    return std::nullopt;
  }
  std::string error = refusal();
  return error.empty() ? std::nullopt : std::optional(std::move(error));
}

std::string Admission::refusal() {
  const std::lock_guard lock(refusal_mutex_);
  return refusal_;
}

uint32_t Admission::FlagsOf(const Command& command, commands::Args args) const {
  return command.is(commands::kRunsScript) && engine_.scripting() != nullptr
             ? engine_.scripting()->FlagsOf(command, args)
             : command.spec->flags;
}

bool Admission::Does(const Client& client, const Command& command, commands::Args args,
                     uint32_t flags) const {
  if (!command.is(commands::kRunsQueue)) return (FlagsOf(command, args) & flags) != 0;
  return std::ranges::any_of(client.transaction.queue, [&](const QueuedCommand& queued) {
    if (!queued.command->is(commands::kRunsScript)) return queued.command->has(flags);
    const std::vector<std::string_view> words(queued.args.begin(), queued.args.end());
    return (FlagsOf(*queued.command, words) & flags) != 0;
  });
}

bool Admission::DoesWithout(const Client& client, const Command& command, commands::Args args,
                            uint32_t flag) const {
  if (!command.is(commands::kRunsQueue)) return (FlagsOf(command, args) & flag) == 0;
  return std::ranges::any_of(client.transaction.queue, [&](const QueuedCommand& queued) {
    if (!queued.command->is(commands::kRunsScript)) return !queued.command->has(flag);
    const std::vector<std::string_view> words(queued.args.begin(), queued.args.end());
    return (FlagsOf(*queued.command, words) & flag) == 0;
  });
}

void Admission::Reject(Lane& lane, Client& client, const Command* command, std::string_view error) {
  protocol::Reply reply(&client.out, client.resp);
  std::string aborted;
  if (command != nullptr && command->is(commands::kRunsQueue)) {
    engine_.transactions().Discard(lane, client);
    if (error.starts_with("ERR ")) error.remove_prefix(4);
    aborted = "EXECABORT Transaction discarded because of: " + std::string(error);
    error = aborted;
  } else if (client.has(kClientMulti)) {
    client.set(kClientDirtyExec);
  }
  reply.Error(error);
  engine_.observer().Rejected(lane, command, reply);
}

void Admission::UnknownCommand(Lane& lane, Client& client, const Request& request) {
  const commands::Args args = request.args;
  std::string text;
  const Command* const container = request.command;
  if (container != nullptr) {
    text = fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                       args.size() > 1 ? args[1].substr(0, 128) : "",
                       base::ToUpper(container->spec->name));
  } else {
    std::string beginning;
    for (size_t i = 1; i < args.size() && beginning.size() < 128; ++i) {
      beginning += fmt::format("'{}' ", args[i].substr(0, 128 - beginning.size()));
    }
    text = fmt::format("ERR unknown command '{}', with args beginning with: {}",
                       args[0].substr(0, 128), beginning);
  }
  Reject(lane, client, nullptr, text);
  lane.stats.commands.Add();
}

bool Admission::ChangedMeanwhile(Lane& lane, Client& client, const Command& command,
                                 commands::Args args) {
  if (client.has(kClientCloseNow)) return true;
  if (client.origin.admitted) return false;
  if (pause_until() == 0 ||
      !Paused(Does(client, command, args, commands::kWrite | commands::kMayReplicate),
              lane.now_ms)) {
    return false;
  }
  lane.waits.Add(client, kClientPaused);
  return true;
}

bool Admission::MayRetry(bool writes, int64_t now_ms) const {
  return !Paused(writes, now_ms) && !loading() && !(writes && refuses_writes());
}

// ---- the server ----

void Admission::RefuseWrites(std::string error) {
  const std::lock_guard lock(refusal_mutex_);
  refusing_.store(!error.empty(), std::memory_order_relaxed);
  refusal_ = std::move(error);
}

void Admission::DeclareBusy(std::string error) {
  {
    const std::lock_guard lock(refusal_mutex_);
    busy_error_ = std::move(error);
  }
  engine_.keyspace().gate().DeclareBusy();
}

void Admission::EndBusy() { engine_.keyspace().gate().EndBusy(); }

bool Admission::busy() const { return engine_.keyspace().gate().busy(); }

std::string Admission::busy_error() {
  const std::lock_guard lock(refusal_mutex_);
  return busy_error_;
}

void Admission::Pause(int64_t until_ms, bool writes_only) {
  pause_writes_only_.store(writes_only, std::memory_order_relaxed);
  pause_until_.store(until_ms, std::memory_order_relaxed);
}

void Admission::Unpause() {
  pause_until_.store(0, std::memory_order_relaxed);
  for (auto& lane : engine_.lanes()) lane->mailbox.Post({Mail::Kind::kWake, 0, nullptr});
}

void Admission::LimitOutput(Client& client) const {
  const uint64_t hard = client.origin.admitted ? 0 : OutputLimitOf(client).hard;
  client.out.set_limit(!client.authenticated ? kStrangerOutput : hard == 0 ? SIZE_MAX : hard);
}

}  // namespace sava::engine
