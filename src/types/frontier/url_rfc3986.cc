#include "types/frontier/url_rfc3986.h"

#include <algorithm>
#include <boost/url/src.hpp>
#include <cstdint>

#include "base/text.h"

namespace sava::types {

namespace {

std::string_view ViewOf(boost::core::string_view text) { return {text.data(), text.size()}; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return base::LowerChar(c) - 'a' + 10;
}

bool IsUnreserved(int byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

// Appends `text` with its escapes in upper case, and decoded where none is needed
// (6.2.2.1, 6.2.2.2). REQUIRES: every % has two digits after it.
void AppendUnescaped(std::string_view text, std::string* out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out->push_back(text[i]);
      continue;
    }
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    i += 2;
    if (IsUnreserved(high * 16 + low)) {
      out->push_back(static_cast<char>(high * 16 + low));
    } else {
      out->push_back('%');
      out->push_back(kDigits[static_cast<size_t>(high)]);
      out->push_back(kDigits[static_cast<size_t>(low)]);
    }
  }
}

// Appends a path that begins with a slash without its dot segments (5.2.4).
void AppendWithoutDots(std::string_view path, std::string* out) {
  const size_t root = out->size();
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(1, end - 1);
    const bool last = end == path.size();
    if (segment == "..") {
      const size_t slash = out->rfind('/');
      out->resize(slash == std::string::npos || slash < root ? root : slash);
    }
    if (segment != "." && segment != "..") {
      out->append(path.substr(0, end));
    } else if (last) {
      out->push_back('/');
    }
    path.remove_prefix(end);
  }
}

// Appends a host in lower case, but for the digits of its escapes.
void AppendHost(std::string_view host, std::string* out) {
  std::string text;
  AppendUnescaped(host, &text);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      out->append(text, i, 3);
      i += 2;
    } else {
      out->push_back(base::LowerChar(text[i]));
    }
  }
}

// Appends the port unless it is the scheme's own; false when it is no port.
bool AppendPort(std::string_view port, bool secure, std::string* host) {
  while (port.size() > 1 && port[0] == '0') port.remove_prefix(1);
  if (port.empty()) return true;
  if (port.size() > 5) return false;
  uint32_t number = 0;
  for (const char c : port) number = number * 10 + static_cast<uint32_t>(c - '0');
  if (number > 65535) return false;
  if (number == (secure ? 443U : 80U)) return true;
  host->push_back(':');
  host->append(port);
  return true;
}

}  // namespace

UrlFault ParseRfc3986(std::string_view url, UrlParts* parts) {
  const auto parsed = boost::urls::parse_uri({url.data(), url.size()});
  if (!parsed) return UrlFault::kInvalid;
  const boost::urls::url_view& view = *parsed;
  if (view.has_userinfo()) return UrlFault::kUser;
  if (!view.has_authority() || view.encoded_host().empty()) return UrlFault::kInvalid;
  parts->secure = view.scheme_id() == boost::urls::scheme::https;
  AppendHost(ViewOf(view.encoded_host()), &parts->host);
  if (!AppendPort(ViewOf(view.port()), parts->secure, &parts->host)) return UrlFault::kInvalid;
  std::string path;
  AppendUnescaped(ViewOf(view.encoded_path()), &path);
  if (path.empty()) path.push_back('/');
  if (path[0] != '/') return UrlFault::kInvalid;  // `host:x` passes as an empty port and a path
  AppendWithoutDots(path, &parts->rest);
  if (view.has_query()) {
    parts->rest.push_back('?');
    AppendUnescaped(ViewOf(view.encoded_query()), &parts->rest);
  }
  return UrlFault::kNone;
}

}  // namespace sava::types
