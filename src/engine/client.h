// Client: one connected client as the engine knows it. Owned by its lane's thread; other threads
// reach it only through the lane's mailbox, or with the gate closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "commands/registry.h"
#include "commands/session.h"
#include "engine/origin.h"
#include "engine/output_feed.h"
#include "engine/tracking_state.h"
#include "keyspace/keyspace.h"
#include "protocol/out_buffer.h"

namespace sava::access {
struct User;
}

namespace sava::engine {

class RateBucket;
struct Client;
struct Waiter;

enum ClientFlag : uint32_t {
  kClientMulti = 1U << 0,      // MULTI was called: commands are queued
  kClientDirtyExec = 1U << 1,  // an error while queueing: EXEC will refuse
  kClientMonitor = 1U << 2,
  kClientCloseAfterReply = 1U << 3,
  kClientCloseNow = 1U << 4,
  kClientReplyOff = 1U << 5,
  kClientReplySkipNext = 1U << 6,
  kClientReplySkip = 1U << 7,
  kClientNoEvict = 1U << 8,
  kClientNoTouch = 1U << 9,
  kClientUnixSocket = 1U << 10,
  kClientBlocked = 1U << 11,  // waits for an answer (a blocking command, WAIT, SAVE)
  kClientPaused = 1U << 12,   // its next command waits for CLIENT UNPAUSE
  kClientParked = 1U << 13,   // its next command waits for a lock, or for its turn
  kClientLocal = 1U << 14,    // connected from this machine
  kClientInExec = 1U << 15,
  kClientFlushQueued = 1U << 16,  // is in its lane's to_flush
  kClientReplica = 1U << 17,      // is sent the data set and what changes in it
  kClientMaster = 1U << 18,       // this server's master
  kClientInScript = 1U << 19,     // the command that runs was called by its script
};

struct QueuedCommand {
  const commands::Command* command;
  std::vector<std::string> args;
};

struct WatchedKey {
  int db;
  std::string key;
};

// The other end of its connection.
struct Peer {
  int fd = -1;        // of the socket
  std::string addr;   // peer "ip:port" or socket path
  std::string laddr;  // our side
  std::string lib_name;
  std::string lib_ver;
  std::unique_ptr<Announcement> announced;  // what it has said with REPLCONF
};

// What leaves besides the replies in `out`, and when all of it may leave.
struct Sending {
  std::shared_ptr<OutputFeed> feed;  // follows `out`; nullptr: nothing does
  std::string pushed;  // while its replies are silenced: messages of the running command
  // The output tells of changes with tickets below these: those it has made or was told of, and
  // those it has read. They never decrease: output leaves in order.
  uint64_t wrote = 0;
  uint64_t saw = 0;
};

struct Transaction {
  std::vector<QueuedCommand> queue;
  size_t queue_bytes = 0;
  keyspace::Watcher watcher;
  std::vector<WatchedKey> watched;
};

// Mirrors what PubSub holds for the client.
struct Subscriptions {
  std::set<std::string, std::less<>> channels;
  std::set<std::string, std::less<>> patterns;
  std::set<std::string, std::less<>> shard_channels;

  // As the replies to SUBSCRIBE and PSUBSCRIBE count them.
  size_t count() const { return channels.size() + patterns.size(); }
};

// How a client that is blocked goes on.
struct ClientWait {
  // The engine resumes it at this time (0: never by time), and answers with on_timeout.
  int64_t deadline_ms = 0;
  std::function<void(Client&)> on_timeout;
  uint64_t token = 0;              // counts how often it was blocked to get an answer by mail
  std::shared_ptr<Waiter> waiter;  // while it waits for keys
  int64_t alarm_ms = INT64_MAX;    // its place in its lane's alarms
};

// The limiter's facts about a client. The buckets are valid for one configuration (see
// Limiter::Resolve). Code that changes the client's user sets `generation` to 0.
struct ClientRate {
  std::shared_ptr<RateBucket> user;
  std::shared_ptr<RateBucket> address;
  uint64_t generation = 0;
  bool authenticated = false;
  bool paid = false;    // for a command that had to wait before it could run
  bool exempt = false;  // not a client from outside
};

// For CLIENT LIST; kept by the network side.
struct ClientActivity {
  int64_t created_ms = 0;
  int64_t last_active_ms = 0;
  const commands::Command* last_command = nullptr;
  uint64_t commands = 0;
  uint64_t net_input = 0;
  uint64_t net_output = 0;
};

// A client's memory, for the limits on it; kept by the network side.
struct ClientBytes {
  size_t query_bytes = 0;  // input of the commands that are under way, and behind them
  size_t query_capacity = 0;
  size_t argument_bytes = 0;
  size_t counted_bytes = 0;  // of its buffers, as its lane counts them
  // Of all it takes, as its lane counts them for maxmemory-clients; see Charge.
  std::atomic<size_t> charged_bytes{0};
  size_t names_bytes = 0;           // of its subscriptions, watches and prefixes,
  size_t names_counted = 0;         // when there were this many of them
  int64_t soft_limit_since_ms = 0;  // when the output first passed the soft limit, 0: below
};

struct Client : commands::Session {
  size_t lane = 0;
  int db = 0;
  uint32_t flags = 0;
  Origin origin = kFromClient;
  // The rules that limit it; nullptr: it may do everything. Follows from `user`; for a client of
  // another thread it is changed with the gate closed, together with the rules.
  const access::User* acl = nullptr;
  protocol::OutBuffer out;
  Sending sending;
  Peer peer;
  Transaction transaction;
  Subscriptions subscriptions;
  std::unique_ptr<TrackingState> tracking;  // nullptr: it does not track keys
  ClientWait wait;
  ClientRate rate;
  ClientActivity activity;
  ClientBytes memory;

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  void set(uint32_t flag, bool on = true) { flags = on ? flags | flag : flags & ~flag; }
  // The output since the mark is a push: CLIENT REPLY OFF and SKIP do not silence it.
  void KeepPush(size_t mark) {
    if (!has(kClientReplyOff | kClientReplySkip)) return;
    sending.pushed += out.Since(mark);
    out.TruncateTo(mark);
  }
  bool subscribed() const {
    return subscriptions.count() + subscriptions.shard_channels.size() > 0;
  }
  // Waits for something: its further input is left alone.
  bool waiting() const { return has(kClientBlocked | kClientPaused | kClientParked); }
  // Blocked, and its answer is not on its way.
  bool blocked() const;
};

}  // namespace sava::engine
