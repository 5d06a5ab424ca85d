// Lane: what one thread has for itself; each event loop has one, and so has the thread that saves
// and loads. Other threads touch only its counters and its mailbox, except with the gate closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "commands/registry.h"
#include "engine/client.h"
#include "engine/effects.h"
#include "engine/limiter.h"
#include "engine/locks.h"
#include "engine/mailbox.h"
#include "engine/stats.h"
#include "engine/tracking_state.h"
#include "engine/wait_queue.h"
#include "keyspace/keyspace.h"

namespace sava::engine {

class Engine;

// One command of a batch.
struct Request {
  enum class Outcome : uint8_t {
    kDone,     // the reply is in the client's output
    kRefused,  // not run because the client waits or goes away: its input stays where it is
  };
  bool prepared = false;   // else there was no memory for it
  bool withdrawn = false;  // by its owner, before it began: it is not looked at any more
  Client* client = nullptr;
  commands::Args args;
  const commands::Command* command = nullptr;  // found by Prepare
  uint32_t first_hash = 0;                     // its keys' hashes in the batch's list
  uint32_t key_count = 0;
  Outcome outcome = Outcome::kDone;
};

// How far a batch has come. While its thread serves in the middle of it (Gate::Serve) the owner may
// withdraw requests that have not begun.
struct BatchProgress {
  const Request* requests = nullptr;
  size_t begun = 0;                 // so many have begun
  const Client* at_work = nullptr;  // whose request has begun and not ended
};

// A transaction that runs under the locks of its keys, and what its scripts have to tell of it.
struct TransactionProgress {
  bool left = false;   // it may have left something behind: it cannot begin again
  bool again = false;  // a script wants more than its keys: it is to begin again, alone
};

// The batch that runs.
struct BatchState {
  uint32_t lru_clock = 0;                           // at its beginning
  std::vector<uint64_t> hashes;                     // of all its keys, see Request
  std::vector<int> key_indexes;                     // scratch
  std::vector<uint64_t> key_hashes;                 // of the commands added last (Runner::AddKeys)
  std::string_view last_name;                       // of the last command looked up
  const commands::Command* last_command = nullptr;  // and the command
  std::vector<std::vector<std::string_view>> renamed;  // commands under their own names
  BatchProgress progress;
  TransactionProgress transaction;
  EffectGroup effects;           // of the outermost invocation that runs
  bool journal_full = false;     // writers must wait until the log has caught up
  bool busy = false;             // a command runs while another thread is busy (Runner::RunBusy)
  std::vector<Client*> unwatch;  // whose watches end as soon as this lane is inside the gate again
  bool awaits_save = false;      // the command under way is answered when a snapshot is saved
  LockSet* locked = nullptr;     // the locks of the script that runs, which may grow
};

// A lane's account of memory, and its work for it.
struct LaneMemory {
  // A key that may be evicted; the worst is last. See eviction.cc.
  struct Candidate {
    int db;
    uint64_t score;
    uint64_t hash;
    std::string key;
  };
  static constexpr size_t kCandidates = 16;

  Counter buffer_bytes;                      // of its clients' input and output
  std::atomic<uint64_t> client_bytes{0};     // the sum of its clients' charged_bytes
  std::vector<keyspace::Displaced> garbage;  // released when no lock is held
  bool limited = false;                      // maxmemory holds for this batch
  bool over = false;                         // eviction could not make room for it
  int64_t room = 0;  // below maxmemory, when it was last checked, less the bytes added since
  std::vector<Candidate> candidates;
  // Bytes of its clients' input and output, noted once a second. Read with the gate closed.
  RecentMax recent_input;
  RecentMax recent_output;
};

// Work that is done now and then.
struct LaneUpkeep {
  size_t stripe = 0;  // visited next
  // Buckets of the limiter whose keys must be written, and when that was last done.
  std::vector<std::shared_ptr<RateBucket>> rate_dirty;
  int64_t rate_written_ms = 0;
};

struct Lane {
  Lane(Engine* engine, size_t lane_index, size_t command_count);
  ~Lane();

  // This thread holds the gate closed.
  bool exclusive() const { return locks.exclusive(); }

  Engine* const engine;
  const size_t index;
  Locks locks;
  LaneStats stats;
  Mailbox mailbox;
  base::Rng rng;
  std::unordered_map<uint64_t, Client*> clients;  // connected here
  std::vector<Client*> to_flush;                  // got output outside their own turn
  base::Budget round;                             // of the round
  int64_t now_ms = 0;                             // at the beginning of the batch
  BatchState batch;
  WaitQueue waits;
  LaneMemory memory;
  LaneUpkeep upkeep;
  StaleKeys stale;
};

}  // namespace sava::engine
