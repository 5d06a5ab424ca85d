#include "front/event_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <latch>
#include <utility>

#include "base/alternate_stack.h"
#include "engine/access_check.h"
#include "front/loops.h"
#include "net/tls_transport.h"

namespace sava::front {

using engine::Client;

namespace {

// How long a handshake may take.
constexpr int64_t kHandshakeMs = 10000;

void NoteFailedHandshake(const Connection& connection, const net::Transfer& read) {
  if (read.outcome == net::Transfer::Outcome::kAgain) return;
  spdlog::warn("Error accepting a client connection: {} (addr={} laddr={})",
               connection.transport->failure(), connection.client.peer.addr,
               connection.client.peer.laddr);
}

}  // namespace

EventLoop::EventLoop(Loops* loops, engine::Lane* lane)
    : loops_(*loops),
      host_(loops->host()),
      limits_(loops->limits()),
      engine_(loops->engine()),
      lane_(*lane),
      loop_(this),
      resp_(this),
      http_(this) {
  lane_.mailbox.set_wake([this] { loop_.Wake(); });
  engine_.keyspace().gate().set_serve(lane_.index, [this](int wait_ms) { ServeBusy(wait_ms); });
}

EventLoop::~EventLoop() {
  engine_.keyspace().gate().set_serve(lane_.index, nullptr);
  while (!owned_.empty()) Close(*owned_.begin()->second);
}

void EventLoop::Start() {
  std::latch begun(1);
  thread_ = std::thread([this, &begun] {
    const base::AlternateStack stack;
    pthread_setname_np(pthread_self(), fmt::format("sava-{}", lane_.index).c_str());
    host_.PrepareThread();
    begun.count_down();
    Serve();
  });
  begun.wait();
}

void EventLoop::Stop() { loop_.Stop(); }

void EventLoop::WakeIfHolding() {
  if (held_.Tell()) loop_.Wake();
}

void EventLoop::Join() {
  if (thread_.joinable()) thread_.join();
}

// ---- connections ----

void EventLoop::Adopt(Arrival arrival) {
  connections_.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(incoming_mutex_);
    incoming_.push_back(std::move(arrival));
  }
  loop_.Wake();
}

void EventLoop::Connect(Outgoing outgoing) {
  {
    std::lock_guard lock(incoming_mutex_);
    to_open_.push_back(std::move(outgoing));
  }
  loop_.Wake();
}

void EventLoop::Open(Arrival arrival) {
  net::Accepted& accepted = arrival.socket;
  std::unique_ptr<Connection> connection = arrival.make    ? arrival.make(*this)
                                           : accepted.http ? http_.NewConnection()
                                                           : resp_.NewConnection();
  connection->transport = std::move(arrival.transport);
  Client& client = connection->client;
  client.id = accepted.id;
  client.peer.fd = accepted.fd;
  client.peer.addr = std::move(accepted.peer);
  client.peer.laddr = std::move(accepted.self);
  client.set(engine::kClientUnixSocket, accepted.unix_socket);
  client.set(engine::kClientLocal, accepted.local);
  client.activity.created_ms = client.activity.last_active_ms = engine_.clock().WallMillis();
  // Over HTTP each request brings the password.
  engine::BecomeDefaultUser(engine_, client);
  if (accepted.http) client.authenticated = true;
  engine_.AddClient(lane_, client);
  connection->asked = connection->transport->Interest(EPOLLIN);
  loop_.Add(accepted.fd, connection->asked, connection.get());
  Connection& opened = *connection;
  owned_.emplace(&client, std::move(connection));
  opened.Opened();
}

// Forgetting its watches and waiters takes locks.
bool EventLoop::CannotClose(const Connection& connection) const {
  const Client& client = connection.client;
  return serving_busy_ && (connection.in_work || !client.transaction.watched.empty() ||
                           client.wait.waiter != nullptr || client.tracking != nullptr);
}

