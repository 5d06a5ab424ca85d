#include "types/collections/shared_texts.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "base/rng.h"

namespace sava::types {

// Never destroyed: hashes may outlive every other static.
SharedTexts& SharedTexts::FieldNames() {
  static SharedTexts* const shared = new SharedTexts(kShortestName);
  return *shared;
}

SharedTexts& SharedTexts::FieldValues() {
  static SharedTexts* const shared = new SharedTexts(kShortestValue);
  return *shared;
}

SharedTexts::SharedTexts(size_t shortest) : shortest_(shortest), seed_(base::SecureRandom64()) {}

SharedTexts::~SharedTexts() {
  for (const auto& text : texts_) free(const_cast<Kept*>(text.load(std::memory_order_relaxed)));
}

uint16_t SharedTexts::Find(std::string_view text) const {
  if (!Fits(text) || size() == 0) return kNone;
  return Find(text, base::HashBytes(text, seed_));
}

uint16_t SharedTexts::Find(std::string_view text, uint64_t hash) const {
  for (size_t at = hash % kSlots;; at = (at + 1) % kSlots) {
    const uint16_t slot = slots_[at].load(std::memory_order_acquire);
    if (slot == 0) return kNone;
    const auto number = static_cast<uint16_t>(slot - 1);
    if (Text(number) == text) return number;
  }
}

// Whether a text that was put counts: when it has no number, and such are not all that
// this thread has met for long.
bool SharedTexts::Counts(bool known) const {
  thread_local std::array<uint32_t, kShortestValue + 1> strange{};  // in a row, by shortest_
  uint32_t& row = strange[std::min(shortest_, kShortestValue)];
  if (known) {
    row = 0;
    return false;
  }
  return ++row <= kStrange || row % kSample == 0;
}

uint16_t SharedTexts::Use(std::string_view text) {
  if (!Fits(text)) return kNone;
  const uint64_t hash = base::HashBytes(text, seed_);
  const uint16_t number = Find(text, hash);
  if (size() >= kMost || !Counts(number != kNone)) return number;
  std::atomic<uint8_t>& counter = seen_[(hash >> 32) % kCounters];
  const uint8_t seen = counter.load(std::memory_order_relaxed);
  if (seen % kStep == kStep - 1 &&
      steps_.fetch_add(1, std::memory_order_relaxed) % kCounters == kCounters - 1) {
    Halve();
  }
  if (seen < kWanted) {
    // What two threads count at once may count as one.
    counter.store(static_cast<uint8_t>(seen + 1), std::memory_order_relaxed);
    return kNone;
  }
  counter.store(0, std::memory_order_relaxed);
  return Take(text, hash);
}

void SharedTexts::Halve() {
  for (auto& counter : seen_) {
    counter.store(counter.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  }
}

uint16_t SharedTexts::Take(std::string_view text, uint64_t hash) {
  const std::lock_guard lock(mutex_);
  const size_t count = size();
  const uint16_t known = Find(text, hash);
  if (known != kNone || count >= kMost) return known;
  auto* kept = static_cast<Kept*>(malloc(sizeof(Kept) + text.size()));
  if (kept == nullptr) throw std::bad_alloc();
  kept->size = static_cast<uint8_t>(text.size());
  memcpy(kept + 1, text.data(), text.size());
  texts_[count].store(kept, std::memory_order_release);
  text_bytes_.fetch_add(sizeof(Kept) + text.size(), std::memory_order_relaxed);
  size_t at = hash % kSlots;
  while (slots_[at].load(std::memory_order_relaxed) != 0) at = (at + 1) % kSlots;
  slots_[at].store(static_cast<uint16_t>(count + 1), std::memory_order_release);
  count_.store(count + 1, std::memory_order_release);
  return static_cast<uint16_t>(count);
}

}  // namespace sava::types
