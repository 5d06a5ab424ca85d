// RecordTable: a compact hash table of records, each a key and a payload of bytes. What large sets
// and hashes consist of, and the member index of others.
//
// Records stand packed in pages; a directory indexed by the top bits of the key's hash finds the
// page (extendible hashing). A page, of at most kMaxPage bytes and kMaxRecords records, grows in
// steps of the allocator's sizes and then splits in two, so that the fill stays high:
//
//   header | fingerprint of each record (1 byte) | offset of each (2 bytes) | records
//   record:  key length, payload length (varints; the latter only when it varies), key, payload
//            or, when that is longer than kMaxInline: 80 00 and a pointer to such a record outside
//
// Every record of a page is reached by comparing its fingerprints 16 at a time. What is removed
// leaves a hole that the next rebuilding of the page closes; pages that empty shrink and merge.
// The pages of a large table stand in chunks of the shared PagePool, those of a size together; one
// that is freed is filled with the last of its size, so that no chunk but each size's last has room
// to spare.
//
// Snapshots: a page is a block of a BlockCut. Whatever changes a page first saves it, a split or a
// merge its sources; numbers of pages that went are given again, which is safe because they were
// saved.
//
// Order: records ascend by hash from page to page, so a Scan's position is a hash and survives
// splits and merges.
//
// Views stay valid until the table changes. Thread safety: none; used under its owner's lock.
// Cost: O(1) each; a split moves one page, a doubling of the directory copies 4 bytes per page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "types/value/block_cut.h"

namespace sava::types {

class RecordTable {
 public:
  static constexpr size_t kMaxPage = 8192;
  static constexpr size_t kMaxRecords = 127;
  static constexpr size_t kMaxInline = 512;
  // Bits of a Scan's position.
  static constexpr unsigned kOrderBits = 48;

  enum class Payload : uint8_t { kNone, kFixed8, kVariable };

  struct Record {
    std::string_view key;
    std::string_view payload;
  };

  explicit RecordTable(Payload payload);
  RecordTable(const RecordTable&) = delete;
  RecordTable& operator=(const RecordTable&) = delete;
  ~RecordTable();

  size_t size() const { return size_; }
  // Bytes held.
  size_t memory() const { return memory_ + directory_bytes() + sizeof(*this); }
  // Makes this empty table equal to another of the same kind of payload.
  void CopyFrom(const RecordTable& other);

  static uint64_t HashOf(std::string_view key) { return base::HashBytes(key, Seed()); }
  // As Object::Prefetch: the page's arrays, then the record or the place of a new one.
  void Prefetch(std::string_view key, int step) const;

  // The calls with a hash are for callers that have computed it.
  bool Contains(std::string_view key) const { return Find(key, nullptr); }
  bool Find(std::string_view key, std::string_view* payload) const {
    return Find(key, HashOf(key), payload);
  }
  bool Find(std::string_view key, uint64_t hash, std::string_view* payload) const;
  // Visits the records with that hash (nearly always one at most).
  void ForHash(uint64_t hash, const std::function<void(const Record&)>& visit) const;
  // False, and nothing done, when the key is there. REQUIRES: the payload is of the table's kind.
  bool Insert(std::string_view key, std::string_view payload = {}) {
    return Insert(key, HashOf(key), payload);
  }
  bool Insert(std::string_view key, uint64_t hash, std::string_view payload);
  // Inserts or replaces the payload; true when the key is new. The payload must not be of this
  // table.
  bool Put(std::string_view key, std::string_view payload);
  // The payload for change in place, nullptr when there is no such key.
  char* Open(std::string_view key, size_t* size);
  bool Erase(std::string_view key);

  // False when empty. `random` gives 64 random bits.
  bool Random(const std::function<uint64_t()>& random, Record* record) const;

