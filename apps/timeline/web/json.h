// Just enough JSON to write: objects and arrays in the order they are added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace timeline {

std::string JsonText(std::string_view text);

class JsonObject {
 public:
  JsonObject& Raw(std::string_view name, std::string_view json);
  JsonObject& Text(std::string_view name, std::string_view text) {
    return Raw(name, JsonText(text));
  }
  JsonObject& Number(std::string_view name, std::int64_t number) {
    return Raw(name, std::to_string(number));
  }
  JsonObject& Decimal(std::string_view name, double number);
  JsonObject& Flag(std::string_view name, bool flag) { return Raw(name, flag ? "true" : "false"); }
  std::string str() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

class JsonArray {
 public:
  JsonArray& Raw(std::string_view json) {
    if (!text_.empty()) text_ += ',';
    text_ += json;
    return *this;
  }
  std::string str() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

}  // namespace timeline
