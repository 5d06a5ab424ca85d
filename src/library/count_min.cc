#include "types/sketches/count_min.h"

#include <sava/count_min.h>

#include <utility>

#include "library/saved.h"

namespace sava {

struct CountMin::Impl {
  std::unique_ptr<types::CountMin> sketch;
};

CountMin::CountMin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CountMin::CountMin(CountMin&& other) noexcept = default;
CountMin& CountMin::operator=(CountMin&& other) noexcept = default;
CountMin::~CountMin() = default;

std::optional<CountMin> CountMin::Make(std::uint64_t width, std::uint64_t depth) {
  if (width == 0 || depth == 0) return std::nullopt;
  if (types::CountMin::BytesFor(width, depth) == UINT64_MAX) return std::nullopt;
  std::unique_ptr<types::CountMin> sketch = types::CountMin::Make(width, depth);
  if (sketch == nullptr) return std::nullopt;
  return CountMin(std::unique_ptr<Impl>(new Impl{std::move(sketch)}));
}

std::uint64_t CountMin::Add(std::string_view item, std::uint64_t n) {
  return impl_->sketch->Add(item, n);
}

std::uint64_t CountMin::Estimate(std::string_view item) const {
  return impl_->sketch->Estimate(item);
}

bool CountMin::Merge(const CountMin& other, std::int64_t weight) {
  if (other.width() != width() || other.depth() != depth()) return false;
  const types::CountMin::Weighted sources[] = {{impl_->sketch.get(), 1},
                                               {other.impl_->sketch.get(), weight}};
  return impl_->sketch->Merge(sources);
}

std::uint64_t CountMin::width() const { return impl_->sketch->width(); }
std::uint64_t CountMin::depth() const { return impl_->sketch->depth(); }
std::uint64_t CountMin::total() const { return impl_->sketch->total(); }
std::size_t CountMin::memory() const { return library::MemoryOf(*impl_->sketch); }

CountMin CountMin::Clone() const {
  return CountMin(std::unique_ptr<Impl>(new Impl{library::CopyOf(*impl_->sketch)}));
}

std::string CountMin::Save() const { return library::SavedBytes(*impl_->sketch); }

std::optional<CountMin> CountMin::Load(std::string_view bytes) {
  std::unique_ptr<types::CountMin> sketch = library::LoadedFrom<types::CountMin>(bytes);
  if (sketch == nullptr) return std::nullopt;
  return CountMin(std::unique_ptr<Impl>(new Impl{std::move(sketch)}));
}

}  // namespace sava
