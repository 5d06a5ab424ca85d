#include "types/sketches/count_min.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "base/varint.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbTypes[] = {kRdbModule};
constexpr uint64_t kVersion = 1;
// No honest block is longer than this many times its saved form (LZF, see save.cc).
constexpr uint64_t kMostGrowth = 88;

// The counters of an item, row by row: double hashing, scaled to the width.
class Places {
 public:
  Places(std::string_view item, uint64_t width) : width_(width) {
    const XXH128_hash_t hash = XXH3_128bits(item.data(), item.size());
    at_ = hash.low64;
    step_ = hash.high64 | 1;
  }
  // The place in the next row, counted from the beginning of the table.
  size_t Next() {
    const auto column = static_cast<uint64_t>((static_cast<unsigned __int128>(at_) * width_) >> 64);
    at_ += step_;
    const size_t place = row_ + column;
    row_ += width_;
    return place;
  }

 private:
  uint64_t width_;
  uint64_t at_;
  uint64_t step_;
  size_t row_ = 0;
};

uint32_t LeastOf(const uint32_t* table, Places places, uint64_t depth) {
  uint32_t least = UINT32_MAX;
  for (uint64_t row = 0; row < depth; ++row) least = std::min(least, table[places.Next()]);
  return least;
}

}  // namespace

std::unique_ptr<CountMin> CountMin::Make(uint64_t width, uint64_t depth) {
  if (width > kMaxCells / depth) return nullptr;
  // Zeroed by the kernel page by page, when they are first used.
  Cells cells(static_cast<uint32_t*>(calloc(width * depth, sizeof(uint32_t))));
  if (cells == nullptr) return nullptr;
  return std::unique_ptr<CountMin>(new CountMin(width, depth, std::move(cells)));
}

uint64_t CountMin::Estimate(std::string_view item) const {
  return LeastOf(table_.get(), Places(item, width_), depth_);
}

uint64_t CountMin::Add(std::string_view item, uint64_t n) {
  Places places(item, width_);
  const uint64_t before = LeastOf(table_.get(), places, depth_);
  const uint64_t after = n > kMost - before ? kMost : before + n;
  for (uint64_t row = 0; row < depth_; ++row) {
    const size_t place = places.Next();
    if (table_[place] >= after) continue;
    cut_.BeforeChange(place / kBlock);
    table_[place] = static_cast<uint32_t>(after);
  }
  total_ = n > kMaxTotal - total_ ? kMaxTotal : total_ + n;
  return after;
}

bool CountMin::SumOf(std::span<const Weighted> sources, size_t cell, uint32_t* sum) const {
  int64_t value = 0;
  for (const Weighted& source : sources) {
    int64_t part = 0;
    if (__builtin_mul_overflow(int64_t{source.sketch->table_[cell]}, source.weight, &part) ||
        __builtin_add_overflow(value, part, &value)) {
      return false;
    }
  }
  *sum = static_cast<uint32_t>(value);
  return value >= 0 && value <= int64_t{UINT32_MAX};
}

