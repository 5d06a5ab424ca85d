#include "types/frontier/url.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "types/frontier/url_rfc3986.h"

namespace sava::types {

namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr char kSecureMark = 's';
constexpr std::string_view kRootRest = "/";
constexpr std::string_view kSecureRootRest = "s";

// What a byte may be in a URL that is normal already.
enum UrlByte : uint8_t {
  kHostByte = 1,   // of a plain host: lower-case letters, digits, - . _
  kPlainByte = 2,  // of a path or a query, with nothing to look at: all but / ? %
};

constexpr std::array<uint8_t, 256> MakeUrlBytes() {
  std::array<uint8_t, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<size_t>(c)] = kHostByte | kPlainByte;
  for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = kHostByte | kPlainByte;
  for (const char c : std::string_view("-._")) {
    table[static_cast<uint8_t>(c)] = kHostByte | kPlainByte;
  }
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<size_t>(c)] = kPlainByte;
  for (const char c : std::string_view("~!$&'()*+,;=:@")) {
    table[static_cast<uint8_t>(c)] = kPlainByte;
  }
  return table;
}

constexpr std::array<uint8_t, 256> kUrlBytes = MakeUrlBytes();

// The first place from `at` on whose byte is not of that class.
size_t Skip(std::string_view text, size_t at, UrlByte cls) {
  while (at < text.size() && (kUrlBytes[static_cast<uint8_t>(text[at])] & cls) != 0) ++at;
  return at;
}

SplitUrl Refused(UrlFault fault) {
  SplitUrl split;
  split.fault = fault;
  return split;
}

bool StartsWithNoCase(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && base::EqualsNoCase(text.substr(0, prefix.size()), prefix);
}

bool IsAlpha(char c) {
  const char lower = base::LowerChar(c);
  return lower >= 'a' && lower <= 'z';
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Of a URL without one of our schemes: is the scheme at fault, or is there none?
UrlFault SchemeFault(std::string_view url) {
  const size_t colon = url.find(':');
  if (colon == std::string_view::npos || colon == 0 || !IsAlpha(url[0])) return UrlFault::kInvalid;
  for (const char c : url.substr(0, colon)) {
    if (!IsAlpha(c) && !IsDigit(c) && c != '+' && c != '-' && c != '.') return UrlFault::kInvalid;
  }
  if (base::EqualsNoCase(url.substr(0, colon), "http")) return UrlFault::kInvalid;
  return UrlFault::kScheme;
}

uint32_t CountSlashes(std::string_view path) {
  return static_cast<uint32_t>(std::count(path.begin(), path.end(), '/'));
}

// ---- kUfmg ----

bool HasRefusedExtension(std::string_view path) {
  constexpr std::array<std::string_view, 6> kRefused = {".jpg", ".gif", ".mp3",
                                                        ".avi", ".doc", ".pdf"};
  if (path.size() < 4) return false;
  const std::string_view end = path.substr(path.size() - 4);
  if (end[0] != '.') return false;
  return std::any_of(kRefused.begin(), kRefused.end(),
                     [end](std::string_view refused) { return base::EqualsNoCase(end, refused); });
}

// `www.` goes only while a dot follows behind it: www.com is a host of its own. Alone it is none.
std::string_view WithoutWww(std::string_view host) {
  constexpr std::string_view kWww = "www.";
  while (StartsWithNoCase(host, kWww) && host.find('.', kWww.size()) != std::string_view::npos) {
    host.remove_prefix(kWww.size());
  }
  return host.size() == kWww.size() && StartsWithNoCase(host, kWww) ? std::string_view() : host;
}

// In lower case: as it is if it is so, else in `room`.
std::string_view LowerHost(std::string_view host, char* room) {
  if (std::none_of(host.begin(), host.end(), [](char c) { return base::LowerChar(c) != c; })) {
    return host;
  }
  std::transform(host.begin(), host.end(), room, base::LowerChar);
  return {room, host.size()};
}

bool HasBlankOrControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<uint8_t>(c) <= ' ' || static_cast<uint8_t>(c) == 0x7f;
  });
}

