// RespLoop: one event-loop thread serving RESP connections. In each round it reads what every ready
// connection has sent, gathers up to 64 commands over all of them into a batch, lets the engine run
// it, and answers each connection with one write.
//
// Input is read into one arena per loop and parsed in place; only what is left of a partial command
// is kept with its connection. Everything on the loop's thread, except Adopt and Wake.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "engine/engine.h"
#include "net/loop.h"
#include "net/socket.h"
#include "protocol/request_parser.h"

namespace sava::server {

class Server;
class RespLoop;

struct RespConnection final : net::Source {
  explicit RespConnection(RespLoop* owner) : loop(owner) {}
  void OnEvents(uint32_t events) override;

  RespLoop* const loop;
  engine::Client client;
  protocol::RequestParser parser;
  base::Buffer input;     // left over from earlier rounds
  std::string_view view;  // what is being parsed: arena or input
  size_t parsed = 0;      // of view
  size_t done = 0;        // of view: run, or skipped
  bool in_round = false;
  bool refused = false;  // a command of this round has to wait
  bool inline_pending = false;
  bool broken = false;   // protocol error: answered after what came before it
  bool hostile = false;  // speaks HTTP to us: closed without a word
  bool wants_write = false;
  bool closed = false;
};

class RespLoop final : public net::Rounds {
 public:
  RespLoop(Server* server, engine::Lane* lane);
  ~RespLoop() override;

  void Start();
  void Stop();
  void Join();
  // From any thread.
  void Adopt(net::Accepted accepted);
  void Wake() { loop_.Wake(); }
  size_t connection_count() const { return connections_.load(std::memory_order_relaxed); }
  net::Loop& loop() { return loop_; }

  int BeforeWait() override;
  void BeforeRound() override;
  bool Enough() override;
  void AfterRound() override;

 private:
  friend struct RespConnection;

  struct Pending {
    RespConnection* connection;
    size_t end;  // of view, after this command
    uint32_t first_arg;
    uint32_t arg_count;
  };

  void Open(net::Accepted accepted);
  void Close(RespConnection& connection);
  void Read(RespConnection& connection);
  bool ReadInput(RespConnection& connection);
  void Parse(RespConnection& connection);
  bool ParseOne(RespConnection& connection);
  void RunPending();
  void EnterRound(RespConnection& connection);
  void FinishConnection(RespConnection& connection);
  void FinishRound();
  void Flush(RespConnection& connection);
  bool OverOutputLimit(RespConnection& connection);
  void Resume();
  void DeliverMail();
  void CheckIdle();
  void MeasureRound();
  protocol::ParseLimits LimitsFor(const RespConnection& connection) const;

  Server& server_;
  engine::Engine& engine_;
  engine::Lane& lane_;
  net::Loop loop_;
  std::thread thread_;
  std::unordered_map<engine::Client*, std::unique_ptr<RespConnection>> owned_;
  std::atomic<size_t> connections_{0};
  std::vector<std::unique_ptr<RespConnection>> graveyard_;

  std::mutex incoming_mutex_;
  std::vector<net::Accepted> incoming_;  // guarded by incoming_mutex_

  std::unique_ptr<char[]> arena_;
  size_t arena_used_ = 0;
  std::vector<RespConnection*> round_;
  std::vector<Pending> pending_;
  std::vector<std::string_view> args_;
  std::vector<engine::Request> requests_;

  int64_t next_upkeep_ms_ = 0;
  int64_t next_tick_ms_ = 0;
  int64_t next_idle_check_ms_ = 0;
  int64_t next_resume_ms_ = 0;
  int64_t now_ms_ = 0;  // when the last round ended
  uint64_t round_start_ = 0;
  uint64_t last_cpu_nanos_ = 0;
  uint64_t unmeasured_nanos_ = 0;
  const double nanos_per_tick_ = 1000.0 / base::TicksPerMicro();
  const uint64_t round_limit_ = static_cast<uint64_t>(1000 * base::TicksPerMicro());
};

}  // namespace sava::server
