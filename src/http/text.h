// Texts of HTTP besides JSON: percent-encoding, query parameters, Base64.
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

}  // namespace sava::http
