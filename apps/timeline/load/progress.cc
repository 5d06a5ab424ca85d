#include "load/progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace timeline {

Progress::Progress(std::string what, std::int64_t total, std::int64_t done)
    : what_(std::move(what)),
      total_(total),
      first_(done),
      done_(done),
      terminal_(isatty(2) != 0),
      start_(std::chrono::steady_clock::now()),
      drawn_(start_) {}

void Progress::Add(std::int64_t count) {
  done_ += count;
  auto now = std::chrono::steady_clock::now();
  auto tenth = total_ > 0 ? 10 * done_ / total_ : 10;
  if (terminal_ ? now - drawn_ > std::chrono::milliseconds(200) : tenth != shown_) {
    drawn_ = now;
    shown_ = tenth;
    Show(false);
  }
}

void Progress::Finish() { Show(true); }

void Progress::Show(bool last) {
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
  double rate = taken.count() > 0 ? static_cast<double>(done_ - first_) / taken.count() : 0;
  auto percent = total_ > 0 ? 100 * done_ / total_ : 100;
  auto bar = std::string(static_cast<std::size_t>(percent / 5), '#');
  bar.resize(20, ' ');
  fmt::print(stderr, "{}{:8} [{}] {:3} %  {} of {}, {:.0f}/s, {:.0f} s{}", terminal_ ? "\r" : "",
             what_, bar, percent, done_, total_, rate, taken.count(),
             terminal_ && !last ? "" : "\n");
}

}  // namespace timeline
