// TopK: the k most frequent items of a stream, in room for max(10 k, k + 8) counters whatever the
// number of different items (Space-Saving). A count is at most total / counters too high and, as
// long as an item has a counter, never too low. It is the value behind the server's TOPK.*
// commands.
//
//   auto top = sava::TopK::Make(3);
//   top->Add("milk", 5);
//   top->List()[0].item;   // "milk"
//
// Add is O(log k), List is O(k log k). Thread safety: one thread at a time for each object; const
// functions of one object may run at the same time; different objects are independent.
#pragma once

#include <sava/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sava {

class SAVA_EXPORT TopK {
 public:
  struct Entry {
    std::string item;
    std::uint64_t count;
    std::uint64_t error;  // the true count is at least count - error
  };

  // Nothing unless k is from 1 to 2^32 - 1.
  static std::optional<TopK> Make(std::uint64_t k);
  TopK(TopK&& other) noexcept;
  TopK& operator=(TopK&& other) noexcept;
  ~TopK();

  // `n` more occurrences; the item that left the list for it, if one did. n = 0 changes nothing.
  std::optional<std::string> Add(std::string_view item, std::uint64_t n = 1);
  // Whether it is in the list.
  bool Has(std::string_view item) const;
  // 0 when it has no counter.
  std::uint64_t Count(std::string_view item) const;
  // The highest count first; of equal ones the one that changed longest ago.
  std::vector<Entry> List() const;
  std::uint64_t k() const;
  std::size_t memory() const;

  TopK Clone() const;
  // The bytes of the server's DUMP, which its RESTORE takes.
  std::string Save() const;
  // Nothing when the bytes are not those of a top-k list.
  static std::optional<TopK> Load(std::string_view bytes);

 private:
  struct Impl;
  explicit TopK(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
