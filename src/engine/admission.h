// Admission: whether a command may run at all, and when not, what its client is told. It looks at
// the command's row, the client, and what holds for the whole server: loading, CLIENT PAUSE, writes
// that are refused because the disk is in trouble.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "commands/registry.h"
#include "config/settings.h"
#include "engine/client.h"
#include "engine/lane.h"

namespace sava::engine {

class Engine;

class Admission {
 public:
  explicit Admission(Engine* engine);

  enum class Answer : uint8_t { kRun, kAnswered, kWait };
  // kAnswered: with an error, or it was queued. kWait: the client waits, and the command is tried
  // again.
  Answer Admit(Lane& lane, Client& client, const Request& request);
  // The same while another thread holds the gate closed and is busy: never kWait.
  Answer AdmitBusy(Lane& lane, Client& client, const Request& request);
  // The flags of the command's row, or what its script says instead.
  uint32_t FlagsOf(const commands::Command& command, commands::Args args) const;
  // The command is answered with the error instead of running. command: nullptr when there is none.
  void Reject(Lane& lane, Client& client, const commands::Command* command, std::string_view error);
  // Whether the client was killed or paused while it waited for the gate to close: its command does
  // not run now.
  bool ChangedMeanwhile(Lane& lane, Client& client, const commands::Command& command,
                        commands::Args args);
  // Whether ACL rules still allow a queued command that EXEC is about to run; else it is answered.
  bool StillAllowed(Lane& lane, Client& client, const commands::Command& command,
                    commands::Args args);
  // Whether the command of a client that waits may be tried again because its moment has come.
  bool MayRetry(bool writes, int64_t now_ms) const;
  // Whether keys whose time is over may be removed by those that find them, other than writers:
  // while writes are paused, and on a replica, they stay where they are.
  bool MayRemoveExpired(int64_t now_ms) const;

  // ---- loading ----
  // While loading only few commands are answered.
  void set_loading(bool on) { loading_.store(on, std::memory_order_release); }
  bool loading() const { return loading_.load(std::memory_order_acquire); }

  // ---- refused writes ----
  // The error that writes are answered with; empty: they are accepted.
  std::string refusal();
  // Writes are answered with this error from now on; empty: they are accepted.
  void RefuseWrites(std::string error);
  bool refuses_writes() const { return refusing_.load(std::memory_order_relaxed); }

  // ---- replicas ----
  // There are fewer good replicas than min-replicas-to-write wants: writes are refused.
  void set_lacks_replicas(bool on) { lacks_replicas_.store(on, std::memory_order_relaxed); }
  // This replica has lost its master, and does not serve its data.
  bool stale() const;
  bool lacks_replicas() const { return lacks_replicas_.load(std::memory_order_relaxed); }

  // ---- a thread that holds the gate closed for long ----
  // Clients that wait for it are answered with this error from now on, until EndBusy. Nothing that
  // those answers need is changed meanwhile. REQUIRES: inside, or with the gate closed.
  void DeclareBusy(std::string error);
  void EndBusy();
  bool busy() const;
  std::string busy_error();

  // ---- CLIENT PAUSE ----
  void Pause(int64_t until_ms, bool writes_only);
  void Unpause();
  bool Paused(bool write_command, int64_t now_ms) const {
    const int64_t until = pause_until();
    return until > now_ms && (write_command || !pause_writes_only());
  }
  int64_t pause_until() const { return pause_until_.load(std::memory_order_relaxed); }
  bool pause_writes_only() const { return pause_writes_only_.load(std::memory_order_relaxed); }

  // ---- output ----
  // How much output may wait for the client. Inside the gate.
  const config::OutputBufferLimit& OutputLimitOf(const Client& client) const {
    return client.subscribed()          ? settings_.output_limit_pubsub
           : client.has(kClientMonitor) ? settings_.output_limit_replica
                                        : settings_.output_limit_normal;
  }
  // What is looked at while a reply is built; the loop looks again, more closely, when it has sent
  // what the socket takes.
  void LimitOutput(Client& client) const;

 private:
  void UnknownCommand(Lane& lane, Client& client, const Request& request);
  // DEBUG and MODULE are closed unless the configuration opens them.
  bool Permitted(const Client& client, const commands::Command& command) const;
  // Nothing is the case that Objection looks for: so most commands come in without a text made.
  bool BeyondObjection(const Lane& lane, const Client& client, const Request& request) const;
  // Why the command is refused; none: it is not. It may still have to wait.
  std::optional<std::string> Objection(Lane& lane, Client& client, const Request& request);
  // What its row and its client alone say.
  std::optional<std::string> FormalObjection(const Client& client, const Request& request) const;
  // What ACL rules say; noted in ACL LOG.
  std::optional<std::string> AccessObjection(const Lane& lane, Client& client,
                                             const Request& request);
  std::optional<std::string> SubscribedObjection(const Client& client,
                                                 const commands::Command& command) const;
  Answer Queue(Lane& lane, Client& client, const Request& request);
  Answer RejectRequest(Lane& lane, Client& client, const Request& request, std::string_view error);
  std::optional<std::string> Refusal(const Client& client, const Request& request);
  // Whether the command, or with EXEC one of those it runs, has one of the flags.
  bool Does(const Client& client, const commands::Command& command, commands::Args args,
            uint32_t flags) const;
  // Whether the command, or with EXEC one of those it runs, lacks the flag.
  bool DoesWithout(const Client& client, const commands::Command& command, commands::Args args,
                   uint32_t flag) const;
  // On a replica.
  std::optional<std::string> ReplicaRefusal(const Client& client, const Request& request) const;
  std::optional<std::string> StaleRefusal(const Client& client, const Request& request) const;

  Engine& engine_;
  const config::Settings& settings_;
  std::atomic<bool> loading_{false};
  std::atomic<bool> refusing_{false};
  std::atomic<bool> lacks_replicas_{false};
  std::mutex refusal_mutex_;
  std::string refusal_;     // guarded by refusal_mutex_
  std::string busy_error_;  // guarded by refusal_mutex_
  std::atomic<int64_t> pause_until_{0};
  std::atomic<bool> pause_writes_only_{false};
};

}  // namespace sava::engine
