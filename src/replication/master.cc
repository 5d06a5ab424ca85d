#include "replication/master.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/if_memory.h"
#include "engine/clients.h"
#include "net/socket.h"
#include "replication/replica_feed.h"
#include "replication/wire.h"

namespace sava::replication {

using engine::Client;

namespace {

// Whether what it acknowledges counts.
bool Counts(const Replica& replica) { return replica.online() && !replica.signals.drop.load(); }

}  // namespace

Master::Master(engine::Engine* engine, persistence::Persistence* persistence)
    : engine_(*engine),
      persistence_(*persistence),
      stream_({.kept =
                   [this] {
                     const journal::Barrier* const barrier = persistence_.barrier();
                     return barrier == nullptr ? UINT64_MAX : barrier->kept();
                   },
               .moved = [this] { Moved(); },
               .attach = [this] { Attach(); },
               .drop = [this](std::string_view why) { DropAll(why); },
               .lost = [this] { lost_.store(true); }}) {
  SettingsChanged(engine_.settings());
}

Master::~Master() { StopStream(); }

void Master::StopStream() {
  engine_.pubsub().set_replicated(false);
  if (std::exchange(attached_, false)) engine_.journal().Detach(stream_);
}

void Master::BecomeMaster() {
  StopStream();
  stream_.Promote();
  if (!stream_.running()) return;
  Attach();
  engine_.pubsub().set_replicated(true);
  unused_since_ms_.store(engine_.clock().WallMillis());
}

void Master::GoOn() {
  Attach();
  unused_since_ms_.store(engine_.clock().WallMillis());
}

void Master::BecomeReplica() {
  StopStream();
  stream_.Demote();
}

void Master::SettingsChanged(const config::Settings& settings) {
  min_replicas_.store(settings.min_replicas_to_write);
  max_lag_.store(settings.min_replicas_max_lag);
  const auto hard = static_cast<int64_t>(settings.output_limit_replica.hard);
  most_waiting_.store(hard <= 0 ? INT64_MAX : std::max(hard, settings.repl_backlog_size));
  stream_.Keep(settings.repl_backlog_size);
  CountGood(engine_.clock().WallMillis());
}

// ---- replicas come and go ----

commands::Reader Master::ReaderOf(const engine::Announcement& announced) const {
  using commands::Reader;
  switch (engine_.settings().repl_native_types) {
    case config::NativeTypes::kSend:
      return announced.sava ? Reader::kSava : Reader::kStockWithModule;
    case config::NativeTypes::kOmit:
      return Reader::kStock;
    case config::NativeTypes::kAuto:
      break;
  }
  return announced.sava ? Reader::kSava : Reader::kStock;
}

std::shared_ptr<Replica> Master::Enlist(Client& client, bool psync) {
  auto replica = std::make_shared<Replica>();
  replica->client = client.id;
  replica->lane = client.lane;
  replica->identity.address = client.peer.addr.substr(0, client.peer.addr.rfind(':'));
  if (client.peer.announced != nullptr) replica->identity.announced = *client.peer.announced;
  replica->identity.ip = replica->identity.announced.ip.empty() ? replica->identity.address
                                                                : replica->identity.announced.ip;
  replica->identity.port = replica->identity.announced.port;
  replica->identity.psync = psync;
  replica->identity.reader = ReaderOf(replica->identity.announced);
  replica->since_ms = engine_.clock().WallMillis();
  replica->acks.at_ms.store(replica->since_ms);
  replica->wake = [this, lane = client.lane, id = client.id] {
    engine_.lanes()[lane]->mailbox.Post({engine::Mail::Kind::kWake, id, nullptr});
  };
  // Whether the copy is sent as it is made, or when its length is known.
  replica->identity.announced.eof =
      replica->identity.announced.eof &&
      (engine_.settings().repl_diskless_sync || replica->identity.announced.filtered);
  client.set(engine::kClientReplica);
  client.rate.exempt = true;
  if (engine_.settings().repl_disable_tcp_nodelay) net::SetNoDelay(client.peer.fd, false);
  unused_since_ms_.store(0);
  return replica;
}

bool Master::Resume(Client& client, std::string_view id, int64_t from) {
  auto mark = stream_.Resume(id, from);
  if (!mark) {
    if (id == "?") return false;
    const History history = stream_.history();
    const ChangeStream::Figures kept = stream_.figures();
    spdlog::info(
        "Partial resynchronization not accepted: {} asks for {}:{}, and this server has {}:{} to "
        "{}, and {} up to {}",
        client.peer.addr, id.substr(0, kIdDigits), from + 1, history.id, kept.first + 1,
        history.offset + 1, history.second_id, history.second_offset);
    const std::lock_guard lock(mutex_);
    ++figures_.partial_refused;
    return false;
  }
  auto replica = Enlist(client, true);
  replica->state.store(Replica::State::kOnline);
  replica->queued = false;
  replica->position.store(from);
  replica->acks.bytes.store(from);
  spdlog::info(
      "Partial resynchronization request from {} accepted. Sending {} bytes of backlog starting "
      "from offset {}.",
      replica->name(), mark->backlog->end() - from, from + 1);
  const std::string mark_id = mark->id;
  client.sending.feed = std::make_shared<ReplicaFeed>(this, replica, std::move(*mark));
  {
    const std::lock_guard lock(mutex_);
    ++figures_.partial_syncs;
    replicas_.push_back(replica);
  }
  // The history may have ended meanwhile, without this one among those that were dropped.
  if (stream_.history().id != mark_id) replica->signals.drop.store(true);
  Changed();
  return true;
}

void Master::SendCopy(Client& client, bool psync) {
  auto replica = Enlist(client, psync);
  spdlog::info("Replica {} asks for synchronization", replica->name());
  client.sending.feed = std::make_shared<ReplicaFeed>(this, replica);
  {
    const std::lock_guard lock(mutex_);
    ++figures_.full_syncs;
    replicas_.push_back(std::move(replica));
  }
  StartSyncs(engine_.clock().WallMillis());
}

void Master::Gone(Replica& replica) {
  {
    const std::lock_guard lock(mutex_);
    replica.signals.gone.store(true);
    AbandonCopy();
    std::erase_if(replicas_, [&](const auto& one) { return one.get() == &replica; });
    figures_.sent += replica.sent.load();
    if (replicas_.empty()) unused_since_ms_.store(engine_.clock().WallMillis());
  }
  stream_.Trim();
  Changed();
}

void Master::Changed() {
  CountGood(engine_.clock().WallMillis());
  AnswerWaiting();
}

void Master::DropAll(std::string_view why) {
  const std::lock_guard lock(mutex_);
  for (const auto& replica : replicas_) {
    if (!replica->signals.drop.exchange(true)) {
      spdlog::info("Disconnecting replica {}: {}", replica->name(), why);
      replica->wake();
    }
  }
}

void Master::Acknowledged(Client& client, int64_t bytes, int64_t on_disk) {
  if (client.sending.feed == nullptr) return;
  static_cast<ReplicaFeed&>(*client.sending.feed)
      .Acknowledged(bytes, on_disk, engine_.clock().WallMillis());
  if (waiting_count_.load(std::memory_order_acquire) > 0) AnswerWaiting();
}

std::vector<std::shared_ptr<Replica>> Master::replicas() const {
  const std::lock_guard lock(mutex_);
  return replicas_;
}

// ---- the stream ----

// More of it may be read: replicas that wait for it are woken, and those too far behind are
// dropped.
void Master::Moved() {
  {
    const int64_t end = stream_.offset();
    const int64_t most = most_waiting_.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    for (const auto& replica : replicas_) {
      if (end - replica->position.load(std::memory_order_relaxed) > most &&
          replica->state.load() != Replica::State::kWaits &&
          !replica->signals.late.exchange(true)) {
        replica->wake();
      }
      if (replica->signals.idle.load() && replica->signals.idle.exchange(false)) replica->wake();
    }
  }
  if (waiting_count_.load(std::memory_order_acquire) > 0) AnswerWaiting();
}

void Master::Kept() {
  stream_.Kept();
  if (waiting_count_.load(std::memory_order_acquire) > 0) AnswerWaiting();
}

void Master::RequestAcks() {
  stream_.WantAcks();
  engine_.journal().Nudge();
}

// ---- waiting for replicas ----

int64_t Master::CountWith(int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(replicas_, [bytes](const auto& replica) {
    return Counts(*replica) && replica->acks.bytes.load() >= bytes;
  });
}

int64_t Master::CountOnDisk(int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(replicas_, [bytes](const auto& replica) {
    return Counts(*replica) && replica->acks.disk_bytes.load() >= bytes;
  });
}

Master::Answer Master::Now(const Wanted& wanted, int64_t target) const {
  Answer answer;
  const storage::AofLog* const log = persistence_.active_log();
  answer.local = log != nullptr && log->durable() >= wanted.ticket;
  // Nothing was written, or all of it is in the stream: later bytes count, too.
  if (target < 0 && wanted.ticket <= 1) target = 0;
  if (target < 0 && stream_.merged() >= wanted.ticket) target = stream_.data_end();
  if (target >= 0 && !lost_.load()) {
    answer.replicas = wanted.on_disk ? CountOnDisk(target) : CountWith(target);
  }
  answer.enough = answer.replicas >= wanted.replicas && (!wanted.local || answer.local);
  return answer;
}

void Master::WriteAnswer(protocol::Reply& reply, const Wanted& wanted, const Answer& answer) {
  if (!wanted.on_disk) return reply.Int(answer.replicas);
  reply.Array(2);
  reply.Int(answer.local ? 1 : 0);
  reply.Int(answer.replicas);
}

void Master::Await(const Client& client, const Wanted& wanted,
                   std::shared_ptr<std::atomic<int64_t>> target) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(
        {client.lane, client.id, client.wait.token, client.resp, wanted, std::move(target)});
    waiting_count_.store(waiting_.size(), std::memory_order_release);
  }
  if (wanted.local && persistence_.log() != nullptr) persistence_.log()->RequestSync();
  RequestAcks();
}

