#include "script/running.h"

namespace sava::script {

Running::Slot& Running::Begin(size_t lane, Kind kind, int64_t now_us) {
  Slot& slot = slots_[lane];
  slot.kind.store(kind, std::memory_order_relaxed);
  slot.began_us.store(now_us, std::memory_order_relaxed);
  slot.fate.store(Fate::kOpen, std::memory_order_relaxed);
  slot.too_long.store(false, std::memory_order_relaxed);
  slot.active.store(true, std::memory_order_release);
  return slot;
}

void Running::TooLong(size_t lane, std::string_view name, commands::Args words) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[lane];
  slot.name = name;
  slot.words.assign(words.begin(), words.end());
  slot.too_long.store(true, std::memory_order_release);
}

void Running::End(size_t lane) {
  Slot& slot = slots_[lane];
  if (slot.too_long.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    slot.name.clear();
    slot.words.clear();
    slot.too_long.store(false, std::memory_order_relaxed);
  }
  slot.active.store(false, std::memory_order_release);
}

Running::Outcome Running::Kill(Kind kind) {
  const std::lock_guard lock(mutex_);
  Outcome result = Outcome::kNothingRuns;
  bool killed = false;
  for (size_t i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    if (!slot.too_long.load(std::memory_order_acquire)) continue;
    if (slot.kind.load(std::memory_order_relaxed) != kind) {
      if (result == Outcome::kNothingRuns) result = Outcome::kOtherKind;
    } else if (Fate expected = Fate::kOpen;
               !slot.fate.compare_exchange_strong(expected, Fate::kKilled) &&
               expected == Fate::kWrites) {
      result = Outcome::kHasWritten;
    } else {
      killed = true;
    }
  }
  return killed ? Outcome::kYes : result;
}

bool Running::AnyBefore(int64_t us) const {
  for (size_t i = 0; i < count_; ++i) {
    const Slot& slot = slots_[i];
    if (slot.active.load(std::memory_order_acquire) &&
        slot.began_us.load(std::memory_order_relaxed) < us) {
      return true;
    }
  }
  return false;
}

std::optional<Running::Report> Running::LongFunction() const {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < count_; ++i) {
    const Slot& slot = slots_[i];
    if (!slot.too_long.load(std::memory_order_acquire) ||
        slot.kind.load(std::memory_order_relaxed) != Kind::kFunction) {
      continue;
    }
    return Report{slot.name, slot.words, slot.began_us.load(std::memory_order_relaxed)};
  }
  return std::nullopt;
}

std::optional<Kind> Running::LongKind() const {
  for (size_t i = 0; i < count_; ++i) {
    if (slots_[i].too_long.load(std::memory_order_acquire)) {
      return slots_[i].kind.load(std::memory_order_relaxed);
    }
  }
  return std::nullopt;
}

}  // namespace sava::script
