// CheckFile: reads one data file from end to end: an RDB file, commands of an append-only log, or
// the one followed by the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "storage/aof_reader.h"

namespace sava::cli {

struct CheckedFile {
  // kRefused: what cutting off cannot repair, an RDB file; the text then names the file.
  storage::AofEnd end;
  std::string text;  // a summary for people; empty when nothing could be read
  // What is whole but not known here, so that a server would refuse the file.
  std::vector<std::string> unknown;
  // What a stock Redis 7.0 refuses, when that was asked.
  std::vector<std::string> obstacles;
};

struct CheckOptions {
  bool portable = false;
  bool log = false;  // it is part of a log, so commands may follow an RDB file
};

CheckedFile CheckFile(const std::string& path, const base::MappedFile& file,
                      const CheckOptions& options);

}  // namespace sava::cli