// Answers the clients that have enough replicas. The others stay, unless they have given up.
void Master::AnswerWaiting() {
  if (lost_.load()) return;  // what replicas have acknowledged is not all
  const std::lock_guard lock(mutex_);
  const uint64_t merged = stream_.merged();
  const int64_t offset = stream_.data_end();
  const storage::AofLog* const log = persistence_.active_log();
  const uint64_t durable = log == nullptr ? 0 : log->durable();
  std::erase_if(waiting_, [&](Waiting& one) {
    // Its client holds the other one as long as it waits.
    if (one.target.use_count() == 1) return true;
    int64_t target = one.target->load();
    if (target < 0 && merged >= one.wanted.ticket) one.target->store(target = offset);
    if (target < 0 && one.wanted.replicas > 0) return false;
    Answer answer;
    answer.local = log != nullptr && durable >= one.wanted.ticket;
    if (one.wanted.local && !answer.local) return false;
    answer.replicas = std::ranges::count_if(replicas_, [&](const auto& replica) {
      const auto& acked = one.wanted.on_disk ? replica->acks.disk_bytes : replica->acks.bytes;
      return Counts(*replica) && acked.load() >= target;
    });
    if (answer.replicas < one.wanted.replicas) return false;
    return base::IfMemory([&] {  // else the next time
      auto message = std::make_shared<engine::Message>();
      protocol::OutBuffer out;
      protocol::Reply reply(&out, one.resp);
      WriteAnswer(reply, one.wanted, answer);
      message->resp2 = std::string(out.Since(0));
      engine_.lanes()[one.lane]->mailbox.Post(
          {engine::Mail::Kind::kReply, one.client, std::move(message), one.token});
    });
  });
  waiting_count_.store(waiting_.size(), std::memory_order_release);
}

