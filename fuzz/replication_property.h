// What holds for whatever a replica, or a server that is asked for its data, may say.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sync_client.h"
#include "replication/announce.h"
#include "replication/wire.h"

namespace sava::fuzz {

inline void Must(bool holds) {
  if (!holds) std::abort();
}

inline std::vector<std::string_view> Lines(std::string_view bytes) {
  std::vector<std::string_view> lines;
  while (true) {
    const size_t end = bytes.find('\n');
    lines.push_back(bytes.substr(0, end));
    if (end == std::string_view::npos) return lines;
    bytes.remove_prefix(end + 1);
  }
}

// REPLCONF: one pair of words a line each.
inline void CheckAnnounce(std::string_view bytes) {
  engine::Announcement announced;
  const base::Status status = replication::Announce(Lines(bytes), &announced);
  Must(announced.ip.size() <= 255);
  Must(announced.version.size() <= 32);
  Must(announced.filtered || (announced.keys && announced.functions));
  Must(status.ok() || !status.error().empty());
}

// Commands of a stream: what one ends with is where the next begins, and what replaces a foreign
// one is as long.
inline void CheckStream(std::string_view bytes) {
  std::vector<std::string_view> words;
  while (!bytes.empty()) {
    const auto size = replication::SplitCommand(bytes, 4, &words);
    static_cast<void>(replication::ReaderOf(bytes));
    if (!size) return;
    Must(*size > 0 && *size <= bytes.size());
    if (*size >= replication::kPing.size()) {
      Must(replication::PaddingOf(*size).size() == *size);
    }
    bytes.remove_prefix(*size);
  }
}

// A server's answer to PSYNC is the same file however it is cut.
inline void CheckSync(std::string_view bytes) {
  const auto run = [bytes](size_t step, std::string* file) {
    cli::SyncParser parser([file](std::string_view some) {
      file->append(some);
      return base::Status();
    });
    for (size_t at = 0; at < bytes.size(); at += step) {
      if (!parser.Feed(bytes.substr(at, step))) break;
    }
    return parser.done();
  };
  std::string byte_by_byte;
  const bool done = run(1, &byte_by_byte);
  for (const size_t step : {size_t{7}, size_t{41}}) {
    std::string file;
    if (run(step, &file) && done && bytes.find("$EOF:") == std::string_view::npos) {
      Must(file == byte_by_byte);
    }
  }
}

inline void CheckReplication(std::string_view bytes) {
  if (bytes.empty()) return;
  const char kind = bytes.front();
  bytes.remove_prefix(1);
  if (kind == 'a') return CheckAnnounce(bytes);
  if (kind == 's') return CheckStream(bytes);
  CheckSync(bytes);
}

}  // namespace sava::fuzz
