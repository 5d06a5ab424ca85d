#include "types/collections/sorted_block.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <new>
#include <string>

namespace sava::types {

namespace {

// Integers up to here are told apart by a double.
constexpr double kMostInteger = 9007199254740992.0;

bool IsInteger(double score, int64_t* out) {
  if (!(score >= -kMostInteger && score <= kMostInteger)) return false;
  *out = static_cast<int64_t>(score);
  return std::bit_cast<uint64_t>(static_cast<double>(*out)) == std::bit_cast<uint64_t>(score);
}

bool FitsIn(int64_t value, uint8_t width) {
  const int64_t limit = int64_t{1} << (width * 8 - 1);
  return value >= -limit && value < limit;
}

template <typename T>
T LoadAs(const char* p) {
  T value;
  memcpy(&value, p, sizeof value);
  return value;
}

template <typename T>
void StoreAs(char* p, T value) {
  memcpy(p, &value, sizeof value);
}

// The sum of n bytes, eight at a time.
size_t SumBytes(const uint8_t* bytes, size_t n) {
  constexpr uint64_t kLowBytes = 0x00ff00ff00ff00ffULL;
  size_t sum = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto word = LoadAs<uint64_t>(reinterpret_cast<const char*>(bytes + i));
    const uint64_t pairs = (word & kLowBytes) + ((word >> 8) & kLowBytes);
    sum += (pairs * 0x0001000100010001ULL) >> 48;
  }
  for (; i < n; ++i) sum += bytes[i];
  return sum;
}

// The first of n scores for which `above` holds, by halves.
template <typename Get, typename Above>
size_t FirstWhere(size_t n, const Get& get, const Above& above) {
  size_t low = 0;
  while (n > 0) {
    const size_t half = n / 2;
    if (above(get(low + half))) {
      n = half;
    } else {
      low += half + 1;
      n -= half + 1;
    }
  }
  return low;
}

size_t CommonSize(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t n = 0;
  while (n < most && a[n] == b[n]) ++n;
  return n;
}

bool SameText(const char* a, const char* b, size_t n) {
  // The ends of members differ more often than their beginnings.
  if (n >= 8 && LoadAs<uint64_t>(a + n - 8) != LoadAs<uint64_t>(b + n - 8)) return false;
  return memcmp(a, b, n) == 0;
}

}  // namespace

// What a set of scores needs.
struct SortedBlock::Range {
  bool integers = true;
  int64_t lowest = INT64_MAX;
  int64_t highest = INT64_MIN;

  void Add(double score) {
    int64_t value = 0;
    if (!integers || !IsInteger(score, &value)) {
      integers = false;
      return;
    }
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }

  Form Best(size_t count) const {
    if (!integers) return {.width = 8};
    if (count == 0) return {};
    Form plain{.width = 8};
    for (const uint8_t width : {uint8_t{4}, uint8_t{2}, uint8_t{1}}) {
      if (FitsIn(lowest, width) && FitsIn(highest, width)) plain.width = width;
    }
    Form based{.width = 8, .based = true, .base = lowest + (highest - lowest) / 2};
    for (const uint8_t width : {uint8_t{4}, uint8_t{2}, uint8_t{1}}) {
      if (FitsIn(lowest - based.base, width) && FitsIn(highest - based.base, width)) {
        based.width = width;
      }
    }
    const bool pays = plain.width > based.width && count * size_t(plain.width - based.width) > 8;
    return pays ? based : plain;
  }
};

bool SortedBlock::Form::Fits(double score) const {
  if (width == 8) return true;
  int64_t value = 0;
  return IsInteger(score, &value) && FitsIn(value - base, width);
}

// ---- memory ----

