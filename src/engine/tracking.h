// Tracking: client-side caching. Clients are told when a key they have read is changed, or (in
// broadcast mode) any key that begins with one of their prefixes.
//
// A table per stripe says which client has read what; the stripe's lock guards it. A read registers
// under the lock under which it was done, a change takes the readers out under the lock under which
// it is made. So no change falls between a read and its registration. Changes are kept with
// the lane and posted at the end of its batch, before the replies of the writers leave. A message
// never overtakes the reply with the value that it calls stale: that reply stood in the reader's
// output (or its mail) before the stripe was given back, and mail is appended behind it.
//
// Keys are tracked by name, whatever their database.
//
// Thread safety: as each call says.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/client.h"
#include "engine/mailbox.h"
#include "engine/tracking_state.h"
#include "engine/waiter.h"
#include "keyspace/keyspace.h"

namespace sava::engine {

class Engine;
struct Lane;
struct Work;

class Tracking {
 public:
  explicit Tracking(Engine* engine) : engine_(*engine) {}

  // Whether any client tracks.
  bool any() const { return trackers_count_.load(std::memory_order_relaxed) > 0; }

  // ---- on the client's thread ----
  // From now on as `wanted` says; prefixes are added to those it has.
  void Enable(Client& client, const TrackingState& wanted);
  void Disable(Client& client);
  // A command of a client with tracking was run. REQUIRES: its locks.
  void NoteRead(Lane& lane, const Work& work);
  // Whether the keys of this command are noted.
  static bool Wants(const Client& client, const commands::Command& command);
  // A waiting client's command, which it wanted noted, was run for it: because of one key, or of
  // any. REQUIRES: their locks.
  void NoteServed(Lane& lane, const Waiter& waiter, const Waiter::Key* key);
  // After each command that the client sends. command: nullptr when there is none of that name.
  static void EndCommand(Client& client, const commands::Command* command);

  // ---- changes ----
  // A key is changed or removed, by `changer` or by no client. REQUIRES: the stripe's lock.
  void NoteChange(Lane& lane, size_t stripe, std::string_view key, const Client* changer);
  // All keys of a database are others, or gone; to be told by StaleKeys::lost. REQUIRES: the gate
  // is closed.
  void Flushed();
  // Posts what this lane has changed to the clients that have read it. REQUIRES: inside the gate.
  void Post(Lane& lane);
  // Keeps the stripe's table within its limit; true when there is more to do. REQUIRES: the
  // stripe's lock.
  bool Trim(Lane& lane, size_t stripe);

  // ---- delivery, on the receiver's thread ----
  // False when there is nothing for the client to be sent.
  bool Deliver(Client& client, const Mail& mail);
  // Mail for a client that is gone.
  void NoteMissing(const Mail& mail);

  // ---- figures ----
  int64_t clients() const { return trackers_count_.load(std::memory_order_relaxed); }
  int64_t keys() const { return keys_.load(std::memory_order_relaxed); }
  int64_t items() const { return items_.load(std::memory_order_relaxed); }
  size_t prefixes() const;

 private:
  struct Name {
    uint64_t hash;
    std::string key;
  };
  struct NameView {
    uint64_t hash;
    std::string_view key;
  };
  struct Hash {
    using is_transparent = void;
    // The low bits chose the stripe.
    size_t operator()(const NameView& name) const { return name.hash >> 7; }
    size_t operator()(const Name& name) const { return name.hash >> 7; }
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return a.hash == b.hash && a.key == b.key;
    }
  };
  using Readers = std::vector<KeyReader>;
  using Table = std::unordered_map<Name, Readers, Hash, Equal>;
  struct alignas(64) Stripe {
    Table table;
  };
  struct Tracker {
    size_t lane;
    bool no_loop;
  };

  void Register(Lane& lane, uint64_t hash, std::string_view key, KeyReader reader);
  // Takes some key other than `kept` out of the stripe's table, and has its readers told.
  void DropOne(Lane& lane, Table& table, Table::iterator kept);
  void Erase(Table& table, Table::iterator it);
  bool OverLimit() const;
  bool IgnoresItself(uint64_t client) const;
  void PostTable(const std::vector<StaleKey>& stale, uint64_t ticket);
  void PostBroadcast(const std::vector<StaleKey>& stale, uint64_t ticket);
  void TellAllToForget();
  void ForgetPrefixes(const Client& client);
  bool Forward(Client& client, std::string value, uint64_t ticket);

  Engine& engine_;
  std::array<Stripe, keyspace::Keyspace::kStripes> stripes_;
  std::atomic<int64_t> keys_{0};
  std::atomic<int64_t> items_{0};
  std::atomic<int64_t> trackers_count_{0};
  std::atomic<int64_t> broadcasting_{0};

  mutable std::mutex mutex_;                        // a leaf, but for mailboxes
  std::unordered_map<uint64_t, Tracker> trackers_;  // guarded by mutex_
  // The clients that listen to each prefix; guarded by mutex_.
  std::map<std::string, std::vector<KeyReader>, std::less<>> prefixes_;
};

}  // namespace sava::engine
