// Waiting: the engine's side of blocking commands. It knows which clients wait for which key, on
// all lanes; what one lane has to do about its own clients is in its WaitQueue.
//
// Calls with a lane: on its thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "commands/context.h"
#include "engine/mailbox.h"
#include "engine/wait_queue.h"
#include "engine/waiter.h"

namespace sava::engine {

class Engine;
struct Lane;

class Waiting {
 public:
  explicit Waiting(Engine* engine) : engine_(*engine) {}

  const WaitLines& lines() const { return lines_; }
  // Whether anybody waits for any key.
  bool any() const { return lines_.any(); }

  // The client's command found nothing and waits for keys. REQUIRES: their locks.
  void Block(Lane& lane, Client& client, const commands::Command& command, commands::Args args,
             const commands::Context::BlockRequest& request);
  // The waiter's wake_at_ms has come nearer.
  void Rewind(Lane& lane, const Waiter& waiter) {
    PostTo(lane, waiter, Mail::Kind::kAlarm, nullptr);
  }
  // The key has changed, or is gone. REQUIRES: its lock.
  void MarkReady(Lane& lane, int db, size_t stripe, std::string_view key, bool gone);
  void MarkAllReady(Lane& lane, int db, bool gone);
  // At the end of whatever changed keys, before their locks are given back.
  void ServeReady(Lane& lane);
  // Tries waiters that need all their locks. REQUIRES: inside the gate; no stripe is held but the
  // one that is kept for the next command.
  void RunRetries(Lane& lane);
  // All data was replaced: every client that waits for a key is tried. REQUIRES: the gate is
  // closed.
  void ServeEverybody(Lane& lane);

  // Sets the alarm of a client that waits for keys.
  void Arm(Lane& lane, Client& client);
  // The client gets this answer and goes on; its waiter is claimed.
  void Answer(Lane& lane, Client& client, const Message& message);
  // CLIENT UNBLOCK of a client that waits for keys: false when it does not, or its answer is on its
  // way. REQUIRES: the gate is closed.
  bool Unblock(Lane& lane, Client& client, bool with_error);
  // The server has become a replica, or a master: clients that wait for keys get an error.
  // REQUIRES: the gate is closed.
  void RoleChanged(Lane& lane);
  // The client is about to go.
  void Forget(Lane& lane, Client& client);
  // Clients whose time is up are answered; those whose moment has come are tried again.
  void RingAlarms(Lane& lane);
  // The lane has looked into its mailbox.
  void MailTaken(Lane& lane);

 private:
  void ServeReadyKeys(Lane& lane);
  void ServeLine(Lane& lane, int db, const Waiter::Key& key, uint64_t order);
  Waiter::Taken Serve(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key);
  bool Forbidden(Lane& lane, Waiter& waiter, Client& stand_in);
  Waiter::Taken TryServe(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key);
  Waiter::Taken ServeAnyKey(Lane& lane, Waiter& waiter);
  void PostTo(Lane& lane, const Waiter& waiter, Mail::Kind kind,
              std::shared_ptr<const Message> message);
  void PostTo(Lane& lane, const Waiter& waiter, std::list<Mail>&& mail);
  void RunRetry(Lane& lane, const Retry& retry);
  void LeaveLines(Lane& lane, const Waiter& waiter);

  Engine& engine_;
  WaitLines lines_;
  std::atomic<uint64_t> next_waiter_{1};
};

}  // namespace sava::engine
