// Engine: a command's way from parsed bytes to reply: look up, admit, lock, run, journal, reply.
//
// Threads: each event-loop thread has a Lane and runs batches on it. Within a batch keys are hashed
// and prefetched first, then commands run one after another, each under the locks of the stripes of
// its keys (consecutive commands on one stripe share one acquisition), or alone with the gate
// closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "commands/registry.h"
#include "engine/background.h"
#include "engine/blocking.h"
#include "engine/client.h"
#include "engine/function_libraries.h"
#include "engine/limiter.h"
#include "engine/mailbox.h"
#include "engine/observe.h"
#include "engine/pubsub.h"
#include "engine/settings.h"
#include "engine/stats.h"
#include "journal/journal.h"
#include "journal/snapshot.h"
#include "keyspace/keyspace.h"

namespace sava::engine {

class Engine;
class EngineContext;

// One command of a batch.
struct Request {
  enum class Outcome : uint8_t {
    kDone,     // the reply stands in the client's output
    kRefused,  // not run because the client waits or goes away: its input stays where it is
  };
  bool prepared = false;  // else there was no memory for it
  Client* client = nullptr;
  commands::Args args;
  const commands::Command* command = nullptr;  // found by Prepare
  uint32_t first_hash = 0;                     // its keys' hashes in the batch's list
  uint32_t key_count = 0;
  Outcome outcome = Outcome::kDone;
};

// What one thread has for itself.
struct Lane {
  Lane(Engine* engine, size_t lane_index, size_t command_count);
  ~Lane();

  Engine* const engine;
  const size_t index;
  LaneStats stats;
  Counter buffer_bytes;  // of its clients' input and output
  Mailbox mailbox;
  base::Rng rng;
  std::unique_ptr<EngineContext> context;
  std::unique_ptr<EngineContext> serving;  // for commands of waiting clients
  std::unique_ptr<Client> stand_in;        // for those clients: they belong to their own threads
  std::unordered_map<uint64_t, Client*> clients;  // connected here
  std::vector<Client*> to_flush;                  // got output outside their own turn
  std::vector<Client*> waiting;                   // blocked (but not for keys), paused or parked
  std::vector<Client*> resumed;                   // may go on: their input is to be looked at
  std::vector<keyspace::Displaced> garbage;       // to be released when no lock is held

  // Clients that wait for keys, see blocking.cc.
  std::map<std::pair<int64_t, uint64_t>, Client*> alarms;  // by time and id
  std::vector<WaiterPtr> leaving;                          // claimed, to be taken out of lines
  std::list<ReadyKey> ready;                               // changed by the command that runs
  std::vector<Retry> retries;  // to be tried when its locks are given back
  std::list<Mail> served;      // the reply of the waiter just served
  bool own_mail = false;       // something was posted quietly to this lane's own mailbox
  bool yielded = false;        // of the parked some wait for nothing but the next round

  // Buckets of the limiter whose keys are to be written, and when that was last done.
  std::vector<std::shared_ptr<RateBucket>> rate_dirty;
  int64_t rate_written_ms = 0;

  // Batch state.
  std::vector<uint64_t> hashes;
  std::vector<int> key_indexes;      // scratch
  std::vector<uint64_t> key_hashes;  // of the commands for which AddKeys was called last
  int held_stripe = -1;              // locked, kept for the next command
  bool inside = false;               // of the gate
  bool in_round = false;             // and stays there between batches
  base::Budget round;                // of the round
  bool exclusive = false;            // this lane holds the gate closed
  bool awaits_save = false;          // the command under way is answered when a snapshot is saved
  bool limited = false;              // maxmemory holds for this batch
  bool over_memory = false;          // eviction could not make room for it
  int64_t room = 0;            // below maxmemory, when it was looked at, less what was added since
  bool journal_full = false;   // writers are to wait until the log has caught up
  uint64_t seen = 0;           // the last ticket known to it from locks and its own records
  std::string_view last_name;  // of the last command looked up, and the command
  const commands::Command* last_command = nullptr;
  int64_t now_ms = 0;
  uint32_t lru_clock = 0;
  uint64_t last_ticks = 0;
  // Bytes of its clients' input and output, noted once a second. Read with the gate closed.
  RecentMax recent_input;
  RecentMax recent_output;
  // Upkeep.
  size_t upkeep_stripe = 0;
  int64_t next_upkeep_ms = 0;
  // Eviction candidates, worst last; see eviction.cc.
  struct Candidate {
    int db;
    uint64_t score;
    uint64_t hash;
    std::string key;
  };
  static constexpr size_t kCandidates = 16;
  std::vector<Candidate> candidates;
};

// What the composition root adds for its own commands.
class Host {
 public:
  virtual ~Host() = default;
  // FLUSHALL was run by a client; it will count as that many changes. With the gate closed. True
  // when the client is to be answered by AnswerWhenSaved.
  virtual bool FlushedAll(uint64_t changes) {
    static_cast<void>(changes);
    return false;
  }
  // Answers a blocked client once what FLUSHALL left is saved. On its lane's thread.
  virtual void AnswerWhenSaved(const Client& client, const std::string& reply) {
    static_cast<void>(client), static_cast<void>(reply);
  }
  // A command that writes found no memory: what it has done may not be what is logged of it.
  virtual void OutOfMemory() {}
};

class Engine {
 public:
  struct Options {
    size_t lanes = 1;
    uint64_t hash_seed = 0;  // 0: random
    const base::Clock* clock = &base::Clock::System();
  };

