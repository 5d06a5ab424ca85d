#include "server/resp_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/text.h"
#include "protocol/reply.h"
#include "server/server.h"

namespace sava::server {

using engine::Client;

namespace {

constexpr size_t kArena = 1 << 20;
constexpr size_t kReadSize = 16 * 1024;
constexpr size_t kMaxBatch = 64;
constexpr size_t kKeepOutput = 16 * 1024;

uint64_t ThreadCpuNanos() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

// Words a browser sends first. Answering them would let any web page write to this server.
bool SpeaksHttp(std::string_view name) {
  return base::EqualsNoCase(name, "post") || base::EqualsNoCase(name, "host:");
}

}  // namespace

void RespConnection::OnEvents(uint32_t events) {
  if (closed) return;
  if ((events & EPOLLOUT) != 0) {
    loop->EnterRound(*this);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) loop->Read(*this);
}

RespLoop::RespLoop(Server* server, engine::Lane* lane)
    : server_(*server),
      engine_(server->engine()),
      lane_(*lane),
      loop_(this),
      arena_(new char[kArena]) {
  lane_.mailbox.set_wake([this] { loop_.Wake(); });
}

RespLoop::~RespLoop() {
  while (!owned_.empty()) Close(*owned_.begin()->second);
}

void RespLoop::Start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), fmt::format("sava-{}", lane_.index).c_str());
    last_cpu_nanos_ = ThreadCpuNanos();
    loop_.Run();
  });
}

void RespLoop::Stop() { loop_.Stop(); }

void RespLoop::Join() {
  if (thread_.joinable()) thread_.join();
}

// ---- connections ----

void RespLoop::Adopt(net::Accepted accepted) {
  connections_.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(incoming_mutex_);
    incoming_.push_back(std::move(accepted));
  }
  loop_.Wake();
}

void RespLoop::Open(net::Accepted accepted) {
  auto connection = std::make_unique<RespConnection>(this);
  Client& client = connection->client;
  client.id = accepted.id;
  client.fd = accepted.fd;
  client.addr = std::move(accepted.peer);
  client.laddr = std::move(accepted.self);
  client.set(engine::kClientUnixSocket, accepted.unix_socket);
  client.set(engine::kClientLocal, accepted.local);
  client.created_ms = client.last_active_ms = engine_.clock().WallMillis();
  client.authenticated = engine_.settings().requirepass.empty();
  engine_.AddClient(lane_, client);
  loop_.Add(accepted.fd, EPOLLIN, connection.get());
  owned_.emplace(&client, std::move(connection));
}

void RespLoop::Close(RespConnection& connection) {
  if (connection.closed) return;
  connection.closed = true;
  Client& client = connection.client;
  engine_.RemoveClient(lane_, client);
  loop_.Remove(client.fd);
  close(client.fd);
  client.fd = -1;
  connections_.fetch_sub(1, std::memory_order_relaxed);
  server_.client_counter().fetch_sub(1, std::memory_order_relaxed);
  const auto it = owned_.find(&client);
  graveyard_.push_back(std::move(it->second));
  owned_.erase(it);
}

// ---- reading and parsing ----

void RespLoop::EnterRound(RespConnection& connection) {
  if (connection.in_round) return;
  connection.in_round = true;
  round_.push_back(&connection);
}

protocol::ParseLimits RespLoop::LimitsFor(const RespConnection& connection) const {
  return {server_.limits().max_bulk.load(std::memory_order_relaxed),
          connection.client.authenticated};
}

// False when nothing new is there to parse.
bool RespLoop::ReadInput(RespConnection& connection) {
  Client& client = connection.client;
  char* target;
  size_t room;
  if (connection.input.empty()) {
    target = arena_.get() + arena_used_;
    room = kReadSize;
  } else {
    // A long argument is read in large steps once it is known how long it is.
    room = std::max(kReadSize, std::min<size_t>(connection.parser.missing(), 4 << 20));
    target = connection.input.Reserve(room);
  }
  const ssize_t n = recv(client.fd, target, room, 0);
  lane_.stats.reads.Add();
  if (n <= 0) {
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    Close(connection);
    return false;
  }
  const auto size = static_cast<size_t>(n);
  lane_.stats.net_input.Add(size);
  client.net_input += size;
  client.last_active_ms = lane_.now_ms;
  if (connection.input.empty()) {
    connection.view = {target, size};
    arena_used_ += size;
  } else {
    connection.input.Grow(size);
    connection.view = connection.input.view();
    if (connection.view.size() > server_.limits().query_buffer.load(std::memory_order_relaxed)) {
      lane_.stats.query_limit_disconnections.Add();
      spdlog::warn("Closing client that reached max query buffer length: id={} addr={}", client.id,
                   client.addr);
      Close(connection);
      return false;
    }
  }
  return true;
}

void RespLoop::Read(RespConnection& connection) {
  if (connection.in_round && !connection.view.empty()) return;  // this round has its input already
  if (arena_used_ + kReadSize > kArena) FinishRound();
  if (connection.closed || !ReadInput(connection)) return;
  EnterRound(connection);
  Parse(connection);
}

