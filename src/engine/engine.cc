#include "engine/engine.h"

#include "base/rng.h"
#include "engine/access_check.h"
#include "engine/aging.h"

namespace sava::engine {

Lane::Lane(Engine* engine_in, size_t lane_index, size_t command_count)
    : engine(engine_in),
      index(lane_index),
      locks(&engine_in->keyspace(), &engine_in->journal(), lane_index),
      stats(command_count),
      rng(base::SecureRandom64()) {
  memory.candidates.reserve(LaneMemory::kCandidates + 1);  // eviction is not to take memory
}

Lane::~Lane() = default;

Engine::Engine(const Options& options, config::Settings* settings,
               const commands::CommandTable* table)
    : settings_(settings),
      table_(table),
      clock_(options.clock),
      keyspace_(options.lanes + 2 + kHelperLanes, static_cast<int>(settings->databases),
                options.hash_seed != 0 ? options.hash_seed : base::SecureRandom64()),
      snapshot_(&keyspace_, options.lanes),
      journal_(options.lanes + 2),
      limiter_(table),
      users_(table, settings) {
  users_.AddListener([this](uint64_t session) { FollowUsers(*this, session); });
  std::vector<Mailbox*> mailboxes;
  for (size_t i = 0; i < options.lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(this, i, table->by_id().size()));
    mailboxes.push_back(&lanes_.back()->mailbox);
  }
  house_lane_ = std::make_unique<Lane>(this, options.lanes, table->by_id().size());
  apply_lane_ = std::make_unique<Lane>(this, options.lanes + 1, table->by_id().size());
  pubsub_ = std::make_unique<PubSub>(std::move(mailboxes));
  keyspace_.MakeTables(0, clock_->WallMillis());
}

Engine::~Engine() {
  for (auto& lane : lanes_) memory_.FreeGarbage(*lane);
  memory_.FreeGarbage(*house_lane_);
  memory_.FreeGarbage(*apply_lane_);
  background_.Drain();
}

// ---- rounds and batches ----

void Engine::BeginRound(Lane& lane) {
  lane.locks.BeginRound();
  lane.round = base::Budget();
}

void Engine::EndRound(Lane& lane) {
  lane.locks.EndRound();
  memory_.FreeGarbage(lane);
}

void Engine::BeginBatch(Lane& lane) {
  lane.locks.BeginBatch();
  lane.now_ms = clock_->WallMillis();
  lane.batch.lru_clock = LruClock(lane.now_ms);
  lane.locks.timer().Restart();
  if (!lane.batch.unwatch.empty()) [[unlikely]]
    transactions_.UnwatchDue(lane);
  charging_.WriteDue(lane);
  memory_.LookAt(lane);
  lane.batch.journal_full =
      (journal_.enabled() && journal_.Full(lane.index)) || snapshot_.congested(lane.now_ms);
}

void Engine::EndBatch(Lane& lane) {
  waiting_.RunRetries(lane);
  if (!lane.stale.empty()) [[unlikely]]
    tracking_.Post(lane);
  lane.locks.EndBatch();
  memory_.FreeGarbage(lane);
}

bool Engine::Execute(Lane& lane, Client& client, commands::Args args) {
  Request request;
  request.client = &client;
  request.args = args;
  BeginBatch(lane);
  Prepare(lane, {&request, 1});
  RunBatch(lane, {&request, 1});
  EndBatch(lane);
  return request.outcome == Request::Outcome::kDone;
}

void Engine::ResumeWaiting(Lane& lane) {
  waiting_.RingAlarms(lane);
  lane.waits.Resume(clock_->WallMillis(), admission_.pause_until());
}

// ---- clients ----

void Engine::AddClient(Lane& lane, Client& client) {
  client.lane = lane.index;
  lane.waits.Expect(lane.clients.size() + 1);
  lane.clients.emplace(client.id, &client);
}

void Engine::RemoveClient(Lane& lane, Client& client) {
  transactions_.Unwatch(lane, client);
  waiting_.Forget(lane, client);
  pubsub_->UnsubscribeAll(client);
  tracking_.Disable(client);
  if (client.has(kClientMonitor)) observer_.monitors().fetch_sub(1, std::memory_order_relaxed);
  lane.clients.erase(client.id);
  std::erase(lane.to_flush, &client);
  std::erase(lane.batch.unwatch, &client);
  lane.waits.Forget(client);
}

void Engine::ResetClient(Lane& lane, Client& client) {
  transactions_.Discard(lane, client);
  pubsub_->UnsubscribeAll(client);
  tracking_.Disable(client);
  if (client.has(kClientMonitor)) observer_.monitors().fetch_sub(1, std::memory_order_relaxed);
  client.set(kClientMonitor | kClientReplyOff | kClientReplySkip | kClientReplySkipNext |
                 kClientNoTouch | kClientNoEvict,
             false);
  client.db = 0;
  client.resp = 2;
  client.name.clear();
}

}  // namespace sava::engine
