// ReplicaPayload: what a master sends as its data set, found in the bytes of the connection:
//
//   "\n" …                       it is still busy making the file
//   "$123\r\n" and 123 bytes     the file
//   "$EOF:<40 bytes>\r\n" …      the file, up to where the same 40 bytes come again
//
// Nothing is believed: no memory is reserved for what has not come, and the file's first bytes tell
// at once whether it can be read here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::replication {

class ReplicaPayload {
 public:
  using Sink = std::function<base::Status(std::string_view)>;
  static constexpr size_t kMark = 40;

  enum class Outcome : uint8_t {
    kMore,
    kDone,    // the sink has all of the file
    kFailed,  // error() says why
  };
  explicit ReplicaPayload(Sink sink) : sink_(std::move(sink)) {}

  // *used: how many of the bytes belonged to it. The rest is not its own, once it is done.
  Outcome Take(std::string_view bytes, size_t* used);

  // Bytes of the file: in all (-1: not known), and so far.
  int64_t total() const { return total_; }
  int64_t received() const { return received_; }
  bool begun() const { return form_ != Form::kNone; }
  const std::string& error() const { return error_; }
  // The file is of a kind that this server does not read: to ask again at once would not help.
  bool refused() const { return refused_; }

 private:
  enum class Form : uint8_t { kNone, kLength, kMarked };

  Outcome Fail(std::string text);
  bool TakeHeader(std::string_view bytes, size_t* used);
  bool ReadHeader();
  Outcome TakeMarked(std::string_view bytes, size_t* used);
  bool Emit(std::string_view bytes);
  bool JudgeHead(std::string_view bytes);
  Outcome Finish();

  const Sink sink_;
  Form form_ = Form::kNone;
  std::string line_;  // the header, as far as it has come
  std::string mark_;
  std::string tail_;  // may be the beginning of the mark
  std::string head_;  // the file's first bytes
  int64_t total_ = -1;
  int64_t received_ = 0;
  std::string error_;
  bool refused_ = false;
  bool done_ = false;
};

}  // namespace sava::replication
