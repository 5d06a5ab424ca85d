#include "types/filters/cuckoo.h"

#include <sava/cuckoo.h>

#include <utility>

#include "library/saved.h"
#include "types/filters/bloom.h"

namespace sava {

namespace {

constexpr std::uint64_t kMaxCapacity = std::uint64_t{1} << 32;
constexpr std::uint64_t kBucketSize = 2;

}  // namespace

struct Cuckoo::Impl {
  std::unique_ptr<types::Cuckoo> cuckoo;
};

Cuckoo::Cuckoo() : Cuckoo(std::move(*Make({}))) {}
Cuckoo::Cuckoo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cuckoo::Cuckoo(Cuckoo&& other) noexcept = default;
Cuckoo& Cuckoo::operator=(Cuckoo&& other) noexcept = default;
Cuckoo::~Cuckoo() = default;

std::optional<Cuckoo> Cuckoo::Make(const Options& options) {
  if (options.capacity == 0 || options.capacity > kMaxCapacity) return std::nullopt;
  const types::Cuckoo::Options made{.capacity = options.capacity,
                                    .bucket_size = kBucketSize,
                                    .expansion = options.grows ? 1U : 0U};
  return Cuckoo(std::unique_ptr<Impl>(new Impl{std::make_unique<types::Cuckoo>(made)}));
}

bool Cuckoo::Add(std::string_view item) {
  return impl_->cuckoo->Add(types::FilterHash(item)) == types::Cuckoo::Added::kAdded;
}

bool Cuckoo::Remove(std::string_view item) {
  return impl_->cuckoo->Remove(types::FilterHash(item));
}

unsigned Cuckoo::Count(std::string_view item) const {
  return impl_->cuckoo->Count(types::FilterHash(item));
}

std::uint64_t Cuckoo::items() const { return impl_->cuckoo->items(); }
std::size_t Cuckoo::memory() const { return library::MemoryOf(*impl_->cuckoo); }

Cuckoo Cuckoo::Clone() const {
  return Cuckoo(std::unique_ptr<Impl>(new Impl{library::CopyOf(*impl_->cuckoo)}));
}

std::string Cuckoo::Save() const { return library::SavedBytes(*impl_->cuckoo); }

std::optional<Cuckoo> Cuckoo::Load(std::string_view bytes) {
  std::unique_ptr<types::Cuckoo> cuckoo = library::LoadedFrom<types::Cuckoo>(bytes);
  if (cuckoo == nullptr) return std::nullopt;
  return Cuckoo(std::unique_ptr<Impl>(new Impl{std::move(cuckoo)}));
}

}  // namespace sava
