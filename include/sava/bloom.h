// Bloom: a filter that tells whether an item may have been added. "No" is certain; "maybe" is wrong
// at the rate the filter was made for. It grows, and a deletable one takes deletions. It is the
// value behind the server's BF.* commands. sava/bloom_filter.h has the plain filter of fixed size.
//
//   auto seen = sava::Bloom::Make({.error = 0.001, .capacity = 100'000});
//   seen->Add("http://example.com/");
//   seen->Has("http://example.com/");   // true
//
// Add, Has and Remove are O(1). Thread safety: one thread at a time for each object; const
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

class SAVA_EXPORT Bloom {
 public:
  struct Options {
    double error = 0.01;           // between 0 and 1, both excluded
    std::uint64_t capacity = 100;  // items it is made for; it grows beyond them
    bool grows = true;
    bool deletable = false;
  };
  enum class Added {
    kNew,    // it was not there
    kKnown,  // it may have been there
    kFull,   // nothing was added: the filter is full and may not grow
  };
  struct Stats {
    std::uint64_t items = 0;   // different ones, as far as it can tell
    std::uint64_t bits = 0;    // 0 while all items are kept exactly
    std::uint32_t hashes = 0;  // of each item
    double fill = 0;           // the share of bits that are set
    double rate = 0;           // the share of other items it would answer "maybe" for, as observed
  };

  // Nothing when an option is out of bounds or there is no memory.
  static std::optional<Bloom> Make(const Options& options);
  // The filter of the textbooks: `bits` bits, `hashes` hashes for each item. It never grows.
  static std::optional<Bloom> MakeClassic(std::uint64_t bits, std::uint32_t hashes);
  Bloom(Bloom&& other) noexcept;
  Bloom& operator=(Bloom&& other) noexcept;
  ~Bloom();

  Added Add(std::string_view item);
  bool Has(std::string_view item) const;
  // Removes an item once. False when it is not there or the filter is not deletable.
  bool Remove(std::string_view item);
  // Adds all items of another filter. False, with nothing changed, when this one would be too full
  // or only one of them is deletable.
  bool Merge(const Bloom& other);
  Stats stats() const;
  std::size_t memory() const;

  Bloom Clone() const;
  // The bytes of the server's DUMP, which its RESTORE takes.
  std::string Save() const;
  // Nothing when the bytes are not those of a Bloom filter.
  static std::optional<Bloom> Load(std::string_view bytes);

 private:
  struct Impl;
  explicit Bloom(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
