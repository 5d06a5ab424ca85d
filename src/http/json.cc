#include "http/json.h"

#include <algorithm>

namespace sava::http {

namespace {

constexpr size_t kMaxDepth = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void AppendUtf8(std::string* out, unsigned code) {
  const auto add = [out](unsigned byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

// Stands for itself within quotes.
bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
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

bool JsonReader::String(std::string* scratch, std::string_view* value) {
  if (!Take('"')) return Fail("a string is expected");
  const size_t start = position_;
  size_t copied = start;
  bool escaped = false;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (IsPlain(c)) {
      ++position_;
    } else if (c == '"') {
      const std::string_view rest = text_.substr(copied, position_ - copied);
      if (escaped) scratch->append(rest);
      *value = escaped ? std::string_view(*scratch) : rest;
      ++position_;
      return true;
    } else if (c == '\\') {
      if (!escaped) scratch->clear();
      escaped = true;
      scratch->append(text_.substr(copied, position_ - copied));
      if (!Unescape(scratch)) return false;
      copied = position_;
    } else {
      const size_t length =
          static_cast<unsigned char>(c) < 0x20 ? 0 : Utf8Length(text_.substr(position_));
      if (length == 0) {
        return Fail(static_cast<unsigned char>(c) < 0x20 ? "a string holds a control character"
                                                         : "a string is not UTF-8");
      }
      position_ += length;
    }
  }
  return Fail("a string has no end");
}

bool JsonReader::HexCode(unsigned* code) {
  if (text_.size() - position_ < 4) return Fail("an escape is not complete");
  *code = 0;
  for (size_t i = 0; i < 4; ++i) {
    const char c = text_[position_ + i];
    const unsigned digit = IsDigit(c)             ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                           : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                                  : 16U;
    if (digit == 16) return Fail("an escape is not four hexadecimal digits");
    *code = *code * 16 + digit;
  }
  position_ += 4;
  return true;
}

// At a backslash.
bool JsonReader::Unescape(std::string* out) {
  static constexpr std::string_view kLetters = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (text_.size() - position_ < 2) return Fail("an escape is not complete");
  const char c = text_[position_ + 1];
  position_ += 2;
  if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
    out->push_back(kMeanings[at]);
    return true;
  }
  if (c != 'u') return Fail("an escape is not known");
  unsigned code;
  if (!HexCode(&code)) return false;
  if (code >= 0xdc00 && code <= 0xdfff) return Fail("a surrogate stands alone");
  if (code >= 0xd800 && code <= 0xdbff) {
    unsigned low = 0;
    if (text_.substr(position_, 2) != "\\u") return Fail("a surrogate stands alone");
    position_ += 2;
    if (!HexCode(&low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return Fail("a surrogate stands alone");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  AppendUtf8(out, code);
  return true;
}

bool JsonReader::Number(std::string_view* text) {
  static_cast<void>(Peek());
  const size_t start = position_;
  const auto digits = [this] {
    const size_t from = position_;
    while (position_ < text_.size() && IsDigit(text_[position_])) ++position_;
    return position_ > from;
  };
  const auto one_of = [this](std::string_view set) {
    if (position_ == text_.size() || set.find(text_[position_]) == std::string_view::npos) {
      return false;
    }
    ++position_;
    return true;
  };
  one_of("-");
  const bool zero = one_of("0");
  if (!zero && !digits()) return Fail("a number is expected");
  if (one_of(".") && !digits()) return Fail("a number ends with its point");
  if (one_of("eE")) {
    one_of("+-");
    if (!digits()) return Fail("a number has an empty exponent");
  }
  *text = text_.substr(start, position_ - start);
  return true;
}

bool JsonReader::Word(std::string_view word) {
  if (text_.substr(position_, word.size()) != word) return Fail("a value is expected");
  position_ += word.size();
  return true;
}

bool JsonReader::Skip() {
  std::string scratch;
  std::string_view value;
  switch (Peek()) {
    case '"':
      return String(&scratch, &value);
    case 't':
      return Word("true");
    case 'f':
      return Word("false");
    case 'n':
      return Word("null");
    case '{':
    case '[':
      return SkipNested();
    default:
      return Number(&value);
  }
}

// An array or object: its open brackets are kept on a stack of bounded depth.
bool JsonReader::SkipNested() {
  char open[kMaxDepth];
  size_t depth = 0;
  std::string scratch;
  std::string_view name;
  const auto read_name = [&] {
    if (!String(&scratch, &name)) return false;
    return Take(':') || Fail("a colon is expected");
  };
  do {
    // A value begins here.
    const char c = Peek();
    if (c == '{' || c == '[') {
      if (depth == kMaxDepth) return Fail("the nesting is too deep");
      ++position_;
      open[depth++] = c;
      if (!Take(c == '{' ? '}' : ']')) {
        if (c == '{' && !read_name()) return false;
        continue;
      }
      --depth;
    } else if (!Skip()) {
      return false;
    }
    // A value ended here: either another follows, or what holds it ends too.
    while (depth > 0 && !Take(',')) {
      if (!Take(open[depth - 1] == '{' ? '}' : ']')) {
        return Fail("a comma or the end of an array or object is expected");
      }
      --depth;
    }
    if (depth > 0 && open[depth - 1] == '{' && !read_name()) return false;
  } while (depth > 0);
  return true;
}

void AppendJson(std::string* out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  size_t i = 0;
  while (i < text.size()) {
    const size_t start = i;
    while (i < text.size() && IsPlain(text[i])) ++i;
    out->append(text.substr(start, i - start));
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
