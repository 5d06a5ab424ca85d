// Bloom: a filter that tells whether an item may have been added: "no" is certain, "maybe" is wrong
// at the rate it was made for. It grows, and with the option `deletable` it takes deletions.
//
// It consists of stages; all are asked, the last one takes new items:
//
//   exact     the hashes of 64 bits themselves, while there are few: no false positives
//   bits      one filter of the size that was reserved (BitFilter), in the layout asked for
//   table     fingerprints in a table that grows page by page (FingerprintTable): what a filter
//   that
//             nobody reserved becomes, and what takes the items beyond a reserved capacity
//
// A deletable filter has no bits: it is exact first and a table afterwards. Every Add counts there,
// also of an item that is there already; an item is gone when it was removed as often as it was
// added. That is what makes deletions safe: two items with one fingerprint are two copies of it.
//
// Rate: bits keep the promise by themselves, up to their capacity. A table of b bits adds n / 2^b;
// b is chosen so that all tables together add less than a tenth of the promise to bits, and no more
// than the promise without. A deletable filter keeps it up to max_items().
//
// Thread safety: as every Object, used under its owner's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "types/filters/bit_filter.h"
#include "types/filters/fingerprint_table.h"
#include "types/value/object.h"

namespace sava::types {

// The hash of an item in every filter.
inline uint64_t FilterHash(std::string_view item) { return base::HashBytes(item, 0); }

class Bloom final : public Object {
 public:
  struct Options {
    double error = 0.01;
    uint64_t capacity = 100;
    uint32_t expansion = 2;  // 0: it does not grow
    BloomLayout layout = BloomLayout::kBlocked;
    bool deletable = false;
    bool reserved = false;  // whether `capacity` was asked for
    bool operator==(const Options&) const = default;
  };
  enum class Added : uint8_t { kNew, kKnown, kFull };
  // How many items stay exact at most.
  static constexpr uint64_t kExactItems = 4096;
  static constexpr size_t kMaxStages = 64;

  // nullptr when there is no memory for it. REQUIRES: 0 < error < 1, capacity > 0.
  static std::unique_ptr<Bloom> Make(const Options& options);
  // The bytes its bits take at most, once it is full.
  static uint64_t BytesFor(const Options& options);
  // The document's filter by its numbers: m bits, k hashes. It never grows and is never full.
  static std::unique_ptr<Bloom> MakeClassic(uint64_t bits, uint32_t hashes);
  ~Bloom() override;

  const Options& options() const { return options_; }
  // How many different items were added, as far as it can tell.
  uint64_t items() const;
  // Items beyond which a deletable filter refuses more.
  uint64_t max_items() const;

  bool Has(uint64_t hash) const;
  Added Add(uint64_t hash);
  void Prefetch(uint64_t hash) const;
  // Removes one copy; false when there is none. REQUIRES: deletable.
  bool Remove(uint64_t hash);

  enum class Merged : uint8_t { kDone, kFull, kDifferent };
  // All items of other ones. kFull: it may not grow that far; kDifferent: some are deletable and
  // some not, or there would be too many stages. Then nothing has changed.
  Merged Merge(std::span<const Bloom* const> others);

  // The steps by which `expansion` lets the capacity grow, as RedisBloom counts its filters.
  struct Growth {
    uint64_t filters;
    uint64_t capacity;
  };
  Growth growth() const;
  struct Stats {
    uint64_t bits = 0;         // m
    uint64_t items = 0;        // n
    uint32_t hashes = 0;       // k
    double fill = 0;           // the share of bits that are set
    double rate_formula = 0;   // by formula, from m, n and k
    double rate_observed = 0;  // by the bits that are set
    size_t stages = 0;
  };
  Stats stats() const;
  struct Part {
    uint64_t bytes;
    uint64_t bits;
    uint32_t hashes;
    uint64_t capacity;  // 0: no limit
    uint64_t items;
  };
  // One for each stage.
  std::vector<Part> parts() const;

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  // Of the first stage: exact, blocked, classic or table.
  std::string_view encoding() const override;
  size_t size() const override { return items(); }
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  bool large() const override;
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override;
  void AbortCut() override;

  // ---- in chunks, for clients that carry a filter elsewhere ----
  std::string Header() const;
  // An empty filter; nullptr when it is no header.
  static std::unique_ptr<Bloom> FromHeader(std::string_view header);
  // The chunk at *iterator (1: the first), and where the next one is; false behind the last.
  bool ReadChunk(int64_t* iterator, std::string* chunk) const;
  // Puts a chunk where it belongs; false when it is none of this filter's.
  bool AddChunk(std::string_view chunk);

 private:
  struct Stage {
    std::unique_ptr<BitFilter> bits;
    std::unique_ptr<FingerprintTable> table;  // one of the two
    uint64_t added = 0;                       // to the bits

    uint64_t items() const { return bits != nullptr ? added : table->distinct(); }
    bool Has(uint64_t hash) const {
      return bits != nullptr ? bits->Has(hash) : table->Count(hash) != 0;
    }
    size_t memory() const { return bits != nullptr ? bits->memory() : table->memory(); }
    Stage Clone() const;
  };

  Bloom() = default;
  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  static std::unique_ptr<Bloom> ReadHeader(std::string_view header, size_t most_blocks);
  bool exact() const;
  uint64_t ExactLimit() const;
  bool has_bits() const;
  unsigned NextTableBits() const;
  double TableLimit(const Stage& stage) const;
  void AddStage(unsigned table_bits);
  // The last stage is full: another one, or another form of it.
  void Grow();
  void AddToLast(uint64_t hash);
  Added AddCounted(uint64_t hash);
  Merged CanMerge(std::span<const Bloom* const> others) const;
  void MergeOne(const Bloom& other);
  void MergeCounted(const Bloom& other);
  void MergeStage(const Stage& stage);
  void FinishSaving();

  Options options_;
  std::vector<Stage> stages_;
  std::unique_ptr<PieceSink> cut_;
};

}  // namespace sava::types
