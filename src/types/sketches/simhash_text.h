// SimHash fingerprints of 64 bits: similar features give fingerprints that differ in few bits.
//
// Every feature has a weight and a hash (XXH3-64, seed 0). For each bit the weights of the features
// whose hash has it are added up and those of the others subtracted; the bit is set when the sum is
// above 0. docs/types/simhash.md says it exactly, so that others can reproduce it.
// Stateless.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sava::types {

class FingerprintBuilder {
 public:
  void Add(std::string_view feature, double weight);
  uint64_t Fingerprint() const;

 private:
  std::array<double, 64> sums_{};
};

// The words of a text: runs of letters, marks and numbers in lower case. What is no UTF-8
// separates.
std::vector<std::string> WordsOf(std::string_view text);

// Of a text: its features are all rows of three words, joined by single spaces, each as often as it
// occurs; of a text with fewer words the words. No words: 0.
uint64_t FingerprintOfText(std::string_view text);

// 16 hexadecimal digits.
std::string FingerprintText(uint64_t fingerprint);
// False unless `text` is 16 hexadecimal digits, upper or lower case.
bool ParseFingerprint(std::string_view text, uint64_t* fingerprint);

}  // namespace sava::types