  Engine(const Options& options, Settings* settings, const commands::CommandTable* table);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- running commands ----

  // Looks up commands and hashes keys; prefetches what they will touch.
  // REQUIRES: on the lane's thread, inside BeginBatch/EndBatch.
  void Prepare(Lane& lane, std::span<Request> batch);
  // Runs them in order. A client that has to wait gets kRefused for this and its later commands.
  void RunBatch(Lane& lane, std::span<Request> batch);
  // One command with its own batch: for HTTP, replay, tests. False when the client has to wait or
  // goes away: the command did not run.
  bool Execute(Lane& lane, Client& client, commands::Args args);

  // A round of the loop is spent inside the gate, so that whoever closes it may look at the clients
  // of all lanes. Batches within a round step outside for a moment when somebody wants to close.
  void BeginRound(Lane& lane);
  void EndRound(Lane& lane);
  void BeginBatch(Lane& lane);
  // Releases locks and the gate, then frees what was displaced.
  void EndBatch(Lane& lane);

  // Delivers mail; true when a kWake for the whole lane was among it.
  bool ReceiveMail(Lane& lane);
  // Resumes clients whose waiting time is over, and parked ones.
  void ResumeWaiting(Lane& lane);
  // Whether there is something for it to do.
  bool NeedsResume(const Lane& lane) const;
  // The client's next command is to wait for the next round; it goes on there after those who wait
  // already, or before them. REQUIRES: it does not wait for anything.
  void Yield(Lane& lane, Client& client);
  void YieldFirst(Lane& lane, std::span<Client* const> clients);
  // When somebody waiting may go on (Unix ms; 0: at once, INT64_MAX: not by time).
  int64_t NextResume(const Lane& lane) const;
  // Expiry and compaction, a little each time; true when there is more to do soon.
  bool Upkeep(Lane& lane);

  // ---- durability ----
  // The lane of the thread that saves and loads. It has no clients of the network.
  Lane& house_lane() { return *house_lane_; }
  // The gate's lanes of threads that help it load: kHelperLanes from this one on.
  static constexpr size_t kHelperLanes = 8;
  size_t first_helper_lane() const { return lanes_.size() + 1; }
  journal::Snapshot& snapshot() { return snapshot_; }
  // Begins a snapshot of this instant. REQUIRES: the gate is closed, none is active.
  void BeginSnapshot(bool abort_on_flush);
  // While loading only few commands are answered.
  void set_loading(bool on) { loading_.store(on, std::memory_order_release); }
  bool loading() const { return loading_.load(std::memory_order_acquire); }
  // Writes are answered with this error from now on; empty: they are accepted.
  void RefuseWrites(std::string error);
  // Whether answers are to wait for what others have changed (Client::saw). REQUIRES: the gate is
  // closed.
  void TrackChanges(bool on);
  bool refuses_writes() const { return refusing_.load(std::memory_order_relaxed); }

