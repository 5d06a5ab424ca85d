// The words of replication on the wire that both halves of this room use.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/stock.h"

namespace sava::replication {

// What a Sava replica announces with REPLCONF capa: it takes native types and commands.
inline constexpr std::string_view kSavaCapability = "sava";
// Length of the mark that ends a data set sent as $EOF.
inline constexpr size_t kMarkBytes = 40;

inline constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";
inline constexpr std::string_view kGetAck = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

// The length of the command, in RESP, that the bytes begin with, and its first words, at most
// `most`. None: it is no whole command.
std::optional<size_t> SplitCommand(std::string_view bytes, size_t most,
                                   std::vector<std::string_view>* words);

// The least reader that would know the command, in RESP.
commands::Reader ReaderOf(std::string_view command);

// Replaces a command that the other side does not know: a PING of exactly its length, which
// is `head`, that many arbitrary bytes, and the end of a line if there are some.
struct Padding {
  std::string head;
  size_t fill = 0;
  bool line_end = false;
  size_t size() const { return head.size() + fill + (line_end ? 2 : 0); }
};
// REQUIRES: length >= kPing.size().
Padding PaddingOf(size_t length);

}  // namespace sava::replication
