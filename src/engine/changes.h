// Changes: up to which ticket what clients have changed is logged, so that the answers to others
// that have seen it can wait for that (Client::saw). Kept only while answers wait for the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace sava::engine {

class Engine;
struct Client;
struct Lane;

class Changes {
 public:
  explicit Changes(Engine* engine) : engine_(*engine) {}

  // REQUIRES: the gate is closed.
  void Track(bool on);
  // The client's answers wait for its own changes, or for the last change of what it has
  // seen. keys: their hashes; none: all keys. `wrote`: as the client's was before. REQUIRES: the
  // locks.
  void Note(Lane& lane, Client& client, std::span<const uint64_t> keys, uint64_t wrote) {
    if (tickets_ != nullptr) NoteTold(lane, client, keys, wrote);
  }

 private:
  void NoteTold(Lane& lane, Client& client, std::span<const uint64_t> keys, uint64_t wrote);

  Engine& engine_;
  // By the last bits of keys' hashes, so that each belongs to a stripe, and is guarded by its lock:
  // what clients have changed there has lower tickets. None: not wanted.
  std::unique_ptr<uint64_t[]> tickets_;
};

}  // namespace sava::engine
