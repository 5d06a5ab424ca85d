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
  // What it is to be sent first.
  struct Copy {
    std::shared_ptr<Transfer> transfer;
    std::shared_ptr<Transfer::Reader> reader;
    ChangeStream::Mark mark;
    std::string end_mark;  // of the $EOF form
  };

  uint64_t client = 0;
  size_t lane = 0;
  std::string address;  // of its connection
  std::string ip;       // as others reach it
  int64_t port = 0;
  engine::Announcement announced;
  bool psync = false;                                  // else SYNC: it sends no acknowledgements
  commands::Reader reader = commands::Reader::kStock;  // it gets what that one knows
  int64_t since_ms = 0;
  std::function<void()> wake;  // makes its loop look at its feed

  std::atomic<State> state{State::kWaits};
  std::atomic<bool> idle{false};        // its feed has found nothing, and is to be woken
  std::atomic<bool> drop{false};        // it must be closed
  std::atomic<bool> late{false};        // its feed is to look whether too much waits for it
  std::atomic<bool> gone{false};        // its connection is closed
  std::atomic<uint64_t> sent{0};        // bytes of all kinds
  std::atomic<int64_t> position{0};     // what was sent of the stream
  std::atomic<int64_t> acked{0};        // bytes it has
  std::atomic<int64_t> acked_disk{-1};  // bytes it has on disk
  std::atomic<int64_t> ack_ms{0};

  std::mutex mutex;
  std::optional<Copy> copy;  // guarded by mutex; taken by its feed
  bool failed = false;       // guarded by mutex: there will be none

  std::string name() const { return (ip.empty() ? address : ip) + ":" + std::to_string(port); }
  bool online() const { return state.load(std::memory_order_acquire) == State::kOnline; }
  // Waits for a copy, and none is being made for it. Under the master's mutex.
  bool queued = true;
};

}  // namespace sava::replication
