#include "types/filters/cuckoo.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "types/filters/filter_pieces.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbTypes[] = {kRdbModule};
constexpr uint64_t kVersion = 1;
constexpr size_t kLargeBytes = 64 << 10;
constexpr size_t kPieceBytes = 16 << 10;
constexpr size_t kChunkBytes = 1 << 20;
constexpr uint64_t kMostOfAnything = uint64_t{1} << 40;

}  // namespace

Cuckoo::Cuckoo(const Options& options)
    : options_(options), table_(std::make_unique<FingerprintTable>(FingerprintTable::kMaxBits)) {}

uint64_t Cuckoo::buckets() const {
  return std::bit_ceil(std::max<uint64_t>(1, options_.capacity / options_.bucket_size));
}

uint64_t Cuckoo::filters() const {
  const uint64_t first = slots();
  const uint64_t now = items();
  if (options_.expansion == 0 || now <= first) return 1;
  if (options_.expansion == 1) return (now + first - 1) / first;
  uint64_t filters = 1;
  double step = static_cast<double>(first);
  for (double all = step; all < static_cast<double>(now); ++filters) {
    step *= static_cast<double>(options_.expansion);
    all += step;
  }
  return filters;
}

// Enough for five hundred million items, or for those that may come.
unsigned Cuckoo::TableBits() const {
  const double most = options_.expansion == 0 ? static_cast<double>(slots()) : 0x1p29;
  const double expected = std::max(most, static_cast<double>(options_.capacity) * 2);
  const double bits = std::ceil(std::log2(expected / kRate));
  return static_cast<unsigned>(
      std::clamp(bits, double{FingerprintTable::kMinBits}, double{FingerprintTable::kMaxBits}));
}

bool Cuckoo::Full() const {
  if (options_.expansion == 0) return items() >= slots();
  return !exact() && std::ldexp(kRate, static_cast<int>(table_->bits())) <=
                         static_cast<double>(table_->distinct());
}

Cuckoo::Added Cuckoo::Add(uint64_t hash) {
  if (Full()) return Added::kFull;
  if (exact() && table_->distinct() >= kExactItems && TableBits() < FingerprintTable::kMaxBits) {
    while (!SavePieces(SIZE_MAX)) continue;
    table_ = table_->Narrowed(TableBits());
  }
  table_->Add(hash);
  return Added::kAdded;
}

bool Cuckoo::Remove(uint64_t hash) {
  if (!table_->Remove(hash)) return false;
  ++deleted_;
  return true;
}

void Cuckoo::Compact() {
  while (!SavePieces(SIZE_MAX)) continue;
  table_ = table_->Clone();
  deleted_ = 0;
}

// ---- as an object ----

const TypeInfo& Cuckoo::Type() {
  static const TypeInfo kInfo{"MBbloomCF", kRdbTypes, 1, &Cuckoo::Load, ModuleId("sava-cf01", 1)};
  return kInfo;
}

uint8_t Cuckoo::rdb_type() const { return kRdbModule; }
bool Cuckoo::large() const { return table_->memory() > kLargeBytes; }
size_t Cuckoo::MemoryUsage(size_t /*samples*/) const { return sizeof(*this) + table_->memory(); }

std::unique_ptr<Object> Cuckoo::Copy() const {
  auto copy = std::make_unique<Cuckoo>(options_);
  copy->deleted_ = deleted_;
  copy->table_ = table_->Clone();
  return copy;
}

void Cuckoo::Digest(const std::function<void(std::string_view)>& add) const {
  add(Header());
  table_->ForEach([&](uint64_t hash, unsigned copies) {
    add(std::to_string(hash) + " " + std::to_string(copies));
  });
}

// ---- saving: docs/formats/filters.md ----

std::string Cuckoo::Header() const {
  std::string out;
  base::AppendVarint(&out, kVersion);
  base::AppendVarint(&out, options_.capacity);
  base::AppendVarint(&out, options_.bucket_size);
  base::AppendVarint(&out, options_.max_iterations);
  base::AppendVarint(&out, options_.expansion);
  base::AppendVarint(&out, deleted_);
  base::AppendVarint(&out, table_->bits());
  base::AppendVarint(&out, table_->distinct());
  return out;
}