void RespLoop::Parse(RespConnection& connection) {
  if (connection.client.waiting()) return;
  while (ParseOne(connection)) {
    if (pending_.size() >= kMaxBatch || connection.inline_pending ||
        !connection.client.authenticated) {
      RunPending();
      connection.inline_pending = false;
      if (connection.closed || connection.refused) return;
    }
  }
}

// Takes the next command into the batch; false when there is none.
bool RespLoop::ParseOne(RespConnection& connection) {
  if (connection.broken || connection.hostile) return false;
  while (true) {
    const std::string_view rest = connection.view.substr(connection.parsed);
    if (rest.empty()) return false;
    const auto first = static_cast<uint32_t>(args_.size());
    size_t consumed = 0;
    switch (connection.parser.Next(rest, LimitsFor(connection), &args_, &consumed)) {
      case protocol::RequestParser::Outcome::kMore:
        return false;
      case protocol::RequestParser::Outcome::kError:
        connection.broken = true;
        return false;
      case protocol::RequestParser::Outcome::kEmpty:
        connection.parsed += consumed;
        continue;
      case protocol::RequestParser::Outcome::kCommand:
        break;
    }
    const std::string_view name = args_[first];
    if ((name.size() == 4 || name.size() == 5) && SpeaksHttp(name)) {
      args_.resize(first);
      connection.hostile = true;
      return false;
    }
    connection.inline_pending = rest[0] != '*';
    connection.parsed += consumed;
    pending_.push_back(
        {&connection, connection.parsed, first, static_cast<uint32_t>(args_.size()) - first});
    return true;
  }
}

// ---- running ----

void RespLoop::RunPending() {
  if (pending_.empty()) return;
  requests_.clear();
  for (const Pending& pending : pending_) {
    engine::Request request;
    request.client = &pending.connection->client;
    request.args = {args_.data() + pending.first_arg, pending.arg_count};
    requests_.push_back(request);
  }
  engine_.BeginBatch(lane_);
  engine_.Prepare(lane_, requests_);
  engine_.RunBatch(lane_, requests_);
  engine_.EndBatch(lane_);
  for (size_t i = 0; i < pending_.size(); ++i) {
    RespConnection& connection = *pending_[i].connection;
    if (requests_[i].outcome == engine::Request::Outcome::kDone) {
      connection.done = pending_[i].end;
    } else {
      connection.refused = true;
    }
  }
  pending_.clear();
  args_.clear();
}

// Keeps what was not used of the round's input, and answers.
void RespLoop::FinishConnection(RespConnection& connection) {
  connection.in_round = false;
  if (connection.closed) return;
  Client& client = connection.client;
  if (!connection.view.empty()) {
    const bool waits = connection.refused || client.waiting();
    if (waits) {
      connection.parser.Reset();
      connection.broken = connection.hostile = false;  // found again when its turn comes
    } else {
      connection.done = connection.parsed;
    }
    const std::string_view rest = connection.view.substr(connection.done);
    if (connection.input.empty()) {
      if (!rest.empty()) connection.input.Append(rest);
    } else {
      connection.input.Consume(connection.done);
    }
    connection.view = {};
    connection.parsed = connection.done = 0;
    connection.refused = false;
    client.query_bytes = connection.input.size();
    client.query_capacity = connection.input.capacity();
    if (!waits && connection.hostile) {
      spdlog::warn(
          "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: "
          "commands to Sava's RESP port. Connection from {} aborted.",
          client.addr);
      Close(connection);
      return;
    }
    if (!waits && connection.broken && !client.has(engine::kClientCloseAfterReply)) {
      protocol::Reply(&client.out, client.resp).Error("ERR " + connection.parser.error());
      lane_.stats.error_replies.Add();
      engine_.errors().Add("ERR");
      spdlog::debug("{} from client id={} addr={}", connection.parser.error(), client.id,
                    client.addr);
      client.set(engine::kClientCloseAfterReply);
    }
  }
  Flush(connection);
}

void RespLoop::FinishRound() {
  RunPending();
  for (size_t i = 0; i < round_.size(); ++i) FinishConnection(*round_[i]);
  round_.clear();
  arena_used_ = 0;
}

// ---- writing ----

bool RespLoop::OverOutputLimit(RespConnection& connection) {
  Client& client = connection.client;
  const size_t pending = client.out.pending();
  if (pending == 0) {
    client.soft_limit_since_ms = 0;
    return false;
  }
  const LoopLimits::Output& limit =
      server_.limits().output[client.subscribed()                  ? LoopLimits::kPubsub
                              : client.has(engine::kClientMonitor) ? LoopLimits::kReplica
                                                                   : LoopLimits::kNormal];
  const uint64_t hard = limit.hard.load(std::memory_order_relaxed);
  const uint64_t soft = limit.soft.load(std::memory_order_relaxed);
  if (hard > 0 && pending > hard) return true;
  if (soft == 0 || pending <= soft) {
    client.soft_limit_since_ms = 0;
    return false;
  }
  if (client.soft_limit_since_ms == 0) client.soft_limit_since_ms = lane_.now_ms;
  return lane_.now_ms - client.soft_limit_since_ms >
         limit.soft_seconds.load(std::memory_order_relaxed) * 1000;
}