void EventLoop::Close(Connection& connection) {
  if (connection.closed) return;
  if (CannotClose(connection)) [[unlikely]] {
    to_close_.push_back(&connection);
    connection.asked = 0;
    loop_.Change(connection.client.peer.fd, 0, &connection);
    connection.client.set(engine::kClientCloseNow);
    // Nothing may be taken for it meanwhile; it leaves the lines of its keys later.
    if (connection.client.wait.waiter != nullptr) connection.client.wait.waiter->Claim();
    return;
  }
  connection.closed = true;
  CountBuffers(connection);
  connection.Closing();
  if (connection.client.sending.feed != nullptr) connection.client.sending.feed->Closing();
  held_.Remove(connection.hold);
  if (connection.goes_on) std::erase(going_on_, &connection);
  if (connection.shaking) std::erase(shaking_, &connection);
  Client& client = connection.client;
  engine_.RemoveClient(lane_, client);
  loop_.Remove(client.peer.fd);
  connection.transport->Close();
  client.peer.fd = -1;
  connections_.fetch_sub(1, std::memory_order_relaxed);
  const auto it = owned_.find(&client);
  graveyard_.push_back(std::move(it->second));
  owned_.erase(it);
}

// ---- receiving ----

net::Transfer EventLoop::Receive(Connection& connection, char* target, size_t room) {
  Client& client = connection.client;
  const bool opening = connection.transport->Opening();
  if (opening && WaitsForTurn(connection)) return {};
  const net::Transfer read = connection.transport->Read(target, room);
  lane_.stats.net.reads.Add();
  if (opening && connection.transport->Opening() && !read.done())
    NoteFailedHandshake(connection, read);
  if (read.done()) {
    lane_.stats.net.input.Add(read.bytes);
    client.activity.net_input += read.bytes;
    client.activity.last_active_ms = lane_.now_ms;
    if (connection.transport->Pending()) [[unlikely]]
      GoOnLater(connection);
  } else if (read.outcome == net::Transfer::Outcome::kAgain) {
    Ask(connection);
  }
  return read;
}

// A step of a handshake may take as long as a thousand commands. So connections that shake hands
// wait in a line, from which each round takes one, and more only while it has time left; until then
// epoll is not asked about them.
bool EventLoop::WaitsForTurn(Connection& connection) {
  if (has_turn_ == &connection) return false;
  if (!connection.shaking) {
    connection.shaking = true;
    shaking_.push_back(&connection);
    connection.asked = 0;
    loop_.Change(connection.client.peer.fd, 0, &connection);
  }
  return true;
}

void EventLoop::Shake() {
  for (size_t left = shaking_.size(); left > 0 && !shaking_.empty(); --left) {
    Connection& connection = *shaking_.front();
    shaking_.pop_front();
    connection.shaking = false;
    has_turn_ = &connection;
    connection.GoOn();
    has_turn_ = nullptr;
    if (!connection.closed) Ask(connection);
    if (Enough()) return;
  }
}

void EventLoop::GoOnLater(Connection& connection) {
  if (std::exchange(connection.goes_on, true)) return;
  going_on_.push_back(&connection);
}

// Each gets one turn while the round has time, the first one always. The others come
// first in the next round.
void EventLoop::GoOn() {
  const std::vector<Connection*> now = std::exchange(going_on_, {});
  std::vector<Connection*> later;
  bool any = false;
  for (Connection* connection : now) {
    if (connection->closed) continue;
    if (any && Enough()) {
      later.push_back(connection);
      continue;
    }
    any = true;
    connection->goes_on = false;
    connection->GoOn();
    if (!connection->closed && connection->wants_read && connection->transport->Pending()) {
      GoOnLater(*connection);
    }
  }
  std::erase_if(later, [](const Connection* connection) { return connection->closed; });
  going_on_.insert(going_on_.begin(), later.begin(), later.end());
}

// ---- rounds ----

void EventLoop::DeliverMail() {
  engine_.ReceiveMail(lane_);
  while (!lane_.to_flush.empty()) {
    std::vector<Client*> clients = std::exchange(lane_.to_flush, {});
    for (Client* client : clients) {
      const auto it = owned_.find(client);
      if (it == owned_.end()) continue;
      client->set(engine::kClientFlushQueued, false);
      Flush(*it->second);
    }
  }
}

// Clients that may go on: their kept input is parsed again.
void EventLoop::Resume() {
  engine_.ResumeWaiting(lane_);
  bool any = false;
  std::vector<Client*> later;  // the first in the next round
  for (Client* client : lane_.waits.TakeResumed()) {
    const auto it = owned_.find(client);
    if (it == owned_.end()) continue;
    if (!std::exchange(any, true) || !lane_.round.spent()) {
      it->second->Resume();
    } else if (!client->waiting()) {
      later.push_back(client);
    }
  }
  lane_.waits.YieldFirst(later);
  resp_.FinishRound();
}

