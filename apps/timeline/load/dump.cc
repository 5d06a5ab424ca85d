#include "load/dump.h"

#include <cstdio>
#include <ctime>

namespace timeline {
namespace {

void AppendUtf8(unsigned code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xC0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xE0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 63));
    *out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x110000) {
    *out += static_cast<char>(0xF0 | code >> 18);
    *out += static_cast<char>(0x80 | (code >> 12 & 63));
    *out += static_cast<char>(0x80 | (code >> 6 & 63));
    *out += static_cast<char>(0x80 | (code & 63));
  }
}

std::string Decode(std::string_view text) {
  static const std::map<std::string_view, char> kNamed = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto end = text[i] == '&' ? text.find(';', i) : std::string_view::npos;
    if (end == std::string_view::npos || end - i > 10) {
      out += text[i];
      continue;
    }
    auto name = text.substr(i + 1, end - i - 1);
    if (auto found = kNamed.find(name); found != kNamed.end()) {
      out += found->second;
    } else if (name.size() > 1 && name[0] == '#') {
      bool hex = name[1] == 'x';
      AppendUtf8(static_cast<unsigned>(std::strtoul(std::string(name.substr(hex ? 2 : 1)).c_str(),
                                                    nullptr, hex ? 16 : 10)),
                 &out);
    } else {
      out += text.substr(i, end - i + 1);
    }
    i = end;
  }
  return out;
}

}  // namespace

bool DumpReader::Next(std::map<std::string, std::string>* attributes) {
  while (std::getline(in_, line_)) {
    auto at = line_.find("<row ");
    if (at == std::string::npos) continue;
    attributes->clear();
    at += 5;
    while (true) {
      at = line_.find_first_not_of(' ', at);
      auto equals = line_.find("=\"", at);
      if (at == std::string::npos || equals == std::string::npos) break;
      auto end = line_.find('"', equals + 2);
      if (end == std::string::npos) break;
      (*attributes)[line_.substr(at, equals - at)] =
          Decode(std::string_view(line_).substr(equals + 2, end - equals - 2));
      at = end + 1;
    }
    return true;
  }
  return false;
}

std::int64_t DumpReader::position() {
  return in_.good() ? static_cast<std::int64_t>(in_.tellg()) : 0;
}

std::int64_t DumpTime(const std::string& text) {
  std::tm parts{};
  int milliseconds = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d.%d", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec,
                  &milliseconds) < 6) {
    return 0;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<std::int64_t>(timegm(&parts)) * 1000 + milliseconds;
}

std::string PlainText(std::string_view html, std::size_t most) {
  std::string text;
  bool tag = false;
  for (char c : html) {
    if (c == '<') {
      tag = true;
    } else if (c == '>' && tag) {
      tag = false;
    } else if (!tag) {
      text += c;
    }
  }
  text = Decode(text);
  if (text.size() > most) {
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
    text.resize(most);
  }
  return text;
}

}  // namespace timeline