void RespLoop::Flush(RespConnection& connection) {
  Client& client = connection.client;
  if (client.has(engine::kClientCloseNow)) {
    Close(connection);
    return;
  }
  while (!client.out.empty()) {
    iovec vectors[64];
    const size_t count = client.out.Gather(vectors, 64);
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
  }
  const bool wants = !client.out.empty();
  if (wants != connection.wants_write) {
    connection.wants_write = wants;
    loop_.Change(client.fd, EPOLLIN | (wants ? EPOLLOUT : 0U), &connection);
  }
  if (!wants) {
    client.out.ReleaseIfEmpty(kKeepOutput);
    if (client.has(engine::kClientCloseAfterReply)) {
      Close(connection);
      return;
    }
  }
  if (OverOutputLimit(connection)) {
    lane_.stats.output_limit_disconnections.Add();
    spdlog::warn(
        "Client id={} addr={} closed for overcoming of output buffer limits ({} bytes pending).",
        client.id, client.addr, client.out.pending());
    Close(connection);
  }
}

// ---- rounds ----

void RespLoop::DeliverMail() {
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
void RespLoop::Resume() {
  engine_.ResumeWaiting(lane_);
  for (Client* client : std::exchange(lane_.resumed, {})) {
    const auto it = owned_.find(client);
    if (it == owned_.end()) continue;
    RespConnection& connection = *it->second;
    EnterRound(connection);
    connection.view = connection.input.view();
    if (!connection.view.empty()) Parse(connection);
  }
  FinishRound();
}

void RespLoop::CheckIdle() {
  const int64_t timeout = server_.limits().timeout.load(std::memory_order_relaxed);
  if (timeout <= 0) return;
  std::vector<RespConnection*> idle;
  for (auto& [client, connection] : owned_) {
    if (client->waiting() || client->has(engine::kClientMonitor) || client->subscribed()) {
      continue;
    }
    if (lane_.now_ms - client->last_active_ms > timeout * 1000) idle.push_back(connection.get());
  }
  for (RespConnection* connection : idle) Close(*connection);
}

void RespLoop::BeforeRound() {
  round_start_ = base::Ticks();
  engine_.BeginRound(lane_);
}

// A millisecond of work is a round: mail, timers and new connections get their turn.
bool RespLoop::Enough() { return base::Ticks() - round_start_ > round_limit_; }

int RespLoop::BeforeWait() {
  const int64_t next = std::min(next_upkeep_ms_, next_resume_ms_);
  return static_cast<int>(std::clamp<int64_t>(next - now_ms_, 0, 100));
}

void RespLoop::AfterRound() {
  FinishRound();
  DeliverMail();
  {
    std::vector<net::Accepted> arrived;
    {
      std::lock_guard lock(incoming_mutex_);
      arrived.swap(incoming_);
    }
    for (net::Accepted& accepted : arrived) Open(std::move(accepted));
  }
  if (!lane_.waiting.empty()) Resume();
  const int64_t now = now_ms_ = engine_.clock().WallMillis();
  if (now >= next_upkeep_ms_) {
    const bool more = engine_.Upkeep(lane_);
    DeliverMail();
    next_upkeep_ms_ = now + (more ? 5 : 1000 / server_.limits().hz.load(std::memory_order_relaxed));
  }
  if (lane_.index == 0 && now >= next_tick_ms_) {
    server_.Tick();
    next_tick_ms_ = now + 100;
  }
  if (now >= next_idle_check_ms_) {
    CheckIdle();
    next_idle_check_ms_ = now + 1000;
  }
  graveyard_.clear();
  next_resume_ms_ = engine_.NextResume(lane_);
  engine_.EndRound(lane_);
  MeasureRound();
}

// A round's length is what this thread worked, plus what it waited for locks and the gate: time in
// which the kernel ran somebody else is not a stall of ours. Asking the kernel for the thread's own
// time costs a system call, so short rounds are taken as they are by the clock, and a long one is
// overestimated by what the short ones before it used, a millisecond at most.
void RespLoop::MeasureRound() {
  engine::LaneStats& stats = lane_.stats;
  const auto wall =
      static_cast<uint64_t>(static_cast<double>(base::Ticks() - round_start_) * nanos_per_tick_);
  const uint64_t waited = std::exchange(lane_.waited_nanos, 0);
  uint64_t nanos = wall;
  unmeasured_nanos_ += wall;
  if (unmeasured_nanos_ > 1000000) {
    const uint64_t cpu = ThreadCpuNanos();
    nanos = std::min(wall, cpu - last_cpu_nanos_ + waited);
    stats.loop_busy_nanos.Add(cpu - last_cpu_nanos_);
    last_cpu_nanos_ = cpu;
    unmeasured_nanos_ = 0;
  }
  stats.loop_rounds.Add();
  stats.loop.Record(nanos);
  stats.loop_max_nanos.Max(nanos);
  if (nanos > 5000000) stats.loop_over_5ms.Add();
}

}  // namespace sava::server
