// Migration: the values of some keys on their way to another server (MIGRATE), and the list of all
// of these.
//
// The command saves the values under the locks of its keys and leaves its client waiting. A thread
// of the migration's own connects to the target, sends, and reads the answers. Then it wakes the
// client's loop, and the command runs again with all its keys locked: the keys that the target has
// taken are deleted, unless they were changed meanwhile.
//
// Where nobody may wait, as in a transaction or a script, the command does all of it at once, on
// its own thread and under its locks.
//
// A migration whose client does not wait any more (it hung up, was unblocked, the server became a
// replica) deletes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/waiter.h"
#include "engine/watched_keys.h"
#include "net/tls_context.h"
#include "replication/replica_wire.h"

namespace sava::replication {

class Migration {
 public:
  struct Target {
    std::string host;
    int64_t port = 0;
    int64_t db = 0;
    int64_t timeout_ms = 0;  // for each step of the connection
    bool replace = false;
    bool authenticates = false;
    std::string user;  // empty: the default one
    std::string password;
  };
  struct Key {
    std::string name;
    std::string payload;   // of DUMP
    int64_t expire_at;     // Unix ms, or kNoExpiry
    bool taken = false;    // the target has it
    bool changed = false;  // while it travelled
  };

  // tls: how to encrypt; none: the connection is plain.
  Migration(engine::Engine* engine, int db, Target target, bool copies,
            std::shared_ptr<const net::TlsContext> tls)
      : watched(engine, db),
        copy(copies),
        target_(std::move(target)),
        tls_(std::move(tls)),
        engine_(*engine) {}
  ~Migration();
  Migration(const Migration&) = delete;
  Migration& operator=(const Migration&) = delete;

  // `keys`, `watched` and `waiter` are set. When it has ended the waiter's command is run again.
  void Start();
  // All of it on this thread, instead. Only `keys` stand.
  void TravelHere();
  // It ends as soon as it can. From any thread.
  void Stop();
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Until Start, and once it is done; with the keys locked.
  std::vector<Key> keys;
  engine::WatchedKeys watched;  // the same keys
  engine::WaiterPtr waiter;
  std::string error;  // what the client is answered; empty: all went well
  const bool copy;

 private:
  void Travel();
  bool Connect();
  bool Command(std::initializer_list<std::string_view> words);
  bool Send(std::string_view bytes);
  bool SendKeys(std::vector<Key*>* sent);
  bool ReadAnswer(bool* accepted);
  bool Prepare();
  bool Broken(std::string_view doing);
  void End() noexcept;

  const Target target_;
  const std::shared_ptr<const net::TlsContext> tls_;
  engine::Engine& engine_;
  Waker waker_;
  ReplicaWire wire_{&waker_};
  std::atomic<bool> stop_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

class Migrations {
 public:
  explicit Migrations(engine::Engine* engine) : engine_(*engine) {}
  // Ends all. REQUIRES: no loop runs.
  ~Migrations();
  Migrations(const Migrations&) = delete;
  Migrations& operator=(const Migrations&) = delete;

  // How new ones are encrypted; none: not at all. From any thread.
  void UseTls(std::shared_ptr<const net::TlsContext> tls);
  std::shared_ptr<const net::TlsContext> tls() const;

  // As many at a time as one server may have.
  static constexpr size_t kMost = 64;
  bool full() const;
  // Its place in the list, made ahead: Add takes no memory.
  using Place = std::list<std::shared_ptr<Migration>>;
  // REQUIRES: its waiter is set.
  void Add(Place&& place) noexcept;
  // That of the client whose command comes to its end now: it counts no longer. nullptr: it has
  // none that is done.
  std::shared_ptr<Migration> Take(uint64_t client);
  // Ends those whose client does not wait any more, and their threads. On the first loop's thread,
  // inside the gate.
  void Tick();

 private:
  engine::Engine& engine_;
  mutable std::mutex mutex_;
  std::shared_ptr<const net::TlsContext> tls_;  // guarded by mutex_
  Place under_way_;                             // guarded by mutex_
  Place taken_;  // guarded by mutex_; their threads have nothing to do any more
};

}  // namespace sava::replication
