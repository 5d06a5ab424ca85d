// AssociationCounter: counts how often members occur and keeps them in order of frequency, so that
// the most frequent ones are read from the front. It is the value behind the server's AFC.*
// commands.
//
//   sava::AssociationCounter counter;
//   counter.Add("milk");
//   counter.Add("bread", 3);
//   counter.Top(1)[0].member;   // "bread"
//
// Order: by frequency, highest first. A change moves a member to the front of those of its new
// frequency; a new member with frequency 1 goes to the very end. Add, Remove and Count are O(1) on
// average, Top is O(k).
//
// Options: `maxlen` bounds the number of members (Space-Saving: a new one takes the place of the
// last); `halflife_ms` lets occurrences fade; `window_ms` counts only recent ones. Only the last
// two look at the time, which is a parameter: Unix milliseconds.
//
// Thread safety: one thread at a time for each object; const functions of one object may run at the
// same time. Members of large counters are shared by all counters of the process in a table with
// locks of its own, so different objects may be used by different threads. Running out of memory
// throws std::bad_alloc.
#pragma once

#include <sava/export.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sava {

class SAVA_EXPORT AssociationCounter {
 public:
  // No count goes beyond this one.
  static constexpr std::uint64_t kMaxCount = (std::uint64_t{1} << 63) - 1;

  struct Options {
    std::uint64_t maxlen = 0;      // 0: no bound
    std::int64_t halflife_ms = 0;  // 0: no decay
    std::int64_t window_ms = 0;    // 0: no window; not together with a half-life
  };
  struct Entry {
    std::string member;
    std::uint64_t count;
  };
  // The view lives as long as the call.
  using Visit = std::function<void(std::string_view member, std::uint64_t count)>;

  // Without options.
  AssociationCounter();
  // Nothing when a time is negative or both times are given.
  static std::optional<AssociationCounter> Make(const Options& options, std::int64_t now_ms = 0);
  AssociationCounter(AssociationCounter&& other) noexcept;
  AssociationCounter& operator=(AssociationCounter&& other) noexcept;
  ~AssociationCounter();

  // `n` more occurrences; the member's count after it. n = 0 changes nothing.
  std::uint64_t Add(std::string_view member, std::uint64_t n = 1, std::int64_t now_ms = 0);
  // True when the member was there.
  bool Remove(std::string_view member, std::int64_t now_ms = 0);
  // 0 when the member is not there.
  std::uint64_t Count(std::string_view member, std::int64_t now_ms = 0) const;
  // The first k members in order.
  std::vector<Entry> Top(std::size_t k, std::int64_t now_ms = 0) const;
  void VisitTop(std::size_t k, const Visit& visit, std::int64_t now_ms = 0) const;
  // How many members there are, and the sum of their counts.
  std::size_t Card(std::int64_t now_ms = 0) const;
  std::uint64_t Total(std::int64_t now_ms = 0) const;
  Options options() const;
  // Bytes this counter takes.
  std::size_t memory() const;

  AssociationCounter Clone() const;
  // The bytes of the server's DUMP, which its RESTORE takes.
  std::string Save() const;
  // Nothing when the bytes are not those of a counter.
  static std::optional<AssociationCounter> Load(std::string_view bytes);

 private:
  struct Impl;
  explicit AssociationCounter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
