// Slab: memory for the small blocks of one owner, in 4 KB pages of equal blocks.
//
//   page: 64-byte header (links, class, counts, bitmap of taken blocks), then blocks
//
// Classes: multiples of 8 to 128 bytes, of 16 to 448, then what fits a page eight, seven and six
// times; larger blocks come from malloc. A slab is used under its owner's lock only, so there are
// no frees from other threads, the account is exact, and dropping it drops whole pages. The pages
// come from the shared PagePool. Cost: O(1) allocation and release.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/page_pool.h"

namespace sava::base {

class Slab {
 public:
  static constexpr size_t kPageSize = PagePool::kPage;
  static constexpr size_t kMaxBlock = 672;
  static constexpr int kClasses = 40;

  // `spare`: one empty page of each class stays, so that a single block coming and going costs no
  // page.
  explicit Slab(bool spare = true) : spare_(spare) {}
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  static int ClassOf(size_t size) {
    if (size <= 128) return static_cast<int>((size + 7) / 8);
    if (size <= 448) return static_cast<int>(16 + (size - 128 + 15) / 16);
    return size <= 504 ? 37 : size <= 576 ? 38 : 39;
  }
  static size_t ClassSize(int cls) {
    if (cls <= 16) return static_cast<size_t>(cls) * 8;
    if (cls <= 36) return 128 + static_cast<size_t>(cls - 16) * 16;
    return cls == 37 ? 504 : cls == 38 ? 576 : 672;
  }
  // What a block of this size really takes.
  static size_t Rounded(size_t size);

  void* Allocate(size_t size);
  void Release(void* block, size_t size);

  static constexpr size_t kHeader = 64;

  // Bytes in blocks handed out, with their share of the pages' headers (large ones and what the
  // slab needs itself included); and in pages held.
  size_t used() const { return large_ + InPages() + classes_.capacity() * sizeof(Class); }
  size_t page_bytes() const { return pages_ * kPageSize; }
  size_t large_bytes() const { return large_; }
  // Bytes in pages that no block uses.
  size_t idle() const { return page_bytes() - InPages(); }

  // For moving blocks off sparse pages: a page of a class with at least two pages' worth of free
  // blocks, the emptiest among those looked at; nullptr when nothing is worth moving.
  // Blocks() lists its taken blocks; the page takes no new blocks until EndEvacuate.
  struct Page;
  Page* BeginEvacuate();
  static size_t Blocks(const Page* page, void** blocks, size_t max);
  static size_t BlockSize(const Page* page);
  void EndEvacuate(Page* page);

 private:
  struct Class {
    Page* partial = nullptr;  // pages with a free block
    uint32_t pages = 0;
    uint32_t taken = 0;
  };

  // Blocks in pages and what they take of the headers.
  size_t InPages() const { return (used_ - large_) + (used_ - large_) / (kPageSize / kHeader - 1); }
  Class& ClassFor(int cls) {
    uint8_t& place = places_[static_cast<size_t>(cls)];
    if (place == 0) AddClass(&place);
    return classes_[place - 1U];
  }
  void AddClass(uint8_t* place);
  Page* NewPage(int cls);
  void Link(Page* page);
  void Unlink(Page* page);
  void DropPage(Page* page);

  // Few classes are in use, and there are many slabs: a class has its place when it is needed.
  std::array<uint8_t, kClasses> places_{};  // 0: none; else its place in classes_, from 1 on
  std::vector<Class> classes_;
  Page* all_ = nullptr;  // every page, for dropping the slab
  size_t used_ = 0;
  size_t large_ = 0;
  size_t pages_ = 0;
  const bool spare_;
};

}  // namespace sava::base
