// Running: the scripts that run now, at most one per thread, and how long scripts are ended.
//
// Thread safety: Begin, TooLong and End on the script's thread; the rest on any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "commands/spec.h"

namespace sava::script {

enum class Kind : uint8_t { kScript, kFunction };

// For clients that wait for a script that takes long.
inline constexpr char kBusyScript[] =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
inline constexpr char kBusyFunction[] =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

inline constexpr char kUnkillable[] =
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can "
    "either "
    "wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE "
    "command.";

class Running {
 public:
  // Decided once: a script that has written is not killed, one that is killed writes
  // nothing any more.
  enum class Fate : uint8_t { kOpen, kWrites, kKilled };
  struct Slot {
    std::atomic<bool> active{false};
    std::atomic<bool> too_long{false};
    std::atomic<Fate> fate{Fate::kOpen};
    std::atomic<Kind> kind{Kind::kScript};
    std::atomic<int64_t> began_us{0};
    // Guarded by Running's mutex.
    std::string name;
    std::vector<std::string> words;
  };

  explicit Running(size_t lanes) : slots_(std::make_unique<Slot[]>(lanes)), count_(lanes) {}

  Slot& Begin(size_t lane, Kind kind, int64_t now_us);
  // It has taken too long; its name and words are kept for FUNCTION STATS.
  void TooLong(size_t lane, std::string_view name, commands::Args words);
  void End(size_t lane);

  enum class Outcome : uint8_t { kYes, kNothingRuns, kHasWritten, kOtherKind };
  // All of the kind that take too long and have not written.
  Outcome Kill(Kind kind);
  // Before a script writes; false: it is killed.
  static bool MayWrite(Slot& slot) {
    Fate expected = Fate::kOpen;
    return slot.fate.compare_exchange_strong(expected, Fate::kWrites) || expected == Fate::kWrites;
  }
  bool Killed(const Slot& slot) const {
    return slot.fate.load(std::memory_order_acquire) == Fate::kKilled || ending_.load();
  }
  // All, whatever they have done, and those that come: the server ends, or does not after all.
  void KillAll(bool on) { ending_.store(on); }
  bool ending() const { return ending_.load(); }

  struct Report {
    std::string name;
    std::vector<std::string> words;
    int64_t began_us;
  };
  // Whether one runs that began before this moment (of the clock that Begin was given).
  bool AnyBefore(int64_t us) const;
  // A function that takes too long.
  std::optional<Report> LongFunction() const;
  // The kind of one that takes too long.
  std::optional<Kind> LongKind() const;

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<Slot[]> slots_;
  const size_t count_;
  std::atomic<bool> ending_{false};
};

}  // namespace sava::script
