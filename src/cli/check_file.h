// CheckFile: reads one data file from end to end: an RDB file, commands of an append-only log, or
// the one followed by the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sava::cli {

struct CheckedFile {
  enum class State : uint8_t {
    kGood,
    kTruncated,  // a log that ends within a command or transaction
    kCorrupt,    // a log in which something else stands
    kDamaged,    // what cutting off cannot mend: an RDB file, or a file that cannot be read
  };
  State state = State::kGood;
  std::string problem;  // what is wrong and where, unless kGood
  uint64_t size = 0;    // of the file
  uint64_t good = 0;    // of a log: up to here all is whole
  std::string text;     // a summary for people; empty when nothing could be read
  // What is whole but not known here, so that a server would refuse the file.
  std::vector<std::string> unknown;
  // What a stock Redis 7.0 refuses, when that was asked.
  std::vector<std::string> obstacles;

  bool broken_tail() const { return state == State::kTruncated || state == State::kCorrupt; }
};

struct CheckOptions {
  bool portable = false;
  bool log = false;  // it is part of a log, so commands may follow an RDB file
};

CheckedFile CheckFile(const std::string& path, const CheckOptions& options);

}  // namespace sava::cli
