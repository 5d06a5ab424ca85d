#include "cli/bloom_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "types/filters/bloom_formulas.h"

namespace sava::cli {

namespace {

static_assert(sizeof(size_t) == 8, "the third position is made of the upper half of the hash");

class TextFilter final : public FileFilter {
 public:
  // REQUIRES: only characters 0 and 1, at least one.
  explicit TextFilter(std::string bits) : bits_(std::move(bits)) {}

  BloomForm form() const override { return BloomForm::kText; }

  bool Add(std::string_view value) override {
    bool changed = false;
    for (const uint64_t position : Places(value)) {
      char& bit = bits_[IndexOf(position)];
      changed = changed || bit == '0';
      bit = '1';
    }
    return changed;
  }

  bool Has(std::string_view value) const override {
    return std::ranges::all_of(Places(value),
                               [this](uint64_t position) { return IsSet(position); });
  }

  std::vector<uint64_t> Positions(std::string_view value) const override {
    const auto places = Places(value);
    return {places.begin(), places.end()};
  }

  std::function<bool(uint64_t)> Bits() const override {
    return [this](uint64_t position) { return IsSet(position); };
  }

  Numbers numbers() const override {
    const auto m = static_cast<double>(bits_.size());
    const double fill = static_cast<double>(std::ranges::count(bits_, '1')) / m;
    // n values leave e^(-kn/m) of the bits unset; a full filter tells nothing, its n is the least
    // for which less than half a bit would be left.
    const double unset = std::max(1 - fill, 0.5 / m);
    const double n = std::round(-m / kTextHashes * std::log(unset));
    return {.bits = bits_.size(),
            .hashes = kTextHashes,
            .items = static_cast<uint64_t>(n),
            .items_known = false,
            .fill = fill,
            .rate_formula = types::ClassicRate(m, n, kTextHashes),
            .rate_observed = std::pow(fill, kTextHashes)};
  }

  base::Status Write(const std::string& path) const override { return ReplaceFile(path, {bits_}); }

 private:
  std::array<uint64_t, kTextHashes> Places(std::string_view value) const {
    // The same as of a std::string with these characters.
    return TextPositions(std::hash<std::string_view>()(value), bits_.size());
  }
  size_t IndexOf(uint64_t position) const { return bits_.size() - 1 - position; }
  bool IsSet(uint64_t position) const { return bits_[IndexOf(position)] == '1'; }

  std::string bits_;
};

}  // namespace

std::array<uint64_t, kTextHashes> TextPositions(uint64_t h, uint64_t bits) {
  return {h % bits, (h >> 16) % bits, (h >> 32) % bits};
}

base::Result<std::unique_ptr<FileFilter>> MakeTextFilter(uint64_t bits) {
  if (bits > kMostTextBits) {
    return base::Error{fmt::format("at most {} bits in text form", kMostTextBits)};
  }
  try {
    return std::unique_ptr<FileFilter>(std::make_unique<TextFilter>(std::string(bits, '0')));
  } catch (const std::bad_alloc&) {
    return base::Error{fmt::format("no memory for {} bits", bits)};
  }
}

bool LooksLikeTextFilter(std::string_view file) {
  return file.starts_with('0') || file.starts_with('1');
}

base::Result<std::unique_ptr<FileFilter>> ParseTextFilter(std::string_view file) {
  if (file.ends_with('\n')) file.remove_suffix(file.ends_with("\r\n") ? 2 : 1);
  const size_t stranger = file.find_first_not_of("01");
  if (stranger != std::string_view::npos || file.empty()) {
    return base::Error{fmt::format("the Bloom filter is damaged: character {} is neither 0 nor 1",
                                   file.empty() ? 1 : stranger + 1)};
  }
  if (file.size() > kMostTextBits) {
    return base::Error{fmt::format("at most {} bits in text form", kMostTextBits)};
  }
  return std::unique_ptr<FileFilter>(std::make_unique<TextFilter>(std::string(file)));
}

}  // namespace sava::cli
