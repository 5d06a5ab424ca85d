// SimHash: documents by their fingerprints of 64 bits, and which of them are near a given one: at
// most d bits different. simhash_text.h makes fingerprints of texts.
//
// Up to kIndexFrom documents a search looks at all fingerprints. Beyond there is an index for
// d <= 3: of four blocks of 16 bits at least one is then the same, so every document stands in four
// chains, one for the value of each block, and a search looks at four of the 4 x 65,536 chains.
// Larger distances are still found by looking at all, 64 bits at a time.
//
// Documents have numbers that are used again; they stand in blocks of kBlock documents.
// Thread safety: as every Object.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "types/sketches/text_table.h"
#include "types/value/block_cut.h"
#include "types/value/object.h"

namespace sava::types {

class SimHash final : public Object {
 public:
  // The largest distance the index serves.
  static constexpr int kIndexDistance = 3;
  // The index is made beyond this many documents and given up below half of it.
  static constexpr size_t kIndexFrom = 10'000;

  struct Match {
    std::string_view id;
    int distance;
  };

  SimHash() = default;
  ~SimHash() override;

  // True when the id is new; else its fingerprint is replaced.
  bool Add(std::string_view id, uint64_t fingerprint);
  // True when it was there.
  bool Remove(std::string_view id);
  std::optional<uint64_t> Get(std::string_view id) const;
  // The documents at most `distance` away, nearest first, among equals by id; at most `limit`. The
  // ids live until the next change.
  std::vector<Match> Near(uint64_t fingerprint, int distance, size_t limit) const;
  bool indexed() const { return heads_ != nullptr; }

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return indexed() ? "indexed" : "plain"; }
  size_t size() const override { return size_; }
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  bool large() const override { return size_ > kLarge; }
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override { return cut_.SaveSome(budget); }
  void AbortCut() override { cut_.Abort(); }

 private:
  static constexpr size_t kLarge = 1024;  // documents: some 64 KB
  static constexpr size_t kBlock = 512;   // documents
  static constexpr size_t kTables = 4;
  static constexpr size_t kChains = 65'536;
  static constexpr uint32_t kNone = UINT32_MAX;

  // A document's neighbours in the four chains it stands in.
  struct Links {
    std::array<uint32_t, kTables> next;
    std::array<uint32_t, kTables> previous;
  };
  // An id: a varint for its length, and its bytes; nullptr: no document.
  using Id = std::unique_ptr<char[]>;
  struct Block {
    std::vector<uint64_t> fingerprints;
    std::vector<Id> ids;
    std::vector<Links> links;  // as long as there is an index
  };
  using Heads = std::array<std::array<uint32_t, kChains>, kTables>;

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  static Id MakeId(std::string_view text);
  static std::string_view TextOf(const Id& id);
  static uint16_t PartOf(uint64_t fingerprint, size_t table) {
    return static_cast<uint16_t>(fingerprint >> (16 * table));
  }
  const Id& id_of(uint32_t document) const {
    return blocks_[document / kBlock].ids[document % kBlock];
  }
  uint64_t& fingerprint_of(uint32_t document) {
    return blocks_[document / kBlock].fingerprints[document % kBlock];
  }
  uint64_t fingerprint_of(uint32_t document) const {
    return blocks_[document / kBlock].fingerprints[document % kBlock];
  }
  Links& links_of(uint32_t document) { return blocks_[document / kBlock].links[document % kBlock]; }
  const Links& links_of(uint32_t document) const {
    return blocks_[document / kBlock].links[document % kBlock];
  }

  uint32_t Find(std::string_view id) const;
  uint32_t NewDocument(std::string_view id);
  void Link(uint32_t document);
  void Unlink(uint32_t document);
  void MakeIndex();
  void DropIndex();
  void SearchAll(uint64_t fingerprint, int distance, std::vector<Match>* found) const;
  void SearchIndex(uint64_t fingerprint, int distance, std::vector<Match>* found) const;
  void SaveHead(Writer& out) const;
  void SaveBlock(size_t block, Writer& out) const;
  bool LoadBlock(const std::string& bytes);

  std::vector<Block> blocks_;
  std::vector<uint32_t> free_;  // numbers to use again
  uint32_t documents_ = 0;      // numbers ever used
  size_t size_ = 0;
  TextTable table_;
  std::unique_ptr<Heads> heads_;
  BlockCut cut_;
};

}  // namespace sava::types