void EventLoop::CheckIdle() {
  http_.CheckTimes(lane_.now_ms);
  std::vector<Connection*> idle;
  std::vector<Connection*> over;
  for (auto& [client, connection] : owned_) {
    const int64_t limit = connection->MaxIdle();
    if (client->sending.feed != nullptr) {
      if (!client->has(engine::kClientFlushQueued)) TickFeed(*connection, &idle);
    } else if (connection->transport->Opening()) {
      if (lane_.now_ms - client->activity.created_ms > kHandshakeMs)
        idle.push_back(connection.get());
    } else if (limit > 0 && lane_.now_ms - client->activity.last_active_ms > limit * 1000) {
      idle.push_back(connection.get());
    } else if (client->memory.soft_limit_since_ms != 0 && OverOutputLimit(*connection)) {
      over.push_back(connection.get());
    }
  }
  for (Connection* connection : idle) Close(*connection);
  for (Connection* connection : over) CloseOver(*connection);
  if (!held_.empty()) CloseOwed();
}

void EventLoop::NoteBuffers() {
  const int64_t second = lane_.now_ms / 1000;
  for (const auto& [client, connection] : owned_) {
    ChargeMemory(*connection);
    lane_.memory.recent_input.Note(second, client->memory.query_bytes);
    lane_.memory.recent_output.Note(second, client->out.pending());
  }
}

void EventLoop::Drain() {
  drain_wanted_.store(true, std::memory_order_release);
  loop_.Wake();
}

void EventLoop::EndDrain() {
  drain_wanted_.store(false, std::memory_order_release);
  loop_.Wake();
}

// One more round reads the requests of clients that could not know yet; then idle connections
// are closed.
void EventLoop::CheckDrain() {
  if (!draining_) {
    draining_ = true;
    http_.BeginDrain();
    loop_.Wake();
  } else if (http_.Drain() == 0) {
    drained_.store(true, std::memory_order_release);
  }
}

// ---- rounds of the loop's thread ----

void EventLoop::Serve() {
  while (!loop_.stopping()) {
    loop_.Turn(WaitMillis());
    WriteLog();
    MeasureRound();
  }
}

int EventLoop::WaitMillis() const {
  if (writes_log_ || !going_on_.empty() || !shaking_.empty()) return 0;
  const int64_t next = std::min(next_upkeep_ms_, next_resume_ms_);
  return static_cast<int>(std::clamp<int64_t>(next - now_ms_, 0, 100));
}

void EventLoop::BeforeRound() {
  round_start_ = base::Ticks();
  engine_.BeginRound(lane_);
  if (held_.empty()) return;
  held_.EndWait();
  LetGo();
  lane_.round = base::Budget();  // clients get the whole time of a round
}

// A millisecond of work is a round: mail, timers and new connections get their turn.
bool EventLoop::Enough() { return lane_.round.spent(); }

void EventLoop::TakeArrivals() {
  std::vector<Arrival> arrived;
  std::vector<Outgoing> to_open;
  {
    std::lock_guard lock(incoming_mutex_);
    arrived.swap(incoming_);
    to_open.swap(to_open_);
  }
  for (Arrival& arrival : arrived) Open(std::move(arrival));
  for (Outgoing& outgoing : to_open) {
    const int64_t deadline = engine_.clock().MonotonicMicros() / 1000 + outgoing.timeout_ms;
    opening_.push_back(
        {std::make_unique<net::Connect>(&loop_, outgoing.to, deadline), std::move(outgoing)});
  }
}

// Connections that this loop opens: those that are open now, and those that failed.
void EventLoop::CheckOutgoing() {
  const int64_t now = engine_.clock().MonotonicMicros() / 1000;
  const auto first =
      std::stable_partition(opening_.begin(), opening_.end(),
                            [now](const Opening& one) { return !one.connect->settled(now); });
  std::vector<Opening> settled(std::make_move_iterator(first),
                               std::make_move_iterator(opening_.end()));
  opening_.erase(first, opening_.end());
  for (Opening& one : settled) {
    base::Result<net::Accepted> socket = one.connect->Take();
    if (!socket) {
      one.outgoing.failed(socket.error());
      continue;
    }
    socket->id = engine_.NewClientId();
    connections_.fetch_add(1, std::memory_order_relaxed);
    std::unique_ptr<net::Transport> transport;
    if (const auto& tls = one.outgoing.tls; tls != nullptr) {
      transport = std::make_unique<net::TlsTransport>(socket->fd, *tls, net::PeerCheck::kRequired);
    } else {
      transport = std::make_unique<net::SocketTransport>(socket->fd);
    }
    Open({std::move(*socket), std::move(transport), std::move(one.outgoing.make)});
  }
}

