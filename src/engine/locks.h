// Locks: how one thread gets at the keyspace, through the gate and under the locks of stripes.
//
// This is the one place that takes stripes for work that may be logged: a thread that locks a
// stripe learns the last ticket of those that held it before, and hands on its own when it unlocks
// (journal/journal.h). The plain lock of a stripe is for work that logs nothing.
//
// Used by its own thread only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "journal/journal.h"
#include "keyspace/keyspace.h"

namespace sava::engine {

// The time of commands, in ticks: a command's time begins when the one before it ended, or when the
// thread last stopped waiting for a lock.
class CommandTimer {
 public:
  void Restart() { last_ = base::Ticks(); }
  uint64_t last() const { return last_; }
  // The command's time began then: what ran inside it has taken its own.
  void BeganAt(uint64_t ticks) { last_ = ticks; }
  // The ticks since; the next command's time begins.
  uint64_t Take() {
    const uint64_t now = base::Ticks();
    const uint64_t taken = now - last_;
    last_ = now;
    return taken;
  }

 private:
  uint64_t last_ = 0;
};

// The stripes a command or transaction needs.
class LockSet {
 public:
  void Add(size_t stripe) { bits_[stripe / 64] |= uint64_t{1} << (stripe % 64); }
  void AddAll() { all_ = true; }
  bool all() const { return all_; }
  bool empty() const { return !all_ && bits_[0] == 0 && bits_[1] == 0; }
  // More than one stripe.
  bool many() const {
    return ((bits_[0] & (bits_[0] - 1)) | (bits_[1] & (bits_[1] - 1))) != 0 ||
           (bits_[0] != 0 && bits_[1] != 0);
  }
  size_t stripes() const {
    return static_cast<size_t>(std::popcount(bits_[0])) +
           static_cast<size_t>(std::popcount(bits_[1]));
  }
  // REQUIRES: there is one.
  size_t first() const {
    return static_cast<size_t>(bits_[0] != 0 ? std::countr_zero(bits_[0])
                                             : 64 + std::countr_zero(bits_[1]));
  }
  bool has(size_t stripe) const { return all_ || (bits_[stripe / 64] >> (stripe % 64) & 1) != 0; }
  // In ascending order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t word = 0; word < 2; ++word) {
      for (uint64_t bits = bits_[word]; bits != 0; bits &= bits - 1) {
        visit(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
      }
    }
  }

 private:
  static_assert(keyspace::Keyspace::kStripes == 128);
  uint64_t bits_[2] = {0, 0};
  bool all_ = false;
};

class Locks {
 public:
  Locks(keyspace::Keyspace* keyspace, const journal::Journal* journal, size_t lane)
      : keyspace_(*keyspace), journal_(*journal), lane_(lane) {}
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;

  // Waiting for a lock is not counted as a command's time.
  CommandTimer& timer() { return timer_; }

  // ---- the gate ----
  // A round of the loop is spent inside; batches outside of rounds pass for themselves.
  void BeginRound();
  void EndRound();
  bool in_round() const { return in_round_; }
  // True when the thread was outside for a moment, because another one wants to close the gate.
  bool BeginBatch();
  void EndBatch();
  bool gate_wanted() const { return !exclusive_ && keyspace_.gate().wanted(); }
  // Lets the thread that wants to close the gate do so. REQUIRES: inside.
  void StepAside();
  // This thread holds the gate closed: it is alone, and needs no stripe.
  bool exclusive() const { return exclusive_; }
  // REQUIRES: not exclusive().
  void CloseGate();
  void OpenGate();

  // ---- stripes ----
  // The stripe kept for the next command; -1: none.
  int held() const { return held_; }
  bool holds(size_t stripe) const { return held_ == static_cast<int>(stripe); }
  void ReleaseHeld() {
    if (held_ < 0) return;
    keyspace_.stripe(static_cast<size_t>(held_)).Unlock(seen_);
    held_ = -1;
  }
  // A command's locks. A single stripe becomes the held one; false when it could not be had in
  // time. More than 64 stripes, or all: the gate. REQUIRES: not exclusive().
  bool Lock(const LockSet& set);
  // Stripes other than the held one.
  void Unlock(const LockSet& set);
  // One more stripe for a command that runs under those of the set and cannot begin again. Only one
  // thread may wait for one (kTaken: another does), and no thread that it waits for waits for it:
  // docs/locking.md has the argument, tools/lock_extension.pml the model. `stopped` is asked while
  // it waits. REQUIRES: not exclusive(); the set does not have it.
  enum class Extended : uint8_t { kYes, kTaken, kStopped };
  template <typename Stopped>
  Extended Extend(LockSet* set, size_t stripe, const Stopped& stopped);

