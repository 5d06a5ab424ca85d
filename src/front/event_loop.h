// EventLoop: one thread and its connections, RESP and HTTP. A round is: what the ready connections
// sent is read and run (resp_service.cc, http_service.cc), answers are written, then mail from
// other threads, new connections, clients that had to wait, upkeep.
//
// Everything on the loop's thread, except Start, Stop, Join, Drain, Adopt and Wake.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "front/connection.h"
#include "front/front_host.h"
#include "front/http_service.h"
#include "front/loop_limits.h"
#include "front/resp_service.h"
#include "net/loop.h"
#include "net/socket.h"

namespace sava::front {

class Loops;

class EventLoop final : public net::Rounds {
 public:
  EventLoop(Loops* loops, engine::Lane* lane);
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
  size_t connection_count() const { return connections_.load(std::memory_order_relaxed); }
  net::Loop& loop() { return loop_; }

  // ---- for the services ----
  FrontHost& host() { return host_; }
  const LoopLimits& limits() const { return limits_; }
  engine::Engine& engine() { return engine_; }
  engine::Lane& lane() { return lane_; }
  // Sends what the socket takes; closes the connection when it is to end or has failed.
  void Flush(Connection& connection);
  void Close(Connection& connection);
  // Notes what its buffers take. To be called when they grow: what the allocator is asked for now
  // and then counts them, too.
  void CountBuffers(Connection& connection);
  // Whether it wants to hear that there is something to read.
  void SetReading(Connection& connection, bool on);

  void BeforeRound() override;
  bool Enough() override;
  void AfterRound() override;

 private:
  void Serve();
  int WaitMillis() const;
  void Open(net::Accepted accepted);
  bool OverOutputLimit(Connection& connection);
  void CloseOver(Connection& connection);
  size_t Released(Connection& connection);
  void Hold(Connection& connection);
  void Send(Connection& connection);
  void CloseOwed();
  void ReleaseHeld();
  void AwaitLog();
  bool MayWriteLog() const;
  void WriteLog();
  void LetGo(bool merged);
  void Resume();
  void DeliverMail();
  void TakeArrivals();
  void CheckIdle();
  // For INFO's client_recent_max_*.
  void NoteBuffers();
  void CheckDrain();
  void MeasureRound();

  Loops& loops_;
  FrontHost& host_;
  const LoopLimits& limits_;
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
  uint64_t last_kept_ = 0;   // when this loop last wrote it

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
};

}  // namespace sava::front
