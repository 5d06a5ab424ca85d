#include "types/sketches/top_k.h"

#include <sava/top_k.h>

#include <utility>

#include "library/saved.h"

namespace sava {

struct TopK::Impl {
  std::unique_ptr<types::TopK> top;
};

TopK::TopK(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TopK::TopK(TopK&& other) noexcept = default;
TopK& TopK::operator=(TopK&& other) noexcept = default;
TopK::~TopK() = default;

std::optional<TopK> TopK::Make(std::uint64_t k) {
  if (k == 0 || k > types::TopK::kMaxOption) return std::nullopt;
  const types::TopK::Options options{.k = k};
  return TopK(std::unique_ptr<Impl>(new Impl{std::make_unique<types::TopK>(options)}));
}

std::optional<std::string> TopK::Add(std::string_view item, std::uint64_t n) {
  if (n == 0) return std::nullopt;
  return impl_->top->Add(item, n);
}

bool TopK::Has(std::string_view item) const { return impl_->top->Listed(item); }
std::uint64_t TopK::Count(std::string_view item) const { return impl_->top->Count(item); }

std::vector<TopK::Entry> TopK::List() const {
  std::vector<Entry> entries;
  for (const types::TopK::Item& item : impl_->top->List()) {
    entries.push_back({std::string(item.text), item.count, item.error});
  }
  return entries;
}

std::uint64_t TopK::k() const { return impl_->top->options().k; }
std::size_t TopK::memory() const { return library::MemoryOf(*impl_->top); }

TopK TopK::Clone() const {
  return TopK(std::unique_ptr<Impl>(new Impl{library::CopyOf(*impl_->top)}));
}

std::string TopK::Save() const { return library::SavedBytes(*impl_->top); }

std::optional<TopK> TopK::Load(std::string_view bytes) {
  std::unique_ptr<types::TopK> top = library::LoadedFrom<types::TopK>(bytes);
  if (top == nullptr) return std::nullopt;
  return TopK(std::unique_ptr<Impl>(new Impl{std::move(top)}));
}

}  // namespace sava
