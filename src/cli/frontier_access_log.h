// An access log: one line for every access to the scheduler's structures.
//
//   PHASE ID R|W ADDRESS SIZE        0 101 W 0x7f3a5c0012d0 48
//
// PHASE is the command's number in the document's table 3 (0 ADD_URLS ... 7 LIMPA_TUDO), ID the
// structure's in its table 2: 0 the cells of the queue of hosts, 1, 2 ... the cells of the first,
// second
// ... host's list, 100 the hosts, 101, 102 ... the first, second ... host's URLs. The document has
// five hosts; from the hundredth on a host's cells have the id kLateCells + number, so that no two
// structures share one. ADDRESS is hexadecimal, SIZE in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/frontier_files.h"

namespace sava::cli {

inline constexpr uint64_t kQueueCells = 0;
inline constexpr uint64_t kHostItems = 100;
inline constexpr uint64_t kLateCells = 1'000'000'000;

// The ids of a host's list, whose number counts from 1.
constexpr uint64_t CellsOf(uint64_t host) { return host < kHostItems ? host : kLateCells + host; }
constexpr uint64_t UrlsOf(uint64_t host) { return kHostItems + host; }

struct Access {
  uint64_t phase = 0;
  uint64_t id = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  bool write = false;
};

class AccessLog {
 public:
  base::Status Open(const std::string& path) { return file_.Open(path); }
  void Add(const Access& access);
  base::Status Close() { return file_.Close(); }

 private:
  OutFile file_;
};

// A line without its end. False when it is no access.
bool ParseAccess(std::string_view line, Access* out);

}  // namespace sava::cli
