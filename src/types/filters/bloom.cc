#include "types/filters/bloom.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

namespace sava::types {

namespace {

// How many tables of growing fingerprints there may be, and how much longer each gets.
constexpr unsigned kTableStep = 6;

// Doublings from a rate to one.
unsigned RateBits(double rate) {
  constexpr double kMost = 2000;  // beyond the smallest of all numbers
  return static_cast<unsigned>(std::min(kMost, std::ceil(-std::log2(rate))));
}

unsigned Clamped(unsigned bits) {
  return std::clamp(bits, FingerprintTable::kMinBits, FingerprintTable::kMaxBits);
}

double RateOf(const FingerprintTable& table) {
  return static_cast<double>(table.distinct()) * std::exp2(-static_cast<double>(table.bits()));
}

}  // namespace

std::unique_ptr<Bloom> Bloom::Make(const Options& options) {
  std::unique_ptr<Bloom> bloom(new Bloom);
  bloom->options_ = options;
  BitFilter::Geometry geometry;
  if (options.reserved && !options.deletable) {
    geometry = BitFilter::Fit(options.layout, options.capacity, options.error);
    if (!BitFilter::Valid(geometry)) return nullptr;
  }
  if (bloom->ExactLimit() != 0) {
    bloom->AddStage(FingerprintTable::kMaxBits);
    return bloom;
  }
  Stage stage;
  stage.bits = BitFilter::Make(geometry);
  if (stage.bits == nullptr) return nullptr;
  bloom->stages_.push_back(std::move(stage));
  return bloom;
}

uint64_t Bloom::BytesFor(const Options& options) {
  if (!options.reserved || options.deletable) return 0;
  return BitFilter::Fit(options.layout, options.capacity, options.error).bits / 8;
}

std::unique_ptr<Bloom> Bloom::MakeClassic(uint64_t bits, uint32_t hashes) {
  const BitFilter::Geometry geometry{BloomLayout::kClassic, bits, hashes, INT64_MAX};
  if (!BitFilter::Valid(geometry)) return nullptr;
  std::unique_ptr<Bloom> bloom(new Bloom);
  bloom->options_ = {
      .capacity = INT64_MAX, .expansion = 0, .layout = BloomLayout::kClassic, .reserved = true};
  Stage stage;
  stage.bits = BitFilter::Make(geometry);
  if (stage.bits == nullptr) return nullptr;
  bloom->stages_.push_back(std::move(stage));
  return bloom;
}

Bloom::~Bloom() = default;

Bloom::Stage Bloom::Stage::Clone() const {
  Stage copy;
  copy.added = added;
  if (table != nullptr) copy.table = table->Clone();
  if (bits != nullptr) copy.bits = bits->Clone();
  if (bits != nullptr && copy.bits == nullptr) throw std::bad_alloc();
  return copy;
}

// ---- stages ----

bool Bloom::exact() const {
  return stages_.size() == 1 && stages_[0].table != nullptr &&
         stages_[0].table->bits() == FingerprintTable::kMaxBits;
}

bool Bloom::has_bits() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& stage) { return stage.bits != nullptr; });
}

// Exact hashes take some eight bytes each: a reserved filter leaves them when its bits would take
// less. The document's filter is bits from the beginning.
uint64_t Bloom::ExactLimit() const {
  if (options_.deletable || !options_.reserved) return kExactItems;
  if (options_.layout == BloomLayout::kClassic) return 0;
  return std::min(kExactItems, options_.capacity / 8);
}

uint64_t Bloom::max_items() const {
  if (!options_.deletable) return UINT64_MAX;
  const unsigned bits = NextTableBits();
  if (bits == FingerprintTable::kMaxBits) return INT64_MAX;
  return static_cast<uint64_t>(std::exp2(bits) * options_.error);
}

unsigned Bloom::NextTableBits() const {
  const unsigned rate_bits = RateBits(options_.error);
  if (options_.deletable) {
    const unsigned wanted = RateBits(options_.error / static_cast<double>(options_.capacity)) + 4;
    return Clamped(std::max(rate_bits + 29, wanted));
  }
  unsigned tables = 0;
  for (const Stage& stage : stages_) {
    if (stage.table != nullptr && stage.table->bits() < FingerprintTable::kMaxBits) ++tables;
  }
  return Clamped(rate_bits + (has_bits() ? 29 : 25) + kTableStep * tables);
}

// Each table may use half of what the one before it could: together less than the promise, or than
// a sixteenth of it beside bits.
double Bloom::TableLimit(const Stage& stage) const {
  const bool may_leave = options_.reserved || NextTableBits() < FingerprintTable::kMaxBits;
  if (exact() && may_leave) return static_cast<double>(ExactLimit());
  if (stage.table->bits() == FingerprintTable::kMaxBits) return INFINITY;
  double share = has_bits() ? 1.0 / 32 : 1.0 / 2;
  for (const Stage& before : stages_) {
    if (&before == &stage) break;
    if (before.table != nullptr) share /= 2;
  }
  return std::exp2(stage.table->bits()) * options_.error * share;
}

