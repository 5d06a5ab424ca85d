#include "front/event_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

thread_local const EventLoop* log_writer = nullptr;  // the loop that writes the log on this thread

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

uint32_t Interest(const Connection& connection) {
  return (connection.wants_read ? EPOLLIN : 0U) | (connection.wants_write ? EPOLLOUT : 0U);
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

// The loop that writes the log reads kept() itself afterwards and needs no wake-up.
void EventLoop::WakeIfHolding() {
  if (log_writer == this) return;
  if (awaits_log_.exchange(false, std::memory_order_acq_rel)) loop_.Wake();
}

void EventLoop::Join() {
  if (thread_.joinable()) thread_.join();
}

// ---- connections ----

void EventLoop::Adopt(net::Accepted accepted) {
  connections_.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(incoming_mutex_);
    incoming_.push_back(std::move(accepted));
  }
  loop_.Wake();
}

void EventLoop::Open(net::Accepted accepted) {
  std::unique_ptr<Connection> connection =
      accepted.http ? http_.NewConnection() : resp_.NewConnection();
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
  loop_.Add(accepted.fd, EPOLLIN, connection.get());
  owned_.emplace(&client, std::move(connection));
}

void EventLoop::Close(Connection& connection) {
  if (connection.closed) return;
  connection.closed = true;
  CountBuffers(connection);
  connection.Closing();
  if (connection.held) {
    std::erase(held_, &connection);
    held_count_.store(held_.size(), std::memory_order_relaxed);
  }
  Client& client = connection.client;
  engine_.RemoveClient(lane_, client);
  loop_.Remove(client.fd);
  close(client.fd);
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
  const config::OutputBufferLimit& limit = engine_.OutputLimitOf(client);
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
size_t EventLoop::Released(Connection& connection) {
  const size_t pending = connection.client.out.pending();
  const uint64_t produced = connection.sent + pending;
  const journal::Barrier* const log = host_.barrier();
  if (log == nullptr) [[likely]] {
    if (!connection.holds.empty()) connection.holds.clear();
    connection.released = produced;
    return pending;
  }
  const uint64_t kept = log->kept();
  if (produced > (connection.holds.empty() ? connection.released : connection.holds.back().end)) {
    const Client& client = connection.client;
    const uint64_t ticket = log->always() ? std::max(client.wrote, client.saw) : client.wrote;
    if (connection.holds.empty() && ticket <= kept) {
      connection.released = produced;
      return pending;
    }
    if (!connection.holds.empty() && connection.holds.back().ticket == ticket) {
      connection.holds.back().end = produced;
    } else {
      connection.holds.push_back({produced, ticket});
    }
  }
  size_t done = 0;
  while (done < connection.holds.size() && connection.holds[done].ticket <= kept) {
    connection.released = connection.holds[done++].end;
  }
  if (done > 0) {
    connection.holds.erase(connection.holds.begin(),
                           connection.holds.begin() + static_cast<ptrdiff_t>(done));
  }
  return connection.released - connection.sent;
}

void EventLoop::Hold(Connection& connection) {
  if (connection.holds.empty() || connection.held) return;
  connection.held = true;
  connection.held_since_ms = lane_.now_ms;
  held_.push_back(&connection);
  held_count_.store(held_.size(), std::memory_order_relaxed);
}

// The log cannot be written and may never be. A client that has waited too long is not told what
// became of its write, as when a connection breaks. With `always` it goes on waiting.
void EventLoop::CloseOwed() {
  const journal::Barrier* const log = host_.barrier();
  if (log == nullptr || log->always() || log->good()) return;
  std::vector<Connection*> owed;
  for (Connection* connection : held_) {
    if (lane_.now_ms - connection->held_since_ms > kOwedMs) owed.push_back(connection);
  }
  for (Connection* connection : owed) {
    spdlog::warn("Client id={} addr={} closed: its write cannot be written to the AOF.",
                 connection->client.id, connection->client.addr);
    Close(*connection);
  }
}

// Lets go what is kept.
void EventLoop::ReleaseHeld() {
  const journal::Barrier* const log = host_.barrier();
  const uint64_t kept = log == nullptr ? UINT64_MAX : log->kept();
  ready_.clear();
  std::erase_if(held_, [&](Connection* connection) {
    if (!connection->holds.empty() && connection->holds.front().ticket > kept) return false;
    connection->held = false;
    ready_.push_back(connection);
    return true;
  });
  held_count_.store(held_.size(), std::memory_order_relaxed);
  for (Connection* connection : ready_) connection->OnEvents(EPOLLOUT);
  if (!ready_.empty()) resp_.FinishRound();
}

// Before this loop waits: who advances kept() will wake it when it still holds something. The flag
// is raised before kept() is read and taken down after it was advanced: whoever comes second sees
// the other.
void EventLoop::AwaitLog() {
  awaits_log_.exchange(true, std::memory_order_acq_rel);
  ReleaseHeld();
  if (held_.empty()) awaits_log_.exchange(false, std::memory_order_acq_rel);
}

// Whether this loop writes the log itself for what it holds. With `always` only when no other loop
// has clients, whose records would have to wait for the next sync. REQUIRES: inside the gate.
bool EventLoop::MayWriteLog() const {
  const journal::Barrier* const log = host_.barrier();
  if (log == nullptr || !log->quick()) return false;
  return !log->always() || loops_.AllBelongTo(*this);
}

// Writes what the answers of this loop wait for, and lets them go: two threads that wake each other
// would take longer. When another thread is writing, that one wakes this loop. REQUIRES: outside
// the gate, since a write may have to wait for the disk.
void EventLoop::WriteLog() {
  if (!std::exchange(writes_log_, false)) return;
  // Raised before the merge: a thread that merges instead may finish, and wake the loops that wait,
  // before this loop waits.
  awaits_log_.exchange(true, std::memory_order_acq_rel);
  log_writer = this;
  const bool merged = engine_.journal().MergeHere();
  LetGo(merged);
  log_writer = nullptr;
  // Another thread's record with an earlier ticket was on its way, or there is more since.
  if (merged && !held_.empty()) engine_.journal().Nudge();
}

// Others hold answers for the same log: they are woken when it has advanced, and only then, or two
// loops would keep each other awake while it cannot be written.
void EventLoop::LetGo(bool merged) {
  engine_.BeginRound(lane_);
  const journal::Barrier* const log = host_.barrier();
  const uint64_t kept = log == nullptr ? UINT64_MAX : log->kept();
  if (merged && std::exchange(last_kept_, kept) != kept) loops_.WakeHolders();
  AwaitLog();
  graveyard_.clear();
  next_resume_ms_ = engine_.NextResume(lane_);
  engine_.EndRound(lane_);
}

// Eviction looks at what clients' buffers take now; the allocator is asked only now and then.
void EventLoop::CountBuffers(Connection& connection) {
  Client& client = connection.client;
  const size_t bytes = connection.closed ? 0
                                         : connection.input.capacity() + client.out.block_bytes() +
                                               client.queue_bytes;
  if (bytes == client.counted_bytes) return;
  lane_.buffer_bytes.Add(bytes - client.counted_bytes);
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
  for (size_t released = Released(connection); released > 0;) {
    iovec vectors[64];
    const size_t count = Limit(vectors, client.out.Gather(vectors, 64), released);
    const ssize_t n = count == 1
                          ? send(client.fd, vectors[0].iov_base, vectors[0].iov_len, MSG_NOSIGNAL)
                          : writev(client.fd, vectors, static_cast<int>(count));
    lane_.stats.writes.Add();
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) break;
      Close(connection);
      return;
    }
    lane_.stats.net_output.Add(static_cast<uint64_t>(n));
    client.net_output += static_cast<uint64_t>(n);
    client.last_active_ms = lane_.now_ms;
    client.out.Consume(static_cast<size_t>(n));
    connection.sent += static_cast<uint64_t>(n);
    released -= static_cast<size_t>(n);
  }
  const bool wants = connection.sent < connection.released;
  if (wants != connection.wants_write) {
    connection.wants_write = wants;
    loop_.Change(client.fd, Interest(connection), &connection);
  }
  Hold(connection);
  if (client.out.empty()) {
    if (!engine_.keeps_output().load(std::memory_order_relaxed)) {
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
  loop_.Change(connection.client.fd, Interest(connection), &connection);
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
  for (Client* client : std::exchange(lane_.resumed, {})) {
    const auto it = owned_.find(client);
    if (it == owned_.end()) continue;
    if (!std::exchange(any, true) || !lane_.round.spent()) {
      it->second->Resume();
    } else if (!client->waiting()) {
      later.push_back(client);
    }
  }
  engine_.YieldFirst(lane_, later);
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
    lane_.recent_input.Note(second, client->query_bytes);
    lane_.recent_output.Note(second, client->out.pending());
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
  if (http_.has_more()) return 0;
  const int64_t next = std::min(next_upkeep_ms_, next_resume_ms_);
  return static_cast<int>(std::clamp<int64_t>(next - now_ms_, 0, 100));
}

void EventLoop::BeforeRound() {
  round_start_ = base::Ticks();
  engine_.BeginRound(lane_);
}

// A millisecond of work is a round: mail, timers and new connections get their turn.
bool EventLoop::Enough() { return lane_.round.spent(); }

void EventLoop::TakeArrivals() {
  std::vector<net::Accepted> arrived;
  {
    std::lock_guard lock(incoming_mutex_);
    arrived.swap(incoming_);
  }
  for (net::Accepted& accepted : arrived) Open(std::move(accepted));
}

void EventLoop::AfterRound() {
  resp_.FinishRound();
  if (http_.has_more()) http_.Continue();
  DeliverMail();
  TakeArrivals();
  if (engine_.NeedsResume(lane_)) Resume();
  const int64_t now = now_ms_ = engine_.clock().WallMillis();
  const bool paused = engine_.cron_paused().load(std::memory_order_relaxed);
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
  if (!held_.empty()) ReleaseHeld();
  writes_log_ = !held_.empty() && MayWriteLog();
  if (!held_.empty() && !writes_log_) AwaitLog();
  if (!held_.empty() && !writes_log_) engine_.journal().Nudge();
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
