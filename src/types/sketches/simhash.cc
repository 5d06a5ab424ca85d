#include "types/sketches/simhash.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/varint.h"
#include "types/sketches/simhash_text.h"
#include "types/value/save.h"

namespace sava::types {

SimHash::~SimHash() = default;

// ---- documents ----

SimHash::Id SimHash::MakeId(std::string_view text) {
  Id id(new char[base::VarintSize(text.size()) + text.size()]);
  const size_t head = base::PutVarint(reinterpret_cast<uint8_t*>(id.get()), text.size());
  std::copy(text.begin(), text.end(), id.get() + head);
  return id;
}

std::string_view SimHash::TextOf(const Id& id) {
  const auto* begin = reinterpret_cast<const uint8_t*>(id.get());
  uint64_t size = 0;
  const uint8_t* text = base::GetVarint(begin, begin + base::kMaxVarintBytes, &size);
  return {reinterpret_cast<const char*>(text), size};
}

uint32_t SimHash::Find(std::string_view id) const {
  return table_.Find(TextTable::HashOf(id),
                     [&](uint32_t document) { return TextOf(id_of(document)) == id; });
}

std::optional<uint64_t> SimHash::Get(std::string_view id) const {
  const uint32_t document = Find(id);
  if (document == TextTable::kNothing) return std::nullopt;
  return fingerprint_of(document);
}

uint32_t SimHash::NewDocument(std::string_view id) {
  uint32_t document = documents_;
  if (!free_.empty()) {
    document = free_.back();
    free_.pop_back();
    cut_.BeforeChange(document / kBlock);
  } else {
    cut_.BeforeChange(document / kBlock);
    if (documents_ % kBlock == 0) blocks_.emplace_back();
    Block& block = blocks_.back();
    block.fingerprints.push_back(0);
    block.ids.emplace_back();
    if (indexed()) block.links.emplace_back();
    ++documents_;
  }
  blocks_[document / kBlock].ids[document % kBlock] = MakeId(id);
  table_.Insert(TextTable::HashOf(id), document);
  ++size_;
  return document;
}

bool SimHash::Add(std::string_view id, uint64_t fingerprint) {
  uint32_t document = Find(id);
  const bool is_new = document == TextTable::kNothing;
  if (is_new) {
    document = NewDocument(id);
  } else {
    cut_.BeforeChange(document / kBlock);
    if (indexed()) Unlink(document);
  }
  fingerprint_of(document) = fingerprint;
  if (indexed()) {
    Link(document);
  } else if (size_ > kIndexFrom) {
    MakeIndex();
  }
  return is_new;
}

bool SimHash::Remove(std::string_view id) {
  const uint32_t document = Find(id);
  if (document == TextTable::kNothing) return false;
  cut_.BeforeChange(document / kBlock);
  if (indexed()) Unlink(document);
  table_.Erase(TextTable::HashOf(id), document);
  blocks_[document / kBlock].ids[document % kBlock] = nullptr;
  free_.push_back(document);
  --size_;
  if (indexed() && size_ < kIndexFrom / 2) DropIndex();
  return true;
}

// ---- the index ----

void SimHash::Link(uint32_t document) {
  const uint64_t fingerprint = fingerprint_of(document);
  Links& links = links_of(document);
  for (size_t table = 0; table < kTables; ++table) {
    uint32_t& head = (*heads_)[table][PartOf(fingerprint, table)];
    links.previous[table] = kNone;
    links.next[table] = head;
    if (head != kNone) links_of(head).previous[table] = document;
    head = document;
  }
}

void SimHash::Unlink(uint32_t document) {
  const uint64_t fingerprint = fingerprint_of(document);
  const Links& links = links_of(document);
  for (size_t table = 0; table < kTables; ++table) {
    const uint32_t next = links.next[table];
    const uint32_t previous = links.previous[table];
    if (next != kNone) links_of(next).previous[table] = previous;
    if (previous != kNone) {
      links_of(previous).next[table] = next;
    } else {
      (*heads_)[table][PartOf(fingerprint, table)] = next;
    }
  }
}

void SimHash::MakeIndex() {
  heads_ = std::make_unique<Heads>();
  for (auto& chains : *heads_) chains.fill(kNone);
  for (Block& block : blocks_) block.links.resize(block.ids.size());
  for (uint32_t document = 0; document < documents_; ++document) {
    if (id_of(document) != nullptr) Link(document);
  }
}

void SimHash::DropIndex() {
  heads_.reset();
  for (Block& block : blocks_) block.links = {};
}

// ---- searching ----

void SimHash::SearchAll(uint64_t fingerprint, int distance, std::vector<Match>* found) const {
  // Eight at a time: hardly ever is one of them near.
  constexpr size_t kStride = 8;
  for (const Block& block : blocks_) {
    const uint64_t* const all = block.fingerprints.data();
    const size_t size = block.fingerprints.size();
    const auto take = [&](size_t i) {
      const int bits = std::popcount(all[i] ^ fingerprint);
      if (bits > distance || block.ids[i] == nullptr) return;
      found->push_back({TextOf(block.ids[i]), bits});
    };
    size_t first = 0;
    for (; first + kStride <= size; first += kStride) {
      bool near = false;
      for (size_t i = 0; i < kStride; ++i) {
        near |= std::popcount(all[first + i] ^ fingerprint) <= distance;
      }
      for (size_t i = 0; near && i < kStride; ++i) take(first + i);
    }
    for (; first < size; ++first) take(first);
  }
}

// The four chains are walked side by side, so that their cache misses overlap. A document that
// shares several parts counts in the chain of the first only.
void SimHash::SearchIndex(uint64_t fingerprint, int distance, std::vector<Match>* found) const {
  std::array<uint32_t, kTables> at{};
  for (size_t table = 0; table < kTables; ++table) {
    at[table] = (*heads_)[table][PartOf(fingerprint, table)];
  }
  for (bool any = true; any;) {
    any = false;
    for (size_t table = 0; table < kTables; ++table) {
      const uint32_t document = at[table];
      if (document == kNone) continue;
      any = true;
      at[table] = links_of(document).next[table];
      const uint64_t different = fingerprint_of(document) ^ fingerprint;
      const int bits = std::popcount(different);
      if (bits > distance) continue;
      bool met = false;
      for (size_t before = 0; before < table; ++before) met |= PartOf(different, before) == 0;
      if (!met) found->push_back({TextOf(id_of(document)), bits});
    }
  }
}

std::vector<SimHash::Match> SimHash::Near(uint64_t fingerprint, int distance, size_t limit) const {
  std::vector<Match> found;
  if (indexed() && distance <= kIndexDistance) {
    SearchIndex(fingerprint, distance, &found);
  } else {
    SearchAll(fingerprint, distance, &found);
  }
  const auto nearer = [](const Match& a, const Match& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
  };
  if (limit < found.size()) {
    std::partial_sort(found.begin(), found.begin() + static_cast<ptrdiff_t>(limit), found.end(),
                      nearer);
    found.resize(limit);
  } else {
    std::sort(found.begin(), found.end(), nearer);
  }
  return found;
}

// ---- as an object ----

size_t SimHash::MemoryUsage(size_t samples) const {
  size_t bytes = sizeof(*this) + table_.bytes() + free_.capacity() * sizeof(uint32_t) +
                 blocks_.capacity() * sizeof(Block) + (indexed() ? sizeof(Heads) : 0);
  for (const Block& block : blocks_) {
    bytes += block.fingerprints.capacity() * sizeof(uint64_t) + block.ids.capacity() * sizeof(Id) +
             block.links.capacity() * sizeof(Links);
  }
  size_t looked_at = 0;
  size_t ids = 0;
  for (uint32_t document = 0; document < documents_; ++document) {
    if (id_of(document) == nullptr) continue;
    if (samples != 0 && looked_at == samples) break;
    ids += std::max<size_t>(8, TextOf(id_of(document)).size() + 1);
    ++looked_at;
  }
  if (looked_at != 0) bytes += ids * size_ / looked_at;
  return bytes;
}

std::unique_ptr<Object> SimHash::Copy() const {
  auto copy = std::make_unique<SimHash>();
  for (uint32_t document = 0; document < documents_; ++document) {
    if (id_of(document) != nullptr) copy->Add(TextOf(id_of(document)), fingerprint_of(document));
  }
  return copy;
}

void SimHash::Digest(const std::function<void(std::string_view)>& add) const {
  std::vector<std::pair<std::string_view, uint64_t>> all;
  all.reserve(size_);
  for (uint32_t document = 0; document < documents_; ++document) {
    if (id_of(document) == nullptr) continue;
    all.emplace_back(TextOf(id_of(document)), fingerprint_of(document));
  }
  std::sort(all.begin(), all.end());
  for (const auto& [id, fingerprint] : all) {
    add(id);
    add(FingerprintText(fingerprint));
  }
}

}  // namespace sava::types