void EventLoop::ServeBusy(int wait_ms) {
  if (serving_busy_) return;
  const bool others = resp_.OthersInBatch();
  if (!others && !loop_.Ready(wait_ms)) return;
  const keyspace::BusyPass pass(engine_.keyspace().gate());
  if (!pass) return;
  serving_busy_ = true;
  const int64_t now_ms = std::exchange(lane_.now_ms, engine_.clock().WallMillis());
  const base::Budget round = std::exchange(lane_.round, base::Budget());
  engine::EffectGroup under_way = lane_.batch.effects.SetAside();
  {
    const std::vector<RespConnection*> left =
        others ? resp_.LeaveBatch() : std::vector<RespConnection*>();
    const RespService::Aside aside(&resp_);
    TakeArrivals();
    for (RespConnection* const connection : left) {
      if (!connection->closed && !connection->input.empty()) connection->Resume();
    }
    const uint64_t reads = lane_.stats.net.reads.get();
    loop_.TellReady();
    resp_.FinishRound();
    // The ready ones belong to the round under way: polling again at once would be of no use.
    if (wait_ms > 0 && lane_.stats.net.reads.get() == reads) usleep(1000);
  }
  lane_.batch.effects.Return(std::move(under_way));
  lane_.round = round;
  lane_.now_ms = now_ms;
  serving_busy_ = false;
}

void EventLoop::AfterRound() {
  for (Connection* connection : std::exchange(to_close_, {})) Close(*connection);
  if (!going_on_.empty()) GoOn();
  if (!shaking_.empty()) Shake();
  resp_.FinishRound();
  DeliverMail();
  TakeArrivals();
  if (!opening_.empty()) CheckOutgoing();
  if (engine_.NeedsResume(lane_)) Resume();
  const int64_t now = now_ms_ = engine_.clock().WallMillis();
  const bool paused = engine_.switches().cron_paused.load(std::memory_order_relaxed);
  if (now >= next_upkeep_ms_) {
    const bool more = !paused && engine_.Upkeep(lane_);
    DeliverMail();
    // The limiter's buckets must be written every 100 ms, however low hz is.
    const int64_t pause = 1000 / limits_.hz.load(std::memory_order_relaxed);
    next_upkeep_ms_ = now + (more ? 5 : std::min<int64_t>(pause, 100));
  }
  if (!paused && lane_.index == 0 && now >= next_tick_ms_) {
    host_.Tick();
    next_tick_ms_ = now + 100;
  }
  if (!paused && now >= next_idle_check_ms_) {
    CheckIdle();
    NoteBuffers();
    next_idle_check_ms_ = now + 1000;
  }
  if (drain_wanted_.load(std::memory_order_relaxed)) {
    CheckDrain();
  } else if (draining_) {
    draining_ = false;
    drained_.store(false, std::memory_order_release);
    http_.EndDrain();
  }
  if (limits_.client_memory.load(std::memory_order_relaxed) > 0) [[unlikely]]
    KeepClientsWithinMemory();
  writes_log_ = false;
  if (!held_.empty()) SettleHeld();
  // Without a log only replicas wait for the journal: a loop that has records for them merges.
  if (!writes_log_ && host_.barrier() == nullptr && engine_.journal().enabled()) {
    writes_log_ = engine_.journal().HasUnmerged(lane_.index);
  }
  graveyard_.clear();
  next_resume_ms_ = engine_.NextResume(lane_);
  engine_.EndRound(lane_);
}

// By the clock: a thread that has lost its core is a stall for its clients, too.
void EventLoop::MeasureRound() {
  engine::LaneStats& stats = lane_.stats;
  const auto nanos =
      static_cast<uint64_t>(static_cast<double>(base::Ticks() - round_start_) * nanos_per_tick_);
  stats.rounds.busy_nanos.Add(nanos);
  stats.rounds.count.Add();
  stats.rounds.nanos.Record(nanos);
  stats.rounds.max_nanos.Max(nanos);
  if (nanos > 5000000) stats.rounds.over_5ms.Add();
}

}  // namespace sava::front
