// Engine: a command's way from parsed bytes to reply: look up, admit, lock, run, journal, reply. It
// holds the parts that do this, and the objects they share.
//
// Threads: each event-loop thread has a Lane and runs batches on it. Within a batch keys are hashed
// and prefetched first, then commands run one after another, each under the locks of the stripes of
// its keys (consecutive commands on one stripe share one acquisition), or alone with the gate
// closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "access/acl_log.h"
#include "access/users.h"
#include "base/clock.h"
#include "commands/parts.h"
#include "commands/registry.h"
#include "config/settings.h"
#include "engine/admission.h"
#include "engine/background.h"
#include "engine/changes.h"
#include "engine/charging.h"
#include "engine/client.h"
#include "engine/function_libraries.h"
#include "engine/lane.h"
#include "engine/limiter.h"
#include "engine/memory.h"
#include "engine/observer.h"
#include "engine/pubsub.h"
#include "engine/role.h"
#include "engine/runner.h"
#include "engine/scripting.h"
#include "engine/tracking.h"
#include "engine/transactions.h"
#include "engine/upkeep.h"
#include "engine/waiting.h"
#include "journal/journal.h"
#include "keyspace/keyspace.h"
#include "snapshot/snapshot.h"

namespace sava::engine {

// The composition root implements this, for its own commands.
class Host {
 public:
  virtual ~Host() = default;
  // FLUSHALL was run by a client; it will count as that many changes. With the gate closed. True
  // when the client must be answered by AnswerWhenSaved.
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

  // What handlers may ask for.
  commands::Parts& parts() { return parts_; }

 private:
  commands::Parts parts_;
};

// What DEBUG turns on and off.
struct Switches {
  std::atomic<bool> active_expire{true};
  std::atomic<bool> skip_checksums{false};
  // PAUSE-CRON: what loops do now and then is left undone.
  std::atomic<bool> cron_paused{false};
  // SET-DISABLE-DENY-SCRIPTS: scripts may call what they may not otherwise.
  std::atomic<bool> any_in_scripts{false};
  // REPLYBUFFER RESIZING 0: empty output buffers keep their memory.
  std::atomic<bool> keeps_output{false};
};

class Engine {
 public:
  struct Options {
    size_t lanes = 1;
    uint64_t hash_seed = 0;  // 0: random
    const base::Clock* clock = &base::Clock::System();
  };

  Engine(const Options& options, config::Settings* settings, const commands::CommandTable* table);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- running commands ----

  // Looks up commands and hashes keys; prefetches the memory they will touch.
  // REQUIRES: on the lane's thread, inside BeginBatch/EndBatch.
  void Prepare(Lane& lane, std::span<Request> batch) { runner_.Prepare(lane, batch); }
  // Runs them in order. A client that has to wait gets kRefused for this and its later commands.
  void RunBatch(Lane& lane, std::span<Request> batch) { runner_.RunBatch(lane, batch); }
  // One command with its own batch: for HTTP, replay, tests. False when the client has to wait or
  // goes away: the command did not run.
  bool Execute(Lane& lane, Client& client, commands::Args args);

  // A round of the loop is spent inside the gate, so that a thread that closes it may look at the
  // clients of all lanes. Batches within a round step outside for a moment when one wants to close.
  void BeginRound(Lane& lane);
  void EndRound(Lane& lane);
  void BeginBatch(Lane& lane);
  // Releases locks and the gate, then frees displaced values.
  void EndBatch(Lane& lane);
  // Runs `work` alone: no other thread is inside the gate. From a handler or from outside a batch.
  template <typename Work>
  void Exclusively(Lane& lane, const Work& work) {
    const GateGuard guard(lane.locks);
    work();
  }

  // Delivers mail; true when a kWake for the whole lane was among it.
  bool ReceiveMail(Lane& lane);
  // Resumes clients whose waiting time is over, and parked ones.
  void ResumeWaiting(Lane& lane);
  // Whether there is something for it to do.
  bool NeedsResume(const Lane& lane) const { return lane.waits.NeedsResume(clock_->WallMillis()); }
  // When a waiting client may go on (Unix ms; 0: at once, INT64_MAX: not by time).
  int64_t NextResume(const Lane& lane) const {
    return lane.waits.NextResume(lane.now_ms, admission_.pause_until());
  }
  // Expiry and compaction, a little each time; true when there is more to do soon.
  bool Upkeep(Lane& lane) { return upkeep_.Run(lane); }

