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

  // Bytes in blocks handed out (large ones and page headers included), and in pages held.
  size_t used() const { return used_ + pages_ * kHeader; }
  size_t page_bytes() const { return pages_ * kPageSize; }
  size_t large_bytes() const { return large_; }
  // Bytes in pages that no block uses.
  size_t idle() const { return page_bytes() - pages_ * kHeader - (used_ - large_); }

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

  Page* NewPage(int cls);
  void Link(Page* page);
  void Unlink(Page* page);
  void DropPage(Page* page);

  std::array<Class, kClasses> classes_{};
  Page* all_ = nullptr;  // every page, for dropping the slab
  size_t used_ = 0;
  size_t large_ = 0;
  size_t pages_ = 0;
  const bool spare_;
};

}  // namespace sava::base
