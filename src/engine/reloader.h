// Reloader: what DEBUG RELOAD and LOADAOF need from the code that keeps the data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sava::engine {

// A blocked client that waits for an answer.
struct ReplyWaiter {
  size_t lane = 0;
  uint64_t client = 0;  // 0: none waits
  uint64_t token = 0;   // the client's block_token
};

class Reloader {
 public:
  enum Option : uint32_t { kMerge = 1, kNoFlush = 2, kNoSave = 4 };

  virtual ~Reloader() = default;
  // Answers when all data has been saved and loaded again.
  virtual void Reload(const ReplyWaiter& waiter, uint32_t options) = 0;
  // Answers when the log has been loaded again.
  virtual void LoadAof(const ReplyWaiter& waiter) = 0;
};

}  // namespace sava::engine
