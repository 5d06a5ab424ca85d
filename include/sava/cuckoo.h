// Cuckoo: a filter that counts its items and lets them be deleted. "No" is certain; "maybe" is
// wrong in less than 1 % of cases, and never while there are at most 4,096 items. It is the value
// behind the server's CF.* commands.
//
//   sava::Cuckoo filter;
//   filter.Add("A-17");
//   filter.Remove("A-17");
//   filter.Count("A-17");   // 0
//
// All operations are O(1). Thread safety: one thread at a time for each object; const functions of
// one object may run at the same time; different objects are independent.
#pragma once

#include <sava/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sava {

class SAVA_EXPORT Cuckoo {
 public:
  struct Options {
    std::uint64_t capacity = 1024;  // 1 to 2^32
    bool grows = true;
  };

  // With the options above.
  Cuckoo();
  // Nothing when the capacity is out of bounds.
  static std::optional<Cuckoo> Make(const Options& options);
  Cuckoo(Cuckoo&& other) noexcept;
  Cuckoo& operator=(Cuckoo&& other) noexcept;
  ~Cuckoo();

  // One more copy; false when it is full and may not grow.
  bool Add(std::string_view item);
  // Removes one copy; false when there is none. REQUIRES: the item was added.
  bool Remove(std::string_view item);
  bool Has(std::string_view item) const { return Count(item) != 0; }
  // How many copies there may be.
  unsigned Count(std::string_view item) const;
  // Copies of all items.
  std::uint64_t items() const;
  std::size_t memory() const;

  Cuckoo Clone() const;
  // The bytes of the server's DUMP, which its RESTORE takes.
  std::string Save() const;
  // Nothing when the bytes are not those of a cuckoo filter.
  static std::optional<Cuckoo> Load(std::string_view bytes);

 private:
  struct Impl;
  explicit Cuckoo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
