// Cuckoo: the filter behind CF.*, which counts its items and lets them be deleted. It has the
// commands and options of the cuckoo filter clients know; inside it is a FingerprintTable, so it
// has no bucket that can be full, grows without a chain of filters, and a deletion never makes
// another item disappear. Bucket size, iterations and expansion are kept and told, and the first
// says with the capacity how many items fit when the expansion is 0.
//
// Its rate: below 1 % up to five hundred million items; 0 while there are at most kExactItems.
//
// Thread safety: as every Object, used under its owner's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "types/filters/fingerprint_table.h"
#include "types/value/object.h"

namespace sava::types {

class Cuckoo final : public Object {
 public:
  struct Options {
    uint64_t capacity = 1024;
    uint64_t bucket_size = 2;
    uint64_t max_iterations = 20;
    uint64_t expansion = 1;  // 0: it does not grow
    bool operator==(const Options&) const = default;
  };
  enum class Added : uint8_t { kAdded, kKnown, kFull };
  static constexpr uint64_t kExactItems = 4096;
  static constexpr double kRate = 0.01;

  // REQUIRES: bucket_size > 0, capacity > 0.
  explicit Cuckoo(const Options& options);

  const Options& options() const { return options_; }
  // Copies that are there, and how many were deleted.
  uint64_t items() const { return table_->copies(); }
  uint64_t deleted() const { return deleted_; }
  // As the filters that clients know have them: buckets of the first, and how many filters.
  uint64_t buckets() const;
  uint64_t filters() const;

  unsigned Count(uint64_t hash) const { return table_->Count(hash); }
  void Prefetch(uint64_t hash) const { table_->Prefetch(hash); }
  // One more copy.
  Added Add(uint64_t hash);
  // The same, unless it is there.
  Added AddNew(uint64_t hash) { return Count(hash) != 0 ? Added::kKnown : Add(hash); }
  // Deletes one copy; false when there is none.
  bool Remove(uint64_t hash);
  // Builds the table anew, without the room that deletions left in it, and counts deletions from 0
  // again. O(n).
  void Compact();

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return exact() ? "exact" : "table"; }
  size_t size() const override { return table_->distinct(); }
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  bool large() const override;
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override;
  void AbortCut() override;

  // ---- in chunks, for clients that carry a filter elsewhere: as of Bloom ----
  std::string Header() const;
  static std::unique_ptr<Cuckoo> FromHeader(std::string_view header);
  bool ReadChunk(int64_t* iterator, std::string* chunk) const;
  bool AddChunk(std::string_view chunk) { return table_->AddPages(chunk); }

 private:
  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  static std::unique_ptr<Cuckoo> ReadHeader(std::string_view header, uint64_t* distinct);
  bool exact() const { return table_->bits() == FingerprintTable::kMaxBits; }
  uint64_t slots() const { return buckets() * options_.bucket_size; }
  unsigned TableBits() const;
  bool Full() const;

  Options options_;
  uint64_t deleted_ = 0;
  std::unique_ptr<FingerprintTable> table_;
  std::unique_ptr<PieceSink> cut_;
};

}  // namespace sava::types
