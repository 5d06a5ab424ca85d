// Hash: fields with values, in no promised order. Two forms:
//
//   packed  few fields, 4 KB in all, in the order of their coming, each
//             1 byte   field length 1 … 7 and value length 0 … 31, or
//             2 bytes  field length 0 … 62 and value length 0 … 126, or
//             2 bytes  and two varints, or
//             4 bytes  the number of a name that many hashes have (SharedTexts), value length, or
//             5 bytes  and up: the number of a value that many have, field length, or
//             6 bytes  both numbers
//           and the bytes of what has no number
//   table   a RecordTable, and FieldExpiries beside it when a field ever had a time
//
// A field whose time is past is as good as gone for every call that gets the time (`now`): it is
// found nowhere, and taken away by the next write to it or by RemoveExpired.
//
// encoding() answers what Redis would have chosen (listpack, listpackex, hashtable) by the same
// limits and as stickily; the form is ours.
//
// RDB: 16 (listpack) or 4 (fields) without times; with times 25 or 24, as Redis 7.4 does. Read also
// 9, 13, 22, 23. Thread safety: as every Object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "types/collections/collection_limits.h"
#include "types/collections/field_expiries.h"
#include "types/collections/record_table.h"
#include "types/collections/shared_texts.h"
#include "types/collections/small_block.h"
#include "types/value/object.h"

namespace sava::types {

class Hash final : public Object {
 public:
  static constexpr int64_t kNoExpiry = FieldExpiries::kNone;
  // The latest time a field can have, as in Redis.
  static constexpr int64_t kMaxExpiry = ((int64_t{1} << 48) - 1) >> 2;
  // For `now`: nothing is past.
  static constexpr int64_t kNever = INT64_MIN;

  using RandomBits = std::function<uint64_t()>;

  Hash();
  ~Hash() override;

  // What Redis does before several fields are set: a small form that `fields` more, or one of the
  // texts, would outgrow is left at once.
  void Expect(size_t fields, size_t longest, const CollectionLimits& limits);
  // Value views stay valid until the hash changes.
  bool Find(std::string_view field, int64_t now, std::string_view* value) const;
  // True when the field is new; one past its time still counts. Its time goes unless `keep_expiry`.
  bool Set(std::string_view field, std::string_view value, int64_t now,
           const CollectionLimits& limits, bool keep_expiry = false);
  // Whether it was there, past its time or not.
  bool Remove(std::string_view field);

  // ---- times of fields ----
  bool has_expiries() const { return expiries() != nullptr && expiries()->size() > 0; }
  // kNoExpiry when it has none, or is not there.
  int64_t ExpiryOf(std::string_view field) const;
  // REQUIRES: the field is there; `at` is from 0 to kMaxExpiry, or kNoExpiry.
  void SetExpiry(std::string_view field, int64_t at);
  int64_t next_deadline() const override { return has_expiries() ? expiries()->earliest() : -1; }
  bool RemoveExpired(int64_t now, size_t budget, std::vector<std::string>* names) override;
  bool IsPartExpired(std::string_view part, int64_t now) const override;
  bool RemovePart(std::string_view part) override { return Remove(part); }
  uint8_t deadline_tag() const override { return block_->detail; }
  void set_deadline_tag(uint8_t tag) override { block_->detail = tag; }

  // visit(field, value), which may not change the hash.
  template <typename Visit>
  void ForEach(int64_t now, const Visit& visit) const {
    if (form() == Form::kTable) {
      const FieldExpiries* times = has_expiries() ? expiries() : nullptr;
      table().ForEach([&](const RecordTable::Record& record) {
        if (times != nullptr && Gone(*times, record.key, now)) return;
        visit(record.key, record.payload);
      });
      return;
    }
    for (size_t at = 0; at < block_->used;) {
      const Pair pair = PairAt(&at);
      visit(pair.field, pair.value());
    }
  }
  // A step of HSCAN: everything at once but of a table. Returns the next cursor, 0 at the end.
  using Visit = std::function<void(std::string_view field, std::string_view value)>;
  uint64_t Scan(uint64_t cursor, size_t count, int64_t now, const Visit& visit) const;
  // False when no field is left at that time.
  bool Random(const RandomBits& random, int64_t now, std::string_view* field,
              std::string_view* value) const;

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override;
  // Fields past their time included.
  size_t size() const override { return form() == Form::kTable ? table().size() : block_->count; }
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  void DigestAsRedis(DigestSink& out) const override;
  StockForm stock_form(int64_t now) const override;
  void SaveStockForm(Writer& out, int64_t now) const override;
  bool Rebuild(std::string_view key, const CommandSink& emit) const override;
  void Prefetch(std::string_view element, int step) const override {
    if (form() == Form::kTable) table().Prefetch(element, step);
  }
  bool large() const override { return form() == Form::kTable && table().memory() > kLarge; }
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override { return table().SavePieces(budget); }
  void AbortCut() override {
    if (form() == Form::kTable) table().AbortCut();
  }

 private:
  static constexpr size_t kLarge = 64 * 1024;
  static constexpr size_t kMaxPacked = 4 * 1024;  // bytes
  static constexpr size_t kMaxPackedFields = 128;

  enum class Form : uint8_t { kPacked, kTable };
  enum class Encoding : uint8_t { kListpack, kListpackEx, kHashtable };
  struct Large : SmallBlock {
    RecordTable table{RecordTable::Payload::kVariable};
    std::unique_ptr<FieldExpiries> expiries;
  };
  struct Pair {
    std::string_view field;
    std::string_view plain;  // the value, unless it has a number
    size_t begin = 0;        // where it stands
    uint16_t value_number = SharedTexts::kNone;
    std::string_view value() const {
      if (value_number == SharedTexts::kNone) return plain;
      return SharedTexts::FieldValues().Text(value_number);
    }
  };

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  bool LoadFields(Reader& in);
  bool LoadTimedFields(Reader& in, bool relative);
  bool LoadPacked(uint8_t rdb_type, Reader& in);
  bool LoadTimedListpack(std::string_view bytes, const CollectionLimits& limits);
  // False when the field is there already.
  bool LoadPair(std::string_view field, std::string_view value, const CollectionLimits& limits);
  bool writes_listpack() const;
  void SaveTimedHead(Writer& out, int64_t earliest) const;

  static bool Gone(const FieldExpiries& times, std::string_view field, int64_t now) {
    const int64_t at = times.Of(field);
    return at != kNoExpiry && at < now;
  }
  Form form() const { return static_cast<Form>(block_->form); }
  Encoding kind() const { return static_cast<Encoding>(block_->encoding); }
  const RecordTable& table() const { return static_cast<const Large*>(block_)->table; }
  RecordTable& table() { return static_cast<Large*>(block_)->table; }
  FieldExpiries* expiries() const {
    return form() == Form::kTable ? static_cast<const Large*>(block_)->expiries.get() : nullptr;
  }

  Pair PairAt(size_t* at) const;
  bool FindPacked(std::string_view field, Pair* pair, size_t* end) const;
  // Writes the pair over the `removed` bytes at `at`.
  void WritePacked(size_t at, size_t removed, std::string_view field, std::string_view value);
  void ToTable(Encoding encoding);
  void Replace(SmallBlock* block);

  SmallBlock* block_;
};

}  // namespace sava::types
