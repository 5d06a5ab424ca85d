// RespService: the RESP connections of one event loop. In each round it reads what every ready
// connection has sent, gathers up to 64 commands over all of them into a batch, lets the engine run
// it, and answers each connection with one write.
//
// Input is read into one arena per loop and parsed in place; only what is left of a partial command
// is kept with its connection. On the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "front/connection.h"
#include "protocol/request_parser.h"

namespace sava::front {

class EventLoop;
class RespService;

struct RespConnection final : Connection {
  explicit RespConnection(RespService* owner);
  void OnEvents(uint32_t events) override;
  void Resume() override;
  void Release() override;
  void GoOn() override;
  int64_t MaxIdle() const override;

  RespService* const service;
  protocol::RequestParser parser;
  std::string_view view;  // the bytes being parsed: in the arena or the input
  size_t read_size;       // how much is read at a time
  size_t parsed = 0;      // of view
  size_t done = 0;        // of view: run, or skipped
  bool in_round = false;
  bool refused = false;  // a command of this round has to wait
  bool inline_pending = false;
  bool broken = false;   // protocol error: answered after the commands before it
  bool hostile = false;  // speaks HTTP to us: closed without a word
  bool ended = false;    // sends no more, and waits for answers
};

// A command of the round.
struct RespPending {
  RespConnection* connection;
  size_t end;  // of its view, after this command
  uint32_t first_arg;
  uint32_t arg_count;
};

class RespService {
 public:
  explicit RespService(EventLoop* loop);

  std::unique_ptr<Connection> NewConnection() { return std::make_unique<RespConnection>(this); }
  // Runs the pending commands, keeps the rest of the input, answers.
  void FinishRound();

  // In the middle of a batch, while somebody is busy: whether connections wait in it behind another
  // one's command, or for the batch to begin.
  bool OthersInBatch() const;
  // They leave the round. Their commands that have not begun are to be read again (Resume).
  // REQUIRES: OthersInBatch.
  std::vector<RespConnection*> LeaveBatch();

  // What the service was at is set aside while another round is made inside it; its connections are
  // left alone.
  class Aside {
   public:
    explicit Aside(RespService* service);
    ~Aside();
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    void Swap();

    RespService& service_;
    std::unique_ptr<char[]> arena_;
    size_t arena_used_ = 0;
    std::vector<RespConnection*> round_;
    std::vector<RespPending> pending_;
    std::vector<std::string_view> args_;
    std::vector<engine::Request> requests_;
  };

 private:
  friend struct RespConnection;

  void Read(RespConnection& connection);
  bool ReadInput(RespConnection& connection);
  void Parse(RespConnection& connection);
  bool ParseOne(RespConnection& connection);
  void RunPending();
  void TakeOutcomes();
  void EnterRound(RespConnection& connection);
  void FinishConnection(RespConnection& connection);
  uint64_t QueryLimitFor(const RespConnection& connection) const;
  protocol::ParseLimits LimitsFor(const RespConnection& connection) const;

  EventLoop& loop_;
  engine::Engine& engine_;
  engine::Lane& lane_;
  std::unique_ptr<char[]> arena_;
  size_t arena_used_ = 0;
  std::vector<RespConnection*> round_;
  std::vector<RespPending> pending_;
  std::vector<std::string_view> args_;
  std::vector<engine::Request> requests_;
};

}  // namespace sava::front
