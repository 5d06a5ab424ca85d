// Saving and loading of Bloom: docs/formats/filters.md describes the bytes.
#include <algorithm>
#include <utility>

#include "types/filters/bloom.h"
#include "types/filters/filter_pieces.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbTypes[] = {kRdbModule};
constexpr uint64_t kVersion = 1;

// Kinds of stages.
constexpr uint64_t kBlockedStage = 0;
constexpr uint64_t kClassicStage = 1;
constexpr uint64_t kTableStage = 2;

// Bits of the options.
constexpr uint64_t kClassicBit = 1;
constexpr uint64_t kDeletableBit = 2;
constexpr uint64_t kReservedBit = 4;

// Of a stage: the sum over all stages stays a number.
constexpr uint64_t kMaxItems = uint64_t{1} << 56;

// A filter is saved in pieces from here on.
constexpr size_t kLargeBytes = 64 << 10;

// Of chunks for clients: whole blocks, or about as many bytes of pages.
constexpr size_t kChunkBlocks = 512;
constexpr size_t kChunkBytes = 1 << 20;
constexpr unsigned kUnitBits = 33;

std::string BlockPiece(size_t stage, size_t block, std::string_view bytes) {
  std::string piece;
  base::AppendVarint(&piece, stage);
  base::AppendVarint(&piece, block);
  piece += bytes;
  return piece;
}

std::string PagePiece(size_t stage, std::string_view pages) {
  std::string piece;
  base::AppendVarint(&piece, stage);
  piece += pages;
  return piece;
}

// Bits behind the last one of a classic filter are never set.
bool TailIsZero(const BitFilter& filter) {
  const uint64_t bits = filter.geometry().bits;
  return bits % 8 == 0 || filter.store().data()[bits / 8] >> (bits % 8) == 0;
}

}  // namespace

const TypeInfo& Bloom::Type() {
  static const TypeInfo kInfo{"MBbloom--", kRdbTypes, 1, &Bloom::Load, ModuleId("sava-bf01", 1)};
  return kInfo;
}

uint8_t Bloom::rdb_type() const { return kRdbModule; }

bool Bloom::large() const { return MemoryUsage(0) > kLargeBytes; }

// ---- the header ----

std::string Bloom::Header() const {
  std::string out;
  base::AppendVarint(&out, kVersion);
  base::AppendVarint(&out, (options_.layout == BloomLayout::kClassic ? kClassicBit : 0) |
                               (options_.deletable ? kDeletableBit : 0) |
                               (options_.reserved ? kReservedBit : 0));
  AppendDouble(&out, options_.error);
  base::AppendVarint(&out, options_.capacity);
  base::AppendVarint(&out, options_.expansion);
  base::AppendVarint(&out, stages_.size());
  for (const Stage& stage : stages_) {
    if (stage.table != nullptr) {
      base::AppendVarint(&out, kTableStage);
      base::AppendVarint(&out, stage.table->bits());
      base::AppendVarint(&out, stage.table->distinct());
      continue;
    }
    const BitFilter::Geometry& geometry = stage.bits->geometry();
    const bool blocked = geometry.layout == BloomLayout::kBlocked;
    base::AppendVarint(&out, blocked ? kBlockedStage : kClassicStage);
    base::AppendVarint(&out, geometry.bits);
    base::AppendVarint(&out, geometry.hashes);
    base::AppendVarint(&out, geometry.capacity);
    base::AppendVarint(&out, stage.added);
  }
  return out;
}

