#include "engine/watched_keys.h"

#include "engine/engine.h"

namespace sava::engine {

using keyspace::Keyspace;

void WatchedKeys::Add(std::string_view key) {
  Key& watched = keys_.emplace_back();
  watched.name = key;
  engine_.keyspace()
      .stripe(Keyspace::StripeOf(engine_.keyspace().Hash(key)))
      .watches.Add(db_, key, &watched.watcher, /*expired=*/false);
}

void WatchedKeys::Remove(Key& key) {
  engine_.keyspace()
      .stripe(Keyspace::StripeOf(engine_.keyspace().Hash(key.name)))
      .watches.Remove(db_, key.name, &key.watcher);
}

void WatchedKeys::End() {
  for (Key& key : keys_) Remove(key);
  keys_.clear();
}

void WatchedKeys::End(Lane& lane) {
  for (Key& key : keys_) {
    const StripeGuard guard(lane.locks, Keyspace::StripeOf(engine_.keyspace().Hash(key.name)));
    Remove(key);
  }
  keys_.clear();
}

}  // namespace sava::engine