SplitUrl NormalizeUfmg(std::string_view url, char* room) {
  if (!StartsWithNoCase(url, kHttp)) return Refused(SchemeFault(url));
  if (HasBlankOrControl(url)) return Refused(UrlFault::kInvalid);
  const std::string_view after = url.substr(kHttp.size());
  const size_t host_end = std::min(after.find_first_of("/?"), after.size());
  const std::string_view host = WithoutWww(after.substr(0, host_end));
  if (host.empty() || host[0] == ':') return Refused(UrlFault::kInvalid);
  if (host.find('@') != std::string_view::npos) return Refused(UrlFault::kUser);
  if (host.size() > kMaxUrlHostSize) return Refused(UrlFault::kTooLong);
  std::string_view rest = after.substr(host_end);
  const size_t query = rest.find('?');
  if (query == std::string_view::npos) {
    while (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  }
  const std::string_view path = rest.substr(0, std::min(query, rest.size()));
  if (HasRefusedExtension(path)) return Refused(UrlFault::kExtension);
  return {UrlFault::kNone, LowerHost(host, room), rest, CountSlashes(path)};
}

// ---- kRfc3986 ----

bool IsUpperHex(char c) { return IsDigit(c) || (c >= 'A' && c <= 'F'); }

int HexDigit(char c) { return IsDigit(c) ? c - '0' : c - 'A' + 10; }

// Whether `text` begins with a normal escape: upper-case digits, of a byte that needs it.
bool IsNormalEscape(std::string_view text) {
  if (text.size() < 3 || text[0] != '%' || !IsUpperHex(text[1]) || !IsUpperHex(text[2]))
    return false;
  const int byte = HexDigit(text[1]) * 16 + HexDigit(text[2]);
  const char c = static_cast<char>(byte);
  return !(byte < 0x80 &&
           (IsAlpha(c) || IsDigit(c) || c == '-' || c == '.' || c == '_' || c == '~'));
}

// Whether the segment that begins at `text` is `.` or `..`.
bool IsDotSegment(std::string_view text) {
  const size_t size = std::min(text.find_first_of("/?"), text.size());
  const std::string_view segment = text.substr(0, size);
  return segment == "." || segment == "..";
}

// The length of a normal port with its colon at the start of `text`; 0 when it is not.
size_t NormalPort(std::string_view text, bool secure) {
  size_t end = 1;
  uint32_t port = 0;
  while (end < text.size() && end < 7 && IsDigit(text[end])) {
    port = port * 10 + static_cast<uint32_t>(text[end++] - '0');
  }
  if (end == 1 || end == 7 || (text[1] == '0' && end > 2)) return 0;
  if (port > 65535 || port == (secure ? 443U : 80U)) return 0;
  return end;
}

// Splits a URL that is normal already; false when it is not, or when it takes more to see it.
bool SplitNormal(std::string_view url, char* room, SplitUrl* split) {
  const bool secure = url.substr(0, kHttps.size()) == kHttps;
  if (!secure && url.substr(0, kHttp.size()) != kHttp) return false;
  const std::string_view after = url.substr(secure ? kHttps.size() : kHttp.size());
  size_t at = Skip(after, 0, kHostByte);
  if (at == 0) return false;
  if (at < after.size() && after[at] == ':') {
    const size_t port = NormalPort(after.substr(at), secure);
    if (port == 0) return false;
    at += port;
  }
  if (at > kMaxUrlHostSize) return false;
  split->host = after.substr(0, at);
  if (at == after.size()) {
    split->rest = secure ? kSecureRootRest : kRootRest;
    split->depth = 1;
    return true;
  }
  if (after[at] != '/') return false;
  const std::string_view rest = after.substr(at);
  uint32_t depth = 0;
  bool in_path = true;
  for (size_t i = 0; i < rest.size(); i = Skip(rest, i, kPlainByte)) {
    if (rest[i] == '/') {
      if (in_path) {
        ++depth;
        if (i + 1 < rest.size() && rest[i + 1] == '.' && IsDotSegment(rest.substr(i + 1))) {
          return false;
        }
      }
      ++i;
    } else if (rest[i] == '?') {
      in_path = false;
      ++i;
    } else if (IsNormalEscape(rest.substr(i))) {
      i += 3;
    } else {
      return false;
    }
  }
  split->depth = depth;
  split->rest = rest;
  if (secure) {
    std::memcpy(room, rest.data(), rest.size());
    room[0] = kSecureMark;
    split->rest = {room, rest.size()};
  }
  return true;
}

SplitUrl NormalizeRfc3986(std::string_view url, char* room) {
  SplitUrl split;
  if (SplitNormal(url, room, &split)) return split;
  if (!StartsWithNoCase(url, kHttp) && !StartsWithNoCase(url, kHttps)) {
    return Refused(SchemeFault(url));
  }
  UrlParts parts;
  const UrlFault fault = ParseRfc3986(url, &parts);
  if (fault != UrlFault::kNone) return Refused(fault);
  if (parts.host.size() > kMaxUrlHostSize) return Refused(UrlFault::kTooLong);
  // Dot segments and escapes only become shorter, and a slash takes the place of "//" at least.
  std::memcpy(room, parts.host.data(), parts.host.size());
  char* rest = room + parts.host.size();
  std::memcpy(rest, parts.rest.data(), parts.rest.size());
  if (parts.secure) rest[0] = kSecureMark;
  split.host = {room, parts.host.size()};
  split.rest = {rest, parts.rest.size()};
  split.depth = CountSlashes(std::string_view(parts.rest).substr(0, parts.rest.find('?')));
  return split;
}

}  // namespace

