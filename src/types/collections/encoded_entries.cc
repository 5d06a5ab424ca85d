#include "types/collections/encoded_entries.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/hash.h"
#include "types/collections/list_entry.h"

namespace sava::types {

namespace {

// Ends of entries, and numbers, fit 16 bits.
constexpr size_t kMostBytes = UINT16_MAX;
constexpr size_t kFewestBytes = 256;
constexpr size_t kFewestEntries = 8;
// An entry that is not found in so many places is taken as new: values that were made to collide
// cost no more than that.
constexpr size_t kProbes = 8;

// Every bit of the word counts for the lower bits of the result.
size_t Mix(uint64_t word) {
  word = (word ^ word >> 32) * 0x9E3779B97F4A7C15U;
  return static_cast<size_t>(word >> 40);
}

size_t HashOf(std::string_view entry) {
  if (entry.size() > 16) return base::HashBytes(entry, 0);
  uint64_t low = 0;
  uint64_t high = 0;
  if (entry.size() >= 8) {
    memcpy(&low, entry.data(), 8);
    memcpy(&high, entry.data() + entry.size() - 8, 8);
  } else {
    memcpy(&low, entry.data(), entry.size());
  }
  return Mix(low ^ std::rotl(high, 32));
}

// For a quick look: of at most 16 words, spread over the entry, and hardly mixed.
size_t RoughHashOf(std::string_view entry) {
  const size_t size = entry.size();
  if (size <= 16) return HashOf(entry);
  const size_t step = size <= 128 ? 8 : size / 16;
  uint64_t mixed = 0;
  uint64_t word = 0;
  for (size_t at = 0; at + 8 <= size; at += step) {
    memcpy(&word, entry.data() + at, sizeof word);
    mixed = std::rotl(mixed, 23) ^ word;
  }
  memcpy(&word, entry.data() + size - 8, sizeof word);
  return Mix(mixed ^ std::rotl(word, 11) ^ size);
}

// A quick look at the first entries, which says no to most blocks without repetitions: how many
// bytes numbers would save of them, told by a bit for each hash. What is no larger than a number's
// cost is passed over.
bool MayPay(const char* p, size_t count) {
  constexpr size_t kMostLooked = 40;
  constexpr size_t kTiny = 4;
  constexpr int64_t kNewCosts = 3;  // its end, and a number
  uint64_t seen[16] = {};
  int64_t bytes = 0;
  int64_t saved = 0;
  size_t looked = 0;
  for (size_t i = count / 4; i > 0 && looked < kMostLooked; --i) {
    const char* const next = list_entry::Next(p);
    const auto size = static_cast<size_t>(next - p);
    bytes += static_cast<int64_t>(size);
    if (size > kTiny) {
      const size_t hash = RoughHashOf({p, size});
      uint64_t& word = seen[hash >> 6 & 15];
      const uint64_t bit = uint64_t{1} << (hash & 63);
      saved += (word & bit) != 0 ? static_cast<int64_t>(size) - 1 : -kNewCosts;
      word |= bit;
      ++looked;
    }
    p = next;
  }
  return saved * 24 >= bytes;
}

// What is known of a block while it is looked through.
class Survey {
 public:
  explicit Survey(size_t count) : mask_(std::bit_ceil(count * 2) - 1) {
    slots_.assign(mask_ + 1, 0);
    numbers_.clear();
    distinct_.clear();
  }

  void Take(std::string_view entry) {
    seen_ += entry.size();
    const size_t hash = HashOf(entry);
    uint16_t* free = nullptr;
    for (size_t probe = 0; probe < kProbes; ++probe) {
      uint16_t& slot = slots_[(hash + probe) & mask_];
      if (slot == 0) {
        free = &slot;
        break;
      }
      if (distinct_[slot - 1U] == entry) {
        numbers_.push_back(slot - 1U);
        return;
      }
    }
    numbers_.push_back(static_cast<uint32_t>(distinct_.size()));
    distinct_.push_back(entry);
    distinct_bytes_ += entry.size();
    if (free != nullptr) *free = static_cast<uint16_t>(distinct_.size());
  }

  // Whether what was seen so far lets hope for more than an eighth: later entries repeat more.
  bool Promising() const { return EncodedSize() * 8 <= seen_ * 7; }
  bool Pays() const { return EncodedSize() * 4 <= seen_ * 3; }
  size_t EncodedSize() const {
    return 8 + distinct_.size() * 2 + base::PackedSize(numbers_.size(), width()) + distinct_bytes_;
  }
  unsigned width() const { return base::BitsFor(distinct_.size() - 1); }
  std::span<const uint32_t> numbers() const { return numbers_; }
  std::span<const std::string_view> distinct() const { return distinct_; }

 private:
  // Of the thread: a block is looked through again and again.
  static thread_local std::vector<uint16_t> slots_;  // number + 1; 0: free
  static thread_local std::vector<uint32_t> numbers_;
  static thread_local std::vector<std::string_view> distinct_;

  const size_t mask_;
  size_t seen_ = 0;
  size_t distinct_bytes_ = 0;
};

thread_local std::vector<uint16_t> Survey::slots_;
thread_local std::vector<uint32_t> Survey::numbers_;
thread_local std::vector<std::string_view> Survey::distinct_;

}  // namespace

bool EncodeEntries(std::string_view entries, size_t count, std::string* out) {
  if (count < kFewestEntries || entries.size() < kFewestBytes || entries.size() > kMostBytes) {
    return false;
  }
  if (!MayPay(entries.data(), count)) return false;
  Survey survey(count);
  const char* p = entries.data();
  // Judged after a quarter of the entries, and after half of them.
  for (size_t i = 0; i < count; ++i) {
    if ((i == count / 4 || i == count / 2) && !survey.Promising()) return false;
    const char* const next = list_entry::Next(p);
    survey.Take({p, static_cast<size_t>(next - p)});
    p = next;
  }
  if (!survey.Pays()) return false;
  const EncodedEntries::Head head{static_cast<uint32_t>(count),
                                  static_cast<uint16_t>(survey.distinct().size()),
                                  static_cast<uint8_t>(survey.width()), 0};
  out->clear();
  out->reserve(survey.EncodedSize());
  out->append(reinterpret_cast<const char*>(&head), sizeof head);
  uint16_t end = 0;
  for (const std::string_view entry : survey.distinct()) {
    end = static_cast<uint16_t>(end + entry.size());
    out->append(reinterpret_cast<const char*>(&end), sizeof end);
  }
  base::PackBits(survey.numbers(), head.width, out);
  for (const std::string_view entry : survey.distinct()) out->append(entry);
  return true;
}

}  // namespace sava::types
