// FingerprintTable: a multiset of hashes, each kept as its first `bits` bits. It grows page by page
// and takes deletions, and so closes the two drawbacks of Bloom's filter.
//
// Why a deletion never hurts another item: equal fingerprints cannot be told apart, but each is
// counted. Removing one copy leaves as many as there are other items with that fingerprint.
//
// Layout: the fingerprints of one prefix stand in a page, in order. The eight bits behind the
// prefix (the quotient) are written in unary, the rest (the remainder) in as many bits as it has:
//
//   bitmap      for each quotient 0 … 255 a one per fingerprint, then a zero
//   remainders  bits - depth - 8 bits each
//   counts      a byte each, only in pages where some fingerprint was added more than once
//
// That is bits - log2(n) + 2 bits per fingerprint or so. A page that has more than kPageSplit
// splits in two; a directory of 2^depth pointers finds the page. A count stops at kMaxCopies, and
// such a fingerprint stays for good.
//
// A false positive: n distinct fingerprints answer for n / 2^bits of all other items.
//
// Thread safety: none; used under its owner's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/prefetch.h"

namespace sava::types {

class FingerprintTable {
 public:
  static constexpr unsigned kMinBits = 16;
  static constexpr unsigned kMaxBits = 64;  // the whole hash
  static constexpr uint8_t kMaxCopies = 255;

  // REQUIRES: kMinBits <= bits <= kMaxBits.
  explicit FingerprintTable(unsigned bits);
  FingerprintTable(const FingerprintTable&) = delete;
  FingerprintTable& operator=(const FingerprintTable&) = delete;
  // A snapshot that is not finished is aborted.
  ~FingerprintTable();

  unsigned bits() const { return bits_; }
  // Different fingerprints, and with all their copies.
  uint64_t distinct() const { return distinct_; }
  uint64_t copies() const { return copies_; }
  // Bytes held.
  size_t memory() const { return memory_ + directory_.capacity() * sizeof(void*) + sizeof(*this); }

  // How many copies there are.
  unsigned Count(uint64_t hash) const;
  // Asks for the memory that Count and Add will look at.
  void Prefetch(uint64_t hash) const { base::Prefetch(PageOf(hash)); }
  // Adds copies; true when the fingerprint is new.
  bool Add(uint64_t hash, unsigned copies = 1);
  // Adds it unless it is there; true when it is new.
  bool AddOnce(uint64_t hash);
  // Removes one copy; false when there is none.
  bool Remove(uint64_t hash);
  void Clear();

  using Visit = std::function<void(uint64_t hash, unsigned copies)>;
  // All of them in order, as hashes whose bits behind the fingerprint are zero.
  void ForEach(const Visit& visit) const;
  // Another table with the same fingerprints, cut to fewer bits.
  std::unique_ptr<FingerprintTable> Narrowed(unsigned bits) const;
  std::unique_ptr<FingerprintTable> Clone() const { return Narrowed(bits_); }

  // ---- saving: docs/formats/filters.md describes the bytes ----
  using PieceSink = std::function<void(std::string_view bytes)>;
  // Appends pages from *prefix on, some `budget` bytes of them, to `out`; *prefix is then where to
  // go on. False when there is nothing behind.
  bool AppendPages(uint64_t* prefix, size_t budget, std::string* out) const;
  // Adds what a piece holds; false when it is damaged (some of it may have been added).
  bool AddPages(std::string_view piece);

  // Saves the table as it is now: pages go to the sink when SavePieces comes to them, or before
  // they change.
  void BeginCut(PieceSink sink);
  bool SavePieces(size_t budget);
  void AbortCut();
  bool cutting() const { return cut_ != nullptr; }

  // Fills an empty table page by page, from pieces in any order.
  class Loader;
  struct Page;

 private:
  struct Cut {
    PieceSink sink;
    uint64_t next = 0;
    bool at_end = false;
  };

  static constexpr unsigned kQuotientBits = 8;
  static constexpr uint32_t kPageSplit = 512;

  Page* PageOf(uint64_t hash) const {
    return directory_[global_depth_ == 0 ? 0 : hash >> (64 - global_depth_)];
  }
  unsigned RemainderBits(const Page& page) const;
  Page* NewPage(const std::vector<uint64_t>& hashes, const std::vector<uint8_t>& counts,
                unsigned depth);
  void FreePage(Page* page);
  // The page of a hash, with room for `bytes`; it may move.
  Page* Resize(Page* page, uint64_t hash, size_t bytes);
  // Puts the page wherever the directory has the prefix of the hash.
  void SetDirectory(uint64_t hash, Page* page);
  void Decode(const Page& page, uint64_t prefix, std::vector<uint64_t>* hashes,
              std::vector<uint8_t>* counts) const;
  void Encode(const Page& page, uint64_t prefix, std::string* out) const;
  template <typename Work>
  void ForEachPage(const Work& work) const;
  // Whether that many pages may have a directory of 2^depth.
  static bool MayDouble(unsigned depth, size_t pages);
  // Splits the page of a hash until it has room; false when it stays as it is.
  bool Split(uint64_t hash);
  void Insert(uint64_t hash, size_t at, size_t index, unsigned copies);
  void Erase(uint64_t hash, size_t at, size_t index);
  // Gives every fingerprint of the page a count.
  void AddCounts(uint64_t hash);
  void SaveFirst(uint64_t hash);
  bool Find(const Page& page, uint64_t hash, size_t* at, size_t* index) const;

  std::vector<Page*> directory_;
  uint64_t distinct_ = 0;
  uint64_t copies_ = 0;
  size_t memory_ = 0;
  size_t pages_ = 0;
  std::unique_ptr<Cut> cut_;
  uint8_t bits_;
  uint8_t global_depth_ = 0;
  uint8_t epoch_ = 0;  // outside a cut every page has it; within one, those that are saved
};

// Pages are checked one by one and together: they must be all of the table.
class FingerprintTable::Loader {
 public:
  explicit Loader(FingerprintTable* table) : table_(table) {}
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  bool Take(std::string_view piece);
  // True when the table is complete and holds `distinct` fingerprints.
  bool Finish(uint64_t distinct);

 private:
  struct Loaded {
    uint64_t prefix;
    Page* page;
  };
  FingerprintTable* table_;
  std::vector<Loaded> pages_;
  uint64_t distinct_ = 0;
  uint64_t copies_ = 0;
};

}  // namespace sava::types