  // visit(Record).
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Page* page : pages_) {
      if (page != nullptr) ForEachIn(page, visit);
    }
  }
  // Visits about `count` records from position `from` on, in order of their hashes; where to go on,
  // 0 at the end. Positions are below 2^kOrderBits.
  uint64_t Scan(uint64_t from, size_t count, const std::function<void(const Record&)>& visit) const;

  // ---- saving while it changes ----
  using SaveRecord = std::function<void(const Record&, Writer& out)>;
  void BeginCut(const Object::PieceSink& sink, std::string_view head, SaveRecord save);
  bool SavePieces(size_t budget) { return cut_.SaveSome(budget); }
  void AbortCut() { cut_.Abort(); }
  // To be called before something changes that SaveRecord looks at for this key.
  void BeforeChange(std::string_view key) {
    if (cut_.active()) cut_.BeforeChange(PageOf(HashOf(key))->id);
  }

  // For tests: aborts on a broken invariant.
  void CheckInvariants() const;
  size_t pages() const { return pages_.size() - free_ids_.size(); }

 private:
  struct Page {
    uint32_t id;
    uint32_t region;    // in the chunks of its size; kPlain: a block of its own
    uint16_t capacity;  // bytes of the block, this header included
    uint16_t used;      // end of the records
    uint16_t dead;      // bytes of holes
    uint8_t count;
    uint8_t slots;  // records there is room for in the arrays
    uint8_t depth;
    uint8_t unused;

    const uint8_t* fingerprints() const { return reinterpret_cast<const uint8_t*>(this + 1); }
    uint8_t* fingerprints() { return reinterpret_cast<uint8_t*>(this + 1); }
    uint16_t offset(size_t i) const {
      uint16_t value;
      __builtin_memcpy(&value, fingerprints() + slots + 2 * i, 2);
      return value;
    }
    void set_offset(size_t i, uint16_t value) {
      __builtin_memcpy(fingerprints() + slots + 2 * i, &value, 2);
    }
    const char* at(size_t offset) const { return reinterpret_cast<const char*>(this) + offset; }
    char* at(size_t offset) { return reinterpret_cast<char*>(this) + offset; }
    size_t start() const { return sizeof(Page) + 3 * size_t{slots}; }
    size_t live() const { return used - start() - dead; }
  };
  static_assert(sizeof(Page) == 20);
  static constexpr size_t kNowhere = SIZE_MAX;
  static constexpr uint32_t kPlain = UINT32_MAX;
  static constexpr size_t kSizes = 13;  // of pages from 1 KB to 8 KB

  // The pages of one size: all regions below `count` are in use.
  struct Chunks {
    std::vector<char*> blocks;
    uint32_t count = 0;

    Page* At(uint32_t region, size_t capacity) const;
  };

  static uint64_t Seed();
  size_t IndexOf(uint64_t hash) const { return depth_ == 0 ? 0 : hash >> (64 - depth_); }
  Page* PageOf(uint64_t hash) const { return pages_[directory_[IndexOf(hash)]]; }
  size_t directory_bytes() const {
    return directory_.capacity() * sizeof(uint32_t) + pages_.capacity() * sizeof(void*) +
           free_ids_.capacity() * sizeof(uint32_t);
  }

  // A record as it stands in a page.
  struct Parsed {
    Record record;
    size_t size = 0;          // bytes in the page
    char* outside = nullptr;  // where it really is, when not in the page
  };
  Parsed Parse(const char* p) const;
  size_t PlaceIn(const Page* page, uint64_t hash, std::string_view key, Parsed* parsed) const;
  template <typename Visit>
  void ForEachIn(const Page* page, const Visit& visit) const {
    for (size_t i = 0; i < page->count; ++i) visit(Parse(page->at(page->offset(i))).record);
  }

  // REQUIRES: the key is not there; the page is its hash's.
  void InsertNew(Page* page, std::string_view key, uint64_t hash, std::string_view payload);
  size_t InlineSize(size_t key, size_t payload) const;
  size_t SizeInPage(size_t key, size_t payload) const;
  void WriteRecord(char* p, std::string_view key, std::string_view payload);
  char* NewOutside(std::string_view key, std::string_view payload);
  void FreeOutside(char* block);

  Page* NewPage(size_t capacity, size_t slots, unsigned depth);
  // May move any other page: take pointers to them anew from pages_.
  void FreePage(Page* page);
  void FreeUnused(Page* page);
  void TakeId(Page* page);
  void DropId(Page* page);
  // Points the page's part of the directory to it.
  void Publish(const Page* page, uint64_t hash);
  // The page for the hash with room for one more record of `size` bytes.
  Page* MakeRoom(Page* page, uint64_t hash, size_t size);
  Page* Rebuild(Page* page, size_t capacity, size_t slots);
  void Split(Page* page, uint64_t hash);
  void DoubleDirectory();
  void HalveDirectory();
  void Append(Page* page, uint8_t fingerprint, size_t size, const char* record);
  void RemoveAt(Page* page, size_t place, const Parsed& parsed);
  void MaybeShrink(Page* page, uint64_t hash);
  bool TryMerge(Page* page, uint64_t hash);
  void Renumber();

  const Payload payload_;
  unsigned depth_ = 0;  // of the directory
  size_t size_ = 0;
  size_t memory_ = 0;                // of pages and records outside
  size_t deepest_ = 0;               // pages as deep as the directory
  size_t fullest_ = 1;               // no page has had more records
  std::vector<uint32_t> directory_;  // numbers of pages
  std::vector<Page*> pages_;         // by number; nullptr: free
  std::vector<uint32_t> free_ids_;
  Chunks chunks_[kSizes];
  BlockCut cut_;
};

}  // namespace sava::types
