#include <sava/sim_hash.h>

#include <utility>

#include "library/saved.h"
#include "types/sketches/simhash.h"
#include "types/sketches/simhash_text.h"

namespace sava {

struct SimHash::Impl {
  std::unique_ptr<types::SimHash> documents;
};

SimHash::SimHash() : impl_(new Impl{std::make_unique<types::SimHash>()}) {}
SimHash::SimHash(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SimHash::SimHash(SimHash&& other) noexcept = default;
SimHash& SimHash::operator=(SimHash&& other) noexcept = default;
SimHash::~SimHash() = default;

std::uint64_t SimHash::FingerprintOf(std::string_view text) {
  return types::FingerprintOfText(text);
}

bool SimHash::Add(std::string_view id, std::uint64_t fingerprint) {
  return impl_->documents->Add(id, fingerprint);
}

bool SimHash::Remove(std::string_view id) { return impl_->documents->Remove(id); }

std::optional<std::uint64_t> SimHash::Get(std::string_view id) const {
  return impl_->documents->Get(id);
}

std::vector<SimHash::Match> SimHash::Near(std::uint64_t fingerprint, int distance,
                                          std::size_t limit) const {
  std::vector<Match> matches;
  for (const types::SimHash::Match& match : impl_->documents->Near(fingerprint, distance, limit)) {
    matches.push_back({std::string(match.id), match.distance});
  }
  return matches;
}

std::size_t SimHash::size() const { return impl_->documents->size(); }
std::size_t SimHash::memory() const { return library::MemoryOf(*impl_->documents); }

SimHash SimHash::Clone() const {
  return SimHash(std::unique_ptr<Impl>(new Impl{library::CopyOf(*impl_->documents)}));
}

std::string SimHash::Save() const { return library::SavedBytes(*impl_->documents); }

std::optional<SimHash> SimHash::Load(std::string_view bytes) {
  std::unique_ptr<types::SimHash> documents = library::LoadedFrom<types::SimHash>(bytes);
  if (documents == nullptr) return std::nullopt;
  return SimHash(std::unique_ptr<Impl>(new Impl{std::move(documents)}));
}

}  // namespace sava
