#include "web/json.h"

#include <fmt/format.h>

namespace timeline {

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 32) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

JsonObject& JsonObject::Raw(std::string_view name, std::string_view json) {
  if (!text_.empty()) text_ += ',';
  text_ += JsonText(name);
  text_ += ':';
  text_ += json;
  return *this;
}

JsonObject& JsonObject::Decimal(std::string_view name, double number) {
  return Raw(name, fmt::format("{:.3f}", number));
}

}  // namespace timeline
