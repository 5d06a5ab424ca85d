// GuestPolicy: decides whether one thread runs all event loops or each loop its own, where answers
// wait for the disk (docs/adr/0010-one-thread-for-writers-that-wait.md).
//
// Gathered, the one thread is watched for some milliseconds at a time. When it had next to nothing
// to wait for, neither for events nor at the log, several times in a row (a host that takes the
// processor away for a moment spoils one time, not a row), the threads part. Whether that pays is
// tried, not guessed: when they execute hardly more commands together, they gather again, and the
// next try comes after twice as long. Apart, they gather when there is no more to do than one
// thread can.
//
// Thread safety: none; the first loop's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sava::server {

class GuestPolicy {
 public:
  enum class Verdict : uint8_t { kStay, kGather, kPart };
  // All of them only grow from one Watch on, but for commands (CONFIG RESETSTAT). Times in
  // microseconds.
  struct Reading {
    uint64_t now = 0;
    uint64_t idle = 0;      // what the threads that run rounds have waited for events, together
    uint64_t log = 0;       // what the first of them has spent at the log
    uint64_t commands = 0;  // that all have executed
  };

  static constexpr uint64_t kWatch = 5'000;
  static constexpr int kBusyWatches = 6;  // in a row
  static constexpr uint64_t kIdleShare = 20;
  static constexpr uint64_t kLogShare = 4;
  static constexpr uint64_t kTry = 200'000;
  static constexpr uint64_t kFirstPause = 1'000'000;
  static constexpr uint64_t kLongestPause = 60'000'000;

  // Whether it is time for Judge.
  bool Due(uint64_t now) const { return now >= next_; }
  // gathered: one thread runs all loops, or is to. Otherwise `loops` threads do. A verdict to
  // gather or to part is to be carried out, and then Watch to be called.
  Verdict Judge(bool gathered, const Reading& at, size_t loops) {
    return gathered ? JudgeGathered(at) : JudgeApart(at, loops);
  }
  // Looks from here on: who is counted in Reading::idle has changed.
  void Watch(bool gathered, const Reading& at) {
    watch_ = at;
    if (busy_ == 0) busy_since_ = at;
    next_ = at.now + (gathered ? kWatch : trying_ ? kTry : kFirstPause);
  }
  // Answers do not wait for the disk any more: when they do again, the threads gather at once.
  // Costs nothing when called again and again.
  void Forget() {
    if (begun_) *this = GuestPolicy();
  }

 private:
  Verdict JudgeGathered(const Reading& at) {
    const uint64_t watched = at.now - watch_.now;
    const bool busy =
        at.idle - watch_.idle < watched / kIdleShare && at.log - watch_.log < watched / kLogShare;
    busy_ = busy ? busy_ + 1 : 0;
    Watch(true, at);
    if (busy_ < kBusyWatches || at.now < part_after_) return Verdict::kStay;
    rate_ = Rate(busy_since_, at);
    busy_ = 0;
    trying_ = true;
    return Verdict::kPart;
  }

  Verdict JudgeApart(const Reading& at, size_t loops) {
    if (!begun_) {
      begun_ = true;
      return Verdict::kGather;
    }
    if (trying_) {
      trying_ = false;
      if (Rate(watch_, at) < rate_ * kWorthIt) {
        pause_ = pause_ == 0 ? kFirstPause : std::min(pause_ * 2, kLongestPause);
        part_after_ = at.now + pause_;
        return Verdict::kGather;
      }
      pause_ = 0;
      Watch(false, at);
      return Verdict::kStay;
    }
    const bool little = at.idle - watch_.idle > (at.now - watch_.now) * (loops - 1);
    Watch(false, at);
    return little ? Verdict::kGather : Verdict::kStay;
  }

  static constexpr double kWorthIt = 1.1;
  static double Rate(const Reading& from, const Reading& to) {
    if (to.commands < from.commands) return 0;  // CONFIG RESETSTAT
    return static_cast<double>(to.commands - from.commands) /
           static_cast<double>(to.now - from.now + 1);
  }

  bool begun_ = false;
  uint64_t next_ = 0;        // look
  Reading watch_;            // the last one
  int busy_ = 0;             // watches in a row that found no rest
  Reading busy_since_;       // when the row began
  bool trying_ = false;      // to be apart
  double rate_ = 0;          // commands a microsecond of one thread, before the try
  uint64_t pause_ = 0;       // after a try that did not pay
  uint64_t part_after_ = 0;  // not before
};

}  // namespace sava::server
