#include "front/resp_service.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <new>

#include "base/text.h"
#include "base/trim.h"
#include "front/event_loop.h"
#include "protocol/reply.h"

namespace sava::front {

using engine::Client;

namespace {

// Its next commands wait; no command of it is under way.
constexpr uint32_t kHeldBack = engine::kClientParked | engine::kClientPaused;

constexpr size_t kArena = 1 << 20;
constexpr size_t kBusyArena = 128 * 1024;
constexpr size_t kReadSize = 16 * 1024;     // at first
constexpr size_t kMaxReadSize = 64 * 1024;  // while there is always more: a millisecond of commands
constexpr size_t kMaxBatch = 64;
constexpr size_t kKeptArgs = 16 * 1024;
constexpr size_t kMostHeld = 64 * 1024;
// For clients that have not given the password: bytes of a query, and seconds without a word.
constexpr uint64_t kStrangerQuery = 1 << 20;
constexpr int64_t kStrangerIdle = 60;

// Words a browser sends first. Answering them would let any web page write to this server.
bool SpeaksHttp(std::string_view name) {
  return base::EqualsNoCase(name, "post") || base::EqualsNoCase(name, "host:");
}

}  // namespace

RespConnection::RespConnection(RespService* owner) : service(owner), read_size(kReadSize) {}

void RespConnection::OnEvents(uint32_t events) {
  if (closed || (in_work && service->loop_.serving_busy())) return;
  events = transport->Ready(events);
  if ((events & EPOLLOUT) != 0) service->EnterRound(*this);
  // Nothing is read from a peer that closed its side, or from a connection to be closed.
  const bool deaf = ended || client.has(engine::kClientCloseAfterReply);
  if (deaf && (events & (EPOLLHUP | EPOLLERR)) != 0) return service->loop_.Close(*this);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) service->Read(*this);
}

void RespConnection::Resume() {
  service->EnterRound(*this);
  view = input.view();
  if (!view.empty()) service->Parse(*this);
}

void RespConnection::Release() { service->FinishConnection(*this); }

void RespConnection::GoOn() {
  if (wants_read) service->Read(*this);
}

int64_t RespConnection::MaxIdle() const {
  if (client.waiting() || client.has(engine::kClientMonitor) || client.subscribed()) return 0;
  if (client.sending.feed != nullptr) return 0;
  const int64_t limit = service->loop_.limits().timeout.load(std::memory_order_relaxed);
  if (client.authenticated) return limit;
  return limit == 0 ? kStrangerIdle : std::min(limit, kStrangerIdle);
}

RespService::RespService(EventLoop* loop)
    : loop_(*loop), engine_(loop->engine()), lane_(loop->lane()), arena_(new char[kArena]) {}

RespService::Aside::Aside(RespService* service) : service_(*service), arena_(new char[kBusyArena]) {
  for (RespConnection* connection : service_.round_) connection->in_work = true;
  Swap();
}

RespService::Aside::~Aside() {
  Swap();
  for (RespConnection* connection : service_.round_) connection->in_work = false;
}

void RespService::Aside::Swap() {
  std::swap(arena_, service_.arena_);
  std::swap(arena_used_, service_.arena_used_);
  std::swap(round_, service_.round_);
  std::swap(pending_, service_.pending_);
  std::swap(args_, service_.args_);
  std::swap(requests_, service_.requests_);
}

// ---- reading and parsing ----

void RespService::EnterRound(RespConnection& connection) {
  if (connection.in_round) return;
  connection.in_round = true;
  round_.push_back(&connection);
}

protocol::ParseLimits RespService::LimitsFor(const RespConnection& connection) const {
  return {loop_.limits().max_bulk.load(std::memory_order_relaxed), connection.client.authenticated};
}

// Commands queued in a transaction count, too.
uint64_t RespService::QueryLimitFor(const RespConnection& connection) const {
  const uint64_t limit = loop_.limits().query_buffer.load(std::memory_order_relaxed);
  return connection.client.authenticated ? limit : std::min(limit, kStrangerQuery);
}

