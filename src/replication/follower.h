// Follower: this server as the replica of another, or of none. What role it has, what it shows of
// it, and what its files tell of it, so that after a restart only what has come since is asked for.
//
// Thread safety: as each says.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "commands/spec.h"
#include "engine/engine.h"
#include "persistence/persistence.h"
#include "replication/following.h"
#include "replication/master.h"
#include "replication/replica_link.h"
#include "replication/stream.h"
#include "snapshot/rdb_aux.h"

namespace sava::replication {

class Follower final : public Following, public snapshot::RdbAux {
 public:
  Follower(engine::Engine* engine, persistence::Persistence* persistence, Master* master);

  // ---- on the main thread ----
  // The data is loaded (LoadEnded): the master that the settings name is connected to.
  void Start();
  // Around the end of the server: nothing is applied from Suspend on.
  void Suspend() { link_.Stop(); }
  void Resume() { link_.Start(); }
  void UseTls(std::shared_ptr<const net::TlsContext> tls) { link_.UseTls(std::move(tls)); }
  // The address of this machine that the next connections come from; empty: the system chooses.
  void ComeFrom(std::string address) { link_.ComeFrom(std::move(address)); }

  uint64_t received() const { return link_.received(); }
  void ResetReceived() { link_.ResetReceived(); }

  // ---- commands. REQUIRES: the gate is closed, by this lane ----
  void Follow(engine::Lane& lane, const std::string& host, int port,
              std::function<void(bool)> taken = {});
  void Promote(engine::Lane& lane);
  bool Follows(std::string_view host, int port) const;

  // ---- Following ----
  bool is_replica() const override { return engine_.role().replica(); }
  bool link_is_up() const override { return engine_.role().linked(); }
  void WriteInfo(engine::InfoWriter& out) const override;
  void WriteRole(protocol::Reply& reply) const override;
  void HandOver(const std::string& host, int port, std::function<bool()> wanted,
                std::function<void(bool taken)> done) override;
  void TakeOver() override { Promote(ClosingLane()); }

  // ---- snapshot::RdbAux ----
  void AtCut() override;
  void Save(snapshot::CutWriter& out) const override;
  bool LoadField(std::string_view name, std::string_view value) override;
  void LeftOut(int db, std::string_view key) override;
  // Goes on with the history that the data belongs to, if the files say that: as a replica where
  // it was; as a master with an id of its own, so that replicas that were in step need no copy.
  void LoadEnded() override;
  std::string EndLine() const override;

 private:
  struct Place {
    std::string id;
    int64_t offset = -1;
    int db = 0;
    bool known() const { return !id.empty() && offset >= 0; }  // else it belongs to no history
  };
  Place Now() const;
  // That of the thread that holds the gate closed: this one.
  engine::Lane& ClosingLane() const;
  bool ReadEndLine(std::string_view line, Place* place) const;

  engine::Engine& engine_;
  persistence::Persistence& persistence_;
  Master& master_;
  Stream& stream_;
  ReplicaLink link_;
  void BeginLoaded();

  std::shared_future<Place> cut_;  // of the snapshot that is being made; none: it has no place
  Place loaded_;                   // what the file that was loaded last says
  bool started_ = false;           // what is loaded from here on is not the start's
  bool begun_ = false;             // the stream goes on with what the start has loaded
};

// REPLICAOF, SLAVEOF.
std::span<const commands::CommandSpec> FollowerCommands();

}  // namespace sava::replication
