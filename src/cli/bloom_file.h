// Bloom filters in files, in two forms (docs/formats/filters.md):
//
//   sealed  a line that names the format, then a value as DUMP writes it, with its checksum
//   text    the bits as characters 0 and 1, the highest first, as the program of document S2 keeps
//           them in bloom.txt, with its hash and its three positions (cli/bloom_text.h)
//
// Writing replaces the file as a whole. No state; a filter belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sava::cli {

enum class BloomForm : uint8_t { kSealed, kText };

class FileFilter {
 public:
  struct Numbers {
    uint64_t bits = 0;        // m
    uint32_t hashes = 0;      // k
    uint64_t items = 0;       // n
    bool items_known = true;  // false: n is estimated by the bits that are set
    double fill = 0;          // the share of bits that are set
    double rate_formula = 0;
    double rate_observed = 0;
  };

  virtual ~FileFilter() = default;
  virtual BloomForm form() const = 0;
  // True when a bit was not set before.
  virtual bool Add(std::string_view value) = 0;
  virtual bool Has(std::string_view value) const = 0;
  // The k bits of a value, in the order of its hashes. None: the filter is not m bits and k hashes.
  virtual std::vector<uint64_t> Positions(std::string_view value) const = 0;
  // Tells whether a bit is set; good until the filter changes or ends.
  virtual std::function<bool(uint64_t)> Bits() const = 0;
  virtual Numbers numbers() const = 0;
  virtual base::Status Write(const std::string& path) const = 0;
};

// An empty filter. REQUIRES: bits > 0, hashes > 0; in text form hashes is kTextHashes.
base::Result<std::unique_ptr<FileFilter>> MakeFileFilter(BloomForm form, uint64_t bits,
                                                         uint32_t hashes);
// The filter of a file in either form; errors name the path.
base::Result<std::unique_ptr<FileFilter>> ReadBloomFile(const std::string& path);

// Writes the parts, one behind the other, beside the file and puts them in its place.
base::Status ReplaceFile(const std::string& path, std::initializer_list<std::string_view> parts);

}  // namespace sava::cli