// False when nothing new is there to parse.
bool RespService::ReadInput(RespConnection& connection) {
  Client& client = connection.client;
  char* target;
  size_t room;
  if (connection.input.empty()) {
    target = arena_.get() + arena_used_;
    room = connection.read_size;
  } else {
    // A long argument is read in large steps once it is known how long it is.
    const size_t missing = connection.parser.missing();
    room = std::max(connection.read_size, std::min<size_t>(missing, 4 << 20));
    try {
      target =
          missing == 0 ? connection.input.Reserve(room) : connection.input.Reserve(room, missing);
    } catch (const std::bad_alloc&) {
      spdlog::warn("Closing client for whose query there is no memory: id={} addr={}", client.id,
                   client.peer.addr);
      loop_.Close(connection);
      return false;
    }
    loop_.CountBuffers(connection);
  }
  const net::Transfer read = loop_.Receive(connection, target, room);
  if (!read.done()) {
    if (read.outcome == net::Transfer::Outcome::kAgain) return false;
    // A client that has closed its side still gets the answers that wait for the log, and its
    // commands that have not run yet, because others had their turn, are run.
    const bool unrun = client.has(kHeldBack) && !connection.input.empty();
    if (read.outcome == net::Transfer::Outcome::kEnd && (unrun || connection.hold.waits())) {
      connection.ended = true;
      if (!unrun) client.set(engine::kClientCloseAfterReply);
      loop_.SetReading(connection, false);
      return false;
    }
    loop_.Close(connection);
    return false;
  }
  const size_t size = read.bytes;
  // A client that sends faster than it is read gets larger steps: fewer reads, fewer sends.
  if (size == room) {
    connection.read_size = std::min(2 * connection.read_size, kMaxReadSize);
  } else if (size < kReadSize) {
    connection.read_size = kReadSize;
  }
  if (connection.input.empty()) {
    connection.view = {target, size};
    arena_used_ += size;
  } else {
    connection.input.Grow(size);
    connection.view = connection.input.view();
    if (connection.view.size() + client.transaction.queue_bytes > QueryLimitFor(connection)) {
      lane_.stats.clients.over_query_limit.Add();
      spdlog::warn("Closing client that reached max query buffer length: id={} addr={}", client.id,
                   client.peer.addr);
      loop_.Close(connection);
      return false;
    }
  }
  client.memory.query_bytes = connection.view.size();
  return true;
}

void RespService::Read(RespConnection& connection) {
  if (connection.in_round && !connection.view.empty()) return;  // this round has its input already
  if (connection.ended || connection.client.has(engine::kClientCloseAfterReply)) return;
  // Its input is run in the next round, and it must not send faster than that.
  if (lane_.waits.yielded() && connection.client.has(engine::kClientParked) &&
      !connection.input.empty()) {
    return;
  }
  const size_t arena = loop_.serving_busy() ? kBusyArena : kArena;
  if (arena_used_ + connection.read_size > arena) FinishRound();
  if (connection.closed || !ReadInput(connection)) return;
  EnterRound(connection);
  Parse(connection);
}

void RespService::Parse(RespConnection& connection) {
  if (connection.client.waiting()) return;
  while (ParseOne(connection)) {
    if (pending_.size() >= kMaxBatch || connection.inline_pending ||
        !connection.client.authenticated) {
      RunPending();
      connection.inline_pending = false;
      if (connection.closed || connection.refused) return;
      // Others get their turn.
      if (lane_.round.spent() && connection.parsed < connection.view.size() &&
          !connection.client.waiting()) {
        return lane_.waits.Yield(connection.client);
      }
    }
  }
}

