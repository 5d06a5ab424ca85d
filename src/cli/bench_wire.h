// The two wires a benchmark speaks, RESP and HTTP/1.1: requests are appended to a buffer, replies
// are only measured (where do they end, are they errors), not taken apart. Every request gets
// exactly one reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace sava::cli {

enum class Wire : uint8_t { kResp, kHttp };

void AppendRespRequest(std::initializer_list<std::string_view> words, std::string* out);

struct HttpHead {
  std::string host;           // of the Host field
  std::string authorization;  // the field's value, or empty
};
// A body is JSON; empty: none.
void AppendHttpRequest(const HttpHead& head, std::string_view method, std::string_view target,
                       std::string_view body, std::string* out);

// Finds the end of the next reply in bytes that come in pieces; no byte of a long reply is looked
// at twice. One per connection.
class ReplyScanner {
 public:
  enum class Status : uint8_t { kReply, kNeedMore, kBroken };

  explicit ReplyScanner(Wire wire) : wire_(wire) {}

  // `bytes` begin where the last reply ended, and with what was there at the last kNeedMore.
  // kReply: size(), is_error() and, for HTTP, body() tell about it.
  Status Scan(std::string_view bytes);

  size_t size() const { return size_; }
  bool is_error() const { return is_error_; }
  // What to tell people about an error.
  std::string ErrorText(std::string_view reply) const;
  std::string_view Body(std::string_view reply) const {
    return reply.substr(head_size_, body_size_);
  }

 private:
  Status ScanResp(std::string_view bytes);
  Status ScanHttp(std::string_view bytes);
  Status ReadHttpHead(std::string_view head);
  Status Done(size_t size);

  Wire wire_;
  size_t position_ = 0;   // first byte not looked at
  uint64_t missing_ = 1;  // RESP: elements to come
  size_t head_size_ = 0;  // HTTP: 0 until the head is complete
  size_t body_size_ = 0;
  size_t size_ = 0;
  bool is_error_ = false;
};

}  // namespace sava::cli
