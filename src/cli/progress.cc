#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace sava::cli {

ProgressLine::ProgressLine(std::string what, uint64_t total, uint64_t least)
    : what_(std::move(what)),
      total_(total),
      shown_(total > 0 && total >= least && isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (percent_ == UINT64_MAX) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

void ProgressLine::Update(uint64_t done) {
  if (!shown_) return;
  const auto percent = static_cast<uint64_t>(static_cast<double>(std::min(done, total_)) * 100 /
                                             static_cast<double>(total_));
  if (percent == percent_) return;
  percent_ = percent;
  fmt::print(stderr, "\r{} % of {}", percent, what_);
  std::fflush(stderr);
}

}  // namespace sava::cli
