// RepairTail: cuts off what is broken at the end of a file of an append-only log.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sava::cli {

// Copies the file to PATH.before-repair (.2, .3, ... when there are such already), then shortens it
// to `good` bytes; both are on the disk when it returns. Returns the copy's path. Refuses when the
// file is not `size` bytes long any more: somebody writes to it. When it fails the file is as it
// was.
base::Result<std::string> RepairTail(const std::string& path, uint64_t size, uint64_t good);

}  // namespace sava::cli
