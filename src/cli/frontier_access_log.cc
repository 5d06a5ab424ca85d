#include "cli/frontier_access_log.h"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "base/text.h"

namespace sava::cli {

namespace {

// One number and the blank behind it, or the line's end. False when there is none.
bool TakeNumber(const char** at, const char* end, int base, uint64_t* out) {
  const auto [stop, error] = std::from_chars(*at, end, *out, base);
  if (error != std::errc() || (stop != end && *stop != ' ')) return false;
  *at = stop == end ? end : stop + 1;
  return true;
}

}  // namespace

void AccessLog::Add(const Access& access) {
  constexpr size_t kMostHex = 16;
  char line[128];  // four numbers of up to 20 bytes, and what stands between them
  char* at = line + base::FormatUint(access.phase, line);
  *at++ = ' ';
  at += base::FormatUint(access.id, at);
  std::memcpy(at, access.write ? " W 0x" : " R 0x", 5);
  at += 5;
  at = std::to_chars(at, at + kMostHex, access.address, 16).ptr;
  *at++ = ' ';
  at += base::FormatUint(access.size, at);
  *at++ = '\n';
  file_.Append({line, static_cast<size_t>(at - line)});
}

bool ParseAccess(std::string_view line, Access* out) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const char* at = line.data();
  const char* const end = at + line.size();
  if (!TakeNumber(&at, end, 10, &out->phase) || !TakeNumber(&at, end, 10, &out->id)) return false;
  constexpr ptrdiff_t kOperation = 4;  // "R 0x"
  if (end - at < kOperation || (*at != 'R' && *at != 'W')) return false;
  if (std::string_view(at + 1, 3) != " 0x") return false;
  out->write = *at == 'W';
  at += kOperation;
  return TakeNumber(&at, end, 16, &out->address) && TakeNumber(&at, end, 10, &out->size) &&
         at == end;
}

}  // namespace sava::cli
