#include "base/slab.h"

#include <malloc.h>

#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/prefetch.h"

namespace sava::base {

struct Slab::Page {
  Page* next;  // among the partial pages of its class
  Page* previous;
  Page* all_next;  // among all pages
  Page* all_previous;
  uint16_t cls;
  uint16_t taken;
  uint8_t capacity;
  bool linked;
  bool evacuating;
  uint8_t hint;  // word of the bitmap to look at first
  uint64_t bitmap[3];
};

namespace {

size_t CapacityOf(int cls) {
  // 24 bytes are the smallest block worth having: 168 fit the bitmap's 192 bits.
  const size_t n = (Slab::kPageSize - Slab::kHeader) / Slab::ClassSize(cls);
  return n < 192 ? n : 192;
}

}  // namespace

size_t Slab::Rounded(size_t size) {
  return size <= kMaxBlock ? ClassSize(ClassOf(size)) : size + 16;
}

Slab::~Slab() {
  while (all_ != nullptr) {
    Page* next = all_->all_next;
    PagePool::Shared().Free(all_);
    all_ = next;
  }
}

void Slab::AddClass(uint8_t* place) {
  // Most slabs have one or two.
  if (classes_.size() == classes_.capacity()) {
    classes_.reserve(classes_.size() + (classes_.size() < 2 ? 1 : 4));
  }
  classes_.emplace_back();
  *place = static_cast<uint8_t>(classes_.size());
}

Slab::Page* Slab::NewPage(int cls) {
  static_assert(sizeof(Page) <= kHeader);
  auto* page = static_cast<Page*>(PagePool::Shared().Allocate());
  memset(page, 0, sizeof(Page));
  page->cls = static_cast<uint16_t>(cls);
  page->capacity = static_cast<uint8_t>(CapacityOf(cls));
  // Bits beyond the last block are taken for ever.
  for (size_t i = page->capacity; i < 192; ++i) page->bitmap[i / 64] |= uint64_t{1} << (i % 64);
  page->all_next = all_;
  if (all_ != nullptr) all_->all_previous = page;
  all_ = page;
  ++pages_;
  ++ClassFor(cls).pages;
  Link(page);
  return page;
}

void Slab::Link(Page* page) {
  Class& c = ClassFor(page->cls);
  page->next = c.partial;
  page->previous = nullptr;
  if (c.partial != nullptr) c.partial->previous = page;
  c.partial = page;
  page->linked = true;
}

void Slab::Unlink(Page* page) {
  Class& c = ClassFor(page->cls);
  if (page->previous != nullptr) {
    page->previous->next = page->next;
  } else {
    c.partial = page->next;
  }
  if (page->next != nullptr) page->next->previous = page->previous;
  page->linked = false;
}

void Slab::DropPage(Page* page) {
  if (page->linked) Unlink(page);
  if (page->all_previous != nullptr) {
    page->all_previous->all_next = page->all_next;
  } else {
    all_ = page->all_next;
  }
  if (page->all_next != nullptr) page->all_next->all_previous = page->all_previous;
  --ClassFor(page->cls).pages;
  --pages_;
  PagePool::Shared().Free(page);
}

void* Slab::Allocate(size_t size) {
  if (size > kMaxBlock) {
    void* block = malloc(size);
    if (block == nullptr) throw std::bad_alloc();
    const size_t held = Rounded(size);
    used_ += held;
    large_ += held;
    return block;
  }
  const int cls = ClassOf(size < 24 ? 24 : size);
  Class& c = ClassFor(cls);
  Page* page = c.partial != nullptr ? c.partial : NewPage(cls);
  size_t word = page->hint;
  while (page->bitmap[word] == ~uint64_t{0}) word = word == 2 ? 0 : word + 1;
  const int bit = std::countr_one(page->bitmap[word]);
  const size_t index = word * 64 + static_cast<size_t>(bit);
  assert(index < page->capacity);
  page->bitmap[word] |= uint64_t{1} << bit;
  page->hint = static_cast<uint8_t>(word);
  const size_t block_size = ClassSize(cls);
  used_ += block_size;
  ++c.taken;
  if (++page->taken == page->capacity) Unlink(page);
  char* const block = reinterpret_cast<char*>(page) + kHeader + index * block_size;
  // A table that fills asks for the next block soon. Beyond the page it does no harm.
  PrefetchForWrite(block + block_size);
  PrefetchForWrite(block + block_size + 63);
  return block;
}

void Slab::Release(void* block, size_t size) {
  if (size > kMaxBlock) {
    const size_t held = Rounded(size);
    used_ -= held;
    large_ -= held;
    free(block);
    return;
  }
  const int cls = ClassOf(size < 24 ? 24 : size);
  auto* page = reinterpret_cast<Page*>(reinterpret_cast<uintptr_t>(block) & ~(kPageSize - 1));
  assert(page->cls == cls);
  const size_t block_size = ClassSize(cls);
  const size_t index =
      static_cast<size_t>(static_cast<char*>(block) - reinterpret_cast<char*>(page) -
                          static_cast<std::ptrdiff_t>(kHeader)) /
      block_size;
  page->bitmap[index / 64] &= ~(uint64_t{1} << (index % 64));
  page->hint = static_cast<uint8_t>(index / 64);
  used_ -= block_size;
  Class& c = ClassFor(cls);
  --c.taken;
  if (--page->taken == 0 && !page->evacuating) {
    if (!spare_ || (page->linked && (c.partial != page || page->next != nullptr))) {
      DropPage(page);
      return;
    }
  }
  if (!page->linked && !page->evacuating) Link(page);
}

Slab::Page* Slab::BeginEvacuate() {
  for (Class& c : classes_) {
    if (c.pages < 2 || c.partial == nullptr) continue;
    const uint32_t capacity = c.partial->capacity;
    const uint32_t idle = c.pages * capacity - c.taken;
    // Worth it when more than a sixteenth of the class is idle, and well more than a page of it.
    if (idle <= capacity + capacity / 4 || idle * 16 <= c.pages * capacity) continue;
    Page* best = c.partial;
    int looked = 0;
    for (Page* page = c.partial; page != nullptr && looked < 32; page = page->next, ++looked) {
      if (page->taken < best->taken) best = page;
    }
    if (best->taken == best->capacity) continue;
    Unlink(best);
    best->evacuating = true;
    return best;
  }
  return nullptr;
}

size_t Slab::Blocks(const Page* page, void** blocks, size_t max) {
  const size_t block_size = BlockSize(page);
  size_t count = 0;
  for (size_t i = 0; i < page->capacity && count < max; ++i) {
    if ((page->bitmap[i / 64] >> (i % 64) & 1) != 0) {
      blocks[count++] =
          const_cast<char*>(reinterpret_cast<const char*>(page)) + kHeader + i * block_size;
    }
  }
  return count;
}

size_t Slab::BlockSize(const Page* page) { return ClassSize(page->cls); }

void Slab::EndEvacuate(Page* page) {
  page->evacuating = false;
  if (page->taken == 0) {
    DropPage(page);
  } else {
    Link(page);
  }
}

}  // namespace sava::base