SplitUrl NormalizeUrl(UrlNorm norm, std::string_view url, char* room) {
  if (url.size() > kMaxUrlSize) return Refused(UrlFault::kTooLong);
  url = url.substr(0, url.find('#'));
  return norm == UrlNorm::kUfmg ? NormalizeUfmg(url, room) : NormalizeRfc3986(url, room);
}

std::string_view NormalizeUrlHost(UrlNorm norm, std::string_view text, char* room) {
  if (text.size() > kMaxUrlSize) return {};
  if (text.find("://") != std::string_view::npos) return NormalizeUrl(norm, text, room).host;
  if (text.find_first_of("/?#") != std::string_view::npos) return {};
  const bool plain = Skip(text, 0, kHostByte) == text.size();
  if (norm == UrlNorm::kRfc3986 && plain && text.size() <= kMaxUrlHostSize) return text;
  const std::string url = std::string(kHttp) + std::string(text);
  std::string scratch(UrlRoom(url.size()), '\0');
  const std::string_view host = NormalizeUrl(norm, url, scratch.data()).host;
  std::copy(host.begin(), host.end(), room);
  return {room, host.size()};
}

void AppendUrl(std::string_view host, std::string_view rest, std::string* out) {
  const bool secure = !rest.empty() && rest[0] == kSecureMark;
  out->append(secure ? kHttps : kHttp);
  out->append(host);
  if (secure) {
    out->push_back('/');
    rest.remove_prefix(1);
  }
  out->append(rest);
}

size_t UrlSize(std::string_view host, std::string_view rest) {
  const bool secure = !rest.empty() && rest[0] == kSecureMark;
  return (secure ? kHttps : kHttp).size() + host.size() + rest.size();
}

std::string_view UrlFaultText(UrlFault fault) {
  switch (fault) {
    case UrlFault::kNone:
      return "";
    case UrlFault::kInvalid:
      return "not a URL";
    case UrlFault::kScheme:
      return "scheme not supported";
    case UrlFault::kUser:
      return "user information is not supported";
    case UrlFault::kExtension:
      return "file type not wanted";
    case UrlFault::kTooLong:
      return "URL too long";
  }
  return "";
}

std::string_view UrlNormName(UrlNorm norm) { return norm == UrlNorm::kUfmg ? "ufmg" : "rfc3986"; }

bool ParseUrlNorm(std::string_view name, UrlNorm* norm) {
  for (const UrlNorm known : {UrlNorm::kUfmg, UrlNorm::kRfc3986}) {
    if (!base::EqualsNoCase(name, UrlNormName(known))) continue;
    *norm = known;
    return true;
  }
  return false;
}

}  // namespace sava::types
