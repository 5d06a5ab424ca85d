// WatchedKeys: tells whether keys of one database were changed since they were added. For work on
// keys that goes on while they are not locked, as WATCH is for clients.
//
// Changed may be asked by any thread; the rest as it says.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "engine/lane.h"
#include "keyspace/keyspace.h"

namespace sava::engine {

class WatchedKeys {
 public:
  WatchedKeys(Engine* engine, int db) : engine_(*engine), db_(db) {}
  WatchedKeys(const WatchedKeys&) = delete;
  WatchedKeys& operator=(const WatchedKeys&) = delete;

  // They are counted from 0 in the order in which they are added; a key may be there twice.
  // REQUIRES: the key is there, and locked.
  void Add(std::string_view key);
  // Whether the key was changed, or removed.
  bool Changed(size_t index) const {
    return keys_[index].watcher.dirty.load(std::memory_order_acquire);
  }
  // They are forgotten, and changes no longer noted. REQUIRES: the keys are locked.
  void End();
  // The same, locking one after the other. REQUIRES: on the lane's thread, inside the gate, and no
  // stripe is held.
  void End(Lane& lane);

 private:
  struct Key {
    std::string name;
    keyspace::Watcher watcher;
  };

  void Remove(Key& key);

  Engine& engine_;
  const int db_;
  std::deque<Key> keys_;  // what they point to stays where it is
};

}  // namespace sava::engine