  // ---- tickets ----
  // The last ticket known to this thread, from locks and its own records.
  uint64_t seen() const { return seen_; }
  void set_seen(uint64_t ticket) { seen_ = ticket; }
  // Later records come after everything that has a ticket now.
  void SeeAll() {
    if (journal_.enabled()) seen_ = std::max(seen_, journal_.next_ticket() - 1);
  }

 private:
  friend class StripeGuard;
  friend class LockSetGuard;

  bool TryLock(size_t stripe) { return keyspace_.stripe(stripe).TryLock(&seen_); }
  void LockPatiently(size_t stripe) {
    if (TryLock(stripe)) return;
    while (!LockWithin(stripe)) keyspace_.gate().Serve(lane_);
    timer_.Restart();
  }
  bool LockWithin(size_t stripe) {
    return keyspace_.stripe(stripe).LockWithin(kServeMillis, &seen_);
  }
  void LockInOrder(const LockSet& set);
  bool LockOrGiveWay(const LockSet& set, size_t stripe);
  void AddHeld(LockSet* set, size_t stripe);
  void Unlock(size_t stripe) { keyspace_.stripe(stripe).Unlock(seen_); }
  bool Hold(size_t stripe);
  static bool NeedsGate(const LockSet& set) { return set.all() || set.stripes() > 64; }

  // After waiting this long a thread looks whether there is something else it has to do.
  static constexpr int64_t kServeMillis = 2;
  // A stripe held longer than this by another thread: the connection waits, the loop goes on.
  static constexpr int64_t kPatienceMicros = 50;

  keyspace::Keyspace& keyspace_;
  const journal::Journal& journal_;
  const size_t lane_;
  CommandTimer timer_;
  int held_ = -1;
  bool inside_ = false;    // of the gate
  bool in_round_ = false;  // and stays there between batches
  bool exclusive_ = false;
  uint64_t seen_ = 0;
};

template <typename Stopped>
Locks::Extended Locks::Extend(LockSet* set, size_t stripe, const Stopped& stopped) {
  if (keyspace_.stripe(stripe).TryLockFor(kPatienceMicros, &seen_)) {
    AddHeld(set, stripe);
    return Extended::kYes;
  }
  if (!keyspace_.gate().BeginExtending()) return Extended::kTaken;
  bool locked = false;
  while (!(locked = LockWithin(stripe)) && !stopped()) {
  }
  keyspace_.gate().EndExtending();
  if (locked) AddHeld(set, stripe);
  return locked ? Extended::kYes : Extended::kStopped;
}

// One stripe for the life of the guard; none when the gate is closed by this thread. The stripe
// kept for the next command is given back first.
class StripeGuard {
 public:
  enum class How : uint8_t { kWait, kTry };
  StripeGuard(Locks& locks, size_t stripe, How how = How::kWait) : locks_(locks), stripe_(stripe) {
    if (locks.exclusive()) {
      locked_ = true;
      return;
    }
    locks.ReleaseHeld();
    if (how == How::kTry) {
      owns_ = locked_ = locks.TryLock(stripe);
    } else {
      locks.LockPatiently(stripe);
      owns_ = locked_ = true;
    }
  }
  ~StripeGuard() {
    if (owns_) locks_.Unlock(stripe_);
  }
  StripeGuard(const StripeGuard&) = delete;
  StripeGuard& operator=(const StripeGuard&) = delete;
  // False when How::kTry found it taken.
  bool locked() const { return locked_; }

 private:
  Locks& locks_;
  const size_t stripe_;
  bool locked_ = false;
  bool owns_ = false;
};

// All stripes of a set, waited for; nothing when the gate is closed by this thread.
class LockSetGuard {
 public:
  LockSetGuard(Locks& locks, const LockSet& set);
  ~LockSetGuard();
  LockSetGuard(const LockSetGuard&) = delete;
  LockSetGuard& operator=(const LockSetGuard&) = delete;

 private:
  Locks& locks_;
  const LockSet& set_;
  const bool nested_;
};

// The gate closed by this thread, which may have done that before.
class GateGuard {
 public:
  explicit GateGuard(Locks& locks) : locks_(locks), nested_(locks.exclusive()) {
    if (!nested_) locks_.CloseGate();
  }
  ~GateGuard() {
    if (!nested_) locks_.OpenGate();
  }
  GateGuard(const GateGuard&) = delete;
  GateGuard& operator=(const GateGuard&) = delete;

 private:
  Locks& locks_;
  const bool nested_;
};

}  // namespace sava::engine
