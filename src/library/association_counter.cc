#include <sava/association_counter.h>

#include <algorithm>
#include <utility>

#include "library/saved.h"
#include "types/counters/afc.h"

namespace sava {

struct AssociationCounter::Impl {
  std::unique_ptr<types::Afc> afc;
};

AssociationCounter::AssociationCounter() : impl_(new Impl{std::make_unique<types::Afc>()}) {}
AssociationCounter::AssociationCounter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AssociationCounter::AssociationCounter(AssociationCounter&& other) noexcept = default;
AssociationCounter& AssociationCounter::operator=(AssociationCounter&& other) noexcept = default;
AssociationCounter::~AssociationCounter() = default;

std::optional<AssociationCounter> AssociationCounter::Make(const Options& options,
                                                           std::int64_t now_ms) {
  if (options.halflife_ms < 0 || options.window_ms < 0) return std::nullopt;
  if (options.halflife_ms != 0 && options.window_ms != 0) return std::nullopt;
  const types::Afc::Options made{
      .maxlen = options.maxlen, .halflife_ms = options.halflife_ms, .window_ms = options.window_ms};
  return AssociationCounter(
      std::unique_ptr<Impl>(new Impl{std::make_unique<types::Afc>(made, now_ms)}));
}

std::uint64_t AssociationCounter::Add(std::string_view member, std::uint64_t n,
                                      std::int64_t now_ms) {
  if (n == 0) return Count(member, now_ms);
  return impl_->afc->Add(member, std::min(n, kMaxCount), now_ms).count;
}

bool AssociationCounter::Remove(std::string_view member, std::int64_t now_ms) {
  return impl_->afc->Remove(member, now_ms);
}

std::uint64_t AssociationCounter::Count(std::string_view member, std::int64_t now_ms) const {
  return impl_->afc->Count(member, now_ms);
}

std::vector<AssociationCounter::Entry> AssociationCounter::Top(std::size_t k,
                                                               std::int64_t now_ms) const {
  std::vector<Entry> top;
  top.reserve(std::min(k, Card(now_ms)));
  impl_->afc->Top(k, now_ms, [&top](std::string_view member, std::uint64_t count) {
    top.push_back({std::string(member), count});
  });
  return top;
}

void AssociationCounter::VisitTop(std::size_t k, const Visit& visit, std::int64_t now_ms) const {
  impl_->afc->Top(k, now_ms, visit);
}

std::size_t AssociationCounter::Card(std::int64_t now_ms) const { return impl_->afc->Card(now_ms); }
std::uint64_t AssociationCounter::Total(std::int64_t now_ms) const {
  return impl_->afc->Total(now_ms);
}

AssociationCounter::Options AssociationCounter::options() const {
  const types::Afc::Options options = impl_->afc->options();
  return {options.maxlen, options.halflife_ms, options.window_ms};
}

std::size_t AssociationCounter::memory() const { return library::MemoryOf(*impl_->afc); }

AssociationCounter AssociationCounter::Clone() const {
  return AssociationCounter(std::unique_ptr<Impl>(new Impl{library::CopyOf(*impl_->afc)}));
}

std::string AssociationCounter::Save() const { return library::SavedBytes(*impl_->afc); }

std::optional<AssociationCounter> AssociationCounter::Load(std::string_view bytes) {
  std::unique_ptr<types::Afc> afc = library::LoadedFrom<types::Afc>(bytes);
  if (afc == nullptr) return std::nullopt;
  return AssociationCounter(std::unique_ptr<Impl>(new Impl{std::move(afc)}));
}

}  // namespace sava
