// JSON form of replies. Recursion is bounded by the parser's limit on nesting.
#include "cli/client_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/text.h"

namespace sava::cli {
namespace {

// Length of the well-formed UTF-8 sequence at `pos` (no overlong forms, surrogates or code points
// past U+10FFFF), or 0.
size_t SequenceLength(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[pos + i]); };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const size_t left = text.size() - pos;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return left >= 2 && continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (left < 3 || !continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (left < 4 || !continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

void AppendString(std::string_view text, std::string* out) {
  const bool utf8 = IsUtf8(text);
  *out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
      case '\\':
        *out += '\\';
        *out += c;
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\r':
        *out += "\\r";
        break;
      case '\t':
        *out += "\\t";
        break;
      case '\b':
        *out += "\\b";
        break;
      case '\f':
        *out += "\\f";
        break;
      default:
        if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) {
          fmt::format_to(std::back_inserter(*out), "\\u{:04x}", byte);
        } else {
          *out += c;
        }
    }
  }
  *out += '"';
}

// RESP3 allows forms JSON does not know ("inf", "nan", "1.", ".5"): the shortest digits that read
// back as the same double stand for them.
void AppendDouble(const std::string& text, std::string* out) {
  double value = 0;
  if (base::ParseDouble(text, &value) && std::isfinite(value)) {
    fmt::format_to(std::back_inserter(*out), "{}", value);
  } else {
    AppendString(text, out);
  }
}

void Append(const Reply& reply, std::string* out);

void AppendKey(const Reply& key, std::string* out) {
  const bool is_text = key.type == ReplyType::kString || key.type == ReplyType::kStatus ||
                       key.type == ReplyType::kVerbatim || key.type == ReplyType::kBigNumber;
  if (is_text) return AppendString(key.text, out);
  std::string json;
  Append(key, &json);
  if (json.front() == '"') {
    *out += json;
  } else {
    AppendString(json, out);
  }
}

void AppendAggregate(const Reply& reply, std::string* out) {
  const bool is_map = reply.type == ReplyType::kMap;
  *out += is_map ? '{' : '[';
  for (size_t i = 0; i < reply.elements.size(); ++i) {
    if (!is_map) {
      if (i > 0) *out += ',';
      Append(reply.elements[i], out);
    } else if (i % 2 == 0) {
      if (i > 0) *out += ',';
      AppendKey(reply.elements[i], out);
      *out += ':';
    } else {
      Append(reply.elements[i], out);
    }
  }
  *out += is_map ? '}' : ']';
}

void Append(const Reply& reply, std::string* out) {
  switch (reply.type) {
    case ReplyType::kStatus:
    case ReplyType::kString:
    case ReplyType::kVerbatim:
    case ReplyType::kBigNumber:
      AppendString(reply.text, out);
      break;
    case ReplyType::kError:
      *out += "{\"error\":";
      AppendString(reply.text, out);
      *out += '}';
      break;
    case ReplyType::kInteger:
      *out += base::IntText(reply.integer);
      break;
    case ReplyType::kNil:
      *out += "null";
      break;
    case ReplyType::kDouble:
      AppendDouble(reply.text, out);
      break;
    case ReplyType::kBool:
      *out += reply.integer != 0 ? "true" : "false";
      break;
    default:
      AppendAggregate(reply, out);
  }
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    const size_t length = SequenceLength(text, pos);
    if (length == 0) return false;
    pos += length;
  }
  return true;
}

std::string JsonString(std::string_view text) {
  std::string out;
  AppendString(text, &out);
  return out;
}

std::string FormatJson(const Reply& reply) {
  std::string out;
  Append(reply, &out);
  return out;
}

}  // namespace sava::cli
