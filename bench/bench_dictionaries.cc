// The dictionaries of document S2's table 1 beside a Bloom filter, in process: unsorted array,
// sorted array, tree, hash table, Sava's set, and filters at 1 %.
//
//   sava_bench_dictionaries [--items 1000000]
//
// Prints tables in Markdown. Items are e-mail addresses of 24 characters in no order. Bytes are the
// allocator's, with the text of the items. Times are CPU nanoseconds; each is taken over at least a
// quarter of a second, or over all items to add. Questions are asked again and again, 65,536 of
// each kind, so that what they touch is in the caches. Removing includes finding the item.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "types/collections/set.h"
#include "types/filters/bloom.h"

// jemalloc's; absent under sanitizers.
extern "C" int mallctl(const char* name, void* old, size_t* old_size, void* value, size_t size)
    __attribute__((weak));

namespace {

using sava::types::Bloom;
using sava::types::BloomLayout;
using sava::types::FilterHash;

using Items = std::vector<std::string>;
using Views = std::vector<std::string_view>;
using Ends = std::pair<std::string_view, std::string_view>;

constexpr double kSeconds = 0.25;
constexpr size_t kQuestions = 1 << 16;

// ---- the dictionaries ----

// What is added later fits without growth: one doubling among so few would count too much.
size_t RoomFor(size_t items) { return items + items / 20; }

Views SortedViews(Views views) {
  std::ranges::sort(views);
  return views;
}

class UnsortedArray {
 public:
  explicit UnsortedArray(std::span<const std::string> items) {
    items_.reserve(RoomFor(items.size()));
    items_.assign(items.begin(), items.end());
  }
  bool Has(const std::string& item) const {
    return std::ranges::find(items_, item) != items_.end();
  }
  void Add(const std::string& item) { items_.push_back(item); }
  void Remove(const std::string& item) {
    const auto found = std::ranges::find(items_, item);
    if (found == items_.end()) return;
    std::swap(*found, items_.back());
    items_.pop_back();
  }
  Views Sorted() const { return SortedViews({items_.begin(), items_.end()}); }
  Ends MinMax() const {
    const auto ends = std::ranges::minmax_element(items_);
    return {*ends.min, *ends.max};
  }
  std::string_view Next(const std::string& item) const {
    std::string_view next;
    for (const std::string& other : items_) {
      if (other > item && (next.empty() || other < next)) next = other;
    }
    return next;
  }

 private:
  Items items_;
};

class SortedArray {
 public:
  explicit SortedArray(std::span<const std::string> items) {
    items_.reserve(RoomFor(items.size()));
    items_.assign(items.begin(), items.end());
    std::ranges::sort(items_);
  }
  bool Has(const std::string& item) const { return std::ranges::binary_search(items_, item); }
  void Add(const std::string& item) { items_.insert(std::ranges::lower_bound(items_, item), item); }
  void Remove(const std::string& item) {
    const auto found = std::ranges::lower_bound(items_, item);
    if (found != items_.end() && *found == item) items_.erase(found);
  }
  Views Sorted() const { return {items_.begin(), items_.end()}; }
  Ends MinMax() const { return {items_.front(), items_.back()}; }
  std::string_view Next(const std::string& item) const {
    const auto next = std::ranges::upper_bound(items_, item);
    return next == items_.end() ? std::string_view() : *next;
  }

 private:
  Items items_;
};

class Tree {
 public:
  explicit Tree(std::span<const std::string> items) : items_(items.begin(), items.end()) {}
  bool Has(const std::string& item) const { return items_.contains(item); }
  void Add(const std::string& item) { items_.insert(item); }
  void Remove(const std::string& item) { items_.erase(item); }
  Views Sorted() const { return {items_.begin(), items_.end()}; }
  Ends MinMax() const { return {*items_.begin(), *items_.rbegin()}; }
  std::string_view Next(const std::string& item) const {
    const auto next = items_.upper_bound(item);
    return next == items_.end() ? std::string_view() : *next;
  }

