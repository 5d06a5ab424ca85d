// SimHash: finds texts that are nearly the same. A text has a fingerprint of 64 bits; similar texts
// have fingerprints that differ in few bits, and a SimHash finds the documents whose fingerprints
// differ in at most d. It is the value behind the server's SIM.* commands.
//
//   sava::SimHash pages;
//   pages.Add("a", sava::SimHash::FingerprintOf("the cat sat on the mat"));
//   pages.Near(sava::SimHash::FingerprintOf("the cat sat on the mat"), 3)[0].id;   // "a"
//
// Add, Remove and Get are O(1). Near looks at all fingerprints up to 10,000 documents; beyond, an
// index serves distances up to 3. Thread safety: one thread at a time for each object; const
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

class SAVA_EXPORT SimHash {
 public:
  struct Match {
    std::string id;
    int distance;
  };

  SimHash();
  SimHash(SimHash&& other) noexcept;
  SimHash& operator=(SimHash&& other) noexcept;
  ~SimHash();

  // Of a text: its features are all rows of three words. Safe from any thread.
  static std::uint64_t FingerprintOf(std::string_view text);

  // True when the id is new; else its fingerprint is replaced.
  bool Add(std::string_view id, std::uint64_t fingerprint);
  // True when it was there.
  bool Remove(std::string_view id);
  std::optional<std::uint64_t> Get(std::string_view id) const;
  // Documents at most `distance` bits away, nearest first, among equals by id; at most `limit`.
  std::vector<Match> Near(std::uint64_t fingerprint, int distance,
                          std::size_t limit = SIZE_MAX) const;
  std::size_t size() const;
  std::size_t memory() const;

  SimHash Clone() const;
  // The bytes of the server's DUMP, which its RESTORE takes.
  std::string Save() const;
  // Nothing when the bytes are not those of a SimHash.
  static std::optional<SimHash> Load(std::string_view bytes);

 private:
  struct Impl;
  explicit SimHash(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