// An empty filter with the stages of the header; `added` of a table is what it is to hold. Nothing
// of more than `most_blocks` blocks is made.
std::unique_ptr<Bloom> Bloom::ReadHeader(std::string_view header, size_t most_blocks) {
  FieldReader in(header);
  std::unique_ptr<Bloom> bloom(new Bloom);
  Options& options = bloom->options_;
  if (in.Number() != kVersion) return nullptr;
  const uint64_t flags = in.Number(kClassicBit | kDeletableBit | kReservedBit);
  options.layout = (flags & kClassicBit) != 0 ? BloomLayout::kClassic : BloomLayout::kBlocked;
  options.deletable = (flags & kDeletableBit) != 0;
  options.reserved = (flags & kReservedBit) != 0;
  options.error = in.Double();
  options.capacity = in.Number(INT64_MAX);
  options.expansion = static_cast<uint32_t>(in.Number(UINT32_MAX));
  const uint64_t stages = in.Number(kMaxStages);
  if (!in.ok() || stages == 0 || options.capacity == 0) return nullptr;
  if (!(options.error > 0 && options.error < 1)) return nullptr;
  for (uint64_t i = 0; i < stages; ++i) {
    const uint64_t kind = in.Number(kTableStage);
    Stage stage;
    if (kind == kTableStage) {
      const uint64_t bits = in.Number(FingerprintTable::kMaxBits);
      stage.added = in.Number(kMaxItems);
      if (!in.ok() || bits < FingerprintTable::kMinBits) return nullptr;
      stage.table = std::make_unique<FingerprintTable>(static_cast<unsigned>(bits));
    } else {
      BitFilter::Geometry geometry;
      geometry.layout = kind == kBlockedStage ? BloomLayout::kBlocked : BloomLayout::kClassic;
      geometry.bits = in.Number();
      geometry.hashes = static_cast<uint32_t>(in.Number(BitFilter::kMaxHashes));
      geometry.capacity = in.Number(INT64_MAX);
      stage.added = in.Number(kMaxItems);
      if (!in.ok() || options.deletable || !BitFilter::Valid(geometry)) return nullptr;
      if (geometry.bits / 8 / BitStore::kBlock > most_blocks) return nullptr;
      stage.bits = BitFilter::Make(geometry);
      if (stage.bits == nullptr) return nullptr;
      most_blocks -= std::min(most_blocks, stage.bits->store().blocks());
    }
    bloom->stages_.push_back(std::move(stage));
  }
  if (!in.ok() || !in.AtEnd() || (options.deletable && stages != 1)) return nullptr;
  return bloom;
}

// ---- whole ----

void Bloom::Save(Writer& out) const {
  out.Length(Type().module_id);
  WritePiece(out, Header());
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (const auto& table = stages_[i].table; table != nullptr) {
      uint64_t prefix = 0;
      bool more = true;
      while (more) {
        std::string pages;
        more = table->AppendPages(&prefix, BitStore::kBlock, &pages);
        WritePiece(out, PagePiece(i, pages));
      }
      continue;
    }
    const BitStore& store = stages_[i].bits->store();
    for (size_t block = 0; block < store.blocks(); ++block) {
      WritePiece(out, BlockPiece(i, block, store.Block(block)));
    }
  }
  WriteLastPiece(out);
}

std::unique_ptr<Object> Bloom::Load(uint8_t /*rdb_type*/, Reader& in) {
  // A block takes eight bytes at least, however well it is compressed.
  const std::string header = in.ModuleString();
  std::unique_ptr<Bloom> bloom = in.ok() ? ReadHeader(header, in.remaining() / 8) : nullptr;
  if (bloom == nullptr) return nullptr;
  std::vector<std::unique_ptr<FingerprintTable::Loader>> loaders(bloom->stages_.size());
  std::vector<std::vector<bool>> seen(bloom->stages_.size());
  for (size_t i = 0; i < loaders.size(); ++i) {
    const Stage& stage = bloom->stages_[i];
    if (stage.bits != nullptr) {
      seen[i].resize(stage.bits->store().blocks());
    } else {
      loaders[i] = std::make_unique<FingerprintTable::Loader>(stage.table.get());
    }
  }
  for (std::string piece = in.ModuleString(); !piece.empty(); piece = in.ModuleString()) {
    FieldReader fields(piece);
    const uint64_t at = fields.Number(loaders.size() - 1);
    if (!fields.ok()) return nullptr;
    if (loaders[at] != nullptr) {
      if (!loaders[at]->Take(fields.Rest())) return nullptr;
      continue;
    }
    const uint64_t block = fields.Number(seen[at].size() - 1);
    BitStore& store = bloom->stages_[at].bits->store();
    if (!fields.ok() || seen[at][block] || fields.Rest().size() != store.Block(block).size()) {
      return nullptr;
    }
    memcpy(store.data() + block * BitStore::kBlock, fields.Rest().data(), fields.Rest().size());
    seen[at][block] = true;
  }
  in.ModuleEnd();
  if (!in.ok()) return nullptr;
  for (size_t i = 0; i < loaders.size(); ++i) {
    Stage& stage = bloom->stages_[i];
    if (loaders[i] != nullptr) {
      if (!loaders[i]->Finish(stage.added)) return nullptr;
    } else if (std::find(seen[i].begin(), seen[i].end(), false) != seen[i].end() ||
               !TailIsZero(*stage.bits)) {
      return nullptr;
    }
  }
  return bloom;
}

// ---- in pieces, while it changes ----

