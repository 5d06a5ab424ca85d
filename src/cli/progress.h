// ProgressLine: how far a long piece of work is, on one line of standard error that overwrites
// itself. Only a person at a terminal sees it. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace sava::cli {

class ProgressLine {
 public:
  // "43 % of WHAT"; below `least` nothing is shown.
  ProgressLine(std::string what, uint64_t total, uint64_t least);
  // Removes the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Update(uint64_t done);

 private:
  const std::string what_;
  const uint64_t total_;
  const bool shown_;
  uint64_t percent_ = UINT64_MAX;
};

// Work on files from this size on shows its progress.
inline constexpr uint64_t kLargeFile = 64 << 20;

}  // namespace sava::cli
