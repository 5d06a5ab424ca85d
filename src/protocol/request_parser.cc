#include "protocol/request_parser.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "base/trim.h"

namespace sava::protocol {

namespace {

constexpr size_t kMaxInline = 64 * 1024;
constexpr int64_t kMaxArguments = INT32_MAX;
constexpr int64_t kMaxArgumentsUnauthenticated = 10;
constexpr int64_t kMaxBulkUnauthenticated = 16384;
constexpr size_t kKeptSpans = 1024;

// The position of "\r" that ends the line beginning at `from`, or npos. The byte after it must be
// present (it is "\n" in a well-formed request and skipped unseen, as Redis does).
size_t LineEnd(std::string_view bytes, size_t from) {
  if (from >= bytes.size()) return std::string_view::npos;
  const void* found = memchr(bytes.data() + from, '\r', bytes.size() - from);
  if (found == nullptr) return std::string_view::npos;
  const auto at = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
  return at + 1 < bytes.size() ? at : std::string_view::npos;
}

// Digits up to "\r\n" at p (within end); the common small case of a length line.
// Returns the byte after the line, or nullptr when it is not the simple form or incomplete.
inline const char* SmallNumber(const char* p, const char* end, uint32_t* value) {
  uint32_t v = 0;
  const char* limit = std::min(end, p + 8);
  const char* start = p;
  while (p < limit && static_cast<unsigned char>(*p - '0') <= 9) {
    v = v * 10 + static_cast<uint32_t>(*p - '0');
    ++p;
  }
  if (p == start || end - p < 2 || p[0] != '\r' || p[1] != '\n') return nullptr;
  if (*start == '0' && p - start > 1) return nullptr;
  *value = v;
  return p + 2;
}

}  // namespace

void RequestParser::Reset() {
  remaining_ = -1;
  position_ = 0;
  bulk_ = -1;
  base::ClearAndTrim(&spans_, kKeptSpans);
  missing_ = 0;
}

RequestParser::Outcome RequestParser::Fail(std::string text) {
  error_ = "Protocol error: " + std::move(text);
  return Outcome::kError;
}

RequestParser::Outcome RequestParser::Next(std::string_view bytes, const ParseLimits& limits,
                                           std::vector<std::string_view>* args, size_t* consumed) {
  missing_ = 0;
  if (bytes.empty()) return Outcome::kMore;
  if (remaining_ < 0 && bytes[0] != '*') return Inline(bytes, args, consumed);
  if (remaining_ >= 0) return Slow(bytes, limits, args, consumed);
  return Multibulk(bytes, limits, args, consumed);
}

// A whole well-formed command with ordinary lengths, in one pass; anything else goes to Slow.
RequestParser::Outcome RequestParser::Multibulk(std::string_view bytes, const ParseLimits& limits,
                                                std::vector<std::string_view>* args,
                                                size_t* consumed) {
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  uint32_t count;
  p = SmallNumber(p + 1, end, &count);
  if (p == nullptr || count == 0 || count > 1024 || !limits.authenticated) {
    return Slow(bytes, limits, args, consumed);
  }
  const size_t first = args->size();
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t length;
    if (p == end || *p != '$') break;
    p = SmallNumber(p + 1, end, &length);
    if (p == nullptr || length > limits.max_bulk || static_cast<size_t>(end - p) < length + 2ULL) {
      break;
    }
    args->emplace_back(p, length);
    p += length + 2;
  }
  if (args->size() - first == count) {
    *consumed = static_cast<size_t>(p - bytes.data());
    return Outcome::kCommand;
  }
  args->resize(first);
  return Slow(bytes, limits, args, consumed);
}

RequestParser::Outcome RequestParser::Slow(std::string_view bytes, const ParseLimits& limits,
                                           std::vector<std::string_view>* args, size_t* consumed) {
  if (remaining_ < 0) {
    const size_t end = LineEnd(bytes, 0);
    if (end == std::string_view::npos) {
      if (bytes.size() > kMaxInline) return Fail("too big mbulk count string");
      return Outcome::kMore;
    }
    int64_t count;
    if (!base::ParseInt(bytes.substr(1, end - 1), &count) || count > kMaxArguments) {
      return Fail("invalid multibulk length");
    }
    if (count > kMaxArgumentsUnauthenticated && !limits.authenticated) {
      return Fail("unauthenticated multibulk length");
    }
    if (count <= 0) {
      *consumed = end + 2;
      return Outcome::kEmpty;
    }
    remaining_ = count;
    position_ = end + 2;
    bulk_ = -1;
    spans_.clear();
  }
  while (remaining_ > 0) {
    if (bulk_ < 0) {
      const size_t end = LineEnd(bytes, position_);
      if (end == std::string_view::npos) {
        if (bytes.size() - std::min<size_t>(position_, bytes.size()) > kMaxInline) {
          return Fail("too big bulk count string");
        }
        return Outcome::kMore;
      }
      if (bytes[position_] != '$') {
        std::string text = "expected '$', got '";
        text += bytes[position_];
        text += "'";
        return Fail(std::move(text));
      }
      int64_t length;
      if (!base::ParseInt(bytes.substr(position_ + 1, end - position_ - 1), &length) ||
          length < 0 || length > limits.max_bulk) {
        return Fail("invalid bulk length");
      }
      if (length > kMaxBulkUnauthenticated && !limits.authenticated) {
        return Fail("unauthenticated bulk length");
      }
      bulk_ = length;
      position_ = end + 2;
    }
    const uint64_t need = position_ + static_cast<uint64_t>(bulk_) + 2;
    if (bytes.size() < need) {
      missing_ = need - bytes.size();
      return Outcome::kMore;
    }
    spans_.push_back({position_, static_cast<uint64_t>(bulk_)});
    position_ = need;
    bulk_ = -1;
    --remaining_;
  }
  for (const Span& span : spans_) args->push_back(bytes.substr(span.offset, span.size));
  *consumed = position_;
  Reset();
  return Outcome::kCommand;
}

RequestParser::Outcome RequestParser::Inline(std::string_view bytes,
                                             std::vector<std::string_view>* args,
                                             size_t* consumed) {
  const size_t newline = bytes.find('\n');
  if (newline == std::string_view::npos) {
    if (bytes.size() > kMaxInline) return Fail("too big inline request");
    return Outcome::kMore;
  }
  std::string_view line = bytes.substr(0, newline);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  *consumed = newline + 1;
  auto words = base::SplitArgs(line);
  if (!words) return Fail("unbalanced quotes in request");
  if (words->empty()) return Outcome::kEmpty;
  // Kept until the next Reset-free inline command of this connection has been run: the batch runs
  // an inline command before the same connection's next one is parsed.
  inline_words_ = std::move(*words);
  for (const std::string& word : inline_words_) args->push_back(word);
  return Outcome::kCommand;
}

}  // namespace sava::protocol
