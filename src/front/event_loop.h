// EventLoop: one thread and its connections, RESP and HTTP. A round is: what the ready connections
// sent is read and run (resp_service.cc, http_service.cc), answers are written, then mail from
// other threads, new connections, clients that had to wait, upkeep.
//
// Everything on the loop's thread, except Start, Stop, Join, Drain, Adopt, Connect and Wake.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
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
#include "net/connect.h"
#include "net/loop.h"
#include "net/socket.h"
#include "net/tls_context.h"
#include "net/transport.h"

namespace sava::front {

class EventLoop;
class Loops;

using ConnectionMaker = std::function<std::unique_ptr<Connection>(EventLoop&)>;

// A socket on its way to the loop that will serve it.
struct Arrival {
  net::Accepted socket;  // the transport's
  std::unique_ptr<net::Transport> transport;
  ConnectionMaker make;  // none: a client, RESP or HTTP as the socket says
};

// A connection that a loop is to open itself.
struct Outgoing {
  net::Address to;
  int64_t timeout_ms = 0;
  ConnectionMaker make;
  // Told why there is no connection, on the loop's thread, inside the gate.
  std::function<void(const std::string& error)> failed;
  // Encrypts it; none: plain. The handshake is made once the connection is open.
  std::shared_ptr<const net::TlsContext> tls = nullptr;
};

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
  void Adopt(Arrival arrival);
  void Connect(Outgoing outgoing);
  void Wake() { loop_.Wake(); }
  // Replies wait for the log. From any thread.
  bool holding() const { return held_.holding(); }
  // More is kept.
  void WakeIfHolding();
  size_t connection_count() const { return connections_.load(std::memory_order_relaxed); }
  net::Loop& loop() { return loop_; }

  // ---- for the services ----
  FrontHost& host() { return host_; }
  const LoopLimits& limits() const { return limits_; }
  engine::Engine& engine() { return engine_; }
  engine::Lane& lane() { return lane_; }
  // Reads the bytes that have come, up to `room` of them.
  net::Transfer Receive(Connection& connection, char* target, size_t room);
  // Its GoOn is called in the next round, which does not wait, unless it no longer wants to read.
  void GoOnLater(Connection& connection);
  // Sends as much as the socket takes; closes the connection when it must end or has failed.
  void Flush(Connection& connection);
  void Close(Connection& connection);
  // Notes what its buffers take. To be called when they grow: what the allocator is asked for now
  // and then counts them, too.
  void CountBuffers(Connection& connection);
  // Whether it wants to hear that there is something to read.
  void SetReading(Connection& connection, bool on);

  // In the middle of a round, while another thread is busy, or this one with one client: the other
  // clients of this loop are answered as far as that can be (Runner::RunBusy).
  void ServeBusy(int wait_ms);
  bool serving_busy() const { return serving_busy_; }

  void BeforeRound() override;
  bool Enough() override;
  void AfterRound() override;

 private:
  void Serve();
  int WaitMillis() const;
  void Open(Arrival arrival);
  void Ask(Connection& connection);
  void GoOn();
  bool CannotClose(const Connection& connection) const;
  bool WaitsForTurn(Connection& connection);
  void Shake();
  void CheckOutgoing();
  bool OverOutputLimit(Connection& connection);
  void CloseOver(Connection& connection);
  size_t Writable(Connection& connection);
  void Send(Connection& connection);
  bool SendFeed(Connection& connection);
  void TickFeed(Connection& connection, std::vector<Connection*>* idle);
  void LetGo();
  bool MayWriteLog() const;
  void SettleHeld();
  void WriteLog();
  void CloseOwed();
  void Resume();
  void DeliverMail();
  void TakeArrivals();
  // For maxmemory-clients (client_memory.cc).
  void ChargeMemory(Connection& connection);
  void KeepClientsWithinMemory();
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
  std::vector<Connection*> going_on_;
  std::vector<Connection*> to_close_;  // when no thread is busy
  bool serving_busy_ = false;
  std::deque<Connection*> shaking_;       // in line for a step of their handshakes
  const Connection* has_turn_ = nullptr;  // the one whose turn it is
  RespService resp_;
  HttpService http_;
  HoldList held_;
  bool writes_log_ = false;      // after this round
  uint64_t asked_ = 0;           // this loop has merged, or tried to, up to this ticket
  bool left_to_others_ = false;  // another thread was merging then

  std::mutex incoming_mutex_;
  std::vector<Arrival> incoming_;  // guarded by incoming_mutex_
  std::vector<Outgoing> to_open_;  // guarded by incoming_mutex_
  struct Opening {
    std::unique_ptr<net::Connect> connect;
    Outgoing outgoing;
  };
  std::vector<Opening> opening_;

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
