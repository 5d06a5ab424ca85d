#include "types/counters/afc.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "types/value/save.h"

namespace sava::types {

namespace {

double LogSum(double a, double b) {
  const double high = std::max(a, b);
  return high + std::log2(1 + std::exp2(std::min(a, b) - high));
}

}  // namespace

Afc::Afc() = default;
Afc::~Afc() = default;

Afc::Afc(const Options& options, int64_t now_ms) {
  if (options == Options{}) return;
  extra_ = std::make_unique<Extra>();
  extra_->options = options;
  extra_->started_ms = now_ms;
  extra_->weight = -INFINITY;
  if (decays()) list_ = FrequencyList::Scored();
}

// ---- time ----

double Afc::Age(int64_t now_ms) const {
  return static_cast<double>(std::max<int64_t>(0, now_ms - extra_->started_ms)) /
         static_cast<double>(extra_->options.halflife_ms);
}

uint64_t Afc::Weight(double score, int64_t now_ms) const {
  const double weight = std::exp2(score - Age(now_ms));
  return weight >= 0x1p63 ? kMaxCount : static_cast<uint64_t>(std::llround(weight));
}

Afc::Generations Afc::At(int64_t now_ms) const {
  static const FrequencyList kEmpty;
  const int64_t passed = now_ms - extra_->started_ms;
  const int64_t window = extra_->options.window_ms;
  if (passed < window) return {&list_, &extra_->previous, extra_->shared};
  if (passed - window < window) return {&kEmpty, &list_, 0};
  return {&kEmpty, &kEmpty, 0};
}

void Afc::Rotate(int64_t now_ms) {
  const int64_t window = extra_->options.window_ms;
  const int64_t passed = now_ms - extra_->started_ms;
  if (passed < window) return;
  FinishSaving();
  extra_->shared = 0;
  extra_->retired.push_back(std::exchange(extra_->previous, FrequencyList()));
  if (passed - window < window) {
    extra_->previous = std::exchange(list_, FrequencyList());
    extra_->started_ms += window;
  } else {
    extra_->retired.push_back(std::exchange(list_, FrequencyList()));
    extra_->started_ms = now_ms;
  }
}

// A generation that is over goes little by little, so that no change has to wait for all of it.
void Afc::ForgetRetired() {
  constexpr size_t kAtOnce = 32;
  if (!extra_->retired.empty() && extra_->retired.back().ClearSome(kAtOnce)) {
    extra_->retired.pop_back();
  }
}

// From the lightest on, so that the small ones are not lost one by one.
void Afc::WeighAnew() {
  std::vector<double> scores;
  for (FrequencyList::Cursor at(list_); at.valid(); at.Next()) scores.push_back(at.score());
  std::sort(scores.begin(), scores.end());
  extra_->weight = -INFINITY;
  for (const double score : scores) extra_->weight = LogSum(score, extra_->weight);
}

// ---- counting ----

Afc::Added Afc::Add(std::string_view member, uint64_t n, int64_t now_ms) {
  const Member wanted(member);
  if (extra_ == nullptr) {
    const FrequencyList::Added added = list_.Add(wanted.kept(), n);
    return {added.count, added.is_new};
  }
  if (windowed()) return AddToWindow(wanted.kept(), n, now_ms);
  if (decays()) {
    const double weight = Age(now_ms) + std::log2(static_cast<double>(n));
    double score = 0;
    const bool is_new = list_.AddScore(wanted.kept(), weight, n == 1, maxlen(), &score);
    extra_->weight = LogSum(extra_->weight, weight);
    return {Weight(score, now_ms), is_new};
  }
  const FrequencyList::Added added = list_.Add(wanted.kept(), n, maxlen());
  return {added.count, added.is_new};
}

Afc::Added Afc::AddToWindow(const KeptMember& member, uint64_t n, int64_t now_ms) {
  Rotate(now_ms);
  ForgetRetired();
  const std::function<void(const KeptMember&)> dropped = [this](const KeptMember& old) {
    if (extra_->previous.Count(old) != 0) --extra_->shared;
  };
  const FrequencyList::Added added = list_.Add(member, n, maxlen(), &dropped);
  const uint64_t before = extra_->previous.Count(member);
  if (added.is_new && before != 0) ++extra_->shared;
  const uint64_t count = before > kMaxCount - added.count ? kMaxCount : added.count + before;
  return {count, added.is_new && before == 0};
}

bool Afc::Remove(std::string_view member, int64_t now_ms) {
  const Member wanted(member);
  if (windowed()) {
    if (Count(member, now_ms) == 0) return false;
    Rotate(now_ms);
    const bool now = list_.Remove(wanted.kept()) != 0;
    const bool before = extra_->previous.Count(wanted.kept()) != 0;
    if (before) {
      FinishSaving();
      extra_->previous.Remove(wanted.kept());
      if (now) --extra_->shared;
    }
    return true;
  }
  double score = 0;
  if (list_.Remove(wanted.kept(), &score) == 0) return false;
  if (decays()) {
    // Where most of the weight goes, the difference would be noise: the rest is added up anew.
    const double share = std::exp2(score - extra_->weight);
    if (share < 0.5) {
      extra_->weight += std::log2(1 - share);
    } else {
      WeighAnew();
    }
  }
  return true;
}

uint64_t Afc::Count(std::string_view member, int64_t now_ms) const {
  const Member wanted(member);
  if (windowed()) {
    const Generations at = At(now_ms);
    const uint64_t now = at.current->Count(wanted.kept());
    const uint64_t before = at.previous->Count(wanted.kept());
    return before > kMaxCount - now ? kMaxCount : now + before;
  }
  if (!decays()) return list_.Count(wanted.kept());
  double score = 0;
  return list_.Score(wanted.kept(), &score) ? Weight(score, now_ms) : 0;
}

size_t Afc::Card(int64_t now_ms) const {
  if (!windowed()) return list_.size();
  const Generations at = At(now_ms);
  return at.current->size() + at.previous->size() - at.shared;
}

uint64_t Afc::Total(int64_t now_ms) const {
  if (decays()) return list_.size() == 0 ? 0 : Weight(extra_->weight, now_ms);
  if (!windowed()) return list_.total();
  const Generations at = At(now_ms);
  const uint64_t total = at.current->total() + at.previous->total();
  return total < at.current->total() ? UINT64_MAX : total;
}

void Afc::Top(size_t k, int64_t now_ms, const Visit& visit) const {
  if (windowed()) return TopOfWindow(k, At(now_ms), visit);
  // Members named by ids lie scattered: a whole handful is fetched before the first is read.
  constexpr size_t kHandful = 32;
  FrequencyList::Cursor at(list_);
  UuidText text;
  while (k != 0 && at.valid()) {
    const size_t handful = std::min(k, kHandful);
    FrequencyList::Cursor ahead = at;
    for (size_t i = 0; i < handful && ahead.valid(); ++i, ahead.Next()) ahead.Prefetch();
    for (size_t i = 0; i < handful && at.valid(); ++i, at.Next()) {
      visit(at.member().Text(text), decays() ? Weight(at.score(), now_ms) : at.count());
    }
    k -= handful;
  }
}

// The largest sums over two ordered lists: both are walked from the front, and each member met gets
// its sum, until k sums are not below what any member not met yet could have.
void Afc::TopOfWindow(size_t k, const Generations& at, const Visit& visit) const {
  struct Found {
    uint64_t count;
    size_t order;
    std::string member;
  };
  if (k == 0) return;
  std::vector<Found> found;
  std::unordered_set<std::string> met;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> best;  // the k largest sums
  UuidText text;
  const auto meet = [&](const KeptMember& member, uint64_t count) {
    std::string name(member.Text(text));
    if (!met.insert(name).second) return;
    found.push_back({count, found.size(), std::move(name)});
    best.push(count);
    if (best.size() > k) best.pop();
  };
  FrequencyList::Cursor now(*at.current);
  FrequencyList::Cursor before(*at.previous);
  while (now.valid() || before.valid()) {
    const uint64_t most = (now.valid() ? now.count() : 0) + (before.valid() ? before.count() : 0);
    if (best.size() == k && best.top() >= most) break;
    if (now.valid()) {
      const KeptMember member = now.member();
      meet(member, now.count() + at.previous->Count(member));
      now.Next();
    }
    if (before.valid()) {
      const KeptMember member = before.member();
      meet(member, before.count() + at.current->Count(member));
      before.Next();
    }
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.count != b.count ? a.count > b.count : a.order < b.order;
  });
  for (size_t i = 0; i < std::min(k, found.size()); ++i) {
    visit(found[i].member, std::min(found[i].count, kMaxCount));
  }
}