void Bloom::AddStage(unsigned table_bits) {
  Stage stage;
  stage.table = std::make_unique<FingerprintTable>(table_bits);
  stages_.push_back(std::move(stage));
}

void Bloom::Grow() {
  if (!exact()) {
    AddStage(NextTableBits());
    return;
  }
  FinishSaving();
  Stage next;
  if (!options_.deletable && options_.reserved) {
    const auto geometry = BitFilter::Fit(options_.layout, options_.capacity, options_.error);
    if (BitFilter::Valid(geometry)) next.bits = BitFilter::Make(geometry);
  }
  const FingerprintTable& hashes = *stages_[0].table;
  if (next.bits != nullptr) {
    hashes.ForEach([&](uint64_t hash, unsigned /*copies*/) { next.bits->Add(hash); });
    next.added = hashes.distinct();
  } else {
    next.table = hashes.Narrowed(NextTableBits());
  }
  stages_[0] = std::move(next);
}

// ---- items ----

uint64_t Bloom::items() const {
  uint64_t items = 0;
  for (const Stage& stage : stages_) items += stage.items();
  return items;
}

bool Bloom::Has(uint64_t hash) const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [hash](const Stage& stage) { return stage.Has(hash); });
}

void Bloom::Prefetch(uint64_t hash) const {
  for (const Stage& stage : stages_) {
    stage.bits != nullptr ? stage.bits->Prefetch(hash) : stage.table->Prefetch(hash);
  }
}

Bloom::Added Bloom::Add(uint64_t hash) {
  if (options_.deletable) return AddCounted(hash);
  // The common case in one go: bits with room.
  Stage& only = stages_.front();
  if (stages_.size() == 1 && only.bits != nullptr && only.added < only.bits->geometry().capacity) {
    if (!only.bits->Add(hash)) return Added::kKnown;
    ++only.added;
    return Added::kNew;
  }
  if (Has(hash)) return Added::kKnown;
  if (options_.expansion == 0 && items() >= options_.capacity) return Added::kFull;
  AddToLast(hash);
  return Added::kNew;
}

void Bloom::AddToLast(uint64_t hash) {
  const auto full = [this] {
    const Stage& last = stages_.back();
    if (last.bits != nullptr) return last.added >= last.bits->geometry().capacity;
    return static_cast<double>(last.table->distinct()) >= TableLimit(last);
  };
  if (full()) Grow();
  Stage& last = stages_.back();
  if (last.bits == nullptr) {
    last.table->AddOnce(hash);
  } else if (last.bits->Add(hash)) {
    ++last.added;
  }
}

Bloom::Added Bloom::AddCounted(uint64_t hash) {
  FingerprintTable& table = *stages_[0].table;
  if (table.Count(hash) == 0) {
    const uint64_t most = options_.expansion == 0 ? options_.capacity : max_items();
    if (table.distinct() >= most) return Added::kFull;
    if (exact() && table.distinct() >= kExactItems && NextTableBits() < table.bits()) Grow();
  }
  return stages_[0].table->Add(hash) ? Added::kNew : Added::kKnown;
}

bool Bloom::Remove(uint64_t hash) { return stages_[0].table->Remove(hash); }

// ---- merging ----

Bloom::Merged Bloom::CanMerge(std::span<const Bloom* const> others) const {
  uint64_t together = items();
  size_t stages = stages_.size();
  for (const Bloom* other : others) {
    if (options_.deletable != other->options_.deletable) return Merged::kDifferent;
    if (other == this) continue;
    together += other->items();
    stages += other->stages_.size();
  }
  if (stages > kMaxStages) return Merged::kDifferent;
  const uint64_t most = options_.expansion == 0 ? options_.capacity : max_items();
  return together > most ? Merged::kFull : Merged::kDone;
}

Bloom::Merged Bloom::Merge(std::span<const Bloom* const> others) {
  if (const Merged answer = CanMerge(others); answer != Merged::kDone) return answer;
  FinishSaving();
  for (const Bloom* other : others) {
    if (other == this) continue;
    options_.deletable ? MergeCounted(*other) : MergeOne(*other);
  }
  return Merged::kDone;
}

void Bloom::MergeOne(const Bloom& other) {
  // What is exact can go anywhere: it is added last.
  std::vector<uint64_t> hashes;
  const auto take = [&hashes](const Stage& stage) {
    stage.table->ForEach([&](uint64_t hash, unsigned /*copies*/) { hashes.push_back(hash); });
  };
  if (other.exact()) {
    take(other.stages_[0]);
  } else {
    if (exact()) {
      take(stages_[0]);
      stages_.clear();
    }
    for (const Stage& stage : other.stages_) MergeStage(stage);
  }
  for (const uint64_t hash : hashes) {
    if (!Has(hash)) AddToLast(hash);
  }
}

