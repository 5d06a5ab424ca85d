// Replica: a server, or a tool, that gets the data of this one, as the thread that serves it and
// the others see it.
//
// Thread safety: what says so under its mutex; the atomics anywhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "commands/stock.h"
#include "engine/output_feed.h"
#include "replication/change_stream.h"
#include "replication/transfer.h"

namespace sava::replication {

struct Replica {
  enum class State : uint8_t { kWaits, kTransfer, kOnline };
  // What it has said of itself.
  struct Identity {
    std::string address;  // of its connection
    std::string ip;       // as others reach it
    int64_t port = 0;
    engine::Announcement announced;
    bool psync = false;                                  // else SYNC: it sends no acknowledgements
    commands::Reader reader = commands::Reader::kStock;  // it gets what that one knows
  };
  // What its feed and other threads tell each other.
  struct Signals {
    std::atomic<bool> idle{false};  // the feed has found nothing, and must be woken
    std::atomic<bool> drop{false};  // the replica must be closed
    std::atomic<bool> late{false};  // the feed must check whether too much waits for the replica
    std::atomic<bool> gone{false};  // the connection is closed
  };
  // Its last acknowledgement.
  struct Acks {
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> disk_bytes{-1};
    std::atomic<int64_t> at_ms{0};
  };
  // What it is sent first.
  struct Copy {
    std::shared_ptr<Transfer> transfer;
    std::shared_ptr<Transfer::Reader> reader;
    ChangeStream::Mark mark;
    std::string end_mark;  // of the $EOF form
  };

  uint64_t client = 0;
  size_t lane = 0;
  Identity identity;
  int64_t since_ms = 0;
  std::function<void()> wake;  // makes its loop look at its feed

  std::atomic<State> state{State::kWaits};
  Signals signals;
  std::atomic<uint64_t> sent{0};     // bytes of all kinds
  std::atomic<int64_t> position{0};  // what was sent of the stream
  Acks acks;

  std::mutex mutex;
  std::optional<Copy> copy;  // guarded by mutex; taken by its feed
  bool failed = false;       // guarded by mutex: there will be none

  std::string name() const {
    return (identity.ip.empty() ? identity.address : identity.ip) + ":" +
           std::to_string(identity.port);
  }
  bool online() const { return state.load(std::memory_order_acquire) == State::kOnline; }
  // Waits for a copy, and none is being made for it. Under the master's mutex.
  bool queued = true;
};

}  // namespace sava::replication
