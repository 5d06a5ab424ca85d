// SyncClient: asks a server for its whole data set, as a replica does, and hands on the bytes of
// the RDB file.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/client_connection.h"
#include "cli/client_options.h"

namespace sava::cli {

// Finds the data set in what a server sends after PSYNC: the line of its answer, empty lines while
// it gets ready, a line with a length or a mark, the file's bytes, the mark again.
class SyncParser {
 public:
  using Sink = std::function<base::Status(std::string_view)>;

  explicit SyncParser(Sink sink) : sink_(std::move(sink)) {}

  // What came next. An error says what is wrong with it, or what the sink said.
  base::Status Feed(std::string_view bytes);
  // All of it has come.
  bool done() const { return state_ == State::kDone; }
  uint64_t received() const { return received_; }
  // Known when the server says it beforehand.
  std::optional<uint64_t> total() const { return total_; }

 private:
  enum class State : uint8_t { kAnswer, kLength, kBytes, kDone };

  base::Status Line(std::string_view line);
  base::Status Bytes(std::string_view bytes);
  base::Status HandOn(std::string_view bytes);

  const Sink sink_;
  State state_ = State::kAnswer;
  std::string line_;  // that is not whole yet
  std::string mark_;  // empty: the length is known
  std::string tail_;  // the last bytes that came, which may be the mark
  std::optional<uint64_t> total_;
  uint64_t received_ = 0;
};

class SyncClient {
 public:
  explicit SyncClient(int timeout_ms) : connection_(nullptr, timeout_ms) {}

  // progress: is told how many bytes have come, and of how many if that is known.
  base::Status Fetch(const Options& options, const SyncParser::Sink& sink,
                     const std::function<void(uint64_t, std::optional<uint64_t>)>& progress);

 private:
  // The answer; errors of the server are in `reply`.
  base::Status Ask(const std::vector<std::string>& words, Reply* reply);

  Connection connection_;
};

}  // namespace sava::cli
