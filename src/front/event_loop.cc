#include "front/event_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <iterator>
#include <latch>
#include <utility>

#include "base/alternate_stack.h"
#include "front/loops.h"

namespace sava::front {

using engine::Client;

namespace {

constexpr size_t kKeepOutput = 16 * 1024;

// Answers that a client without the password has not taken yet.
constexpr size_t kStrangerPending = 1024;

// How long an answer waits for a log that cannot be written.
constexpr int64_t kOwedMs = 3000;

// Cuts the vectors off after so many bytes; how many are left.
size_t Limit(iovec* vectors, size_t count, size_t bytes) {
  for (size_t i = 0; i < count; ++i) {
    if (vectors[i].iov_len >= bytes) {
      vectors[i].iov_len = bytes;
      return i + 1;
    }
    bytes -= vectors[i].iov_len;
  }
  return count;
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
}

EventLoop::~EventLoop() {
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
  client.fd = accepted.fd;
  client.addr = std::move(accepted.peer);
  client.laddr = std::move(accepted.self);
  client.set(engine::kClientUnixSocket, accepted.unix_socket);
  client.set(engine::kClientLocal, accepted.local);
  client.created_ms = client.last_active_ms = engine_.clock().WallMillis();
  // Over HTTP each request brings the password.
  client.authenticated = accepted.http || engine_.settings().requirepass.empty();
  engine_.AddClient(lane_, client);
  connection->asked = connection->transport->Interest(EPOLLIN);
  loop_.Add(accepted.fd, connection->asked, connection.get());
  Connection& opened = *connection;
  owned_.emplace(&client, std::move(connection));
  opened.Opened();
}

void EventLoop::Close(Connection& connection) {
  if (connection.closed) return;
  connection.closed = true;
  CountBuffers(connection);
  connection.Closing();
  held_.Remove(connection.hold);
  if (connection.goes_on) std::erase(going_on_, &connection);
  Client& client = connection.client;
  engine_.RemoveClient(lane_, client);
  loop_.Remove(client.fd);
  connection.transport->Close();
  client.fd = -1;
  connections_.fetch_sub(1, std::memory_order_relaxed);
  const auto it = owned_.find(&client);
  graveyard_.push_back(std::move(it->second));
  owned_.erase(it);
}

// ---- writing ----

bool EventLoop::OverOutputLimit(Connection& connection) {
  Client& client = connection.client;
  const size_t pending = client.out.pending();
  if (pending == 0) {
    client.soft_limit_since_ms = 0;
    return false;
  }
  if (!client.authenticated && pending > kStrangerPending) return true;
  const config::OutputBufferLimit& limit = engine_.admission().OutputLimitOf(client);
  if (limit.hard > 0 && pending > limit.hard) return true;
  if (limit.soft == 0 || pending <= limit.soft) {
    client.soft_limit_since_ms = 0;
    return false;
  }
  if (client.soft_limit_since_ms == 0) client.soft_limit_since_ms = lane_.now_ms;
  return lane_.now_ms - client.soft_limit_since_ms > limit.soft_seconds * 1000;
}

void EventLoop::CloseOver(Connection& connection) {
  const Client& client = connection.client;
  lane_.stats.output_limit_disconnections.Add();
  spdlog::warn(
      "Client id={} addr={} closed for overcoming of output buffer limits ({} bytes pending).",
      client.id, client.addr, client.out.pending());
  Close(connection);
}

// How many of the pending bytes may leave now. What was produced since the last call tells of what
// the client has changed, so it waits for that. With `always` it also waits for what others have
// changed and the client has read, so that nobody sees what a power failure takes back.
size_t EventLoop::Writable(Connection& connection) {
  const Client& client = connection.client;
  const size_t pending = client.out.pending();
  const journal::Barrier* const barrier = host_.barrier();
  if (barrier == nullptr) [[likely]]
    return connection.hold.Produced(pending, 0, UINT64_MAX);
  const uint64_t ticket = barrier->always() ? std::max(client.wrote, client.saw) : client.wrote;
  return connection.hold.Produced(pending, ticket, barrier->kept());
}

// ---- output that waits for the barrier ----

// Lets go what is kept.
void EventLoop::LetGo() {
  const journal::Barrier* const barrier = host_.barrier();
  for (OutputHold* hold : held_.TakeKept(barrier == nullptr ? UINT64_MAX : barrier->kept())) {
    if (!hold->owner().closed) hold->owner().Release();
  }
}

// Whether this loop merges and writes after the round for what it holds, once for each ticket. With
// `always` only when no other loop has clients, whose records would have to wait for the next sync.
// REQUIRES: inside the gate.
bool EventLoop::MayWriteLog() const {
  const journal::Barrier* const barrier = host_.barrier();
  if (barrier == nullptr || held_.newest() <= asked_ || !barrier->quick()) return false;
  if (barrier->kept() >= held_.newest()) return false;
  return !barrier->always() || loops_.AllBelongTo(*this);
}

// At the end of a round: who writes what the answers of this loop wait for.
void EventLoop::SettleHeld() {
  writes_log_ = MayWriteLog();
  if (writes_log_) return;
  held_.BeginWait();
  LetGo();
  if (held_.empty()) return held_.EndWait();
  // A thread that was found merging looks once more.
  if (held_.newest() > asked_ || !left_to_others_) engine_.journal().Nudge();
}

// Writes what the answers of this loop wait for: two threads that wake each other would take
// longer. The next round follows at once and lets go what is kept by then. REQUIRES: outside the
// gate, since a write may have to wait for the disk.
void EventLoop::WriteLog() {
  if (!writes_log_) return;
  asked_ = held_.newest();
  left_to_others_ = !engine_.journal().MergeHere();
}

// The log cannot be written and may never be. A client that has waited too long is not told what
// became of its write, as when a connection breaks. With `always` it goes on waiting.
void EventLoop::CloseOwed() {
  const journal::Barrier* const barrier = host_.barrier();
  if (barrier == nullptr || barrier->always() || barrier->good()) return;
  std::vector<Connection*> owed;
  for (const OutputHold* hold : held_.all()) {
    if (lane_.now_ms - hold->since_ms() > kOwedMs) owed.push_back(&hold->owner());
  }
  for (Connection* connection : owed) {
    spdlog::warn("Client id={} addr={} closed: its write cannot be written to the AOF.",
                 connection->client.id, connection->client.addr);
    Close(*connection);
  }
}

// ---- sending ----

// Eviction looks at what clients' buffers take now; the allocator is asked only now and then.
void EventLoop::CountBuffers(Connection& connection) {
  Client& client = connection.client;
  const size_t bytes = connection.closed ? 0
                                         : connection.input.capacity() + client.out.block_bytes() +
                                               client.queue_bytes;
  if (bytes == client.counted_bytes) return;
  lane_.memory.buffer_bytes.Add(bytes - client.counted_bytes);
  client.counted_bytes = bytes;
}

void EventLoop::Flush(Connection& connection) {
  Send(connection);
  CountBuffers(connection);
}

void EventLoop::Send(Connection& connection) {
  Client& client = connection.client;
  if (client.out.over()) [[unlikely]]
    return CloseOver(connection);
  if (client.has(engine::kClientCloseNow)) {
    Close(connection);
    return;
  }
  for (size_t writable = Writable(connection); writable > 0;) {
    iovec vectors[64];
    const size_t count = Limit(vectors, client.out.Gather(vectors, 64), writable);
    const net::Transfer sent = connection.transport->Writev(vectors, count);
    lane_.stats.writes.Add();
    if (sent.outcome == net::Transfer::Outcome::kAgain) break;
    if (!sent.done()) return Close(connection);
    lane_.stats.net_output.Add(sent.bytes);
    client.net_output += sent.bytes;
    client.last_active_ms = lane_.now_ms;
    client.out.Consume(sent.bytes);
    connection.hold.Sent(sent.bytes);
    writable -= sent.bytes;
  }
  connection.wants_write = connection.hold.writable() > 0;
  Ask(connection);
  if (connection.hold.waits()) held_.Add(connection.hold, lane_.now_ms);
  if (client.out.empty()) {
    if (!engine_.switches().keeps_output.load(std::memory_order_relaxed)) {
      client.out.ReleaseIfEmpty(kKeepOutput);
    }
    if (client.has(engine::kClientCloseAfterReply)) {
      Close(connection);
      return;
    }
  }
  if (OverOutputLimit(connection)) return CloseOver(connection);
  // Whatever it still sends is of no use.
  if (client.has(engine::kClientCloseAfterReply)) SetReading(connection, false);
}

void EventLoop::SetReading(Connection& connection, bool on) {
  if (connection.wants_read == on) return;
  connection.wants_read = on;
  Ask(connection);
  if (on && connection.transport->Pending()) GoOnLater(connection);
}

// Has epoll watch for what the connection waits for.
void EventLoop::Ask(Connection& connection) {
  const uint32_t wanted =
      (connection.wants_read ? EPOLLIN : 0U) | (connection.wants_write ? EPOLLOUT : 0U);
  const uint32_t events = connection.transport->Interest(wanted);
  if (events == connection.asked) return;
  connection.asked = events;
  loop_.Change(connection.client.fd, events, &connection);
}

// ---- receiving ----

net::Transfer EventLoop::Receive(Connection& connection, char* target, size_t room) {
  Client& client = connection.client;
  const net::Transfer read = connection.transport->Read(target, room);
  lane_.stats.reads.Add();
  if (read.done()) {
    lane_.stats.net_input.Add(read.bytes);
    client.net_input += read.bytes;
    client.last_active_ms = lane_.now_ms;
    if (connection.transport->Pending()) [[unlikely]]
      GoOnLater(connection);
  } else if (read.outcome == net::Transfer::Outcome::kAgain) {
    Ask(connection);
  }
  return read;
}

void EventLoop::GoOnLater(Connection& connection) {
  if (std::exchange(connection.goes_on, true)) return;
  going_on_.push_back(&connection);
}

// Each gets one turn, as far as the round's time goes, but at least the first. The others come
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

// Clients that may go on: their kept input is looked at again.
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
    if (limit > 0 && lane_.now_ms - client->last_active_ms > limit * 1000) {
      idle.push_back(connection.get());
    } else if (client->soft_limit_since_ms != 0 && OverOutputLimit(*connection)) {
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
    lane_.memory.recent_input.Note(second, client->query_bytes);
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

// What clients have sent before they could know is read in one more round before idle connections
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
  if (writes_log_ || !going_on_.empty()) return 0;
  const int64_t next = std::min(next_upkeep_ms_, next_resume_ms_);
  return static_cast<int>(std::clamp<int64_t>(next - now_ms_, 0, 100));
}

void EventLoop::BeforeRound() {
  round_start_ = base::Ticks();
  engine_.BeginRound(lane_);
  if (held_.empty()) return;
  held_.EndWait();
  LetGo();
  lane_.round = base::Budget();  // clients get as much of the round as ever
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

// Connections that this loop opens: those that stand, and those that failed.
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
    auto transport = std::make_unique<net::SocketTransport>(socket->fd);
    Open({std::move(*socket), std::move(transport), std::move(one.outgoing.make)});
  }
}

void EventLoop::AfterRound() {
  if (!going_on_.empty()) GoOn();
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
    // The limiter's buckets are to be written every 100 ms, however low hz is.
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
  writes_log_ = false;
  if (!held_.empty()) SettleHeld();
  graveyard_.clear();
  next_resume_ms_ = engine_.NextResume(lane_);
  engine_.EndRound(lane_);
}

// By the clock, so that a thread that lost its core counts as a stall, as its clients feel it.
void EventLoop::MeasureRound() {
  engine::LaneStats& stats = lane_.stats;
  const auto nanos =
      static_cast<uint64_t>(static_cast<double>(base::Ticks() - round_start_) * nanos_per_tick_);
  stats.loop_busy_nanos.Add(nanos);
  stats.loop_rounds.Add();
  stats.loop.Record(nanos);
  stats.loop_max_nanos.Max(nanos);
  if (nanos > 5000000) stats.loop_over_5ms.Add();
}

}  // namespace sava::front