  // ---- clients ----
  uint64_t NewClientId() { return next_client_id_.fetch_add(1, std::memory_order_relaxed); }
  void AddClient(Lane& lane, Client& client);
  // Forgets watches, subscriptions, queued commands. REQUIRES: on its lane's thread, outside a
  // batch.
  void RemoveClient(Lane& lane, Client& client);
  void ResetClient(Lane& lane, Client& client);
  // How much output may wait for it. Inside the gate.
  const OutputBufferLimit& OutputLimitOf(const Client& client) const {
    return client.subscribed()          ? settings_->output_limit_pubsub
           : client.has(kClientMonitor) ? settings_->output_limit_replica
                                        : settings_->output_limit_normal;
  }
  void Unwatch(Lane& lane, Client& client);
  void DiscardTransaction(Lane& lane, Client& client);
  // CLIENT UNBLOCK of a client that waits for keys: false when it does not, or its answer is on its
  // way. REQUIRES: the gate is closed.
  bool Unblock(Lane& lane, Client& client, bool with_error);
  // All data was replaced: everybody who waits for a key is tried. REQUIRES: the gate is closed.
  void ServeEverybody(Lane& lane);
  const WaitLines& waits() const { return waits_; }

  // Runs `work` alone: nobody else is inside the gate. From a handler or from outside a batch.
  template <typename Work>
  void Exclusively(Lane& lane, const Work& work) {
    if (lane.exclusive) return work();
    CloseGate(lane);
    const struct Opens {
      ~Opens() { engine.OpenGate(lane); }  // also when there is no memory
      Engine& engine;
      Lane& lane;
    } opens{*this, lane};
    work();
  }

  // ---- pausing (CLIENT PAUSE) ----
  void Pause(int64_t until_ms, bool writes_only);
  void Unpause();
  bool paused(bool write_command, int64_t now_ms) const;
  int64_t pause_until() const { return pause_until_.load(std::memory_order_relaxed); }
  bool pause_writes_only() const { return pause_writes_only_.load(std::memory_order_relaxed); }

  // ---- memory ----
  // Bytes in use by the process's data; see docs/architecture.md. Inside the gate.
  size_t UsedMemory() const;
  // Set from time to time by whoever can ask the allocator: what it holds besides the keyspace, and
  // how much of that are records on their way to the log, which do not count toward maxmemory.
  // Buffers of clients are known at any time.
  // Less than nothing where keys share a value that each of them counts.
  void set_other_memory(int64_t bytes, size_t log_bytes) {
    other_memory_.store(bytes - BufferBytes(), std::memory_order_relaxed);
    log_memory_.store(log_bytes, std::memory_order_relaxed);
  }
  size_t log_memory() const { return log_memory_.load(std::memory_order_relaxed); }
  // An object is about to be freed: its bytes leave the account now, not when the allocator is
  // asked next, so that eviction stops in time.
  void NoteFreed(const types::Object& object) {
    if (settings_->maxmemory == 0) return;
    other_memory_.fetch_sub(static_cast<int64_t>(object.MemoryUsage(5)), std::memory_order_relaxed);
  }
  int64_t BufferBytes() const;
  // All the memory there is for the process.
  void set_memory_ceiling(uint64_t bytes) { memory_ceiling_ = bytes; }
  // Whether a value of that many bytes could be held, with all others or, where they can be
  // evicted, without them.
  bool RoomFor(uint64_t bytes) const;
  // Something was written and may not be what is logged of it.
  void NoteOutOfMemory() {
    if (host_ != nullptr) host_->OutOfMemory();
  }
  // Evicts until below maxmemory; false when it could not. REQUIRES: inside the gate, no stripe
  // held.
  bool MakeRoom(Lane& lane);

  // ---- parts ----
  keyspace::Keyspace& keyspace() { return keyspace_; }
  PubSub& pubsub() { return *pubsub_; }
  SlowLog& slowlog() { return slowlog_; }
  LatencyMonitor& latency() { return latency_; }
  ErrorStats& errors() { return errors_; }
  Limiter& limiter() { return limiter_; }
  Background& background() { return background_; }
  journal::Journal& journal() { return journal_; }
  FunctionLibraries& libraries() { return libraries_; }
  Settings& settings() { return *settings_; }
  const commands::CommandTable& table() const { return *table_; }
  const base::Clock& clock() const { return *clock_; }
  std::vector<std::unique_ptr<Lane>>& lanes() { return lanes_; }
  Host* host() const { return host_; }
  void set_host(Host* host) { host_ = host; }
  std::atomic<int>& monitors() { return monitors_; }
  std::atomic<bool>& active_expire() { return active_expire_; }
  std::atomic<bool>& skip_checksums() { return skip_checksums_; }
  // DEBUG PAUSE-CRON: what loops do now and then is left undone.
  std::atomic<bool>& cron_paused() { return cron_paused_; }
  // DEBUG REPLYBUFFER RESIZING 0: empty output buffers keep their memory.
  std::atomic<bool>& keeps_output() { return keeps_output_; }
  // Number of changes since start (INFO's rdb_changes_since_last_save until snapshots exist).
  uint64_t Dirty() const;
  template <typename Field>
  uint64_t Total(Field LaneStats::*field) const {
    uint64_t total = 0;
    for (const auto& lane : lanes_) total += (lane->stats.*field).get();
    return total;
  }

