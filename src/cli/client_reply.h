// A server's reply as the client sees it, and the parser that builds it from RESP2 or RESP3 bytes.
//
// The parser is fed bytes in pieces of any size and hands out whole replies. It keeps an explicit
// stack of the aggregates that are still open, so each byte is looked at once however the reply is
// cut, and memory grows with what has arrived, never with what a length only promises.
// Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sava::cli {

enum class ReplyType : uint8_t {
  kStatus,
  kError,
  kInteger,
  kString,
  kVerbatim,
  kNil,
  kDouble,
  kBool,
  kBigNumber,
  kArray,
  kMap,
  kSet,
  kPush,
};

struct Reply {
  ReplyType type = ReplyType::kNil;
  int64_t integer = 0;          // kInteger; 0 or 1 for kBool
  std::string text;             // the bytes of every other scalar; doubles as the server wrote them
  std::vector<Reply> elements;  // of aggregates; a map's keys and values take turns
  std::unique_ptr<Reply> attributes;  // a kMap the server sent ahead of this reply, or null

  bool is_error() const { return type == ReplyType::kError; }
  bool is_aggregate() const { return type >= ReplyType::kArray; }
  bool is_status(std::string_view word) const { return type == ReplyType::kStatus && text == word; }
};

class ReplyParser {
 public:
  static constexpr size_t kMaxDepth = 128;
  static constexpr size_t kMaxLineBytes = size_t{1} << 30;
  static constexpr int64_t kMaxBulkBytes = int64_t{4} << 30;
  static constexpr int64_t kMaxElements = int64_t{1} << 31;

  enum class Status : uint8_t { kReply, kNeedMore, kError };

  void Feed(std::string_view bytes);

  // The next whole reply. After kError the stream cannot be read any further.
  Status Next(Reply* reply);

  // What was wrong. REQUIRES: Next() returned kError.
  const std::string& error() const { return error_; }

  // Whether every byte fed so far belonged to a reply already handed out.
  bool idle() const { return buffer_.size() == position_ && open_.empty(); }

 private:
  struct Open {
    Reply reply;
    size_t missing;
    bool is_attribute;
  };
  enum class Step : uint8_t { kScalar, kOpened, kNeedMore, kError };

  Step ReadElement(Reply* scalar);
  Step ReadScalarLine(char marker, std::string_view line, Reply* scalar);
  Step ReadBulk(char marker, std::string_view line, Reply* scalar);
  Step OpenAggregate(char marker, std::string_view line, Reply* scalar);
  bool TakeLine(std::string_view* line);
  bool Close(Reply done, Reply* reply);
  Step Fail(std::string message);
  void Compact();

  std::string buffer_;
  size_t position_ = 0;       // first byte not consumed
  size_t scanned_ = 0;        // no line end between position_ and here
  int64_t bulk_length_ = -1;  // of a string whose header is consumed and whose bytes are awaited
  char bulk_marker_ = 0;
  std::vector<Open> open_;
  std::unique_ptr<Reply> attributes_;  // waiting for the reply they describe
  std::string error_;
};

}  // namespace sava::cli
