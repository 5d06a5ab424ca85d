// What a loop sends: writing to sockets, answers that wait for the barrier, limits of output.
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "front/event_loop.h"
#include "front/loops.h"

namespace sava::front {

using engine::Client;

namespace {

// Bytes of answers that a client without the password has not taken yet, at most.
constexpr size_t kStrangerPending = 1024;

// How long an answer waits for a log that cannot be written.
constexpr int64_t kOwedMs = 3000;

constexpr size_t kKeepOutput = 16 * 1024;

// Cuts the vectors off after that many bytes; returns how many vectors are left.
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

// ---- writing ----

bool EventLoop::OverOutputLimit(Connection& connection) {
  Client& client = connection.client;
  const size_t pending = client.out.pending();
  if (pending == 0) {
    client.memory.soft_limit_since_ms = 0;
    return false;
  }
  if (!client.authenticated && pending > kStrangerPending) return true;
  const config::OutputBufferLimit& limit = engine_.admission().OutputLimitOf(client);
  if (limit.hard > 0 && pending > limit.hard) return true;
  if (limit.soft == 0 || pending <= limit.soft) {
    client.memory.soft_limit_since_ms = 0;
    return false;
  }
  if (client.memory.soft_limit_since_ms == 0) client.memory.soft_limit_since_ms = lane_.now_ms;
  return lane_.now_ms - client.memory.soft_limit_since_ms > limit.soft_seconds * 1000;
}

void EventLoop::CloseOver(Connection& connection) {
  const Client& client = connection.client;
  lane_.stats.clients.over_output_limit.Add();
  // What was over() is dropped already.
  const std::string pending = client.out.over() ? "too many" : std::to_string(client.out.pending());
  spdlog::warn(
      "Client id={} addr={} closed for overcoming of output buffer limits ({} bytes pending).",
      client.id, client.peer.addr, pending);
  Close(connection);
}

// How many of the pending bytes may leave now. The bytes produced since the last call tell of the
// client's own changes, so they wait for these. With `always` they also wait for changes of others
// that the client has read, so that no client sees what a power failure takes back.
size_t EventLoop::Writable(Connection& connection) {
  const Client& client = connection.client;
  const size_t pending = client.out.pending();
  const journal::Barrier* const barrier = host_.barrier();
  if (barrier == nullptr) [[likely]]
    return connection.hold.Produced(pending, 0, UINT64_MAX);
  const uint64_t ticket =
      barrier->always() ? std::max(client.sending.wrote, client.sending.saw) : client.sending.wrote;
  return connection.hold.Produced(pending, ticket, barrier->kept());
}

// ---- output that waits for the barrier ----

// Sends the output whose changes are kept.
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

// At the end of a round: decides which thread writes the records that the answers of this loop wait
// for.
void EventLoop::SettleHeld() {
  writes_log_ = MayWriteLog();
  if (writes_log_) return;
  held_.BeginWait();
  LetGo();
  if (held_.empty()) return held_.EndWait();
  // A thread that was found merging looks once more.
  if (held_.newest() > asked_ || !left_to_others_) engine_.journal().Nudge();
}

// Merges and writes the records that the answers of this loop wait for: two threads that wake each
// other would take longer. The next round follows at once and sends the answers that are kept by
// then. REQUIRES: outside the gate, since a write may have to wait for the disk.
void EventLoop::WriteLog() {
  if (!writes_log_) return;
  asked_ = held_.newest();
  left_to_others_ = !engine_.journal().MergeHere();
}

// The log cannot be written and may never be. A client that has waited too long is closed without
// an answer, as when a connection breaks. With `always` it goes on waiting.
void EventLoop::CloseOwed() {
  const journal::Barrier* const barrier = host_.barrier();
  if (barrier == nullptr || barrier->always() || barrier->good()) return;
  std::vector<Connection*> owed;
  for (const OutputHold* hold : held_.all()) {
    if (lane_.now_ms - hold->since_ms() > kOwedMs) owed.push_back(&hold->owner());
  }
  for (Connection* connection : owed) {
    spdlog::warn("Client id={} addr={} closed: its write cannot be written to the AOF.",
                 connection->client.id, connection->client.peer.addr);
    Close(*connection);
  }
}

// ---- sending ----

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
  if (client.sending.feed != nullptr && !client.out.empty()) [[unlikely]] {
    spdlog::warn(
        "Replica generated a reply to command '{}', disconnecting it: addr={}",
        client.activity.last_command == nullptr ? "" : client.activity.last_command->full_name,
        client.peer.addr);
    return Close(connection);
  }
  for (size_t writable = Writable(connection); writable > 0;) {
    iovec vectors[64];
    const size_t count = Limit(vectors, client.out.Gather(vectors, 64), writable);
    const net::Transfer sent = connection.transport->Writev(vectors, count);
    lane_.stats.net.writes.Add();
    if (sent.outcome == net::Transfer::Outcome::kAgain) break;
    if (!sent.done()) return Close(connection);
    lane_.stats.net.output.Add(sent.bytes);
    client.activity.net_output += sent.bytes;
    client.activity.last_active_ms = lane_.now_ms;
    client.out.Consume(sent.bytes);
    connection.hold.Sent(sent.bytes);
    writable -= sent.bytes;
  }
  connection.wants_write = connection.hold.writable() > 0;
  if (client.sending.feed != nullptr) [[unlikely]] {
    if (!SendFeed(connection)) return Close(connection);
  }
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
  // Its further input is of no use.
  if (client.has(engine::kClientCloseAfterReply)) SetReading(connection, false);
}

void EventLoop::SetReading(Connection& connection, bool on) {
  if (connection.wants_read == on) return;
  connection.wants_read = on;
  Ask(connection);
  if (on && connection.transport->Pending()) GoOnLater(connection);
}

// Tells epoll which events the connection waits for.
void EventLoop::Ask(Connection& connection) {
  const uint32_t wanted =
      (connection.wants_read ? EPOLLIN : 0U) | (connection.wants_write ? EPOLLOUT : 0U);
  const uint32_t events = connection.transport->Interest(wanted);
  if (events == connection.asked) return;
  connection.asked = events;
  loop_.Change(connection.client.peer.fd, events, &connection);
}

}  // namespace sava::front