 private:
  friend class EngineContext;

  enum class Admission : uint8_t { kRun, kAnswered, kWait };

  void EnterGate(Lane& lane);
  void StepAside(Lane& lane);
  void CloseGate(Lane& lane);
  void OpenGate(Lane& lane);
  void ReleaseHeld(Lane& lane);
  void PrefetchLock(const Lane& lane, const Request& request);
  static bool NeedsHeld(const Lane& lane, const Request& request);

  // The stripes a command or transaction needs.
  struct LockSet {
    uint64_t bits[2] = {0, 0};
    bool all = false;
    void Add(size_t stripe) { bits[stripe / 64] |= uint64_t{1} << (stripe % 64); }
  };
  // False when a single stripe could not be had in time: the client is to wait.
  bool Lock(Lane& lane, const LockSet& set);
  bool LockOne(Lane& lane, size_t stripe);
  void Unlock(Lane& lane, const LockSet& set);
  void AddKeys(Lane& lane, const commands::Command& command, commands::Args args, LockSet* set);
  // Without parking; a single stripe does not become the held one.
  void LockPatiently(Lane& lane, const LockSet& set);
  void UnlockAll(Lane& lane, const LockSet& set);

  // Clients that wait for keys, see blocking.cc.
  void Block(Lane& lane, Client& client, const commands::Command& command, commands::Args args,
             const commands::Context::BlockRequest& request);
  void Arm(Lane& lane, Client& client);
  void SetAlarm(Lane& lane, Client& client, int64_t at);
  void MarkReady(Lane& lane, int db, size_t stripe, std::string_view key, bool gone);
  void MarkAllReady(Lane& lane, int db, bool gone);
  // At the end of whatever changed keys, before their locks are given back.
  void ServeReady(Lane& lane) {
    if (!lane.ready.empty()) [[unlikely]]
      ServeReadyKeys(lane);
  }
  void ServeReadyKeys(Lane& lane);
  void ServeLine(Lane& lane, int db, const Waiter::Key& key, uint64_t order);
  Waiter::Taken Serve(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key);
  Waiter::Taken TryServe(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key);
  Waiter::Taken ServeAnyKey(Lane& lane, Waiter& waiter);
  void RunRetries(Lane& lane);
  void RunRetry(Lane& lane, const Retry& retry);
  void PostTo(Lane& lane, const Waiter& waiter, Mail::Kind kind,
              std::shared_ptr<const Message> message);
  void PostTo(Lane& lane, const Waiter& waiter, std::list<Mail>&& mail);
  void CountAnswered(Lane& lane, const commands::Command& command, uint64_t nanos,
                     const protocol::Reply& reply);
  void Release(Lane& lane, Client& client, const Message& message);
  void LeaveLines(Lane& lane, const Waiter& waiter);
  void ForgetWaiter(Lane& lane, Client& client);
  void RingAlarms(Lane& lane);
  static std::string TimeoutText(const Waiter& waiter);