 private:
  std::set<std::string> items_;
};

class HashTable {
 public:
  explicit HashTable(std::span<const std::string> items) : items_(items.begin(), items.end()) {}
  bool Has(const std::string& item) const { return items_.contains(item); }
  void Add(const std::string& item) { items_.insert(item); }
  void Remove(const std::string& item) { items_.erase(item); }
  Views Sorted() const { return SortedViews({items_.begin(), items_.end()}); }
  Ends MinMax() const {
    const auto ends = std::ranges::minmax_element(items_);
    return {*ends.min, *ends.max};
  }
  std::string_view Next(const std::string& item) const {
    std::string_view next;
    for (const std::string& other : items_) {
      if (other > item && (next.empty() || other < next)) next = other;
    }
    return next;
  }

 private:
  std::unordered_set<std::string> items_;
};

// What SADD, SISMEMBER and SREM work on.
class SavaSet {
 public:
  explicit SavaSet(std::span<const std::string> items)
      : set_(items.front(), items.size(), sava::types::kDefaultCollectionLimits) {
    for (const std::string& item : items) Add(item);
  }
  bool Has(const std::string& item) const { return set_.Contains(item); }
  void Add(const std::string& item) { set_.Add(item, sava::types::kDefaultCollectionLimits); }
  void Remove(const std::string& item) { set_.Remove(item); }

 private:
  sava::types::Set set_;
};

class Filter {
 public:
  Filter(std::span<const std::string> items, const Bloom::Options& options)
      : bloom_(Bloom::Make(options)) {
    for (const std::string& item : items) Add(item);
  }
  bool Has(const std::string& item) const { return bloom_->Has(FilterHash(item)); }
  void Add(const std::string& item) { bloom_->Add(FilterHash(item)); }

