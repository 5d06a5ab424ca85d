#include "types/filters/fingerprint_page.h"

#include <algorithm>

#include "base/varint.h"

namespace sava::types {

// Depth, whether there are counts, how many fingerprints, the prefix; then the parts, each in whole
// bytes.
void FingerprintTable::Page::Append(uint64_t prefix, unsigned width, std::string* out) const {
  out->push_back(static_cast<char>(depth));
  out->push_back(static_cast<char>(counted));
  base::AppendVarint(out, count);
  out->append(reinterpret_cast<const char*>(&prefix), sizeof prefix);
  out->append(reinterpret_cast<const char*>(words()), (256 + size_t{count} + 7) / 8);
  out->append(reinterpret_cast<const char*>(remainders()), (size_t{count} * width + 7) / 8);
  if (counted != 0) out->append(reinterpret_cast<const char*>(counts(width)), count);
}

bool PageReader::Next() {
  if (!ok_ || at_ == end_) return false;
  hashes_.clear();
  counts_.clear();
  ok_ = Read();
  return ok_;
}

const uint64_t* PageReader::Take(size_t bits, std::vector<uint64_t>* words) {
  const size_t bytes = (bits + 7) / 8;
  if (static_cast<size_t>(end_ - at_) < bytes) return nullptr;
  words->assign(WordsFor(bits) + 1, 0);
  memcpy(words->data(), at_, bytes);
  at_ += bytes;
  // What is left of the last byte must be zero.
  if (bits % 64 != 0 && (*words)[bits / 64] >> (bits % 64) != 0) return nullptr;
  return words->data();
}

bool PageReader::Read() {
  if (end_ - at_ < 2) return false;
  depth_ = *at_++;
  const uint8_t counted = *at_++;
  if (depth_ + 8 > bits_ || counted > 1) return false;
  const unsigned width = bits_ - depth_ - 8;
  uint64_t count = 0;
  at_ = base::GetVarint(at_, end_, &count);
  if (at_ == nullptr) at_ = end_;
  const auto left = static_cast<size_t>(end_ - at_);
  if (left < sizeof prefix_ || count > left * 8) return false;
  memcpy(&prefix_, at_, sizeof prefix_);
  at_ += sizeof prefix_;
  if (depth_ == 0 ? prefix_ != 0 : prefix_ << depth_ != 0) return false;
  const uint64_t* const bitmap = Take(256 + count, &bitmap_);
  const uint64_t* const remainders =
      bitmap == nullptr ? nullptr : Take(count * width, &remainders_);
  if (remainders == nullptr) return false;
  uint64_t quotient = 0;
  for (size_t i = 0; i < count; ++i) {
    while (quotient < 256 && !HasBit(bitmap, quotient + i)) ++quotient;
    if (quotient == 256) return false;
    const uint64_t hash =
        prefix_ | HashOf(quotient, GetBits(remainders, i * width, width), depth_, width);
    if (!hashes_.empty() && hash <= hashes_.back()) return false;
    hashes_.push_back(hash);
  }
  for (; quotient < 256; ++quotient) {
    if (HasBit(bitmap, quotient + count)) return false;
  }
  if (counted == 0) {
    counts_.assign(count, 1);
    return true;
  }
  if (static_cast<size_t>(end_ - at_) < count) return false;
  counts_.assign(at_, at_ + count);
  at_ += count;
  return std::find(counts_.begin(), counts_.end(), 0) == counts_.end();
}

}  // namespace sava::types