std::unique_ptr<Cuckoo> Cuckoo::ReadHeader(std::string_view header, uint64_t* distinct) {
  FieldReader in(header);
  if (in.Number() != kVersion) return nullptr;
  Options options;
  options.capacity = in.Number(kMostOfAnything);
  options.bucket_size = in.Number(kMostOfAnything);
  options.max_iterations = in.Number(kMostOfAnything);
  options.expansion = in.Number(kMostOfAnything);
  const uint64_t deleted = in.Number();
  const uint64_t bits = in.Number(FingerprintTable::kMaxBits);
  *distinct = in.Number();
  if (!in.ok() || !in.AtEnd() || options.capacity == 0 || options.bucket_size == 0) return nullptr;
  if (bits < FingerprintTable::kMinBits) return nullptr;
  auto cuckoo = std::make_unique<Cuckoo>(options);
  cuckoo->deleted_ = deleted;
  cuckoo->table_ = std::make_unique<FingerprintTable>(static_cast<unsigned>(bits));
  return cuckoo;
}

void Cuckoo::Save(Writer& out) const {
  out.Length(Type().module_id);
  WritePiece(out, Header());
  uint64_t prefix = 0;
  bool more = true;
  while (more) {
    std::string pages;
    more = table_->AppendPages(&prefix, kPieceBytes, &pages);
    WritePiece(out, pages);
  }
  WriteLastPiece(out);
}

std::unique_ptr<Object> Cuckoo::Load(uint8_t /*rdb_type*/, Reader& in) {
  uint64_t distinct = 0;
  const std::string header = in.ModuleString();
  std::unique_ptr<Cuckoo> cuckoo = in.ok() ? ReadHeader(header, &distinct) : nullptr;
  if (cuckoo == nullptr) return nullptr;
  FingerprintTable::Loader loader(cuckoo->table_.get());
  for (std::string piece = in.ModuleString(); !piece.empty(); piece = in.ModuleString()) {
    if (!loader.Take(piece)) return nullptr;
  }
  in.ModuleEnd();
  return in.ok() && loader.Finish(distinct) ? std::move(cuckoo) : nullptr;
}

void Cuckoo::BeginCut(const PieceSink& sink, bool /*refer*/) {
  AbortCut();
  std::string head;
  {
    Writer out(&head);
    out.Length(Type().module_id);
    WritePiece(out, Header());
  }
  sink(head);
  cut_ = std::make_unique<PieceSink>(sink);
  table_->BeginCut([this](std::string_view pages) {
    std::string bytes;
    {
      Writer out(&bytes);
      WritePiece(out, pages);
    }
    (*cut_)(bytes);
  });
}

bool Cuckoo::SavePieces(size_t budget) {
  if (cut_ == nullptr) return true;
  if (!table_->SavePieces(budget)) return false;
  std::string end;
  {
    Writer out(&end);
    WriteLastPiece(out);
  }
  (*cut_)(end);
  cut_.reset();
  return true;
}

void Cuckoo::AbortCut() {
  table_->AbortCut();
  cut_.reset();
}

// ---- in chunks ----

std::unique_ptr<Cuckoo> Cuckoo::FromHeader(std::string_view header) {
  uint64_t distinct = 0;
  return ReadHeader(header, &distinct);
}

// An iterator is 1 + the first 32 bits of the page's prefix; 2^32 + 1 is behind the last page.
bool Cuckoo::ReadChunk(int64_t* iterator, std::string* chunk) const {
  chunk->clear();
  if (*iterator < 1 || *iterator > int64_t{1} << 32) return false;
  uint64_t prefix = static_cast<uint64_t>(*iterator - 1) << 32;
  const bool more = table_->AppendPages(&prefix, kChunkBytes, chunk);
  *iterator = static_cast<int64_t>(more ? prefix >> 32 : uint64_t{1} << 32) + 1;
  return true;
}

}  // namespace sava::types
