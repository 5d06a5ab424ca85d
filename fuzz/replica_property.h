// What must hold for any bytes a master may send after its answer to PSYNC: read whole or byte by
// byte they give the same file and, behind it, the same stream; no more of it counts as applied
// than whole commands and transactions; and nothing is read outside the bytes.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "commands/redis/families.h"
#include "engine/engine.h"
#include "replication/replica_apply.h"
#include "replication/replica_payload.h"

namespace sava::fuzz {

class RecordingStream final : public replication::Stream {
 public:
  replication::History history() const override {
    replication::History history;
    history.offset = static_cast<int64_t>(bytes.size());
    return history;
  }
  void Adopt(std::string_view, int64_t) override {}
  void Rename(std::string_view) override {}
  void AppendRaw(std::string_view more) override { bytes += more; }
  void Promote() override {}
  void Demote() override {}

  std::string bytes;
};

// An engine for what a stream holds.
struct ReplicaEngine {
  ReplicaEngine() : engine(Prepare(), &settings, &table) { engine.role().set_replica(true); }
  engine::Engine::Options Prepare() {
    for (const auto family : commands::RedisFamilies()) table.Add(family);
    table.Add(engine::TransactionCommands());
    engine::Engine::Options options;
    options.clock = &clock;
    options.hash_seed = 7;
    return options;
  }
  base::ManualClock clock{1700000000000000};
  config::Settings settings;
  commands::CommandTable table;
  engine::Engine engine;
};

struct ReplicaResult {
  std::string file;
  std::string error;
  bool refused = false;
  bool done = false;
  std::string applied;
  bool broken = false;
  size_t keys = 0;
  bool operator==(const ReplicaResult&) const = default;
};

inline ReplicaResult ReadFromMaster(std::string_view bytes, size_t piece) {
  ReplicaResult result;
  replication::ReplicaPayload payload([&](std::string_view part) {
    result.file += part;
    return base::Status();
  });
  auto outcome = replication::ReplicaPayload::Outcome::kMore;
  while (!bytes.empty() && outcome == replication::ReplicaPayload::Outcome::kMore) {
    const std::string part(bytes.substr(0, piece));
    size_t used = 0;
    outcome = payload.Take(part, &used);
    if (used > part.size()) abort();
    if (outcome == replication::ReplicaPayload::Outcome::kMore && used != part.size()) abort();
    bytes.remove_prefix(used);
  }
  result.error = payload.error();
  result.refused = payload.refused();
  result.done = outcome == replication::ReplicaPayload::Outcome::kDone;
  if (!result.done) result.file.clear();  // how much was given out depends on the pieces
  if (!result.done) return result;
  if (static_cast<int64_t>(result.file.size()) != payload.received()) abort();

  ReplicaEngine test;
  RecordingStream stream;
  std::atomic<int> db{0};
  replication::ReplicaApply::Options options;
  options.engine = &test.engine;
  options.stream = &stream;
  options.db = &db;
  options.wanted = [] { return true; };
  options.held = [] { return false; };
  replication::ReplicaApply apply(std::move(options));
  const std::string all(bytes);
  while (!bytes.empty() && !result.broken) {
    const std::string_view part = bytes.substr(0, piece);
    apply.Came(part);
    bytes.remove_prefix(part.size());
    auto ran = replication::ReplicaApply::Outcome::kMore;
    while (ran == replication::ReplicaApply::Outcome::kMore) ran = apply.Run();
    result.broken = ran == replication::ReplicaApply::Outcome::kBroken;
  }
  result.applied = stream.bytes;
  if (!std::string_view(all).starts_with(result.applied)) abort();
  for (int i = 0; i < test.engine.keyspace().databases(); ++i) {
    result.keys += test.engine.keyspace().Size(i);
  }
  return result;
}

inline void CheckReplica(std::string_view bytes) {
  if (bytes.size() > 30000) bytes = bytes.substr(0, 30000);
  const ReplicaResult whole = ReadFromMaster(bytes, bytes.size() + 1);
  if (!(ReadFromMaster(bytes, 1) == whole) || !(ReadFromMaster(bytes, 7) == whole)) abort();
}

}  // namespace sava::fuzz
