// ClientExecutor: Executor over a lane of the engine. One per lane; the client is set before use.
// On the lane's thread.
#pragma once

#include <string>
#include <string_view>

#include "commands/executor.h"
#include "engine/engine.h"

namespace sava::engine {

class ClientExecutor final : public commands::Executor {
 public:
  ClientExecutor(Engine* engine, Lane* lane) : engine_(*engine), lane_(*lane) {}

  void set_client(Client* client) {
    client_ = client;
    client->origin = kFromRequest;
  }
  bool Run(commands::Args args, int resp, std::string_view* reply) override;
  bool Look(commands::Args args, int resp, std::string_view* reply) override;
  std::string MasterAddress() override;
  bool RefusedBy(int64_t* limit, int64_t* period_ms) override;

 private:
  Engine& engine_;
  Lane& lane_;
  Client* client_ = nullptr;
  protocol::OutBuffer replies_;  // takes the place of the client's own output during a command
  std::string gathered_;         // a reply that is not in one piece
};

}  // namespace sava::engine
