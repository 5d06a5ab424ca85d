// The command line of `sava bloom`: its options, its help, and what is wrong with a word.
//
// No state; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bloom_file.h"

namespace sava::cli {

struct BloomOptions {
  uint64_t bits = 0;
  uint64_t hashes = 0;
  uint64_t items = 0;
  double rate = 0;
  bool force = false;
  bool text = false;
  std::string file;  // explain

  bool sized() const { return bits != 0 || hashes != 0 || items != 0 || rate != 0; }
  BloomForm form() const { return text ? BloomForm::kText : BloomForm::kSealed; }
};

// The functions below return an error text, or nothing.

// Takes the options out of the words; what is left stays in *words.
std::optional<std::string> TakeBloomOptions(std::vector<std::string>* words, BloomOptions* options);
// Settles m and k: by formulas 9 and 6 where items and a rate are given, else as they were given,
// else default_bits and 3.
std::optional<std::string> SettleBloomSize(BloomOptions* options, uint64_t default_bits);
// A word that means nothing here, and what may have been meant.
std::optional<std::string> FindUnknownBloomWord(const std::vector<std::string>& words);

// Of a subcommand, or of all when it is none. The whole text for "help", "-h" and "--help".
std::string_view BloomHelp(std::string_view subcommand);

}  // namespace sava::cli
