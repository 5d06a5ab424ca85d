// The part of EventLoop that sends a replica's feed, which follows its replies.
#include <vector>

#include "engine/output_feed.h"
#include "front/event_loop.h"

namespace sava::front {

using engine::Client;

namespace {

// Of a feed, in one round.
constexpr size_t kFeedBytes = 1 << 20;

}  // namespace

// Sends what follows its replies: as much as the socket takes, but others get their turn. False:
// the connection must be closed.
bool EventLoop::SendFeed(Connection& connection) {
  Client& client = connection.client;
  engine::OutputFeed& feed = *client.sending.feed;
  connection.wants_write = false;
  for (size_t sent_now = 0; sent_now < kFeedBytes;) {
    iovec vectors[64];
    const size_t count = feed.Gather(vectors, 64);
    if (count == 0) return !feed.over();
    const net::Transfer sent = connection.transport->Writev(vectors, count);
    lane_.stats.net.writes.Add();
    if (sent.outcome == net::Transfer::Outcome::kAgain) break;
    if (!sent.done()) return false;
    lane_.stats.net.output.Add(sent.bytes);
    client.activity.net_output += sent.bytes;
    feed.Sent(sent.bytes);
    sent_now += sent.bytes;
  }
  connection.wants_write = true;
  return true;
}

void EventLoop::TickFeed(Connection& connection, std::vector<Connection*>* idle) {
  if (connection.client.sending.feed->Tick(connection.client, lane_.now_ms)) {
    connection.client.set(engine::kClientFlushQueued);
    lane_.to_flush.push_back(&connection.client);
  } else {
    idle->push_back(&connection);
  }
}

}  // namespace sava::front
