// A Bloom filter in a file: a line that names the format, then a value as DUMP writes it, sealed by
// a checksum (docs/formats/filters.md). Writing replaces the file as a whole.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "types/filters/bloom.h"

namespace sava::cli {

base::Result<std::unique_ptr<types::Bloom>> ReadBloomFile(const std::string& path);
base::Status WriteBloomFile(const std::string& path, const types::Bloom& bloom);

}  // namespace sava::cli
