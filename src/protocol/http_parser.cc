#include "protocol/http_parser.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace sava::protocol {

namespace {

constexpr size_t kMaxLine = 8 << 10;
constexpr size_t kMaxChunkLine = 256;
constexpr uint16_t kMaxFields = 100;

enum CharClass : uint8_t {
  kTokenChar = 1,   // of a method or a field name
  kValueChar = 2,   // of a field value
  kTargetChar = 4,  // of a request target
};

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> table{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool control = c < 0x20 || c == 0x7f;
    if (!control || c == '\t') table[c] |= kValueChar;
    if (!control && c != ' ' && c != '#') table[c] |= kTargetChar;
    const bool alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (alphanumeric) table[c] |= kTokenChar;
  }
  for (const char c :
       {'!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~'}) {
    table[static_cast<unsigned char>(c)] |= kTokenChar;
  }
  return table;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

bool AllOf(std::string_view text, uint8_t wanted) {
  uint8_t common = wanted;
  for (const char c : text) common &= kClasses[static_cast<unsigned char>(c)];
  return common == wanted;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct MethodRow {
  std::string_view name;
  HttpMethod method;
};
constexpr MethodRow kMethods[] = {
    {"POST", HttpMethod::kPost},       {"GET", HttpMethod::kGet},
    {"DELETE", HttpMethod::kDelete},   {"HEAD", HttpMethod::kHead},
    {"PUT", HttpMethod::kPut},         {"PATCH", HttpMethod::kPatch},
    {"OPTIONS", HttpMethod::kOptions}, {"TRACE", HttpMethod::kTrace},
};

}  // namespace

std::string_view MethodName(HttpMethod method) {
  for (const MethodRow& row : kMethods) {
    if (row.method == method) return row.name;
  }
  return "";
}

void HttpParser::Reset() {
  stage_ = Stage::kLine;
  seen_ = 0;
  chunked_ = has_length_ = close_ = keep_alive_ = blank_line_ = absolute_ = false;
  fields_ = 0;
  position_ = body_at_ = body_size_ = trailers_ = 0;
  length_ = missing_ = 0;
  parts_ = {};
  request_ = {};
}

bool HttpParser::Fail(int status, std::string_view detail) {
  status_ = static_cast<int16_t>(status);
  detail_ = detail;
  return false;
}

HttpParser::Outcome HttpParser::Next(char* bytes, size_t size, const HttpLimits& limits) {
  dropped_ = 0;
  missing_ = 0;
  if (stage_ < Stage::kBody) {
    const Outcome outcome = ReadHead(bytes, size, limits);
    if (outcome != Outcome::kRequest) return outcome;
  }
  PointInto(bytes);
  const Outcome outcome = chunked_ ? ReadChunks(bytes, size, limits) : ReadBody(bytes, size);
  if (outcome == Outcome::kRequest) {
    request_.body = {bytes + body_at_, body_size_};
    stage_ = Stage::kDone;
  }
  return outcome;
}

void HttpParser::PointInto(const char* bytes) {
  const auto view = [&](Part part) {
    return std::string_view(bytes + parts_[part].offset, parts_[part].size);
  };
  request_.path = parts_[kPath].size == 0 ? std::string_view("/") : view(kPath);
  request_.query = view(kQuery);
  request_.host = view(kHost);
  request_.content_type = view(kContentType);
  request_.content_encoding = view(kContentEncoding);
  request_.authorization = view(kAuthorization);
  request_.origin = view(kOrigin);
  request_.fetch_site = view(kFetchSite);
  request_.accept = view(kAccept);
}

// ---- lines ----

// The line at position_, without its end, and moves behind it. It must end before `limit`.
HttpParser::Line HttpParser::NextLine(const char* bytes, size_t size, size_t limit, int status,
                                      std::string_view* line) {
  const size_t end = std::min(size, limit);
  const char* start = bytes + position_;
  const char* found =
      end > position_ ? static_cast<const char*>(memchr(start, '\n', end - position_)) : nullptr;
  if (found == nullptr) {
    if (size < limit) return Line::kPartial;
    Fail(status, status == 414   ? "The request line is too long."
                 : status == 431 ? "The header fields are too large."
                                 : "A chunk's header is too long.");
    return Line::kBad;
  }
  if (found == start || found[-1] != '\r') {
    Fail(400, "A line does not end with CR LF.");
    return Line::kBad;
  }
  *line = {start, static_cast<size_t>(found - start) - 1};
  position_ += line->size() + 2;
  return Line::kFound;
}

HttpParser::Outcome HttpParser::ReadHead(const char* bytes, size_t size, const HttpLimits& limits) {
  while (true) {
    std::string_view line;
    const bool first = stage_ == Stage::kLine;
    const size_t limit = first ? std::min(limits.max_head, position_ + kMaxLine) : limits.max_head;
    switch (NextLine(bytes, size, limit, first ? 414 : 431, &line)) {
      case Line::kPartial:
        return Outcome::kMore;
      case Line::kBad:
        return Outcome::kError;
      case Line::kFound:
        break;
    }
    if (first) {
      // One empty line before a request is forgiven: some clients end a body with one.
      if (line.empty() && !blank_line_) {
        blank_line_ = true;
        continue;
      }
      if (!ReadRequestLine(bytes, line)) return Outcome::kError;
      stage_ = Stage::kFields;
    } else if (line.empty()) {
      return EndHead(limits) ? Outcome::kRequest : Outcome::kError;
    } else if (!ReadField(bytes, line)) {
      return Outcome::kError;
    }
  }
}

bool HttpParser::ReadRequestLine(const char* bytes, std::string_view line) {
  const size_t space = line.find(' ');
  const size_t last = line.rfind(' ');
  if (space == std::string_view::npos || space == last || space == 0) {
    return Fail(400, "The request line is not METHOD TARGET HTTP/1.1.");
  }
  const std::string_view method = line.substr(0, space);
  const std::string_view target = line.substr(space + 1, last - space - 1);
  const std::string_view version = line.substr(last + 1);
  if (!AllOf(method, kTokenChar)) return Fail(400, "The method is not a word.");
  if (version.size() != 8 || !version.starts_with("HTTP/") || version[6] != '.' ||
      version[5] < '0' || version[5] > '9' || version[7] < '0' || version[7] > '9') {
    return Fail(400, "The request line is not METHOD TARGET HTTP/1.1.");
  }
  if (version[5] != '1') return Fail(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
  request_.http10 = version[7] == '0';
  const auto* row = std::find_if(std::begin(kMethods), std::end(kMethods),
                                 [&](const MethodRow& known) { return known.name == method; });
  if (row == std::end(kMethods)) return Fail(501, "The method is not known here.");
  request_.method = row->method;
  return ReadTarget(bytes, target);
}

bool HttpParser::ReadTarget(const char* bytes, std::string_view target) {
  if (target.empty() || !AllOf(target, kTargetChar)) {
    return Fail(400, "The request target has characters that must be percent-encoded.");
  }
  const auto span = [&](std::string_view text) {
    return Span{static_cast<uint32_t>(text.data() - bytes), static_cast<uint32_t>(text.size())};
  };
  if (target.front() != '/') {
    const bool asterisk = target == "*" && request_.method == HttpMethod::kOptions;
    const size_t scheme = base::EqualsNoCase(target.substr(0, 7), "http://")    ? 7
                          : base::EqualsNoCase(target.substr(0, 8), "https://") ? 8
                                                                                : 0;
    if (!asterisk && scheme == 0) return Fail(400, "The request target is not a path.");
    if (!asterisk) {
      const std::string_view rest = target.substr(scheme);
      const std::string_view host = rest.substr(0, rest.find_first_of("/?"));
      if (host.empty() || host.find('@') != std::string_view::npos) {
        return Fail(400, "The request target does not name a host.");
      }
      absolute_ = true;
      parts_[kHost] = span(host);
      target = rest.substr(host.size());
    }
  }
  const size_t mark = std::min(target.find('?'), target.size());
  parts_[kPath] = span(target.substr(0, mark));
  if (mark < target.size()) parts_[kQuery] = span(target.substr(mark + 1));
  return true;
}

// ---- fields ----

bool HttpParser::ReadField(const char* bytes, std::string_view line) {
  if (++fields_ > kMaxFields) return Fail(431, "There are too many header fields.");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || !AllOf(line.substr(0, colon), kTokenChar)) {
    return Fail(400, "A header field is not NAME: VALUE.");
  }
  const std::string_view value = Trim(line.substr(colon + 1));
  if (!AllOf(value, kValueChar)) return Fail(400, "A header field holds control characters.");
  return ReadKnownField(bytes, line.substr(0, colon), value);
}

bool HttpParser::ReadKnownField(const char* bytes, std::string_view name, std::string_view value) {
  const auto is = [name](std::string_view known) { return base::EqualsNoCase(name, known); };
  switch (name.size()) {
    case 4:
      if (is("host")) return SetOnce(kHost, bytes, value);
      return true;
    case 6:
      if (is("origin")) return SetOnce(kOrigin, bytes, value);
      // A list may come in several fields; the first says enough.
      if (is("accept") && parts_[kAccept].size == 0) return SetOnce(kAccept, bytes, value);
      if (is("expect")) {
        if (!base::EqualsNoCase(value, "100-continue")) {
          return Fail(417, "The only expectation met here is 100-continue.");
        }
        request_.expects_continue = true;
      }
      return true;
    case 10:
      if (is("connection")) ReadConnection(value);
      return true;
    case 12:
      if (is("content-type")) return SetOnce(kContentType, bytes, value);
      return true;
    case 13:
      if (is("authorization")) return SetOnce(kAuthorization, bytes, value);
      return true;
    case 14:
      if (is("content-length")) return ReadLength(value);
      if (is("sec-fetch-site")) return SetOnce(kFetchSite, bytes, value);
      return true;
    case 16:
      if (is("content-encoding")) return SetOnce(kContentEncoding, bytes, value);
      return true;
    case 17:
      if (is("transfer-encoding")) {
        if (chunked_) return Fail(400, "Transfer-Encoding is given twice.");
        if (!base::EqualsNoCase(value, "chunked")) {
          return Fail(501, "The only transfer coding known here is chunked.");
        }
        chunked_ = true;
      }
      return true;
    default:
      return true;
  }
}

bool HttpParser::SetOnce(Part part, const char* bytes, std::string_view value) {
  const auto bit = static_cast<uint16_t>(1U << part);
  if ((seen_ & bit) != 0) return Fail(400, "A header field that may stand once is given twice.");
  seen_ |= bit;
  if (part == kHost && absolute_) return true;
  parts_[part] = {static_cast<uint32_t>(value.data() - bytes), static_cast<uint32_t>(value.size())};
  return true;
}

bool HttpParser::ReadLength(std::string_view value) {
  uint64_t length = 0;
  if (value.empty() || value.size() > 18) return Fail(400, "Content-Length is not a number.");
  for (const char c : value) {
    if (c < '0' || c > '9') return Fail(400, "Content-Length is not a number.");
    length = length * 10 + static_cast<uint64_t>(c - '0');
  }
  if (has_length_ && length != length_) return Fail(400, "Content-Length is given twice.");
  has_length_ = true;
  length_ = length;
  return true;
}

void HttpParser::ReadConnection(std::string_view value) {
  while (!value.empty()) {
    const size_t comma = std::min(value.find(','), value.size());
    const std::string_view word = Trim(value.substr(0, comma));
    if (base::EqualsNoCase(word, "close")) close_ = true;
    if (base::EqualsNoCase(word, "keep-alive")) keep_alive_ = true;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
}

bool HttpParser::EndHead(const HttpLimits& limits) {
  if (!request_.http10 && (seen_ & (1U << kHost)) == 0) return Fail(400, "There is no Host field.");
  if (chunked_ && has_length_) {
    return Fail(400, "Content-Length and Transfer-Encoding exclude each other.");
  }
  if (chunked_ && request_.http10) return Fail(400, "HTTP/1.0 has no transfer codings.");
  if (length_ > limits.max_body) return Fail(413, "The body is larger than http-max-body.");
  request_.keep_alive = !close_ && (!request_.http10 || keep_alive_);
  request_.has_body = chunked_ || length_ > 0;
  if (request_.http10) request_.expects_continue = false;
  body_at_ = position_;
  stage_ = chunked_ ? Stage::kChunkSize : Stage::kBody;
  return true;
}

// ---- body ----

HttpParser::Outcome HttpParser::ReadBody(char* bytes, size_t size) {
  static_cast<void>(bytes);
  if (size - body_at_ < length_) {
    missing_ = length_ - (size - body_at_);
    return Outcome::kMore;
  }
  body_size_ = length_;
  position_ = body_at_ + body_size_;
  return Outcome::kRequest;
}

bool HttpParser::ReadChunkSize(std::string_view line, const HttpLimits& limits) {
  uint64_t length = 0;
  size_t digits = 0;
  while (digits < line.size() && HexDigit(line[digits]) >= 0) {
    if (digits == 15) return Fail(413, "The body is larger than http-max-body.");
    length = length * 16 + static_cast<uint64_t>(HexDigit(line[digits++]));
  }
  const std::string_view rest = Trim(line.substr(digits));
  if (digits == 0 || (!rest.empty() && rest.front() != ';') || !AllOf(rest, kValueChar)) {
    return Fail(400, "A chunk does not begin with its size.");
  }
  if (body_size_ > limits.max_body || length > limits.max_body - body_size_) {
    return Fail(413, "The body is larger than http-max-body.");
  }
  length_ = length;
  stage_ = length == 0 ? Stage::kTrailers : Stage::kChunkData;
  return true;
}

HttpParser::Outcome HttpParser::ReadChunks(char* bytes, size_t size, const HttpLimits& limits) {
  while (stage_ != Stage::kDone) {
    if (stage_ == Stage::kChunkData) {
      const auto part = static_cast<size_t>(std::min<uint64_t>(length_, size - position_));
      memmove(bytes + body_at_ + body_size_, bytes + position_, part);
      body_size_ += part;
      position_ += part;
      length_ -= part;
      missing_ = length_;
      if (length_ > 0) return MoreChunks(bytes, size);
      stage_ = Stage::kChunkEnd;
      continue;
    }
    std::string_view line;
    const bool trailer = stage_ == Stage::kTrailers;
    const size_t head_room = limits.max_head > trailers_ ? limits.max_head - trailers_ : 0;
    const size_t room = trailer ? head_room : kMaxChunkLine;
    switch (NextLine(bytes, size, position_ + room, trailer ? 431 : 400, &line)) {
      case Line::kPartial:
        return MoreChunks(bytes, size);
      case Line::kBad:
        return Outcome::kError;
      case Line::kFound:
        break;
    }
    if (trailer) {
      trailers_ += line.size() + 2;
      if (line.empty()) return Outcome::kRequest;
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos || colon == 0 ||
          !AllOf(line.substr(0, colon), kTokenChar) || !AllOf(line.substr(colon + 1), kValueChar)) {
        Fail(400, "A trailer field is not NAME: VALUE.");
        return Outcome::kError;
      }
    } else if (stage_ == Stage::kChunkEnd) {
      if (!line.empty()) {
        Fail(400, "A chunk is longer than its size.");
        return Outcome::kError;
      }
      stage_ = Stage::kChunkSize;
    } else if (!ReadChunkSize(line, limits)) {
      return Outcome::kError;
    }
  }
  return Outcome::kRequest;
}

// What has been taken out of the middle is closed up, so that many small chunks need no more room
// than their bytes.
HttpParser::Outcome HttpParser::MoreChunks(char* bytes, size_t size) {
  const size_t body_end = body_at_ + body_size_;
  dropped_ = position_ - body_end;
  if (dropped_ > 0) memmove(bytes + body_end, bytes + position_, size - position_);
  position_ = body_end;
  return Outcome::kMore;
}

}  // namespace sava::protocol