void Bloom::BeginCut(const PieceSink& sink, bool /*refer*/) {
  AbortCut();
  std::string head;
  {
    Writer out(&head);
    out.Length(Type().module_id);
    WritePiece(out, Header());
  }
  sink(head);
  cut_ = std::make_unique<PieceSink>(sink);
  const auto hand_on = [this](std::string_view piece) {
    std::string bytes;
    {
      Writer out(&bytes);
      WritePiece(out, piece);
    }
    (*cut_)(bytes);
  };
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].table != nullptr) {
      stages_[i].table->BeginCut(
          [hand_on, i](std::string_view pages) { hand_on(PagePiece(i, pages)); });
    } else {
      stages_[i].bits->store().BeginCut([hand_on, i](size_t block, std::string_view bytes) {
        hand_on(BlockPiece(i, block, bytes));
      });
    }
  }
}

bool Bloom::SavePieces(size_t budget) {
  if (cut_ == nullptr) return true;
  for (Stage& stage : stages_) {
    const bool done = stage.table != nullptr
                          ? stage.table->SavePieces(budget)
                          : stage.bits->store().SaveNextBlocks(budget / BitStore::kBlock + 1);
    if (!done) return false;
  }
  std::string end;
  {
    Writer out(&end);
    WriteLastPiece(out);
  }
  (*cut_)(end);
  cut_.reset();
  return true;
}

void Bloom::FinishSaving() {
  while (!SavePieces(SIZE_MAX / 2)) continue;
}

void Bloom::AbortCut() {
  for (Stage& stage : stages_) {
    stage.table != nullptr ? stage.table->AbortCut() : stage.bits->store().AbortCut();
  }
  cut_.reset();
}

// ---- in chunks ----
//
// An iterator is 1 + the stage's number * 2^33 + where in the stage: the block, or the first 32
// bits of the page's prefix.

std::unique_ptr<Bloom> Bloom::FromHeader(std::string_view header) {
  std::unique_ptr<Bloom> bloom = ReadHeader(header, SIZE_MAX);
  if (bloom == nullptr) return nullptr;
  for (Stage& stage : bloom->stages_) {
    if (stage.table != nullptr) stage.added = 0;
  }
  return bloom;
}

bool Bloom::ReadChunk(int64_t* iterator, std::string* chunk) const {
  chunk->clear();
  if (*iterator < 1) return false;
  const auto place = static_cast<uint64_t>(*iterator - 1);
  const uint64_t at = place >> kUnitBits;
  const uint64_t unit = place & ((uint64_t{1} << kUnitBits) - 1);
  if (at >= stages_.size()) return false;
  const Stage& stage = stages_[at];
  bool more = false;
  uint64_t next = 0;
  if (stage.table != nullptr) {
    if (unit >> 32 != 0) return false;
    uint64_t prefix = unit << 32;
    *chunk = PagePiece(at, {});
    more = stage.table->AppendPages(&prefix, kChunkBytes, chunk);
    next = prefix >> 32;
  } else {
    const BitStore& store = stage.bits->store();
    if (unit >= store.blocks()) return false;
    const size_t from = unit * BitStore::kBlock;
    next = unit + kChunkBlocks;
    more = next < store.blocks();
    const size_t size = std::min(kChunkBlocks * BitStore::kBlock, store.size() - from);
    *chunk = BlockPiece(at, unit, {reinterpret_cast<const char*>(store.data()) + from, size});
  }
  *iterator = static_cast<int64_t>((more ? at << kUnitBits | next : (at + 1) << kUnitBits) + 1);
  return true;
}

bool Bloom::AddChunk(std::string_view chunk) {
  FieldReader fields(chunk);
  const uint64_t at = fields.Number(stages_.size() - 1);
  if (!fields.ok()) return false;
  if (stages_[at].table != nullptr) return stages_[at].table->AddPages(fields.Rest());
  BitFilter& filter = *stages_[at].bits;
  BitStore& store = filter.store();
  const uint64_t block = fields.Number(store.blocks() - 1);
  const std::string_view bytes = fields.Rest();
  if (!fields.ok() || bytes.size() > store.size() - block * BitStore::kBlock) return false;
  const size_t from = block * BitStore::kBlock;
  for (size_t i = 0; i < bytes.size(); i += BitStore::kBlock) store.Touch(from + i);
  const uint8_t last = store.data()[store.size() - 1];
  memcpy(store.data() + from, bytes.data(), bytes.size());
  if (TailIsZero(filter)) return true;
  store.data()[store.size() - 1] = last;
  return false;
}

}  // namespace sava::types
