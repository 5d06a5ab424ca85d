// Texts of HTTP besides JSON: percent-encoding, query parameters, Base64, and RESP replies as the
// routes read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sava::http {

// Decodes %XX (and '+' as a blank, if asked). *value points into the text when nothing had to be
// decoded, into *scratch otherwise. False when a '%' is not followed by two hexadecimal digits.
bool PercentDecode(std::string_view text, bool plus_is_blank, std::string* scratch,
                   std::string_view* value);

// Walks name=value pairs of a query.
class QueryReader {
 public:
  explicit QueryReader(std::string_view query) : rest_(query) {}
  enum class Outcome : uint8_t { kPair, kEnd, kBad };
  Outcome Next(std::string_view* name, std::string_view* value);

 private:
  std::string_view rest_;
  std::string name_;
  std::string value_;
};

// False when the text is not Base64 (padded or not).
bool Base64Decode(std::string_view text, std::string* out);

// Walks a RESP2 reply. Each call takes the next item if it is of that kind.
class ReplyReader {
 public:
  explicit ReplyReader(std::string_view reply) : rest_(reply) {}
  bool Int(int64_t* value) { return Header(':', value); }
  bool Array(int64_t* count) { return Header('*', count); }
  bool Bulk(std::string_view* value);
  bool Simple(std::string_view* text) { return Line('+', text); }
  // "WRONGTYPE Operation against …"
  bool Error(std::string_view* text) { return Line('-', text); }

 private:
  bool Line(char kind, std::string_view* text);
  bool Header(char kind, int64_t* value);

  std::string_view rest_;
};

}  // namespace sava::http
