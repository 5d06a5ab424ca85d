// CountMin: tells about how often an item occurred, in a table of `depth` rows of `width` counters
// whatever the number of items. An estimate is never too low; it is more than 2 * total() / width
// too high with a probability of at most 2^-depth. It is the value behind the server's CMS.*
// commands.
//
//   auto sketch = sava::CountMin::Make(2000, 7);
//   sketch->Add("GET", 3);
//   sketch->Estimate("GET");   // 3
//
// Add and Estimate are O(depth). Thread safety: one thread at a time for each object; const
// functions of one object may run at the same time; different objects are independent.
#pragma once

#include <sava/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sava {

class SAVA_EXPORT CountMin {
 public:
  // Counters stop here.
  static constexpr std::uint64_t kMaxCount = UINT32_MAX;

  // Nothing when one of them is 0, the depth is above 65,536, there would be more than 2^32
  // counters (of four bytes each), or there is no memory.
  static std::optional<CountMin> Make(std::uint64_t width, std::uint64_t depth);
  CountMin(CountMin&& other) noexcept;
  CountMin& operator=(CountMin&& other) noexcept;
  ~CountMin();

  // `n` more occurrences; the estimate after them.
  std::uint64_t Add(std::string_view item, std::uint64_t n = 1);
  std::uint64_t Estimate(std::string_view item) const;
  // Adds the counters of another sketch, each `weight` times. False, with nothing changed, when
  // width or depth differ or a counter would be negative or above kMaxCount.
  bool Merge(const CountMin& other, std::int64_t weight = 1);
  std::uint64_t width() const;
  std::uint64_t depth() const;
  // All that was added.
  std::uint64_t total() const;
  std::size_t memory() const;

  CountMin Clone() const;
  // The bytes of the server's DUMP, which its RESTORE takes.
  std::string Save() const;
  // Nothing when the bytes are not those of a count-min sketch.
  static std::optional<CountMin> Load(std::string_view bytes);

 private:
  struct Impl;
  explicit CountMin(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
