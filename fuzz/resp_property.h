// What must hold for any bytes a client may send: parsing them whole and parsing them byte by byte
// give the same commands and the same error, and nothing is read outside the bytes.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_parser.h"

namespace sava::fuzz {

struct Parsed {
  std::vector<std::vector<std::string>> commands;
  std::string error;
  bool operator==(const Parsed&) const = default;
};

inline Parsed ParseInPieces(std::string_view bytes, size_t piece) {
  protocol::RequestParser parser;
  protocol::ParseLimits limits;
  limits.max_bulk = 1 << 20;
  Parsed result;
  std::string kept;
  while (!bytes.empty()) {
    const size_t n = bytes.size() < piece ? bytes.size() : piece;
    kept.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    while (true) {
      std::vector<std::string_view> args;
      size_t consumed = 0;
      const auto outcome = parser.Next(kept, limits, &args, &consumed);
      if (outcome == protocol::RequestParser::Outcome::kMore) break;
      if (outcome == protocol::RequestParser::Outcome::kError) {
        result.error = parser.error();
        return result;
      }
      if (consumed == 0 || consumed > kept.size()) abort();
      if (outcome == protocol::RequestParser::Outcome::kCommand) {
        if (args.empty()) abort();
        result.commands.emplace_back(args.begin(), args.end());
      }
      kept.erase(0, consumed);
    }
  }
  return result;
}

inline void CheckRequest(std::string_view bytes) {
  // Endless lines are refused once too many bytes have come: where exactly depends on the pieces.
  if (bytes.size() > 60000) bytes = bytes.substr(0, 60000);
  const Parsed whole = ParseInPieces(bytes, bytes.size() + 1);
  if (!(ParseInPieces(bytes, 1) == whole) || !(ParseInPieces(bytes, 7) == whole)) abort();
}

}  // namespace sava::fuzz
