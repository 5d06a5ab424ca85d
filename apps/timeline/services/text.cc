#include "services/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace timeline {
namespace {

// The length of the valid UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t SequenceLength(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  auto from = text.find_first_not_of(kSpace);
  if (from == std::string_view::npos) return "";
  return std::string(text.substr(from, text.find_last_not_of(kSpace) - from + 1));
}

std::string Lowered(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

bool IsCleanText(std::string_view text) {
  while (!text.empty()) {
    auto length = SequenceLength(text);
    if (length == 0) return false;
    char c = text[0];
    if (length == 1 && ((c < 32 && c != '\n' && c != '\r' && c != '\t') || c == 127)) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool CheckText(const char* name, const std::string& text, std::size_t least, std::size_t most,
               std::string* message) {
  if (text.size() < least) {
    *message = least == 1 ? fmt::format("The {} is empty.", name)
                          : fmt::format("The {} needs at least {} characters.", name, least);
  } else if (text.size() > most) {
    *message =
        fmt::format("The {} is too long: {} bytes, {} are allowed.", name, text.size(), most);
  } else if (!IsCleanText(text)) {
    *message = fmt::format("The {} is not valid text.", name);
  } else {
    return true;
  }
  return false;
}

bool IsEmail(std::string_view text) {
  auto at = text.find('@');
  if (text.size() > 254 || at == 0 || at == std::string_view::npos) return false;
  auto host = text.substr(at + 1);
  if (host.find('@') != std::string_view::npos || host.find('.') == std::string_view::npos ||
      host.front() == '.' || host.back() == '.') {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > 32 && c < 127 && c != '<' && c != '>' && c != '"' && c != '\'' && c != ',';
  });
}

bool IsWebAddress(std::string_view text) {
  if (text.rfind("http://", 0) != 0 && text.rfind("https://", 0) != 0) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > 32 && c < 127 && c != '<' && c != '>' && c != '"' && c != '\'' && c != '\\';
  });
}

}  // namespace timeline
