// EventLoop: one thread and its connections, RESP and HTTP. A round is: what the ready connections
// sent is read and run (resp_service.cc, http_service.cc), answers are written, then mail from
// other threads, new connections, clients that had to wait, upkeep.
//
// With `appendfsync always` writers wait for the disk, all for the same one, and threads that wake
// each other take longer than one that does it all. So the first loop's thread runs the rounds of
// the others, its guests, too, as long as it keeps up, and their threads rest: one round of each,
// then one sync for all (docs/adr/0010-one-thread-for-writers-that-wait.md).
//
// Everything on the thread that has the loop's turn_, its own or the first loop's, except Start,
// Stop, Join, Drain, Adopt and Wake.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "net/loop.h"
#include "net/socket.h"
#include "server/connection.h"
#include "server/guest_policy.h"
#include "server/http_service.h"
#include "server/resp_service.h"

namespace sava::server {

class Server;

class EventLoop final : public net::Rounds {
 public:
  EventLoop(Server* server, engine::Lane* lane);
  ~EventLoop() override;

  void Start();
  void Stop();
  void Join();
  // HTTP requests that have begun are finished, idle HTTP connections closed.
  void Drain();
  // Serves HTTP as before.
  void EndDrain();
  bool drained() const { return drained_.load(std::memory_order_acquire); }
  void Adopt(net::Accepted accepted);
  void Wake() { loop_.Wake(); }
  // Replies wait for the log. From any thread.
  bool holding() const { return held_count_.load(std::memory_order_relaxed) > 0; }
  void WakeIfHolding();
  // Another loop's thread runs its rounds. From any thread.
  bool is_guest() const { return host_.load(std::memory_order_relaxed) != nullptr; }
  size_t connection_count() const { return connections_.load(std::memory_order_relaxed); }
  net::Loop& loop() { return loop_; }

  // ---- for the services ----
  Server& server() { return server_; }
  engine::Engine& engine() { return engine_; }
  engine::Lane& lane() { return lane_; }
  // Sends what the socket takes; closes the connection when it is to end or has failed.
  void Flush(Connection& connection);
  void Close(Connection& connection);
  // Whether it wants to hear that there is something to read.
  void SetReading(Connection& connection, bool on);

  void BeforeRound() override;
  bool Enough() override;
  void AfterRound() override;

 private:
  // A guest in its host's loop: ready when something of the guest's is.
  class Door final : public net::Source {
   public:
    void OnEvents(uint32_t /*events*/) override { rung_ = true; }
    bool Take() { return std::exchange(rung_, false); }

   private:
    bool rung_ = false;
  };

  void Serve();
  void Cycle(int wait);
  int WaitMillis() const;
  // ---- guests ----
  void Balance();
  GuestPolicy::Reading Read() const;
  uint64_t Micros(uint64_t ticks) const;
  uint64_t IdleTicks() const;
  void Invite();
  void Admit();
  void SendBack();
  bool Alone() const;
  void Open(net::Accepted accepted);
  bool OverOutputLimit(Connection& connection);
  size_t Released(Connection& connection);
  void Hold(Connection& connection);
  void ReleaseHeld();
  void AwaitLog();
  bool MayWriteLog() const;
  void WriteLog();
  void LetGo();
  void Resume();
  void DeliverMail();
  void TakeArrivals();
  void CheckIdle();
  void CheckDrain();
  void MeasureRound();

  Server& server_;
  engine::Engine& engine_;
  engine::Lane& lane_;
  net::Loop loop_;
  std::thread thread_;
  std::unordered_map<engine::Client*, std::unique_ptr<Connection>> owned_;
  std::atomic<size_t> connections_{0};
  std::vector<std::unique_ptr<Connection>> graveyard_;
  RespService resp_;
  HttpService http_;
  // With a log: connections with bytes that may not leave yet.
  std::vector<Connection*> held_;
  std::vector<Connection*> ready_;  // scratch
  std::atomic<size_t> held_count_{0};
  std::atomic<bool> awaits_log_{false};
  bool writes_log_ = false;  // after this round

  std::mutex turn_;  // who has it runs the rounds; all but the atomics
  std::condition_variable back_;
  bool resting_ = false;                         // its thread, until it is not invited any more
  std::atomic<bool> invited_{false};             // to be a guest
  std::atomic<const EventLoop*> host_{nullptr};  // which has turn_
  std::vector<EventLoop*> guests_;
  Door door_;
  std::atomic<uint64_t> idle_ticks_{0};  // that its thread has waited for events
  uint64_t log_ticks_ = 0;               // that it has been writing the log
  bool waits_for_disk_ = false;          // whose answers wait for syncs: `always`
  GuestPolicy policy_;                   // the first loop's

  std::mutex incoming_mutex_;
  std::vector<net::Accepted> incoming_;  // guarded by incoming_mutex_

  std::atomic<bool> drain_wanted_{false};
  std::atomic<bool> drained_{false};
  bool draining_ = false;
  int64_t next_upkeep_ms_ = 0;
  int64_t next_tick_ms_ = 0;
  int64_t next_idle_check_ms_ = 0;
  int64_t next_resume_ms_ = 0;
  int64_t now_ms_ = 0;  // when the last round ended
  uint64_t round_start_ = 0;
  const double nanos_per_tick_ = 1000.0 / base::TicksPerMicro();
  const uint64_t round_limit_ = static_cast<uint64_t>(1000 * base::TicksPerMicro());
};

}  // namespace sava::server
