#include "types/sketches/simhash_text.h"

#include "base/hash.h"
#include "base/unicode.h"

namespace sava::types {

namespace {

constexpr size_t kShingle = 3;
constexpr size_t kDigits = 16;

}  // namespace

void FingerprintBuilder::Add(std::string_view feature, double weight) {
  const uint64_t hash = base::HashBytes(feature, 0);
  for (size_t bit = 0; bit < sums_.size(); ++bit) {
    sums_[bit] += ((hash >> bit) & 1) != 0 ? weight : -weight;
  }
}

uint64_t FingerprintBuilder::Fingerprint() const {
  uint64_t fingerprint = 0;
  for (size_t bit = 0; bit < sums_.size(); ++bit) {
    if (sums_[bit] > 0) fingerprint |= uint64_t{1} << bit;
  }
  return fingerprint;
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  bool within = false;
  while (!text.empty()) {
    const uint32_t point = base::TakeCodePoint(&text);
    if (point == base::kNoCodePoint || !base::IsWordPart(point)) {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    base::AppendCodePoint(&words.back(), base::LowerCase(point));
  }
  return words;
}

uint64_t FingerprintOfText(std::string_view text) {
  const std::vector<std::string> words = WordsOf(text);
  FingerprintBuilder builder;
  if (words.size() < kShingle) {
    for (const std::string& word : words) builder.Add(word, 1);
    return builder.Fingerprint();
  }
  std::string shingle;
  for (size_t i = 0; i + kShingle <= words.size(); ++i) {
    shingle = words[i];
    for (size_t j = 1; j < kShingle; ++j) shingle.append(" ").append(words[i + j]);
    builder.Add(shingle, 1);
  }
  return builder.Fingerprint();
}

std::string FingerprintText(uint64_t fingerprint) {
  std::string text(kDigits, '0');
  for (size_t i = kDigits; i-- > 0; fingerprint >>= 4) {
    text[i] = "0123456789abcdef"[fingerprint & 15];
  }
  return text;
}

bool ParseFingerprint(std::string_view text, uint64_t* fingerprint) {
  if (text.size() != kDigits) return false;
  *fingerprint = 0;
  for (const char c : text) {
    const char lower = static_cast<char>(c | 0x20);
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      digit = static_cast<unsigned>(lower - 'a') + 10;
    } else {
      return false;
    }
    *fingerprint = (*fingerprint << 4) | digit;
  }
  return true;
}

}  // namespace sava::types
