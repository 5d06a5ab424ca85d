#include "storage/data_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rng.h"
#include "storage/rdb_format.h"
#include "types/value/save.h"

namespace sava::storage {

namespace {

constexpr size_t kDigits = 32;
// AUX fields are the first of a file, and short.
constexpr uint64_t kBeginning = 4096;

}  // namespace

std::string NewDataSetId() {
  unsigned char bytes[kDigits / 2];
  base::SecureRandom(bytes, sizeof bytes);
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

bool IsDataSetId(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

base::Result<std::string> DataSetOfRdb(FileSystem& files, const std::string& path) {
  const auto beginning = files.Read(path, 0, kBeginning);
  if (!beginning) return base::Error{beginning.error()};
  types::Reader in(beginning.value());
  std::string name_scratch;
  std::string value_scratch;
  if (in.Raw(kRdbMagic.size()) != kRdbMagic) return std::string();
  in.Raw(4);  // the version
  while (in.Byte() == kRdbAux && in.ok()) {
    const std::string_view name = in.StringView(&name_scratch);
    const std::string_view value = in.StringView(&value_scratch);
    if (in.ok() && name == kDataSetField && IsDataSetId(value)) return std::string(value);
  }
  return std::string();
}

}  // namespace sava::storage