bool CountMin::Merge(std::span<const Weighted> sources) {
  int64_t total = 0;
  for (const Weighted& source : sources) {
    int64_t part = 0;
    if (__builtin_mul_overflow(static_cast<int64_t>(source.sketch->total_), source.weight, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return false;
    }
  }
  if (total < 0) return false;
  uint32_t sum = 0;
  for (size_t cell = 0; cell < cells(); ++cell) {
    if (!SumOf(sources, cell, &sum)) return false;
  }
  for (size_t cell = 0; cell < cells(); ++cell) {
    if (cell % kBlock == 0) cut_.BeforeChange(cell / kBlock);
    SumOf(sources, cell, &sum);
    table_[cell] = sum;
  }
  total_ = static_cast<uint64_t>(total);
  return true;
}

// ---- as an object ----

const TypeInfo& CountMin::Type() {
  static const TypeInfo kInfo{"CMSk-TYPE", kRdbTypes, 1, &CountMin::Load, ModuleId("sava-cms1", 1)};
  return kInfo;
}

uint8_t CountMin::rdb_type() const { return kRdbModule; }

size_t CountMin::MemoryUsage(size_t /*samples*/) const {
  return sizeof(*this) + cells() * sizeof(uint32_t);
}

std::unique_ptr<Object> CountMin::Copy() const {
  std::unique_ptr<CountMin> copy = Make(width_, depth_);
  if (copy == nullptr) throw std::bad_alloc();
  memcpy(copy->table_.get(), table_.get(), cells() * sizeof(uint32_t));
  copy->total_ = total_;
  return copy;
}

void CountMin::Digest(const std::function<void(std::string_view)>& add) const {
  add(std::to_string(width_) + " " + std::to_string(depth_) + " " + std::to_string(total_));
  add({reinterpret_cast<const char*>(table_.get()), cells() * sizeof(uint32_t)});
}

// ---- saving: docs/formats/sketches.md ----

size_t CountMin::BlockSize(size_t block) const {
  return std::min(kBlock, cells() - block * kBlock);
}

void CountMin::SaveHead(Writer& out) const {
  out.Length(Type().module_id);
  out.ModuleUnsigned(kVersion);
  out.ModuleUnsigned(width_);
  out.ModuleUnsigned(depth_);
  out.ModuleUnsigned(total_);
}

// A varint for the block's number, then its counters as they are, little-endian.
void CountMin::SaveBlock(size_t block, Writer& out) const {
  std::string bytes;
  bytes.reserve(base::kMaxVarintBytes + kBlock * sizeof(uint32_t));
  base::AppendVarint(&bytes, block);
  bytes.append(reinterpret_cast<const char*>(table_.get() + block * kBlock),
               BlockSize(block) * sizeof(uint32_t));
  out.ModuleString(bytes);
}

void CountMin::Save(Writer& out) const {
  SaveHead(out);
  for (size_t block = 0; block < blocks(); ++block) SaveBlock(block, out);
  out.ModuleEnd();
}

std::unique_ptr<Object> CountMin::Load(uint8_t /*rdb_type*/, Reader& in) {
  if (in.ModuleUnsigned() != kVersion) return nullptr;
  const uint64_t width = in.ModuleUnsigned();
  const uint64_t depth = in.ModuleUnsigned();
  const uint64_t total = in.ModuleUnsigned();
  if (!in.ok() || width == 0 || depth == 0 || total > kMaxTotal) return nullptr;
  if (width > kMaxCells / depth) return nullptr;
  if (width * depth * sizeof(uint32_t) > in.remaining() * kMostGrowth) return nullptr;
  std::unique_ptr<CountMin> sketch = Make(width, depth);
  if (sketch == nullptr) return nullptr;
  sketch->total_ = total;
  std::vector<bool> seen(sketch->blocks());
  for (size_t i = 0; i < seen.size(); ++i) {
    const std::string bytes = in.ModuleString();
    const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
    const uint8_t* const end = p + bytes.size();
    uint64_t block = 0;
    p = base::GetVarint(p, end, &block);
    if (p == nullptr || block >= seen.size() || seen[block]) return nullptr;
    const size_t size = sketch->BlockSize(block) * sizeof(uint32_t);
    if (static_cast<size_t>(end - p) != size) return nullptr;
    memcpy(sketch->table_.get() + block * kBlock, p, size);
    seen[block] = true;
  }
  in.ModuleEnd();
  return in.ok() ? std::move(sketch) : nullptr;
}

void CountMin::BeginCut(const PieceSink& sink, bool /*refer*/) {
  std::string head;
  {
    Writer out(&head);
    SaveHead(out);
  }
  cut_.Begin(sink, head, blocks(), [this](size_t block, Writer& out) { SaveBlock(block, out); });
}

}  // namespace sava::types
