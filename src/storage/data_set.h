// The id of a data set: random hexadecimal digits that its log (a comment in the manifest) and its
// snapshots (an AUX field) carry, so that a dump of another data set is known beside a log. Files
// of other servers have none. docs/formats/rdb.md and aof.md say where it is.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/file_system.h"

namespace sava::storage {

inline constexpr std::string_view kDataSetField = "sava-data-set";

std::string NewDataSetId();
bool IsDataSetId(std::string_view text);
// The id in an RDB file; "" when it has none, or is no RDB file. An error when it cannot be read.
base::Result<std::string> DataSetOfRdb(FileSystem& files, const std::string& path);

}  // namespace sava::storage
