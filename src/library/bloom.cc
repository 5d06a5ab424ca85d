#include "types/filters/bloom.h"

#include <sava/bloom.h>

#include <utility>

#include "library/saved.h"

namespace sava {

namespace {

constexpr std::uint64_t kMaxCapacity = std::uint64_t{1} << 40;

}  // namespace

struct Bloom::Impl {
  std::unique_ptr<types::Bloom> bloom;
};

Bloom::Bloom(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Bloom::Bloom(Bloom&& other) noexcept = default;
Bloom& Bloom::operator=(Bloom&& other) noexcept = default;
Bloom::~Bloom() = default;

std::optional<Bloom> Bloom::Make(const Options& options) {
  if (!(options.error > 0 && options.error < 1)) return std::nullopt;
  if (options.capacity == 0 || options.capacity > kMaxCapacity) return std::nullopt;
  std::unique_ptr<types::Bloom> bloom = types::Bloom::Make({.error = options.error,
                                                            .capacity = options.capacity,
                                                            .expansion = options.grows ? 2U : 0U,
                                                            .deletable = options.deletable,
                                                            .reserved = true});
  if (bloom == nullptr) return std::nullopt;
  return Bloom(std::unique_ptr<Impl>(new Impl{std::move(bloom)}));
}

std::optional<Bloom> Bloom::MakeClassic(std::uint64_t bits, std::uint32_t hashes) {
  std::unique_ptr<types::Bloom> bloom = types::Bloom::MakeClassic(bits, hashes);
  if (bloom == nullptr) return std::nullopt;
  return Bloom(std::unique_ptr<Impl>(new Impl{std::move(bloom)}));
}

Bloom::Added Bloom::Add(std::string_view item) {
  switch (impl_->bloom->Add(types::FilterHash(item))) {
    case types::Bloom::Added::kNew:
      return Added::kNew;
    case types::Bloom::Added::kKnown:
      return Added::kKnown;
    case types::Bloom::Added::kFull:
      break;
  }
  return Added::kFull;
}

bool Bloom::Has(std::string_view item) const { return impl_->bloom->Has(types::FilterHash(item)); }

bool Bloom::Remove(std::string_view item) {
  return impl_->bloom->options().deletable && impl_->bloom->Remove(types::FilterHash(item));
}

bool Bloom::Merge(const Bloom& other) {
  if (&other == this) return true;
  const types::Bloom* const others[] = {other.impl_->bloom.get()};
  return impl_->bloom->Merge(others) == types::Bloom::Merged::kDone;
}

Bloom::Stats Bloom::stats() const {
  const types::Bloom::Stats stats = impl_->bloom->stats();
  return {stats.items, stats.bits, stats.hashes, stats.fill, stats.rate_observed};
}

std::size_t Bloom::memory() const { return library::MemoryOf(*impl_->bloom); }

Bloom Bloom::Clone() const {
  return Bloom(std::unique_ptr<Impl>(new Impl{library::CopyOf(*impl_->bloom)}));
}

std::string Bloom::Save() const { return library::SavedBytes(*impl_->bloom); }

std::optional<Bloom> Bloom::Load(std::string_view bytes) {
  std::unique_ptr<types::Bloom> bloom = library::LoadedFrom<types::Bloom>(bytes);
  if (bloom == nullptr) return std::nullopt;
  return Bloom(std::unique_ptr<Impl>(new Impl{std::move(bloom)}));
}

}  // namespace sava