size_t SortedBlock::SizeClass(size_t bytes) {
  if (bytes <= 128) return (bytes + 15) & ~size_t{15};
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

SortedBlock* SortedBlock::Allocate(size_t bytes) {
  void* memory = malloc(SizeClass(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<SortedBlock*>(memory);
}

SortedBlock* SortedBlock::Resize(SortedBlock* block, size_t from, size_t to) {
  if (SizeClass(from) == SizeClass(to)) return block;
  void* memory = realloc(block, SizeClass(to));
  if (memory == nullptr && to < from) return block;  // it is larger than it need be
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<SortedBlock*>(memory);
}

SortedBlock* SortedBlock::Make() {
  SortedBlock* block = Allocate(kHead);
  block->count_ = 0;
  block->width_ = 1;
  block->flags_ = 0;
  block->text_bytes_ = 0;
  return block;
}

void SortedBlock::Free(SortedBlock* block) { free(block); }

// ---- scores ----

SortedBlock::Form SortedBlock::form() const {
  return {.width = width_,
          .based = based(),
          .base = based() ? LoadAs<int64_t>(body()) : 0,
          .prefix = prefix()};
}

double SortedBlock::score(size_t i) const {
  const int64_t base = based() ? LoadAs<int64_t>(body()) : 0;
  const char* p = scores() + i * width_;
  switch (width_) {
    case 1:
      return static_cast<double>(base + LoadAs<int8_t>(p));
    case 2:
      return static_cast<double>(base + LoadAs<int16_t>(p));
    case 4:
      return static_cast<double>(base + LoadAs<int32_t>(p));
    default:
      return LoadAs<double>(p);
  }
}

void SortedBlock::SetScore(size_t i, double score) {
  const int64_t base = based() ? LoadAs<int64_t>(body()) : 0;
  char* p = scores() + i * width_;
  switch (width_) {
    case 1:
      StoreAs(p, static_cast<int8_t>(static_cast<int64_t>(score) - base));
      break;
    case 2:
      StoreAs(p, static_cast<int16_t>(static_cast<int64_t>(score) - base));
      break;
    case 4:
      StoreAs(p, static_cast<int32_t>(static_cast<int64_t>(score) - base));
      break;
    default:
      StoreAs(p, score);
  }
}

void SortedBlock::ScanRange(size_t from, size_t to, Range* range) const {
  if (width_ == 8) {
    for (size_t i = from; i < to && range->integers; ++i) range->Add(score(i));
  } else if (from < to) {
    // They are in order.
    range->Add(score(from));
    range->Add(score(to - 1));
  }
}

SortedBlock* SortedBlock::ComposeAs(const Form& form, std::initializer_list<Part> parts) {
  const size_t cut = form.prefix.size();
  size_t count = 0;
  size_t text_bytes = 0;
  for (const Part& part : parts) {
    const SortedBlock& from = *part.block;
    count += part.to - part.from;
    if (from.prefix().size() == cut) {
      text_bytes += from.OffsetOf(part.to) - from.OffsetOf(part.from);
      continue;
    }
    Spot spot = from.SpotOf(part.from);
    for (; spot.index < part.to; spot.offset = from.After(spot), ++spot.index) {
      text_bytes += StoredSize(from.prefix().size() + from.suffix(spot).size() - cut);
    }
  }
  SortedBlock* made =
      Allocate(kHead + form.Front() + count * (form.width + size_t{1}) + text_bytes);
  made->count_ = static_cast<uint16_t>(count);
  made->width_ = form.width;
  made->flags_ = static_cast<uint8_t>((form.based ? kBased : 0) | (cut > 0 ? kPrefixed : 0));
  made->text_bytes_ = static_cast<uint32_t>(text_bytes);
  if (form.based) StoreAs(made->body(), form.base);
  if (cut > 0) {
    char* at = made->body() + (form.based ? 8 : 0);
    *at = static_cast<char>(cut);
    memcpy(at + 1, form.prefix.data(), cut);
  }
  size_t at = 0;
  size_t text = 0;
  for (const Part& part : parts) {
    text += made->CopyTexts(part, at, text);
    for (size_t i = part.from; i < part.to; ++i) made->SetScore(at++, part.block->score(i));
  }
  return made;
}

// Copies lengths and texts of a part to entry `at`, text offset `offset`; how many bytes of text.
size_t SortedBlock::CopyTexts(const Part& part, size_t at, size_t offset) {
  const SortedBlock& from = *part.block;
  const size_t cut = prefix().size();
  char* const begin = texts() + offset;
  const size_t first = from.OffsetOf(part.from);
  if (from.prefix().size() == cut) {
    if ((from.flags_ & kHasLong) != 0) flags_ |= kHasLong;
    const size_t size = from.OffsetOf(part.to) - first;
    memcpy(lengths() + at, from.lengths() + part.from, part.to - part.from);
    memcpy(begin, from.texts() + first, size);
    return size;
  }
  char* text = begin;
  Spot spot{part.from, first};
  std::string scratch;
  for (; spot.index < part.to; spot.offset = from.After(spot), ++spot.index, ++at) {
    const std::string_view rest = from.member(spot, &scratch).substr(cut);
    text += PutText(at, text, rest);
  }
  return static_cast<size_t>(text - begin);
}

// Writes the length of entry `at`, and its text; how many bytes of text.
size_t SortedBlock::PutText(size_t at, char* text, std::string_view rest) {
  lengths()[at] = static_cast<uint8_t>(std::min<size_t>(rest.size(), kLong));
  if (rest.size() >= kLong) {
    StoreAs(text, static_cast<uint32_t>(rest.size()));
    text += sizeof(uint32_t);
    flags_ |= kHasLong;
  }
  if (!rest.empty()) memcpy(text, rest.data(), rest.size());
  return StoredSize(rest.size());
}

// Shortens `prefix` to what all these members begin with too.
void SortedBlock::Narrow(std::initializer_list<Part> parts, std::string* prefix) {
  for (const Part& part : parts) {
    const SortedBlock& block = *part.block;
    const std::string_view shared = block.prefix();
    prefix->resize(CommonSize(*prefix, shared) < shared.size() ? CommonSize(*prefix, shared)
                                                               : prefix->size());
    Spot spot = block.SpotOf(part.from);
    for (; spot.index < part.to && prefix->size() > shared.size();
         spot.offset = block.After(spot), ++spot.index) {
      const auto rest = std::string_view(*prefix).substr(shared.size());
      prefix->resize(shared.size() + CommonSize(rest, block.suffix(spot)));
    }
    if (prefix->size() < kLeastPrefix) break;
  }
  if (prefix->size() < kLeastPrefix) prefix->clear();
}

SortedBlock* SortedBlock::Compose(std::initializer_list<Part> parts) {
  Range range;
  size_t count = 0;
  for (const Part& part : parts) {
    part.block->ScanRange(part.from, part.to, &range);
    count += part.to - part.from;
  }
  Form form = range.Best(count);
  std::string prefix;
  if (count > 1) {
    const Part& first = *parts.begin();
    std::string scratch;
    prefix = first.block->member(first.block->SpotOf(first.from), &scratch).substr(0, kMostPrefix);
    Narrow(parts, &prefix);
    form.prefix = prefix;
  }
  return ComposeAs(form, parts);
}

// The same entries with another prefix, in a block of their own. REQUIRES: all members begin with
// it.
SortedBlock* SortedBlock::WithPrefix(const SortedBlock* block, std::string_view prefix) {
  Form form = block->form();
  form.prefix = prefix;
  return ComposeAs(form, {{block, 0, block->count_}});
}

// A copy that gives up what this member does not share of the prefix.
SortedBlock* SortedBlock::FitPrefix(const SortedBlock* block, std::string_view member) {
  std::string prefix(block->prefix());
  prefix.resize(block->count_ == 0 ? 0 : CommonSize(prefix, member));
  if (prefix.size() < kLeastPrefix) prefix.clear();
  return WithPrefix(block, prefix);
}

// A copy with a prefix if there is one that all members and this one share, else the block itself.
SortedBlock* SortedBlock::FindPrefix(SortedBlock* block, std::string_view member) {
  if (block->count_ == 0) return block;
  std::string prefix(member.substr(0, kMostPrefix));
  Narrow({{block, 0, block->count_}}, &prefix);
  return prefix.empty() ? block : WithPrefix(block, prefix);
}

// A copy in a form that fits this score too.
SortedBlock* SortedBlock::Widen(const SortedBlock* block, double score) {
  Range range;
  block->ScanRange(0, block->count_, &range);
  range.Add(score);
  Form form = range.Best(block->count_ + size_t{1});
  form.prefix = block->prefix();
  return ComposeAs(form, {{block, 0, block->count_}});
}

// ---- texts ----

size_t SortedBlock::LongStored(size_t offset) const {
  return LoadAs<uint32_t>(texts() + offset) + sizeof(uint32_t);
}

size_t SortedBlock::OffsetOf(size_t i) const {
  if (i == count_) return text_bytes_;
  if ((flags_ & kHasLong) == 0) {
    return i <= count_ / size_t{2} ? SumBytes(lengths(), i)
                                   : text_bytes_ - SumBytes(lengths() + i, count_ - i);
  }
  size_t offset = 0;
  for (size_t j = 0; j < i; ++j) offset += Stored({j, offset});
  return offset;
}

size_t SortedBlock::Before(Spot spot) const {
  const uint8_t length = lengths()[spot.index - 1];
  return length != kLong ? spot.offset - length : OffsetOf(spot.index - 1);
}

SortedBlock::Spot SortedBlock::Find(std::string_view member) const {
  if (prefixed()) {
    if (!member.starts_with(prefix())) return {};
    member.remove_prefix(prefix().size());
  }
  const uint8_t* length = lengths();
  const char* text = texts();
  if ((flags_ & kHasLong) == 0) {
    if (member.size() >= kLong) return {};
    const auto wanted = static_cast<uint8_t>(member.size());
    const char* at = text;
    for (size_t i = 0; i < count_; ++i) {
      if (length[i] == wanted && SameText(at, member.data(), wanted)) {
        return {i, static_cast<size_t>(at - text)};
      }
      at += length[i];
    }
    return {};
  }
  Spot spot{0, 0};
  for (; spot.index < count_; spot.offset = After(spot), ++spot.index) {
    if (suffix(spot) == member) return spot;
  }
  return {};
}

// ---- places ----

size_t SortedBlock::CountBelow(double score, bool equal) const {
  const auto first = [&](const auto& get) {
    return equal ? FirstWhere(count_, get, [&](double other) { return other > score; })
                 : FirstWhere(count_, get, [&](double other) { return other >= score; });
  };
  const int64_t base = based() ? LoadAs<int64_t>(body()) : 0;
  const char* p = scores();
  switch (width_) {
    case 1:
      return first([=](size_t i) { return static_cast<double>(base + LoadAs<int8_t>(p + i)); });
    case 2:
      return first(
          [=](size_t i) { return static_cast<double>(base + LoadAs<int16_t>(p + i * 2)); });
    case 4:
      return first(
          [=](size_t i) { return static_cast<double>(base + LoadAs<int32_t>(p + i * 4)); });
    default:
      return first([=](size_t i) { return LoadAs<double>(p + i * 8); });
  }
}

SortedBlock::Spot SortedBlock::LowerBound(double score, std::string_view wanted) const {
  const size_t from = CountBelow(score, false);
  Spot spot{from, OffsetOf(from)};
  while (spot.index < count_ && Compare(spot, wanted) < 0 && this->score(spot.index) == score) {
    spot.offset = After(spot);
    ++spot.index;
  }
  return spot;
}

size_t SortedBlock::FirstMember(std::string_view wanted, bool equal) const {
  Spot spot{0, 0};
  for (; spot.index < count_; spot.offset = After(spot), ++spot.index) {
    const int order = Compare(spot, wanted);
    if (equal ? order > 0 : order >= 0) break;
  }
  return spot.index;
}

// ---- changes ----

// Replaces a block by another: without memory it is kept, and the other is freed.
class SortedBlock::Change {
 public:
  explicit Change(SortedBlock* block) : before_(block), now_(block) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change() {
    if (now_ != before_) Free(now_);
  }
  SortedBlock* now() { return now_; }
  void Become(SortedBlock* block) {
    if (block == now_) return;
    if (now_ != before_) Free(now_);
    now_ = block;
  }
  // The new one; the one of before is freed.
  SortedBlock* Done() {
    if (now_ != before_) Free(before_);
    return before_ = now_;
  }
  // The same, with room for that many bytes.
  SortedBlock* Done(size_t from, size_t to) {
    SortedBlock* const larger = Resize(now_, from, to);
    if (now_ == before_) before_ = larger;
    now_ = larger;
    return Done();
  }

 private:
  SortedBlock* before_;
  SortedBlock* now_;
};

SortedBlock* SortedBlock::Insert(SortedBlock* old, Spot at, double score, std::string_view member) {
  assert(at.index <= old->count_);
  Change change(old);
  if (!old->form().Fits(score)) change.Become(Widen(old, score));
  SortedBlock* block = change.now();
  const size_t least = block->bytes() + StoredSize(member.size()) + block->width_ + 1;
  if (block->prefixed() && !member.starts_with(block->prefix())) {
    change.Become(FitPrefix(block, member));
  } else if (!block->prefixed() && SizeClass(least) != block->capacity()) {
    change.Become(FindPrefix(block, member));
  }
  block = change.now();
  if (block != old) at.offset = block->OffsetOf(at.index);
  const std::string_view rest = member.substr(block->prefix().size());
  const size_t stored = StoredSize(rest.size());
  const size_t before = block->bytes();
  const size_t width = block->width_;
  const size_t count = block->count_;
  block = change.Done(before, before + stored + width + 1);
  auto* const lengths = reinterpret_cast<char*>(block->lengths());
  char* const scores = lengths + count;
  char* const texts = scores + count * width;
  char* const new_scores = scores + 1;
  char* const new_texts = texts + width + 1;
  // From the back, so that nothing is overwritten before it has moved.
  memmove(new_texts + at.offset + stored, texts + at.offset, block->text_bytes_ - at.offset);
  memmove(new_texts, texts, at.offset);
  memmove(new_scores + (at.index + 1) * width, scores + at.index * width,
          (count - at.index) * width);
  memmove(new_scores, scores, at.index * width);
  memmove(lengths + at.index + 1, lengths + at.index, count - at.index);
  ++block->count_;
  block->text_bytes_ += static_cast<uint32_t>(stored);
  block->PutText(at.index, new_texts + at.offset, rest);
  block->SetScore(at.index, score);
  return block;
}

SortedBlock* SortedBlock::Erase(SortedBlock* block, size_t from, size_t to) {
  assert(from < to && to <= block->count_);
  const size_t before = block->bytes();
  const size_t width = block->width_;
  const size_t count = block->count_;
  const size_t gone = to - from;
  const size_t text_from = block->OffsetOf(from);
  const size_t text_to = block->OffsetOf(to);
  auto* const lengths = reinterpret_cast<char*>(block->lengths());
  char* const scores = lengths + count;
  char* const texts = scores + count * width;
  char* const new_scores = scores - gone;
  char* const new_texts = texts - gone * (width + 1);
  memmove(lengths + from, lengths + to, count - to);
  memmove(new_scores, scores, from * width);
  memmove(new_scores + from * width, scores + to * width, (count - to) * width);
  memmove(new_texts, texts, text_from);
  memmove(new_texts + text_from, texts + text_to, block->text_bytes_ - text_to);
  block->count_ = static_cast<uint16_t>(count - gone);
  block->text_bytes_ -= static_cast<uint32_t>(text_to - text_from);
  return Resize(block, before, block->bytes());
}

SortedBlock* SortedBlock::Move(SortedBlock* old, Spot from, size_t to, double score) {
  Change change(old);
  if (!old->form().Fits(score)) change.Become(Widen(old, score));
  SortedBlock* const block = change.Done();
  if (to != from.index) {
    const size_t width = block->width_;
    const size_t stored = block->Stored(from);
    // In the block as it is, the entry goes before `target`, or to the end.
    const size_t target = to < from.index ? to : to + 1;
    const size_t target_offset = block->OffsetOf(target);
    char* const scores = block->scores();
    auto* const lengths = reinterpret_cast<char*>(block->lengths());
    char* const texts = block->texts();
    if (to < from.index) {
      std::rotate(texts + target_offset, texts + from.offset, texts + from.offset + stored);
      std::rotate(lengths + to, lengths + from.index, lengths + from.index + 1);
      memmove(scores + (to + 1) * width, scores + to * width, (from.index - to) * width);
    } else {
      std::rotate(texts + from.offset, texts + from.offset + stored, texts + target_offset);
      std::rotate(lengths + from.index, lengths + from.index + 1, lengths + target);
      memmove(scores + from.index * width, scores + (from.index + 1) * width,
              (to - from.index) * width);
    }
  }
  block->SetScore(to, score);
  return block;
}

}  // namespace sava::types
