// JSON for small bodies: a strict reader that walks a text in place, and the writing of strings.
//
// Strict means RFC 8259: no comments, no trailing commas, valid UTF-8, no lone surrogates. Nothing
// is built: the caller asks for what it expects next. Nesting is bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sava::http {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text, size_t position = 0)
      : text_(text), position_(position) {}

  // What the next value begins with, after white space; '\0' at the end.
  char Peek();
  // Takes the character if it is next, after white space.
  bool Take(char c);
  bool AtEnd() { return Peek() == '\0' && position_ == text_.size(); }

  // A string. *value points into the text, or into *scratch when it had escapes.
  bool String(std::string* scratch, std::string_view* value);
  // A number, as it is written.
  bool Number(std::string_view* text);
  // A value of any kind.
  bool Skip();

  // Reads an object: calls property(name) for each; it reads the value and says whether to go on.
  template <typename Property>
  bool Object(const Property& property) {
    if (!Take('{')) return Fail("an object is expected");
    if (Take('}')) return true;
    std::string scratch;
    do {
      std::string_view name;
      if (!String(&scratch, &name)) return false;
      if (!Take(':')) return Fail("a colon is expected");
      if (!property(name)) return false;
    } while (Take(','));
    return Take('}') || Fail("a comma or } is expected");
  }

  size_t position() const { return position_; }
  // The first thing that was wrong; false for convenience.
  bool Fail(std::string_view why) {
    if (error_.empty()) error_ = why;
    return false;
  }
  std::string_view error() const { return error_; }

 private:
  bool Unescape(std::string* out);
  bool HexCode(unsigned* code);
  bool SkipNested();
  bool Word(std::string_view word);

  std::string_view text_;
  size_t position_;
  std::string_view error_;
};

// The length of the UTF-8 character at the front of the text, 0 when it is not one.
size_t Utf8Length(std::string_view text);

// In quotes, escaped. Bytes that are not UTF-8 become U+FFFD, one each.
void AppendJson(std::string* out, std::string_view text);

}  // namespace sava::http
