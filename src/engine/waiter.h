// Clients that wait for keys (BLPOP and its like): the waiter, and the lines of waiters.
//
// A waiter is in one of four states, changed by compare-and-swap only:
//   waiting -> serving    a thread that holds the lock of one of its keys tries its command
//   serving -> missed     another thread came with another of its keys meanwhile
//   serving -> claimed    it was answered;   serving or missed -> waiting: there was nothing
//   waiting -> claimed    its time is up, CLIENT UNBLOCK, or its connection ends
// The thread that changes it to `claimed` answers it, once. A thread takes the waiter before an
// element: nothing is taken for a client that has given up.
//
// A waiter is in the line of each of its keys. Lines are guarded by their stripe's lock; a
// claimed waiter that is still in one is skipped and dropped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "commands/context.h"
#include "commands/registry.h"
#include "keyspace/keyspace.h"

namespace sava::access {
struct User;
}

namespace sava::engine {

// The client that waits, as its command sees it on whatever thread it is run.
struct Asker {
  uint64_t client = 0;
  size_t lane = 0;
  uint64_t token = 0;  // the client's wait.token
  int db = 0;
  int resp = 2;
  uint32_t flags = 0;  // ClientFlag, those that matter to a handler
  // Its client's, changed with the gate closed together with that.
  const access::User* acl = nullptr;
  bool tracks = false;  // the keys it is served from are noted for its client
};

struct Waiter : std::enable_shared_from_this<Waiter> {
  enum class State : uint8_t { kWaiting, kServing, kMissed, kClaimed };
  using TimeoutReply = commands::Context::BlockRequest::TimeoutReply;
  struct Key {
    std::string_view name;  // of words
    size_t stripe;
  };

  std::atomic<State> state{State::kWaiting};
  std::atomic<int> lines{0};        // how many it is in
  std::atomic<int64_t> wake_at_ms;  // its command is run again at this time; 0: never
  // The members below do not change once it waits.
  uint64_t order = 0;  // of arrival
  Asker asker;
  int64_t deadline_ms = 0;
  TimeoutReply reply = TimeoutReply::kNullArray;
  bool on_deletion = false;
  const types::TypeInfo* type = nullptr;  // of the value it waits for; nullptr: of any
  bool needs_all = false;                 // its command has more keys than it waits for
  const commands::Command* command = nullptr;
  std::string words;  // the arguments' bytes
  std::vector<std::string_view> args;
  std::vector<Key> keys;
  // How long its command took, when it was served; else 0. Set by the thread that serves it.
  uint64_t nanos = 0;

  bool waiting() const { return state.load(std::memory_order_acquire) == State::kWaiting; }
  // Whether its command has to be run again for what is at one of its keys now.
  bool Wants(const commands::Value& value) const {
    if (on_deletion) return true;
    if (!value || type == nullptr) return static_cast<bool>(value);
    return value.kind == commands::Value::Kind::kObject && &value.object->type() == type;
  }
  // Ends the waiting unless another thread has.
  bool Claim() {
    State expected = State::kWaiting;
    return state.compare_exchange_strong(expected, State::kClaimed);
  }
  enum class Taken : uint8_t { kYes, kBusy, kGone };
  // Before its command is tried. kBusy: another thread tries it, and will try all its keys.
  Taken Take();
  // There was nothing for it. kYes: it waits again; kBusy: it does, but all its keys must be
  // tried; kGone: it has left meanwhile.
  Taken PutBack();
};

using WaiterPtr = std::shared_ptr<Waiter>;

// A key that was changed while a client waits for it.
struct ReadyKey {
  int db;
  size_t stripe;
  std::string key;
};

// The waiters for one key, in order of arrival.
struct WaitLine {
  std::deque<WaiterPtr> waiters;
  size_t on_deletion = 0;  // of them, those that want to know when the key is gone
  bool ready = false;      // the lane that changed it must serve it
  // The line's place in that lane's list, one node, here when it is not there: a change of the key
  // takes no memory.
  std::list<ReadyKey> place;

  // The first that came after `order`.
  size_t After(uint64_t order) const;
};

// All lines. Calls with a stripe REQUIRE its lock.
class WaitLines {
 public:
  // Whether anybody waits for any key.
  bool any() const { return keys_.load(std::memory_order_relaxed) > 0; }
  int64_t keys() const { return keys_.load(std::memory_order_relaxed); }
  int64_t keys_on_deletion() const { return on_deletion_.load(std::memory_order_relaxed); }

  WaitLine* Find(int db, size_t stripe, std::string_view key);
  // At the end of the line; once.
  void Add(int db, size_t stripe, std::string_view key, const WaiterPtr& waiter);
  // Takes the waiter out, if it is there.
  void Remove(int db, size_t stripe, std::string_view key, const Waiter& waiter);
  void ForEach(int db, size_t stripe,
               const std::function<void(const std::string& key, WaitLine& line)>& visit);
  bool empty(size_t stripe) const { return stripes_[stripe].lines.empty(); }

 private:
  struct Name {
    int db;
    std::string key;
  };
  struct NameView {
    int db;
    std::string_view key;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const NameView& name) const {
      static const uint64_t kSeed = base::SecureRandom64();
      return base::HashBytes(name.key, kSeed + static_cast<uint64_t>(name.db));
    }
    size_t operator()(const Name& name) const { return (*this)(NameView{name.db, name.key}); }
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return a.db == b.db && a.key == b.key;
    }
  };
  using Lines = std::unordered_map<Name, WaitLine, Hash, Equal>;
  struct alignas(64) PerStripe {
    Lines lines;
  };

  void Erase(size_t stripe, Lines::iterator line, size_t position);

  std::array<PerStripe, keyspace::Keyspace::kStripes> stripes_;
  std::atomic<int64_t> keys_{0};
  std::atomic<int64_t> on_deletion_{0};
};

// A waiter to try with all its locks; then its line goes on behind it.
struct Retry {
  WaiterPtr waiter;
  std::optional<Waiter::Key> key = {};  // of the waiter: it was its turn there
  bool by_time = false;                 // its wake_at_ms came
};

}  // namespace sava::engine
