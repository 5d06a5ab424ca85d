// A line that says how far a long command is: a bar on a terminal, otherwise a line every tenth.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace timeline {

class Progress {
 public:
  Progress(std::string what, std::int64_t total, std::int64_t done);
  void Add(std::int64_t count);
  void Finish();

 private:
  void Show(bool last);

  std::string what_;
  std::int64_t total_;
  std::int64_t first_;
  std::int64_t done_;
  std::int64_t shown_ = -1;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace timeline
