// Whole files in and out, for the configuration.

#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::config {

// The errors are the system's texts ("No such file or directory").
base::Result<std::string> ReadWholeFile(const std::string& path);

// Puts `text` in place of the file in one step: a reader of the path, also after a crash, finds
// the old contents or the new. Keeps the file's permissions and, where it may, its owner; follows a
// symbolic link instead of replacing it.
base::Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace sava::config
