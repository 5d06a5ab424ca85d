// RequestParser: finds commands in the bytes a client has sent, in place. The arguments of a parsed
// command point into the caller's bytes.
//
// Multibulk (`*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`) and inline (`GET k\r\n`) requests, with the limits
// and error texts of Redis. Every length is checked before anything is reserved for it.
//
// A partial multibulk command is remembered: arguments already seen are not scanned again. The
// remembered state is offsets from the command's first byte, so the caller may move the bytes
// between calls as long as it keeps them from that first byte on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sava::protocol {

struct ParseLimits {
  int64_t max_bulk = 512LL * 1024 * 1024;
  // Before authentication only small requests are read.
  bool authenticated = true;
};

class RequestParser {
 public:
  enum class Outcome {
    kCommand,  // one command: `args` filled, `consumed` bytes used
    kEmpty,    // an empty line or empty array: `consumed` bytes used, nothing to run
    kMore,     // not enough bytes yet
    kError,    // protocol error: see error(); the connection must be closed after it is sent
  };

  // Looks for one command at the start of `bytes`. For kCommand appends its arguments to `args`
  // and sets *consumed. Views of inline arguments point into storage kept in inline_words_.
  Outcome Next(std::string_view bytes, const ParseLimits& limits,
               std::vector<std::string_view>* args, size_t* consumed);

  // "Protocol error: …", for the client.
  const std::string& error() const { return error_; }
  // How many more bytes the argument now being read needs (0 when unknown): for sizing reads.
  size_t missing() const { return missing_; }
  void Reset();

 private:
  struct Span {
    uint64_t offset;
    uint64_t size;
  };

  Outcome Inline(std::string_view bytes, std::vector<std::string_view>* args, size_t* consumed);
  Outcome Multibulk(std::string_view bytes, const ParseLimits& limits,
                    std::vector<std::string_view>* args, size_t* consumed);
  Outcome Fail(std::string text);
  Outcome Slow(std::string_view bytes, const ParseLimits& limits,
               std::vector<std::string_view>* args, size_t* consumed);

  // State of a partial multibulk command, offsets from its first byte.
  int64_t remaining_ = -1;  // arguments still to come; -1: no command begun
  uint64_t position_ = 0;   // scanned so far
  int64_t bulk_ = -1;       // length of the argument being read, -1: its header is next
  std::vector<Span> spans_;
  size_t missing_ = 0;
  std::string error_;
  std::vector<std::string> inline_words_;
};

}  // namespace sava::protocol
