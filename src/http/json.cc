#include "http/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <cstring>
#include <functional>

namespace sava::http {

namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 65;  // the object that is read counts

// Stands for itself within quotes.
bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// How many of the first characters stand for themselves; eight are looked at together.
size_t PlainPrefix(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kTops = 0x80 * kOnes;
  // Of bytes below 0x80: the top bit where the byte is `value`; where it is below 0x20.
  const auto equal = [](uint64_t word, uint64_t value) {
    return ((word ^ value * kOnes) - kOnes) & kTops;
  };
  size_t i = 0;
  for (uint64_t word = 0; i + sizeof word <= text.size(); i += sizeof word) {
    memcpy(&word, text.data() + i, sizeof word);
    const uint64_t special = word | equal(word, '"') | equal(word, '\\') | (word - 0x20 * kOnes);
    if ((special & kTops) != 0) break;
  }
  while (i < text.size() && IsPlain(text[i])) ++i;
  return i;
}

// A string that arrives in parts: a piece of the text read when it came in one part without
// escapes, a copy otherwise.
class Assembled {
 public:
  void Add(json::string_view part) {
    copy_.append(part.data(), part.size());
    copied_ = true;
  }
  void End(json::string_view last, std::string_view text) {
    const std::less_equal<> before;
    in_text_ = !copied_ && before(text.data(), last.data()) &&
               before(last.data() + last.size(), text.data() + text.size());
    if (!in_text_) Add(last);
    view_ = in_text_ ? std::string_view(last.data(), last.size()) : std::string_view(copy_);
  }
  void Clear() {
    copy_.clear();
    copied_ = false;
  }
  std::string_view view() const { return view_; }
  bool in_text() const { return in_text_; }

 private:
  std::string copy_;
  bool copied_ = false;
  bool in_text_ = false;
  std::string_view view_;
};

// What the parser calls: finds the members of the outermost object.
class Members {
 public:
  using Visitor = bool (*)(const void* context, const JsonMember& member);
  using Error = json::error_code;
  using View = json::string_view;

  // Bodies are small already.
  // NOLINTBEGIN(readability-identifier-naming)
  static constexpr size_t max_object_size = SIZE_MAX;
  static constexpr size_t max_array_size = SIZE_MAX;
  static constexpr size_t max_key_size = SIZE_MAX;
  static constexpr size_t max_string_size = SIZE_MAX;
  // NOLINTEND(readability-identifier-naming)

  Members(std::string_view text, Visitor visitor, const void* context)
      : text_(text), visitor_(visitor), context_(context) {}

  bool on_document_begin(Error& /*error*/) { return true; }
  bool on_document_end(Error& /*error*/) { return true; }
  bool on_object_begin(Error& error) { return Begin(error); }
  bool on_object_end(size_t /*size*/, Error& /*error*/) { return End(); }
  bool on_array_begin(Error& error) { return Begin(error); }
  bool on_array_end(size_t /*size*/, Error& /*error*/) { return End(); }
  bool on_key_part(View part, size_t /*size*/, Error& /*error*/) {
    if (depth_ == 1) name_.Add(part);
    return true;
  }
  bool on_key(View last, size_t /*size*/, Error& /*error*/) {
    if (depth_ == 1) name_.End(last, text_);
    return true;
  }
  bool on_string_part(View part, size_t /*size*/, Error& /*error*/) {
    if (depth_ == 1) value_.Add(part);
    return true;
  }
  bool on_string(View last, size_t /*size*/, Error& error) {
    if (depth_ == 1) value_.End(last, text_);
    return Member(JsonKind::kString, error);
  }
  // Only when a text comes in pieces.
  bool on_number_part(View part, Error& /*error*/) {
    if (depth_ == 1) value_.Add(part);
    return true;
  }
  bool on_int64(int64_t /*value*/, View last, Error& error) { return Number(last, error); }
  bool on_uint64(uint64_t /*value*/, View last, Error& error) { return Number(last, error); }
  bool on_double(double /*value*/, View last, Error& error) { return Number(last, error); }
  bool on_bool(bool /*value*/, Error& error) { return Member(JsonKind::kOther, error); }
  bool on_null(Error& error) { return Member(JsonKind::kOther, error); }
  bool on_comment_part(View /*part*/, Error& /*error*/) { return true; }
  bool on_comment(View /*last*/, Error& /*error*/) { return true; }

 private:
  bool Begin(Error& error) {
    const bool goes_on = Member(JsonKind::kOther, error);
    ++depth_;
    return goes_on;
  }
  bool End() {
    --depth_;
    return true;
  }
  bool Number(View last, Error& error) {
    if (depth_ == 1) value_.End(last, text_);
    return Member(JsonKind::kNumber, error);
  }
  // A value begins or is complete.
  bool Member(JsonKind kind, Error& error) {
    if (depth_ != 1) return true;
    JsonMember member{name_.view(), kind, {}, false};
    if (kind != JsonKind::kOther) {
      member.value = value_.view();
      member.in_text = value_.in_text();
    }
    const bool goes_on = visitor_(context_, member);
    if (!goes_on) error = json::error::exception;
    name_.Clear();
    value_.Clear();
    return goes_on;
  }

  const std::string_view text_;
  const Visitor visitor_;
  const void* const context_;
  size_t depth_ = 0;
  Assembled name_;
  Assembled value_;
};

std::string Explain(json::error_code code, size_t position) {
  switch (static_cast<json::error>(code.value())) {
    case json::error::incomplete:
      return "the text ends within the object";
    case json::error::too_deep:
      return "the nesting is too deep";
    case json::error::exponent_overflow:
      return "the exponent of a number is too large";
    case json::error::illegal_leading_surrogate:
    case json::error::illegal_trailing_surrogate:
      return "a surrogate stands alone";
    case json::error::expected_hex_digit:
      return "an escape is not four hexadecimal digits";
    default:
      return fmt::format("not valid JSON at byte {}", position);
  }
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool too_large = first == 0xf4 && second > 0x8f;
  return too_long || surrogate || too_large ? 0 : length;
}

char JsonReader::Peek() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
    ++position_;
  }
  return '\0';
}

bool JsonReader::Take(char c) {
  if (Peek() != c || position_ == text_.size()) return false;
  ++position_;
  return true;
}

bool JsonReader::Walk(Visitor visitor, const void* context) {
  if (Peek() != '{') return Fail("an object is expected");
  json::parse_options options;
  options.max_depth = kMaxDepth;
  const std::string_view rest = text_.substr(position_);
  json::basic_parser<Members> parser(options, rest, visitor, context);
  json::error_code code;
  position_ += parser.write_some(false, rest.data(), rest.size(), code);
  return !code.failed() || Fail(Explain(code, position_));
}

void AppendJson(std::string* out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  size_t i = 0;
  while (i < text.size()) {
    const size_t plain = PlainPrefix(text.substr(i));
    out->append(text, i, plain);
    i += plain;
    if (i == text.size()) break;
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      const size_t length = Utf8Length(text.substr(i));
      out->append(length > 0 ? text.substr(i, length) : "\xef\xbf\xbd");
      i += std::max<size_t>(length, 1);
      continue;
    }
    out->push_back('\\');
    if (c == '"' || c == '\\') {
      out->push_back(c);
    } else if (c == '\n') {
      out->push_back('n');
    } else {
      out->append("u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    }
    ++i;
  }
  out->push_back('"');
}

}  // namespace sava::http
