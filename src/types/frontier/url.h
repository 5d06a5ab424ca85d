// URLs as a frontier keeps them: normalised, and split into the host, which is what is scheduled,
// and the rest.
//
// Two ways to normalise:
//   kUfmg     the rules of the assignment behind the URL scheduler: only http; scheme and host in
//             lower case; a leading `www.` is ignored where a dot follows behind it, so are
//             trailing slashes; the fragment is dropped; a path that ends in .jpg .gif .mp3 .avi
//             .doc or .pdf (in any case) is refused. Nothing else is changed.
//   kRfc3986  http and https; RFC 3986 section 6.2: scheme and host in lower case, percent-encoding
//             in upper case and only where it is needed, dot segments removed, an empty path is
//             `/`, the scheme's own port is left out; the fragment is dropped. User information is
//             refused (RFC 9110, 4.2.4).
// A normalised URL normalises to itself, and is never more than one byte longer than what came in.
//
// The host is `host` or `host:port`, the same for http and https, so that both share its delay. The
// rest is path and query in a form of its own (an https URL has `s` in the place of the first
// slash): only AppendUrl makes a URL of it again.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sava::types {

enum class UrlNorm : uint8_t { kUfmg = 0, kRfc3986 = 1 };

inline constexpr size_t kMaxUrlSize = 65534;  // so that the size of a rest fits in 16 bits
inline constexpr size_t kMaxUrlHostSize = 255;

// Why a URL is refused.
enum class UrlFault : uint8_t {
  kNone,
  kInvalid,    // no URL, or no host
  kScheme,     // not http (nor https with kRfc3986)
  kUser,       // user information before the host
  kExtension,  // what it names is of no use to a crawler (kUfmg)
  kTooLong,    // more than kMaxUrlSize bytes, or a host of more than kMaxUrlHostSize
};

struct SplitUrl {
  UrlFault fault = UrlFault::kNone;
  std::string_view host;  // 1 to kMaxUrlHostSize bytes
  std::string_view rest;  // up to kMaxUrlSize + 1 bytes
  uint32_t depth = 0;     // slashes in the path

  bool ok() const { return fault == UrlFault::kNone; }
};

// What a caller must have room for to split this URL.
constexpr size_t UrlRoom(size_t url_size) { return url_size + 1; }

// Normalises and splits. host and rest point into `url`, into `room`, of UrlRoom(url.size()) bytes,
// or to a constant; they are empty when it is refused.
SplitUrl NormalizeUrl(UrlNorm norm, std::string_view url, char* room);

// The host under which URLs of `text` are kept: a host, a host with its port, or a whole URL. Empty
// when it is none. Room as above.
std::string_view NormalizeUrlHost(UrlNorm norm, std::string_view text, char* room);

// Appends the normalised URL of a host and a rest that NormalizeUrl gave.
void AppendUrl(std::string_view host, std::string_view rest, std::string* out);
// How many bytes that is.
size_t UrlSize(std::string_view host, std::string_view rest);

// The fault in words: "not a URL".
std::string_view UrlFaultText(UrlFault fault);
std::string_view UrlNormName(UrlNorm norm);  // "ufmg", "rfc3986"
// In any case; false when there is no such name.
bool ParseUrlNorm(std::string_view name, UrlNorm* norm);

}  // namespace sava::types
