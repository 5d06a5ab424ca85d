#include "types/field_names.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "base/rng.h"

namespace sava::types {

namespace {

bool Fits(std::string_view name) {
  return name.size() >= FieldNames::kShortest && name.size() <= FieldNames::kLongest;
}

}  // namespace

FieldNames& FieldNames::Shared() {
  // Never destroyed: hashes may outlive every other static.
  static FieldNames* const shared = new FieldNames;
  return *shared;
}

FieldNames::FieldNames() : seed_(base::SecureRandom64()) {}

FieldNames::~FieldNames() {
  for (const auto& text : texts_) free(const_cast<Text*>(text.load(std::memory_order_relaxed)));
}

uint16_t FieldNames::Find(std::string_view name) const {
  if (!Fits(name) || size() == 0) return kNone;
  const uint64_t hash = base::HashBytes(name, seed_);
  for (size_t at = hash % kSlots;; at = (at + 1) % kSlots) {
    const uint16_t slot = slots_[at].load(std::memory_order_acquire);
    if (slot == 0) return kNone;
    const auto number = static_cast<uint16_t>(slot - 1);
    if (Name(number) == name) return number;
  }
}

uint16_t FieldNames::Use(std::string_view name) {
  if (!Fits(name)) return kNone;
  const uint16_t number = Find(name);
  if (number != kNone || size() >= kMost) return number;
  const uint64_t hash = base::HashBytes(name, seed_);
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
  return Take(name, hash);
}

void FieldNames::Halve() {
  for (auto& counter : seen_) {
    counter.store(counter.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  }
}

uint16_t FieldNames::Take(std::string_view name, uint64_t hash) {
  const std::lock_guard lock(mutex_);
  const size_t count = size();
  const uint16_t known = Find(name);
  if (known != kNone || count >= kMost) return known;
  auto* text = static_cast<Text*>(malloc(sizeof(Text) + name.size()));
  if (text == nullptr) throw std::bad_alloc();
  text->size = static_cast<uint8_t>(name.size());
  memcpy(text + 1, name.data(), name.size());
  texts_[count].store(text, std::memory_order_release);
  text_bytes_.fetch_add(sizeof(Text) + name.size(), std::memory_order_relaxed);
  size_t at = hash % kSlots;
  while (slots_[at].load(std::memory_order_relaxed) != 0) at = (at + 1) % kSlots;
  slots_[at].store(static_cast<uint16_t>(count + 1), std::memory_order_release);
  count_.store(count + 1, std::memory_order_release);
  return static_cast<uint16_t>(count);
}

}  // namespace sava::types
