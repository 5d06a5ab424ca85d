#include "types/counters/frequency_list.h"

#include <bit>
#include <cmath>
#include <vector>

#include "base/if_memory.h"

namespace sava::types {

namespace {

MemberDictionary& Dictionary() { return MemberDictionary::Shared(); }

uint64_t Plus(uint64_t count, uint64_t n) {
  return n > FrequencyList::kMaxCount - count ? FrequencyList::kMaxCount : count + n;
}

// log2(2^a + 2^b).
double AddLogs(double a, double b) {
  const double high = std::max(a, b);
  return high + std::log2(1 + std::exp2(std::min(a, b) - high));
}

}  // namespace

FrequencyList FrequencyList::Scored() {
  FrequencyList list;
  list.scored_ = true;
  list.indexed_ = std::make_unique<IndexedCounter>(true);
  return list;
}

FrequencyList& FrequencyList::operator=(FrequencyList&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  packed_ = std::move(other.packed_);
  indexed_ = std::move(other.indexed_);
  total_ = std::exchange(other.total_, 0);
  scored_ = other.scored_;
  return *this;
}

void FrequencyList::Clear() {
  FinishCut();
  if (indexed_ != nullptr || packed_.width() != 0) {
    for (Cursor at(*this); at.valid(); at.Next()) Dictionary().Release(at.id());
  }
  packed_ = PackedCounter();
  indexed_ = scored_ && indexed_ != nullptr ? std::make_unique<IndexedCounter>(true) : nullptr;
  total_ = 0;
}

bool FrequencyList::ClearSome(size_t members) {
  FinishCut();
  if (indexed_ == nullptr) {
    Clear();
    return true;
  }
  for (; members != 0 && size() != 0; --members) DropLast(nullptr);
  return size() == 0;
}

uint64_t FrequencyList::Sum() const {
  uint64_t sum = 0;
  for (Cursor at(*this); at.valid(); at.Next()) {
    if (sum + at.count() < sum) return UINT64_MAX;
    sum += at.count();
  }
  return sum;
}

// REQUIRES: the member with that count is gone. A total that had stopped is counted anew.
void FrequencyList::CountDown(uint64_t count) {
  total_ = total_ == UINT64_MAX ? Sum() : total_ - count;
}

FrequencyList FrequencyList::Clone() const {
  FrequencyList copy;
  copy.total_ = total_;
  copy.scored_ = scored_;
  if (indexed_ == nullptr) {
    copy.packed_ = packed_.Clone();
  } else {
    copy.indexed_ = std::make_unique<IndexedCounter>(scored_);
    for (Cursor at(*this); at.valid(); at.Next()) {
      const auto node = copy.indexed_->Insert(at.id(), at.count(), true);
      if (scored_) copy.indexed_->SetScore(node, at.score());
    }
  }
  if (copy.indexed_ != nullptr || copy.packed_.width() != 0) {
    for (Cursor at(copy); at.valid(); at.Next()) Dictionary().AddReference(at.id());
  }
  return copy;
}

size_t FrequencyList::allocated() const {
  return packed_.allocated() + (indexed_ != nullptr ? indexed_->bytes() : 0);
}

size_t FrequencyList::MemoryUsage(size_t samples) const {
  size_t bytes = allocated();
  if (indexed_ == nullptr && packed_.width() == 0) return bytes;
  size_t seen = 0;
  size_t members = 0;
  for (Cursor at(*this); at.valid() && (samples == 0 || seen < samples); at.Next(), ++seen) {
    members += at.member().record_size();
  }
  return bytes + (seen == 0 ? 0 : members * size() / seen);
}

// ---- looking ----

uint64_t FrequencyList::Count(const KeptMember& member) const {
  if (indexed_ == nullptr && packed_.width() == 0) {
    const PackedCounter::Place place = packed_.Find(member);
    return place ? packed_.CountAt(place.position) : 0;
  }
  const uint32_t id = Dictionary().Find(member, Dictionary().HashOf(member));
  if (id == MemberDictionary::kNone) return 0;
  if (indexed_ != nullptr) {
    const auto node = indexed_->Find(id);
    return node == IndexedCounter::kNothing ? 0 : indexed_->RankOf(node);
  }
  const PackedCounter::Place place = packed_.FindId(id);
  return place ? packed_.CountAt(place.position) : 0;
}

bool FrequencyList::Score(const KeptMember& member, double* score) const {
  const uint32_t id = Dictionary().Find(member, Dictionary().HashOf(member));
  const auto node = id == MemberDictionary::kNone ? IndexedCounter::kNothing : indexed_->Find(id);
  if (node == IndexedCounter::kNothing) return false;
  *score = indexed_->ScoreOf(node);
  return true;
}

// ---- counting ----

FrequencyList::Added FrequencyList::Add(const KeptMember& member, uint64_t n, uint64_t maxlen,
                                        const std::function<void(const KeptMember&)>* dropped) {
  if (indexed_ != nullptr || packed_.width() != 0) {
    return AddById(member, Dictionary().HashOf(member), n, maxlen, dropped);
  }
  if (const PackedCounter::Place place = packed_.Find(member)) {
    const uint64_t before = packed_.CountAt(place.position);
    const uint64_t count = Plus(before, n);
    packed_.Move(place, count);
    CountUp(count - before);
    // Now and then it is asked again whether its members have become common.
    if (std::has_single_bit(total_) && size() >= 8 && SharingPays()) ToIds();
    return {count, false};
  }
  const bool replaces = maxlen != 0 && size() >= maxlen;
  const uint64_t before = replaces ? DropLast(dropped) : 0;
  const uint64_t count = Plus(before, n);
  const size_t members = size();
  InsertCounted(member, Dictionary().HashOf(member), count, before);
  // At every doubling it is asked whether its members are common.
  if (!replaces && indexed_ == nullptr && packed_.width() == 0 && size() > members && size() >= 8 &&
      std::has_single_bit(size()) && SharingPays()) {
    ToIds();
  }
  return {count, true};
}

FrequencyList::Added FrequencyList::AddById(const KeptMember& member, uint64_t hash, uint64_t n,
                                            uint64_t maxlen,
                                            const std::function<void(const KeptMember&)>* dropped) {
  packed_.Prefetch();
  const uint32_t id = Dictionary().Find(member, hash);
  if (id != MemberDictionary::kNone) {
    if (indexed_ != nullptr) {
      if (const auto node = indexed_->Find(id); node != IndexedCounter::kNothing) {
        const uint64_t before = indexed_->RankOf(node);
        const uint64_t count = Plus(before, n);
        indexed_->Move(node, count);
        CountUp(count - before);
        return {count, false};
      }
    } else if (const PackedCounter::Place place = packed_.FindId(id)) {
      const uint64_t before = packed_.CountAt(place.position);
      const uint64_t count = Plus(before, n);
      packed_.Move(place, count);
      CountUp(count - before);
      return {count, false};
    }
  }
  const bool replaces = maxlen != 0 && size() >= maxlen;
  const uint64_t before = replaces ? DropLast(dropped) : 0;
  const uint64_t count = Plus(before, n);
  InsertCounted(member, hash, count, before);
  return {count, true};
}

bool FrequencyList::AddScore(const KeptMember& member, double weight, bool single, uint64_t maxlen,
                             double* score) {
  const uint64_t hash = Dictionary().HashOf(member);
  const uint32_t id = Dictionary().Find(member, hash);
  auto node = id == MemberDictionary::kNone ? IndexedCounter::kNothing : indexed_->Find(id);
  if (node != IndexedCounter::kNothing) {
    *score = AddLogs(indexed_->ScoreOf(node), weight);
    indexed_->SetScore(node, *score);
    indexed_->Move(node, RankOf(*score));
    return false;
  }
  *score = weight;
  const bool replaces = maxlen != 0 && size() >= maxlen;
  if (replaces) {
    const auto last = indexed_->Last();
    *score = AddLogs(indexed_->ScoreOf(last), weight);
    const uint32_t old = indexed_->IdOf(last);
    indexed_->Erase(last);
    Dictionary().Release(old);
  }
  node = indexed_->Insert(Dictionary().Intern(member, hash), RankOf(*score), single && !replaces);
  indexed_->SetScore(node, *score);
  return true;
}

void FrequencyList::InsertCounted(const KeptMember& member, uint64_t hash, uint64_t count,
                                  uint64_t before) {
  if (!base::IfMemory([&] { InsertNew(member, hash, count, count == 1); })) {
    CountDown(before);
    throw std::bad_alloc();
  }
  CountUp(count - before);
}

void FrequencyList::InsertNew(const KeptMember& member, uint64_t hash, uint64_t count,
                              bool at_end) {
  Dictionary().NoteSighting(hash);
  if (indexed_ == nullptr && packed_.width() == 0) {
    const bool fits = packed_.size() < kMaxInline && member.bytes.size() <= kMaxInlineMember &&
                      packed_.member_bytes() + member.record_size() <= kMaxInlineBytes;
    if (fits) {
      packed_.Insert(member, count, at_end);
      return;
    }
    ToIds();
  }
  InsertId(Dictionary().Intern(member, hash), count, at_end);
}

void FrequencyList::InsertId(uint32_t id, uint64_t count, bool at_end) {
  if (indexed_ == nullptr && packed_.size() == kUnpackAt) ToIndexed();
  if (indexed_ != nullptr) {
    indexed_->Insert(id, count, at_end);
    return;
  }
  if (WidthFor(id) > packed_.width()) Widen(WidthFor(id));
  packed_.InsertId(id, count, at_end);
}

uint64_t FrequencyList::DropLast(const std::function<void(const KeptMember&)>* dropped) {
  if (indexed_ == nullptr) {
    const PackedCounter::Place last = packed_.Last();
    const uint64_t count = packed_.CountAt(last.position);
    Cursor at(*this);
    for (size_t i = 1; i < size(); ++i) at.Next();
    if (dropped != nullptr) (*dropped)(at.member());
    const bool release = at.has_id();
    const uint32_t id = release ? at.id() : 0;
    packed_.Erase(last);
    if (release) Dictionary().Release(id);
    return count;
  }
  const auto last = indexed_->Last();
  const uint64_t count = indexed_->RankOf(last);
  const uint32_t id = indexed_->IdOf(last);
  if (dropped != nullptr) (*dropped)(Dictionary().Get(id));
  indexed_->Erase(last);
  Dictionary().Release(id);
  return count;
}

uint64_t FrequencyList::Remove(const KeptMember& member, double* score) {
  if (indexed_ == nullptr && packed_.width() == 0) {
    const PackedCounter::Place place = packed_.Find(member);
    if (!place) return 0;
    const uint64_t count = packed_.CountAt(place.position);
    packed_.Erase(place);
    packed_.ShrinkToFit();
    CountDown(count);
    return count;
  }
  const uint32_t id = Dictionary().Find(member, Dictionary().HashOf(member));
  if (id == MemberDictionary::kNone) return 0;
  uint64_t count = 0;
  if (indexed_ == nullptr) {
    const PackedCounter::Place place = packed_.FindId(id);
    if (!place) return 0;
    count = packed_.CountAt(place.position);
    packed_.Erase(place);
    packed_.ShrinkToFit();
  } else {
    const auto node = indexed_->Find(id);
    if (node == IndexedCounter::kNothing) return 0;
    count = indexed_->RankOf(node);
    if (scored()) *score = indexed_->ScoreOf(node);
    indexed_->Erase(node);
  }
  Dictionary().Release(id);
  if (!scored()) CountDown(count);
  if (indexed_ != nullptr && !scored() && indexed_->size() < kRepackAt) ToPacked();
  return scored() ? 1 : count;
}

// ---- layouts ----

// Whether most members are known, or as far as the sample tells stand in several lists.
bool FrequencyList::SharingPays() const {
  constexpr size_t kLookAt = 64;
  size_t looked = 0;
  size_t known = 0;
  uint64_t sampled = 0;
  uint64_t sightings = 0;
  for (Cursor at(*this); at.valid() && looked < kLookAt; at.Next(), ++looked) {
    const KeptMember member = at.member();
    const uint64_t hash = Dictionary().HashOf(member);
    known += Dictionary().Find(member, hash) != MemberDictionary::kNone ? 1 : 0;
    if (const uint32_t seen = Dictionary().Sightings(hash); seen != 0) {
      ++sampled;
      sightings += seen;
    }
  }
  return known * 2 >= looked || (sampled != 0 && sightings >= 2 * sampled);
}

void FrequencyList::ToIds() {
  std::vector<uint32_t> ids;
  ids.reserve(size());
  uint32_t highest = 0;
  for (Cursor at(*this); at.valid(); at.Next()) {
    const KeptMember member = at.member();
    ids.push_back(Dictionary().Intern(member, Dictionary().HashOf(member)));
    highest = std::max(highest, ids.back());
  }
  PackedCounter packed(WidthFor(highest));
  auto id = ids.begin();
  for (Cursor at(*this); at.valid(); at.Next()) packed.InsertId(*id++, at.count(), true);
  packed_ = std::move(packed);
  packed_.ShrinkToFit();
}

void FrequencyList::Widen(uint8_t width) {
  PackedCounter packed(width);
  for (Cursor at(*this); at.valid(); at.Next()) packed.InsertId(at.id(), at.count(), true);
  packed_ = std::move(packed);
}

void FrequencyList::ToIndexed() {
  auto indexed = std::make_unique<IndexedCounter>();
  for (Cursor at(*this); at.valid(); at.Next()) indexed->Insert(at.id(), at.count(), true);
  indexed_ = std::move(indexed);
  packed_ = PackedCounter();
}

void FrequencyList::ToPacked() {
  FinishCut();
  uint32_t highest = 0;
  for (Cursor at(*this); at.valid(); at.Next()) highest = std::max(highest, at.id());
  PackedCounter packed(WidthFor(highest));
  for (Cursor at(*this); at.valid(); at.Next()) packed.InsertId(at.id(), at.count(), true);
  packed_ = std::move(packed);
  indexed_.reset();
}

}  // namespace sava::types
