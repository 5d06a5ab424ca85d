// Set: different members, in no promised order. Three forms:
//
//   numbers  all members are integers: in ascending order, each in as many bytes as the widest
//            needs (2, 4 or 8)
//   packed   few and short members: varint length and bytes of each, in the order of their coming
//   table    a RecordTable
//
// encoding() answers what Redis 7.2 would have chosen (intset, listpack, hashtable) by the same
// limits and as stickily; the form is ours, and a set that Redis would keep as an overlong listpack
// is a table here.
//
// RDB: 11 (intset) for numbers, else 2 (members); read also 20 (listpack). Thread safety: as every
// Object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/text.h"
#include "types/collections/collection_limits.h"
#include "types/collections/record_table.h"
#include "types/collections/small_block.h"
#include "types/value/object.h"

namespace sava::types {

class Set final : public Object {
 public:
  using RandomBits = std::function<uint64_t()>;

  // Empty, in the form for `expected` members of which `first` is one.
  Set(std::string_view first, size_t expected, const CollectionLimits& limits);
  // Empty, to begin with numbers.
  Set();
  ~Set() override;

  // `expected` members are about to be added: a form too small for them is left at once.
  void Expect(size_t expected, const CollectionLimits& limits);
  // True when it is new.
  bool Add(std::string_view member, const CollectionLimits& limits);
  bool Remove(std::string_view member);
  bool Contains(std::string_view member) const;
  // False when empty.
  bool Random(const RandomBits& random, std::string* member) const;
  // Becomes a set of numbers when all members are and the limit allows.
  void MaybeNumbers(const CollectionLimits& limits);
  // Whether all members are numbers, kept in ascending order.
  bool numbers() const { return form() == Form::kNumbers; }

  // visit(std::string_view), which may not change the set.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    switch (form()) {
      case Form::kNumbers:
        for (size_t i = 0; i < block_->count; ++i) {
          char digits[24];
          visit(std::string_view(digits, base::FormatInt(NumberAt(i), digits)));
        }
        break;
      case Form::kPacked:
        for (size_t at = 0; at < block_->used;) {
          const std::string_view member = PackedAt(&at);
          visit(member);
        }
        break;
      case Form::kTable:
        table().ForEach([&](const RecordTable::Record& record) { visit(record.key); });
        break;
    }
  }
  // A step of SSCAN: everything at once but of a table. Returns the next cursor, 0 at the end.
  uint64_t Scan(uint64_t cursor, size_t count,
                const std::function<void(std::string_view)>& visit) const;

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override;
  size_t size() const override { return form() == Form::kTable ? table().size() : block_->count; }
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  void DigestAsRedis(DigestSink& out) const override;
  bool Rebuild(std::string_view key, const CommandSink& emit) const override;
  void Prefetch(std::string_view element, int step) const override {
    if (form() == Form::kTable) table().Prefetch(element, step);
  }
  bool large() const override { return form() == Form::kTable && table().memory() > kLarge; }
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override;
  void AbortCut() override;

 private:
  static constexpr size_t kLarge = 64 * 1024;
  static constexpr size_t kMaxPacked = 8 * 1024;  // bytes
  static constexpr size_t kMaxPackedMembers = 128;

  enum class Form : uint8_t { kNumbers, kPacked, kTable };
  enum class Encoding : uint8_t { kIntset, kListpack, kHashtable };
  struct Large : SmallBlock {
    RecordTable table{RecordTable::Payload::kNone};
  };

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  static bool LoadMembers(Set* set, Reader& in);
  static bool LoadPacked(Set* set, uint8_t rdb_type, Reader& in);

  Form form() const { return static_cast<Form>(block_->form); }
  Encoding kind() const { return static_cast<Encoding>(block_->encoding); }
  const RecordTable& table() const { return static_cast<const Large*>(block_)->table; }
  RecordTable& table() { return static_cast<Large*>(block_)->table; }

  int64_t NumberAt(size_t i) const;
  // Where it is, or where it would stand.
  size_t NumberPlace(int64_t value, bool* found) const;
  bool AddNumber(int64_t value);
  void Widen(size_t width);
  std::string_view PackedAt(size_t* at) const;
  bool FindPacked(std::string_view member, size_t* from, size_t* to) const;
  void AppendPacked(std::string_view member);
  bool AddOther(std::string_view member, const CollectionLimits& limits);
  bool PackedTooLarge(size_t more) const;
  // Change of form; the encoding is set as told.
  void ToPacked();
  void ToTable(Encoding encoding);
  void Replace(SmallBlock* block);

  SmallBlock* block_;
};

}  // namespace sava::types
