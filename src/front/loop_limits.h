// LoopLimits: the settings that loops and the main thread look at outside the gate. They are
// copies, which CONFIG SET keeps up to date.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "config/settings.h"

namespace sava::front {

struct LoopLimits {
  std::atomic<int64_t> max_bulk{512LL << 20};
  std::atomic<uint64_t> query_buffer{1ULL << 30};
  std::atomic<uint64_t> client_memory{0};  // of all clients that may be closed; 0: no limit
  std::atomic<int64_t> timeout{0};
  std::atomic<int64_t> keepalive{300};
  std::atomic<int64_t> hz{10};
  std::atomic<int64_t> shutdown_timeout{10};  // seconds
  std::atomic<uint32_t> on_sigint{0};         // engine::ShutdownFlag bits
  std::atomic<uint32_t> on_sigterm{0};
  std::atomic<size_t> maxclients{10000};
  std::atomic<bool> refuse_strangers{true};  // protected mode without a password
  std::atomic<bool> one_loop{false};         // new connections go to the first loop

  // open: clients need no password.
  void Load(const config::Settings& settings, bool open);
};

}  // namespace sava::front
