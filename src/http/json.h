// JSON for small bodies: a strict reader of objects, and the writing of strings.
//
// Strict means RFC 8259: no comments, no trailing commas, valid UTF-8, no lone surrogates. Nothing
// is built: the caller sees one member after the other. Boost.JSON does the parsing; nesting is
// bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sava::http {

enum class JsonKind : uint8_t {
  kString,
  kNumber,
  kOther,  // checked, not handed out
};

// A member of an object. Views end with the call that gets it, unless `in_text`.
struct JsonMember {
  std::string_view name;
  JsonKind kind = JsonKind::kOther;
  std::string_view value;  // a string decoded, a number as it is written
  bool in_text = false;    // the value is a piece of the text that is read
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text, size_t position = 0)
      : text_(text), position_(position) {}

  // What the next value begins with, after white space; '\0' at the end.
  char Peek();
  // Takes the character if it is next, after white space.
  bool Take(char c);
  bool AtEnd() { return Peek() == '\0' && position_ == text_.size(); }

  // Reads an object: calls visit(member) for each member, which says whether to go on.
  template <typename Visit>
  bool Object(const Visit& visit) {
    return Walk(
        [](const void* context, const JsonMember& member) -> bool {
          return (*static_cast<const Visit*>(context))(member);
        },
        &visit);
  }

  size_t position() const { return position_; }
  // The first thing that was wrong; false for convenience.
  bool Fail(std::string_view why) {
    if (error_.empty()) error_ = why;
    return false;
  }
  const std::string& error() const { return error_; }

 private:
  using Visitor = bool (*)(const void* context, const JsonMember& member);
  bool Walk(Visitor visitor, const void* context);

  std::string_view text_;
  size_t position_;
  std::string error_;
};

// The length of the UTF-8 character at the front of the text, 0 when it is not one.
size_t Utf8Length(std::string_view text);

// In quotes, escaped. Bytes that are not UTF-8 become U+FFFD, one each.
void AppendJson(std::string* out, std::string_view text);

}  // namespace sava::http
