// WaitQueue: the clients of one lane that wait, whatever for, and those that may go on.
//
//   for a key       BLPOP and its like: a Waiter is in the lines of its keys (waiter.h); here
//   is
//                   only its alarm, for its deadline or the moment at which it is tried again
//   for an answer   WAIT, SAVE, SHUTDOWN: it comes by mail, or the deadline passes
//   for UNPAUSE     its next command waits for the end of CLIENT PAUSE
//   for its turn    parked: a lock, the log, or other clients come first; the next round tries
//   again
//
// Used by the lane's own thread only, or with the gate closed.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/client.h"
#include "engine/mailbox.h"
#include "engine/waiter.h"

namespace sava::engine {

class WaitQueue {
 public:
  WaitQueue() : stand_in_(std::make_unique<Client>()) {
    retries_.reserve(kRetries);  // to serve those that wait is not to take memory
  }
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  // ---- the clients that wait ----
  // There may be that many clients: each may have to wait when there is no memory for its place.
  void Expect(size_t clients) {
    if (waiting_.capacity() < clients) waiting_.reserve(2 * clients);
  }
  // flag: kClientPaused or kClientParked.
  void Add(Client& client, ClientFlag flag) {
    client.set(flag);
    waiting_.push_back(&client);
  }
  // For an answer by mail (Mail::Kind::kReply with its block_token). until: Unix ms, 0: for ever;
  // then on_timeout answers, unless nullptr.
  void AwaitAnswer(Client& client, int64_t until, std::function<void(Client&)> on_timeout);
  // The client's next command is to wait for the next round; it goes on there after those that wait
  // already, or before them. REQUIRES: it does not wait for anything.
  void Yield(Client& client) {
    Add(client, kClientParked);
    yielded_ = true;
  }
  void YieldFirst(std::span<Client* const> clients);
  // Of the parked some wait for nothing but the next round.
  bool yielded() const { return yielded_; }
  // When the client's key waiter must be looked at; INT64_MAX: never by time.
  void SetAlarm(Client& client, int64_t at);
  // The client is about to go.
  void Forget(Client& client);

  // ---- clients that go on ----
  void GoOn(Client& client) { resumed_.push_back(&client); }
  // Clients whose time has come, or whose waiting was ended, go on.
  void Resume(int64_t now_ms, int64_t pause_end_ms);
  // Their input must be parsed again.
  std::vector<Client*> TakeResumed() { return std::exchange(resumed_, {}); }
  // The command that runs has changed keys that a client waits for.
  bool has_ready() const { return !ready_.empty(); }
  // Waiters to try when its locks are given back.
  bool has_retries() const { return !retries_.empty(); }
  // Whether there is something to do for clients that wait.
  bool NeedsResume(int64_t now_ms) const;
  // When (Unix ms; 0: at once, INT64_MAX: not by time). batch_ms: of the lane's last batch.
  int64_t NextResume(int64_t batch_ms, int64_t pause_end_ms) const;

 private:
  friend class Waiting;

  static constexpr size_t kRetries = 16;

  bool due(int64_t now_ms) const {
    return !alarms_.empty() && alarms_.begin()->first.first <= now_ms;
  }

  std::vector<Client*> waiting_;  // not for keys
  std::vector<Client*> resumed_;
  bool yielded_ = false;
  std::map<std::pair<int64_t, uint64_t>, Client*> alarms_;  // of key waiters, by time and id

  // What Waiting has to do on this lane.
  std::list<ReadyKey> ready_;         // changed by the command that runs
  std::vector<Retry> retries_;        // to be tried when its locks are given back
  std::vector<WaiterPtr> leaving_;    // claimed, to be taken out of lines
  std::unique_ptr<Client> stand_in_;  // for a client that is served: it belongs to its own thread
  std::list<Mail> served_;            // the reply of the waiter just served
  bool own_mail_ = false;             // something was posted quietly to this lane's own mailbox
};

}  // namespace sava::engine