  // ---- clients ----
  uint64_t NewClientId() { return next_client_id_.fetch_add(1, std::memory_order_relaxed); }
  void AddClient(Lane& lane, Client& client);
  // Forgets watches, subscriptions, queued commands. REQUIRES: on its lane's thread, outside a
  // batch.
  void RemoveClient(Lane& lane, Client& client);
  void ResetClient(Lane& lane, Client& client);

  // ---- lanes ----
  std::vector<std::unique_ptr<Lane>>& lanes() { return lanes_; }
  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }
  // The lane of the thread that saves and loads. It has no clients of the network.
  Lane& house_lane() { return *house_lane_; }
  // The lane of the thread that applies what this server's master sends.
  Lane& apply_lane() { return *apply_lane_; }
  // That of a client: of an event loop, or the applying one.
  Lane& LaneOf(const Client& client) {
    return client.lane < lanes_.size() ? *lanes_[client.lane] : *apply_lane_;
  }
  // The lanes on which clients' commands run.
  template <typename Visit>
  void ForEachLane(const Visit& visit) const {
    for (const auto& lane : lanes_) visit(*lane);
    visit(*apply_lane_);
  }
  // The gate's lanes of threads that help it load: kHelperLanes from this one on.
  static constexpr size_t kHelperLanes = 8;
  size_t first_helper_lane() const { return lanes_.size() + 2; }
  // Number of changes since start.
  uint64_t Dirty() const { return Total(&LaneStats::keys, &KeyStats::dirty); }
  // The sum of what all lanes have counted.
  uint64_t Total(Counter LaneStats::*counter) const {
    return Sum([=](const LaneStats& stats) { return (stats.*counter).get(); });
  }
  template <typename Group>
  uint64_t Total(Group LaneStats::*group, Counter Group::*counter) const {
    return Sum([=](const LaneStats& stats) { return (stats.*group.*counter).get(); });
  }

  // ---- parts ----
  Runner& runner() { return runner_; }
  Admission& admission() { return admission_; }
  Transactions& transactions() { return transactions_; }
  Waiting& waiting() { return waiting_; }
  Charging& charging() { return charging_; }
  Memory& memory() { return memory_; }
  Changes& changes() { return changes_; }
  Observer& observer() { return observer_; }
  Tracking& tracking() { return tracking_; }
  Switches& switches() { return switches_; }
  Role& role() { return role_; }
  const Role& role() const { return role_; }
  keyspace::Keyspace& keyspace() { return keyspace_; }
  snapshot::Snapshot& snapshot() { return snapshot_; }
  journal::Journal& journal() { return journal_; }
  PubSub& pubsub() { return *pubsub_; }
  Limiter& limiter() { return limiter_; }
  access::Users& users() { return users_; }
  const access::Users& users() const { return users_; }
  access::AclLog& acl_log() { return acl_log_; }
  Background& background() { return background_; }
  FunctionLibraries& libraries() { return libraries_; }
  config::Settings& settings() { return *settings_; }
  const commands::CommandTable& table() const { return *table_; }
  const base::Clock& clock() const { return *clock_; }
  Host* host() const { return host_; }
  void set_host(Host* host) { host_ = host; }
  // Runs scripts; nullptr: there are none.
  Scripting* scripting() const { return scripting_; }
  void set_scripting(Scripting* scripting) { scripting_ = scripting; }

 private:
  template <typename Get>
  uint64_t Sum(const Get& get) const {
    uint64_t total = 0;
    ForEachLane([&](const Lane& lane) { total += get(lane.stats); });
    return total;
  }

  void Deliver(Lane& lane, Client& client, const Mail& mail);

  config::Settings* const settings_;
  const commands::CommandTable* const table_;
  const base::Clock* const clock_;
  keyspace::Keyspace keyspace_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Lane> house_lane_;
  std::unique_ptr<Lane> apply_lane_;
  snapshot::Snapshot snapshot_;
  std::unique_ptr<PubSub> pubsub_;
  journal::Journal journal_;
  Limiter limiter_;
  access::Users users_;
  access::AclLog acl_log_;
  Background background_{"sava-free"};
  FunctionLibraries libraries_;
  Host* host_ = nullptr;
  Scripting* scripting_ = nullptr;
  Switches switches_;
  Role role_;
  Admission admission_{this};
  Transactions transactions_{this};
  Waiting waiting_{this};
  Charging charging_{this};
  Memory memory_{this};
  Changes changes_{this};
  Observer observer_{this};
  Tracking tracking_{this};
  StripeUpkeep upkeep_{this};
  Runner runner_{this};
  std::atomic<uint64_t> next_client_id_{1};
};

// The rows of the engine's own families.
std::span<const commands::CommandSpec> TransactionCommands();
std::span<const commands::CommandSpec> PubSubCommands();

}  // namespace sava::engine