// The log they wait for was switched off.
void Master::RefuseLocalWaiting() {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Waiting& one) {
    if (!one.wanted.local) return false;
    auto message = std::make_shared<engine::Message>();
    message->resp2 = fmt::format("-{}\r\n", kNoLocalLog);
    engine_.lanes()[one.lane]->mailbox.Post(
        {engine::Mail::Kind::kReply, one.client, std::move(message), one.token});
    return true;
  });
  waiting_count_.store(waiting_.size(), std::memory_order_release);
}

void Master::CountGood(int64_t now_ms) {
  const int64_t wanted = min_replicas_.load();
  const int64_t lag = max_lag_.load();
  int64_t good = 0;
  {
    const std::lock_guard lock(mutex_);
    good = std::ranges::count_if(replicas_, [&](const auto& replica) {
      return replica->online() && (now_ms - replica->acks.at_ms.load()) / 1000 <= lag;
    });
  }
  good_.store(good);
  engine_.admission().set_lacks_replicas(wanted > 0 && lag > 0 && good < wanted &&
                                         !following_->is_replica());
}

bool Master::AwaitReplicas(int64_t millis, const std::function<bool()>& hurried) {
  if (!stream_.running()) return true;
  int64_t end = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(millis);
  size_t behind = 0;
  size_t all = 0;
  bool told = false;
  while (true) {
    engine_.journal().Flush();
    end = stream_.data_end();
    auto now = replicas();
    // Tools that take a stream and never acknowledge are not waited for.
    std::erase_if(now, [](const auto& one) {
      return !one->identity.psync || one->identity.announced.rdb_only;
    });
    all = now.size();
    behind = static_cast<size_t>(std::ranges::count_if(
        now, [end](const auto& one) { return one->acks.bytes.load() < end; }));
    if (behind == 0 || std::chrono::steady_clock::now() >= until || hurried()) break;
    if (!std::exchange(told, true)) {
      spdlog::info("Waiting for replicas before shutting down.");
      RequestAcks();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const auto& one : replicas()) {
    const int64_t lag = end - one->acks.bytes.load();
    if (lag > 0 && one->identity.psync) {
      spdlog::info("Lagging replica {} reported offset {} behind master, lag={}, state={}.",
                   one->name(), lag, (engine_.clock().WallMillis() - one->acks.at_ms.load()) / 1000,
                   one->online() ? "online" : "send_bulk");
    }
  }
  if (all > 0) {
    spdlog::info("{} of {} replicas are in sync when shutting down.", all - behind, all);
  }
  return behind == 0;
}

// ---- now and then ----

void Master::NoteLost() {
  if (stream_.running() && !stream_.raw()) lost_.store(true);
}

void Master::RenewIfLost() {
  if (!lost_.exchange(false)) return;
  const bool renewed = base::IfMemory([this] {
    stream_.Renew();
    DropAll("there was no memory for a part of what it would have to be told");
  });
  if (!renewed) lost_.store(true);
}

void Master::Tick() {
  const int64_t now_ms = engine_.clock().WallMillis();
  RenewIfLost();
  StartSyncs(now_ms);
  failover_.Tick(now_ms);
  if (waiting_count_.load(std::memory_order_acquire) > 0) {
    if (!engine_.settings().appendonly) RefuseLocalWaiting();
    AnswerWaiting();
    if (persistence_.log() != nullptr) persistence_.log()->RequestSync();
    engine_.journal().Nudge();
  }
  // A slow replica that was dropped may have kept much.
  for (int i = 0; i < 10; ++i) stream_.Trim();
  const config::Settings& settings = engine_.settings();
  // The period may become shorter meanwhile.
  if (stream_.running() && !stream_.raw() &&
      now_ms - last_ping_ms_ >= settings.repl_ping_replica_period * 1000) {
    const bool due = last_ping_ms_ != 0 && !engine_.admission().Paused(true, now_ms);
    last_ping_ms_ = now_ms;
    if (due && !replicas().empty()) {
      stream_.WantPing();
      engine_.journal().Nudge();
    }
  }
  if (now_ms < next_second_ms_) return;
  next_second_ms_ = now_ms + 1000;
  CountGood(now_ms);
  EndIfUnused(now_ms);
}

// A backlog that no replica has used for long is given up, and with it the history: changes will
// not be counted.
void Master::EndIfUnused(int64_t now_ms) {
  const int64_t ttl = engine_.settings().repl_backlog_ttl * 1000;
  const int64_t since = unused_since_ms_.load();
  if (ttl == 0 || since == 0 || now_ms - since < ttl || !stream_.running() ||
      following_->is_replica()) {
    return;
  }
  unused_since_ms_.store(0);
  persistence_.PostAlone([this] {
    if (!replicas().empty() || following_->is_replica()) return;
    spdlog::info("Replication backlog freed after {} seconds without connected replicas.",
                 engine_.settings().repl_backlog_ttl);
    StopStream();
    stream_.End();
  });
}

engine::ReplicationFigures Master::SharedFigures() const {
  const ChangeStream::Figures stream = stream_.figures();
  engine::ReplicationFigures shared;
  const std::lock_guard lock(mutex_);
  shared.full_syncs = figures_.full_syncs;
  shared.partial_syncs = figures_.partial_syncs;
  shared.partial_refused = figures_.partial_refused;
  shared.output_bytes = figures_.sent;
  for (const auto& replica : replicas_) shared.output_bytes += replica->sent.load();
  shared.buffer_bytes = stream.memory;
  // Nothing waits for those that are gone, also where the memory is not free yet.
  const bool any =
      std::ranges::any_of(replicas_, [](const auto& one) { return !one->signals.drop.load(); });
  shared.backlog_bytes =
      any ? std::min(stream.memory, engine_.settings().repl_backlog_size) : stream.memory;
  shared.transfer_bytes = static_cast<int64_t>(TransferMemory());
  return shared;
}

uint64_t Master::UncountedBytes() const {
  const ChangeStream::Figures stream = stream_.figures();
  const int64_t counted = std::min(stream.memory, engine_.settings().repl_backlog_size);
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(stream.memory - counted) + TransferMemory();
}

void Master::ResetFigures() {
  const std::lock_guard lock(mutex_);
  figures_.full_syncs = figures_.partial_syncs = figures_.partial_refused = figures_.sent = 0;
  for (const auto& replica : replicas_) replica->sent.store(0, std::memory_order_relaxed);
}

Master::Figures Master::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

}  // namespace sava::replication