// ---- as an object ----

std::string_view Afc::layout() const { return list_.indexed() ? "indexed" : "packed"; }

size_t Afc::size() const {
  return list_.size() + (windowed() ? extra_->previous.size() - extra_->shared : 0);
}

size_t Afc::MemoryUsage(size_t samples) const {
  size_t bytes = sizeof(*this) + list_.MemoryUsage(samples);
  if (extra_ != nullptr) bytes += sizeof(*extra_) + extra_->previous.MemoryUsage(samples);
  return bytes;
}

std::unique_ptr<Object> Afc::Copy() const {
  auto copy = std::make_unique<Afc>();
  copy->list_ = list_.Clone();
  if (options() == Options{}) return copy;
  copy->extra_ = std::make_unique<Extra>();
  copy->extra_->options = extra_->options;
  copy->extra_->started_ms = extra_->started_ms;
  copy->extra_->weight = extra_->weight;
  copy->extra_->previous = extra_->previous.Clone();
  copy->extra_->shared = extra_->shared;
  return copy;
}

void Afc::Digest(const std::function<void(std::string_view)>& add) const {
  const Options chosen = options();
  if (chosen != Options{}) {
    // When it began means something only to counters that know time.
    const int64_t started = windowed() || decays() ? extra_->started_ms : 0;
    add(std::to_string(chosen.maxlen) + " " + std::to_string(chosen.halflife_ms) + " " +
        std::to_string(chosen.window_ms) + " " + std::to_string(started));
  }
  UuidText text;
  const auto add_list = [&](const FrequencyList& list) {
    for (FrequencyList::Cursor at(list); at.valid(); at.Next()) {
      add(at.member().Text(text));
      add(decays() ? std::to_string(at.score()) : std::to_string(at.count()));
    }
  };
  add_list(list_);
  if (windowed()) {
    add("before");
    add_list(extra_->previous);
  }
}

}  // namespace sava::types
