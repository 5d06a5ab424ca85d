// SharedTexts: numbers for the texts that many small hashes have in common, so that each of them
// holds two bytes instead of the text. A process has two: the names of fields, and values that are
// repeated. In files and replies texts are texts.
//
// A text is taken in when it has been put into hashes kWanted times or so lately, for good: there
// are at most kMost of them, of `shortest` to kLongest bytes, so nothing needs to be counted or
// freed. What was put lately is estimated by a table of small counters, halved now and then: texts
// that occur once each never get in. Threads share the counters, so one that meets only such texts
// counts few of them.
//
// Thread safety: everything from any thread; Find and Text take no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace sava::types {

class SharedTexts {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr size_t kShortestName = 5;
  static constexpr size_t kShortestValue = 8;
  static constexpr size_t kLongest = 64;
  static constexpr uint8_t kWanted = 100;
  static constexpr uint16_t kNone = UINT16_MAX;

  static SharedTexts& FieldNames();
  static SharedTexts& FieldValues();

  explicit SharedTexts(size_t shortest);
  SharedTexts(const SharedTexts&) = delete;
  SharedTexts& operator=(const SharedTexts&) = delete;
  ~SharedTexts();

  // kNone when it has no number.
  uint16_t Find(std::string_view text) const;
  // The same for a text that is put into a hash, which counts.
  uint16_t Use(std::string_view text);
  // Stays valid. REQUIRES: a number that Find or Use gave.
  std::string_view Text(uint16_t number) const {
    const Kept* kept = texts_[number].load(std::memory_order_acquire);
    return {reinterpret_cast<const char*>(kept + 1), kept->size};
  }

  size_t size() const { return count_.load(std::memory_order_relaxed); }
  // Bytes held.
  size_t memory() const { return sizeof(*this) + text_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kSlots = 2 * kMost;
  static constexpr size_t kCounters = 4096;
  static constexpr uint8_t kStep = 16;  // of a counter: kCounters such steps, and all are halved
  static constexpr uint32_t kStrange = 1024;  // this many without a number in a row, and
  static constexpr uint32_t kSample = 8;      // of those that follow, one in this many counts

  struct Kept {
    uint8_t size;
  };

  bool Counts(bool known) const;
  bool Fits(std::string_view text) const {
    return text.size() >= shortest_ && text.size() <= kLongest;
  }
  uint16_t Find(std::string_view text, uint64_t hash) const;
  uint16_t Take(std::string_view text, uint64_t hash);
  void Halve();

  const size_t shortest_;
  const uint64_t seed_;
  std::array<std::atomic<uint16_t>, kSlots> slots_{};  // number + 1, open addressing; 0: free
  std::array<std::atomic<const Kept*>, kMost> texts_{};
  std::atomic<size_t> count_{0};
  std::atomic<size_t> text_bytes_{0};
  std::mutex mutex_;  // for taking in
  alignas(64) std::array<std::atomic<uint8_t>, kCounters> seen_{};
  std::atomic<uint32_t> steps_{0};
};

}  // namespace sava::types
