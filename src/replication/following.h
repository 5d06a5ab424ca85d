// Following: what the half of this room that has replicas asks the half that follows a master.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "engine/info.h"
#include "protocol/reply.h"

namespace sava::replication {

class Following {
 public:
  virtual ~Following() = default;

  // Any thread:
  virtual bool is_replica() const = 0;
  // Its link is up and it is up to date: it may have replicas of its own.
  virtual bool link_is_up() const = 0;

  // INFO's lines from master_host to replica_announced; ROLE's answer. Inside the gate.
  virtual void WriteInfo(engine::InfoWriter& out) const = 0;
  virtual void WriteRole(protocol::Reply& reply) const = 0;

  // FAILOVER: this master, which has paused its writes, becomes a replica of that server, and asks
  // for it with `PSYNC id offset FAILOVER`, unless `wanted` says, with the gate closed, that it is
  // given up. `done` is told whether the other took over; if not, this server is a master again. On
  // any thread, outside the gate.
  virtual void HandOver(const std::string& host, int port, std::function<bool()> wanted,
                        std::function<void(bool taken)> done) = 0;
  // The same from the other side: the server becomes a master because its own master asks for it.
  // REQUIRES: the gate is closed.
  virtual void TakeOver() = 0;
};

// A server that follows no master.
class FollowsNobody : public Following {
 public:
  bool is_replica() const override { return false; }
  bool link_is_up() const override { return false; }
  void WriteInfo(engine::InfoWriter&) const override {}
  void WriteRole(protocol::Reply&) const override {}
  void HandOver(const std::string&, int, std::function<bool()>,
                std::function<void(bool)> done) override {
    done(false);
  }
  void TakeOver() override {}
};

}  // namespace sava::replication
