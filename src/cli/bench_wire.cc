#include "cli/bench_wire.h"

#include "base/text.h"

namespace sava::cli {
namespace {

constexpr size_t kMaxHeadBytes = size_t{64} << 10;
constexpr size_t kMaxReplyBytes = size_t{1} << 30;

void AppendNumber(uint64_t value, std::string* out) {
  char digits[20];
  out->append(digits, base::FormatUint(value, digits));
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

void AppendRespRequest(std::initializer_list<std::string_view> words, std::string* out) {
  out->push_back('*');
  AppendNumber(words.size(), out);
  for (const std::string_view word : words) {
    out->append("\r\n$");
    AppendNumber(word.size(), out);
    out->append("\r\n").append(word);
  }
  out->append("\r\n");
}

void AppendHttpRequest(const HttpHead& head, std::string_view method, std::string_view target,
                       std::string_view body, std::string* out) {
  out->append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ").append(head.host);
  if (!head.authorization.empty()) out->append("\r\nAuthorization: ").append(head.authorization);
  if (!body.empty()) {
    out->append("\r\nContent-Type: application/json\r\nContent-Length: ");
    AppendNumber(body.size(), out);
  }
  out->append("\r\n\r\n").append(body);
}

ReplyScanner::Status ReplyScanner::Scan(std::string_view bytes) {
  if (position_ == 0) {
    missing_ = 1;
    head_size_ = body_size_ = 0;
    is_error_ = false;
  }
  return wire_ == Wire::kResp ? ScanResp(bytes) : ScanHttp(bytes);
}

ReplyScanner::Status ReplyScanner::Done(size_t size) {
  size_ = size;
  position_ = 0;
  return Status::kReply;
}

ReplyScanner::Status ReplyScanner::ScanResp(std::string_view bytes) {
  while (missing_ > 0) {
    const size_t line_end = bytes.find("\r\n", position_);
    if (line_end == std::string_view::npos) return Status::kNeedMore;
    const char marker = bytes[position_];
    const std::string_view rest = bytes.substr(position_ + 1, line_end - position_ - 1);
    size_t next = line_end + 2;
    if (position_ == 0) is_error_ = marker == '-' || marker == '!';
    const bool is_bulk = marker == '$' || marker == '=' || marker == '!';
    const bool is_list = marker == '*' || marker == '~' || marker == '>' || marker == '%';
    if (is_bulk || is_list) {
      int64_t count = 0;
      if (!base::ParseInt(rest, &count) || count > static_cast<int64_t>(kMaxReplyBytes)) {
        return Status::kBroken;
      }
      if (is_list && count > 0) missing_ += static_cast<uint64_t>(count) * (marker == '%' ? 2 : 1);
      if (is_bulk && count >= 0) next += static_cast<size_t>(count) + 2;
    } else if (std::string_view("+-:_#,(").find(marker) == std::string_view::npos) {
      return Status::kBroken;
    }
    if (next > bytes.size()) return Status::kNeedMore;
    position_ = next;
    --missing_;
  }
  return Done(position_);
}

ReplyScanner::Status ReplyScanner::ScanHttp(std::string_view bytes) {
  if (head_size_ == 0) {
    const size_t blank = bytes.find("\r\n\r\n");
    if (blank == std::string_view::npos) {
      return bytes.size() > kMaxHeadBytes ? Status::kBroken : Status::kNeedMore;
    }
    const Status read = ReadHttpHead(bytes.substr(0, blank + 2));
    if (read == Status::kBroken) return read;
    head_size_ = blank + 4;
    position_ = head_size_;
  }
  if (bytes.size() - head_size_ < body_size_) return Status::kNeedMore;
  return Done(head_size_ + body_size_);
}

// "HTTP/1.1 204 No Content" and fields, of which only the length matters.
ReplyScanner::Status ReplyScanner::ReadHttpHead(std::string_view head) {
  if (!head.starts_with("HTTP/1.") || head.size() < 12) return Status::kBroken;
  is_error_ = head[9] != '2';
  const std::string_view status = head.substr(9, 3);
  bool has_length = status == "204" || status == "304";
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (!base::EqualsNoCase(line.substr(0, colon), "content-length")) continue;
    uint64_t length = 0;
    if (!base::ParseUint(Trimmed(line.substr(colon + 1)), &length)) return Status::kBroken;
    if (length > kMaxReplyBytes) return Status::kBroken;
    body_size_ = static_cast<size_t>(length);
    has_length = true;
  }
  return has_length ? Status::kReply : Status::kBroken;
}

std::string ReplyScanner::ErrorText(std::string_view reply) const {
  constexpr size_t kMaxText = 300;
  const std::string_view line = reply.substr(0, reply.find("\r\n"));
  if (wire_ == Wire::kResp) return std::string(line.substr(1, kMaxText));
  std::string text(line);
  if (body_size_ > 0) text.append(": ").append(Body(reply).substr(0, kMaxText));
  return text;
}

}  // namespace sava::cli