// Into a stage of the same kind that has room, or else in front of the stage that takes new items.
void Bloom::MergeStage(const Stage& stage) {
  for (Stage& own : stages_) {
    if (stage.bits != nullptr && own.bits != nullptr &&
        own.bits->geometry() == stage.bits->geometry() &&
        own.added + stage.added <= own.bits->geometry().capacity) {
      own.bits->Merge(*stage.bits);
      own.added += stage.added;
      return;
    }
    if (stage.table != nullptr && own.table != nullptr &&
        own.table->bits() == stage.table->bits()) {
      stage.table->ForEach([&](uint64_t hash, unsigned /*copies*/) { own.table->AddOnce(hash); });
      return;
    }
  }
  stages_.insert(stages_.begin(), stage.Clone());
}

void Bloom::MergeCounted(const Bloom& other) {
  std::unique_ptr<FingerprintTable>& own = stages_[0].table;
  const FingerprintTable& more = *other.stages_[0].table;
  const uint64_t together = own->distinct() + more.distinct();
  const unsigned bits = together > kExactItems ? NextTableBits() : own->bits();
  const unsigned fewest = std::min({bits, own->bits(), more.bits()});
  if (fewest < own->bits()) own = own->Narrowed(fewest);
  more.ForEach([&](uint64_t hash, unsigned copies) { own->Add(hash, copies); });
}

// ---- what it tells of itself ----

Bloom::Growth Bloom::growth() const {
  Growth growth{1, options_.capacity};
  const uint64_t now = items();
  if (options_.expansion == 0 || now <= growth.capacity) return growth;
  if (options_.expansion == 1) {
    growth.filters = (now + options_.capacity - 1) / options_.capacity;
    growth.capacity = growth.filters * options_.capacity;
    return growth;
  }
  for (uint64_t step = options_.capacity; growth.capacity < now; ++growth.filters) {
    step *= options_.expansion;
    growth.capacity += step;
  }
  return growth;
}

Bloom::Stats Bloom::stats() const {
  Stats stats;
  stats.items = items();
  stats.stages = stages_.size();
  double right_formula = 1;
  double right_observed = 1;
  double set = 0;
  for (const Stage& stage : stages_) {
    const uint64_t bits =
        stage.bits != nullptr ? stage.bits->geometry().bits : stage.table->memory() * 8;
    stats.bits += bits;
    if (stage.bits != nullptr) {
      const BitFilter::Observed observed = stage.bits->Observe();
      stats.hashes = std::max(stats.hashes, stage.bits->geometry().hashes);
      right_formula *= 1 - stage.bits->Rate(stage.added);
      right_observed *= 1 - observed.rate;
      set += observed.fill * static_cast<double>(bits);
    } else {
      stats.hashes = std::max(stats.hashes, 1U);
      right_formula *= 1 - RateOf(*stage.table);
      right_observed *= 1 - RateOf(*stage.table);
      set += RateOf(*stage.table) * static_cast<double>(bits);
    }
  }
  stats.fill = stats.bits == 0 ? 0 : set / static_cast<double>(stats.bits);
  stats.rate_formula = 1 - right_formula;
  stats.rate_observed = 1 - right_observed;
  return stats;
}

std::vector<Bloom::Part> Bloom::parts() const {
  std::vector<Part> parts;
  for (const Stage& stage : stages_) {
    if (stage.bits != nullptr) {
      const BitFilter::Geometry& geometry = stage.bits->geometry();
      parts.push_back(
          {stage.memory(), geometry.bits, geometry.hashes, geometry.capacity, stage.items()});
      continue;
    }
    const double limit = TableLimit(stage);
    parts.push_back({stage.memory(), stage.memory() * 8, 1,
                     limit < 0x1p63 ? static_cast<uint64_t>(limit) : 0, stage.items()});
  }
  return parts;
}

std::string_view Bloom::encoding() const {
  if (exact()) return "exact";
  if (stages_[0].bits == nullptr) return "table";
  return stages_[0].bits->geometry().layout == BloomLayout::kBlocked ? "blocked" : "classic";
}

size_t Bloom::MemoryUsage(size_t /*samples*/) const {
  size_t bytes = sizeof(*this) + stages_.capacity() * sizeof(Stage);
  for (const Stage& stage : stages_) bytes += stage.memory();
  return bytes;
}

std::unique_ptr<Object> Bloom::Copy() const {
  std::unique_ptr<Bloom> copy(new Bloom);
  copy->options_ = options_;
  for (const Stage& stage : stages_) copy->stages_.push_back(stage.Clone());
  return copy;
}

void Bloom::Digest(const std::function<void(std::string_view)>& add) const {
  add(Header());
  for (const Stage& stage : stages_) {
    if (stage.bits != nullptr) {
      const BitStore& store = stage.bits->store();
      for (size_t block = 0; block < store.blocks(); ++block) add(store.Block(block));
    } else {
      stage.table->ForEach([&](uint64_t hash, unsigned copies) {
        add(std::to_string(hash) + " " + std::to_string(copies));
      });
    }
  }
}

}  // namespace sava::types