 protected:
  std::unique_ptr<Bloom> bloom_;
};

class ClassicFilter : public Filter {
 public:
  explicit ClassicFilter(std::span<const std::string> items)
      : Filter(items, {.error = 0.01,
                       .capacity = RoomFor(items.size()),
                       .layout = BloomLayout::kClassic,
                       .reserved = true}) {}
};

class BlockedFilter : public Filter {
 public:
  explicit BlockedFilter(std::span<const std::string> items)
      : Filter(items, {.error = 0.01, .capacity = RoomFor(items.size()), .reserved = true}) {}
};

class DeletableFilter : public Filter {
 public:
  explicit DeletableFilter(std::span<const std::string> items)
      : Filter(items, {.error = 0.01,
                       .capacity = RoomFor(items.size()),
                       .deletable = true,
                       .reserved = true}) {}
  void Remove(const std::string& item) { bloom_->Remove(FilterHash(item)); }
};

// ---- measuring ----

double Now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Bytes this thread has allocated and not freed.
std::optional<double> BytesHeld() {
  uint64_t taken = 0;
  uint64_t given = 0;
  size_t size = sizeof(taken);
  if (mallctl == nullptr || mallctl("thread.allocated", &taken, &size, nullptr, 0) != 0 ||
      mallctl("thread.deallocated", &given, &size, nullptr, 0) != 0) {
    return std::nullopt;
  }
  return static_cast<double>(taken) - static_cast<double>(given);
}

// Nanoseconds per call, in turns over the questions.
template <typename Call>
double Time(const Items& questions, const Call& call) {
  uint64_t calls = 0;
  double spent = 0;
  for (uint64_t batch = 1; spent < kSeconds; batch = std::min<uint64_t>(batch * 2, kQuestions)) {
    const double start = Now();
    for (uint64_t i = 0; i < batch; ++i) {
      call(questions[calls++ % questions.size()]);
      asm volatile("" ::: "memory");  // or the compiler answers once for all
    }
    spent += Now() - start;
  }
  return spent / static_cast<double>(calls) * 1e9;
}

// Nanoseconds per call, each item once; *done says for how many there was time.
template <typename Call>
double TimeOnce(std::span<const std::string> items, size_t* done, const Call& call) {
  double spent = 0;
  *done = 0;
  for (size_t batch = 1; spent < kSeconds && *done < items.size(); batch *= 2) {
    const size_t end = std::min(items.size(), *done + batch);
    const double start = Now();
    for (; *done < end; ++*done) call(items[*done]);
    spent += Now() - start;
  }
  return spent / static_cast<double>(*done) * 1e9;
}

std::string Cell(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

struct Load {
  Items items;
  Items known;    // some of them, in random order
  Items unknown;  // none of them
  Items fresh;    // to be added
};

volatile uint64_t sink;  // keeps answers from being left out

template <typename Dictionary>
void Measure(const char* name, const Load& load, std::string* operations, std::string* orders) {
  const auto n = static_cast<double>(load.items.size());
  const std::optional<double> before = BytesHeld();
  const double start = Now();
  auto dictionary = std::make_unique<Dictionary>(load.items);
  const double create = (Now() - start) / n * 1e9;
  const std::optional<double> after = BytesHeld();
  const std::string bytes = before && after ? fmt::format("{:.2f}", (*after - *before) / n) : "–";

  uint64_t yes = 0;
  const auto ask = [&](const std::string& item) { yes += dictionary->Has(item) ? 1 : 0; };
  const double hit = Time(load.known, ask);
  const double miss = Time(load.unknown, ask);
  // The texts are as warm as those of the questions.
  for (const std::string& item : load.fresh) yes += static_cast<uint64_t>(item[0]);
  size_t added = 0;
  const double add =
      TimeOnce(load.fresh, &added, [&](const std::string& item) { dictionary->Add(item); });
  std::string remove = "–";
  if constexpr (requires { dictionary->Remove(load.items[0]); }) {
    size_t removed = 0;
    remove = Cell(TimeOnce({load.fresh.data(), added}, &removed,
                           [&](const std::string& item) { dictionary->Remove(item); }));
  }
  *operations += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name, bytes, Cell(create),
                             Cell(hit), Cell(miss), Cell(add), remove);
  if constexpr (requires { dictionary->Sorted(); }) {
    const double begin = Now();
    yes += dictionary->Sorted().size();
    const double sorted = (Now() - begin) / n * 1e9;
    const double ends =
        Time(load.known, [&](const auto&) { yes += dictionary->MinMax().first.size(); });
    const double next =
        Time(load.known, [&](const auto& item) { yes += dictionary->Next(item).size(); });
    *orders += fmt::format("| {} | {} | {} | {} |\n", name, Cell(sorted), Cell(ends), Cell(next));
  }
  sink = yes;
}

Items Make(sava::base::Rng* rng, uint64_t first, size_t count) {
  Items items(count);
  for (size_t i = 0; i < count; ++i) {
    // Multiplied by an odd number: different, and in no order.
    items[i] = fmt::format("{:015x}@acme.com", ((first + i) * 0x9e3779b97f4a7c15) >> 4);
  }
  for (size_t i = count; i > 1; --i) std::swap(items[i - 1], items[rng->Below(i)]);
  return items;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t items = 1'000'000;
  for (int i = 1; i < argc; ++i) {
    const bool known = strcmp(argv[i], "--items") == 0 && i + 1 < argc;
    if (known) items = strtoull(argv[++i], nullptr, 10);
    if (!known || items < 100) {
      fmt::print(stderr, "usage: sava_bench_dictionaries [--items N]      (N from 100)\n");
      return 2;
    }
  }
  sava::base::Rng rng(1);
  Load load;
  load.items = Make(&rng, 0, items);
  for (size_t i = 0; i < kQuestions; ++i) load.known.push_back(load.items[rng.Below(items)]);
  load.unknown = Make(&rng, items, kQuestions);
  load.fresh = Make(&rng, items + kQuestions, RoomFor(items) - items);

  std::string operations;
  std::string orders;
  Measure<UnsortedArray>("unsorted array", load, &operations, &orders);
  Measure<SortedArray>("sorted array", load, &operations, &orders);
  Measure<Tree>("tree (std::set)", load, &operations, &orders);
  Measure<HashTable>("hash table (std::unordered_set)", load, &operations, &orders);
  Measure<SavaSet>("Sava's set", load, &operations, &orders);
  Measure<ClassicFilter>("Bloom filter, classic, 1 %", load, &operations, &orders);
  Measure<BlockedFilter>("Bloom filter, blocked, 1 %", load, &operations, &orders);
  Measure<DeletableFilter>("Bloom filter, deletable, 1 %", load, &operations, &orders);
  fmt::print("{} items\n\n", items);
  fmt::print("| | bytes an item | create, ns an item | find | not there | add | remove |\n");
  fmt::print("|---|---|---|---|---|---|---|\n{}\n", operations);
  fmt::print("| | sorted, ns an item | least and greatest | next |\n");
  fmt::print("|---|---|---|---|\n{}", orders);
  return 0;
}