  void LookAhead(const Lane& lane, std::span<const Request> next) const;
  bool RunOne(Lane& lane, Request& request);
  void RefuseForMemory(Lane& lane, const Request& request);
  void NoteCall(Lane& lane, Client& client, const commands::Command& command);
  void FindHashes(Lane& lane, std::span<Request> batch);
  // The limiter, see limiting.cc.
  bool Charge(Lane& lane, const Request& request);
  bool WritesOwnBucket(const Client& client, const commands::Command& command, commands::Args args);
  void LoadBucket(Lane& lane, RateBucket& bucket);
  void WriteBucket(Lane& lane, RateBucket& bucket);
  void WriteBuckets(Lane& lane);
  void CallLimited(Lane& lane, Client& client, const commands::Command& command,
                   commands::Args args, std::span<const uint64_t> hashes);
  void ReloadAll(Lane& lane, const Client& client);
  template <typename Visit>
  void ForEachBucketKey(const commands::Command& command, commands::Args args, const Visit& visit);
  Admission Admit(Lane& lane, Client& client, const Request& request);
  bool Permitted(const Client& client, const commands::Command& command) const;
  bool ChangedMeanwhile(Lane& lane, Client& client, const commands::Command& command);
  void Wait(Lane& lane, Client& client, uint32_t flag);
  void UnknownCommand(Lane& lane, Client& client, commands::Args args);
  void Reject(Lane& lane, Client& client, const commands::Command* command, std::string_view error);
  void Queue(Client& client, const commands::Command& command, commands::Args args);
  // False when the client is to wait.
  bool RunTransaction(Lane& lane, Client& client, const commands::Command& exec,
                      commands::Args args);
  bool WatchedKeysChanged(Lane& lane, Client& client);
  void ForgetWatches(Client& client);
  // Runs a command whose locks are held.
  void Call(Lane& lane, Client& client, const commands::Command& command, commands::Args args,
            std::span<const uint64_t> hashes) {
    if (limiter_.engaged()) [[unlikely]] {
      CallLimited(lane, client, command, args, hashes);
    } else {
      CallHandler(lane, client, command, args, hashes);
    }
  }
  void CallHandler(Lane& lane, Client& client, const commands::Command& command,
                   commands::Args args, std::span<const uint64_t> hashes);
  // Runs the handler of the command that `context` has begun, and ends it.
  void Handle(EngineContext& context, Client& client, const commands::Command& command);
  void LimitOutput(Client& client) const;
  void NoteTold(Lane& lane, Client& client, std::span<const uint64_t> keys, uint64_t wrote);
  void FinishReply(Client& client, size_t mark);
  void HoldForSave(Lane& lane, Client& client, size_t mark);
  void FeedMonitors(Lane& lane, Client& client, commands::Args args);
  void PostToMonitors(const std::shared_ptr<const Message>& line, uint64_t ticket);
  bool MayBeSlow(uint64_t nanos) const;
  void NoteSlow(Client& client, const commands::Command& command, commands::Args args,
                uint64_t nanos);
  void FreeGarbage(Lane& lane);
  static constexpr int64_t kUnlookedBytes = 2048;
  void LookAtMemory(Lane& lane);
  bool HasRoom(Lane& lane, commands::Args args);
  // REQUIRES: inside the gate, the stripe's lock.
  void DropIfEmpty(int db, size_t stripe);
  bool UpkeepStripe(Lane& lane, size_t stripe);
  enum class Evicted : uint8_t { kOne, kNotNow, kNothingLeft, kNoMemory };
  Evicted EvictOne(Lane& lane);
  Evicted EvictKey(Lane& lane, int db, size_t stripe, keyspace::Entry* entry);

  Settings* const settings_;
  const commands::CommandTable* const table_;
  const base::Clock* const clock_;
  keyspace::Keyspace keyspace_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Lane> house_lane_;
  journal::Snapshot snapshot_;
  std::atomic<bool> loading_{false};
  std::atomic<bool> refusing_{false};
  std::mutex refusal_mutex_;
  std::string refusal_;  // guarded by refusal_mutex_
  std::unique_ptr<PubSub> pubsub_;
  SlowLog slowlog_;
  LatencyMonitor latency_;
  ErrorStats errors_;
  journal::Journal journal_;
  // By the last bits of keys' hashes, so that each belongs to a stripe, and is guarded by its lock:
  // what clients have changed there has lower tickets. None: not wanted.
  std::unique_ptr<uint64_t[]> changes_;
  Limiter limiter_;
  Background background_{"sava-free"};
  FunctionLibraries libraries_;
  Host* host_ = nullptr;
  std::atomic<uint64_t> next_client_id_{1};
  std::atomic<uint64_t> next_waiter_{1};
  WaitLines waits_;
  std::atomic<int64_t> other_memory_{0};
  std::atomic<size_t> log_memory_{0};
  uint64_t memory_ceiling_ = UINT64_MAX;  // before there are clients
  std::atomic<int64_t> evicting_bytes_{0};
  std::atomic<int64_t> pause_until_{0};
  std::atomic<bool> pause_writes_only_{false};
  std::atomic<int> monitors_{0};
  std::atomic<bool> active_expire_{true};
  std::atomic<bool> skip_checksums_{false};
  std::atomic<bool> cron_paused_{false};
  std::atomic<bool> keeps_output_{false};
  const double nanos_per_tick_;
};

// The rows of the engine's own families.
std::span<const commands::CommandSpec> TransactionCommands();
std::span<const commands::CommandSpec> PubSubCommands();

}  // namespace sava::engine