// Takes the next command into the batch; false when there is none.
bool RespService::ParseOne(RespConnection& connection) {
  if (connection.broken || connection.hostile) return false;
  while (true) {
    const std::string_view rest = connection.view.substr(connection.parsed);
    if (rest.empty()) return false;
    const auto first = static_cast<uint32_t>(args_.size());
    size_t consumed = 0;
    auto outcome = protocol::RequestParser::Outcome::kMore;
    try {
      outcome = connection.parser.Next(rest, LimitsFor(connection), &args_, &consumed);
    } catch (const std::bad_alloc&) {  // its query has too many words
      args_.resize(first);
      connection.client.set(engine::kClientCloseNow);
    }
    switch (outcome) {
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

void RespService::RunPending() {
  if (pending_.empty()) return;
  requests_.clear();
  for (const RespPending& pending : pending_) {
    engine::Request request;
    request.client = &pending.connection->client;
    request.args = {args_.data() + pending.first_arg, pending.arg_count};
    requests_.push_back(request);
  }
  if (loop_.serving_busy()) {
    engine_.runner().RunBusy(lane_, requests_);
    return TakeOutcomes();
  }
  // A client that has learned of a change gets the invalidations first when it then sends a
  // command.
  if (engine_.tracking().any()) [[unlikely]]
    engine_.ReceiveMail(lane_);
  lane_.batch.progress = {.requests = requests_.data()};
  engine_.BeginBatch(lane_);
  engine_.Prepare(lane_, requests_);
  engine_.RunBatch(lane_, requests_);
  lane_.batch.progress = {};
  engine_.EndBatch(lane_);
  TakeOutcomes();
}

bool RespService::OthersInBatch() const {
  const engine::BatchProgress& progress = lane_.batch.progress;
  if (pending_.empty() || progress.requests != requests_.data()) return false;
  return round_.size() > (progress.at_work == nullptr ? 0 : 1);
}

std::vector<RespConnection*> RespService::LeaveBatch() {
  const engine::BatchProgress& progress = lane_.batch.progress;
  for (size_t i = 0; i < pending_.size(); ++i) {
    RespConnection& connection = *pending_[i].connection;
    engine::Request& request = requests_[i];
    if (&connection.client == progress.at_work || request.withdrawn) continue;
    if (i < progress.begun && request.outcome == engine::Request::Outcome::kDone) {
      connection.done = pending_[i].end;
    } else {
      connection.refused = true;
    }
    request.withdrawn = true;
    request.key_count = 0;
  }
  std::vector<RespConnection*> left;
  for (RespConnection* const connection : round_) {
    if (&connection->client != progress.at_work) left.push_back(connection);
  }
  std::erase_if(round_, [&](const RespConnection* connection) {
    return &connection->client != progress.at_work;
  });
  for (RespConnection* const connection : left) FinishConnection(*connection);
  return left;
}

void RespService::TakeOutcomes() {
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (requests_[i].withdrawn) continue;
    RespConnection& connection = *pending_[i].connection;
    if (requests_[i].outcome == engine::Request::Outcome::kDone) {
      connection.done = pending_[i].end;
    } else {
      connection.refused = true;
      // No thread is busy any more.
      if (loop_.serving_busy() && !connection.client.waiting()) {
        lane_.waits.Yield(connection.client);
      }
    }
  }
  pending_.clear();
  base::ClearAndTrim(&args_, kKeptArgs);
}

// Keeps the unused rest of the round's input, and answers.
void RespService::FinishConnection(RespConnection& connection) {
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
    client.memory.query_bytes = connection.input.size();
    client.memory.query_capacity = connection.input.capacity();
    if (!waits && connection.hostile) {
      spdlog::warn(
          "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: "
          "commands to Sava's RESP port. Connection from {} aborted.",
          client.peer.addr);
      loop_.Close(connection);
      return;
    }
    if (!waits && connection.broken && !client.has(engine::kClientCloseAfterReply)) {
      protocol::Reply(&client.out, client.resp).Error("ERR " + connection.parser.error());
      lane_.stats.error_replies.Add();
      engine_.observer().errors().Add("ERR");
      spdlog::debug("{} from client id={} addr={}", connection.parser.error(), client.id,
                    client.peer.addr);
      client.set(engine::kClientCloseAfterReply);
    }
  }
  if (connection.ended && !client.has(kHeldBack)) {
    if (client.has(engine::kClientBlocked)) return loop_.Close(connection);
    client.set(engine::kClientCloseAfterReply);
  }
  loop_.Flush(connection);
  if (connection.closed || connection.ended || client.has(engine::kClientCloseAfterReply)) return;
  // A client that waits for many answers from the log may not ask for more.
  loop_.SetReading(connection, !connection.hold.waits() || client.out.pending() < kMostHeld);
}

void RespService::FinishRound() {
  RunPending();
  for (size_t i = 0; i < round_.size(); ++i) FinishConnection(*round_[i]);
  round_.clear();
  arena_used_ = 0;
}

}  // namespace sava::front
