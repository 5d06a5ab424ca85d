// What client-side caching keeps with clients and lanes (engine/tracking.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace sava::commands {
struct Command;
}

namespace sava::engine {

// Of one client that has tracking on. Belongs to its client's thread.
struct TrackingState {
  uint64_t redirect = 0;  // the client that is told instead; 0: itself
  size_t redirect_lane = 0;
  bool broken = false;  // whom it redirects to is gone
  bool broadcast = false;
  bool opt_in = false;
  bool opt_out = false;
  bool no_loop = false;
  // CLIENT CACHING was called for the command, or transaction, that comes next; further commands of
  // this family may come in between.
  bool caching = false;
  const commands::Command* caching_family = nullptr;
  std::set<std::string, std::less<>> prefixes;  // with broadcast
};

// A client that has read a key.
struct KeyReader {
  uint64_t client;
  size_t lane;
  bool operator==(const KeyReader& other) const { return client == other.client; }
};

// A key that was changed while a client tracks, and the clients to tell.
struct StaleKey {
  std::string key;
  uint64_t changer = 0;  // the client that did it, 0: none
  std::vector<KeyReader> readers;
};

// What one lane has changed and not yet told. Its own thread's.
struct StaleKeys {
  std::vector<StaleKey> keys;
  // Everybody is told to forget everything: all keys went, or there was no memory to note one.
  bool lost = false;

  bool empty() const { return keys.empty() && !lost; }
};

}  // namespace sava::engine
