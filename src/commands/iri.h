// URLs and hosts beyond ASCII (IRIs, RFC 3987) in ASCII, as `rfc3986` takes them: in the host by
// IDNA (RFC 5891, with the mapping of UTS 46), elsewhere percent-encoded byte by byte. Other norms
// keep such bytes as they are.
//
// IDNA needs a library, which the program installs; the commands themselves need none. Without it,
// hosts beyond ASCII are refused.
//
// Thread safety: all functions may be called at any time from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "types/frontier/url.h"

namespace sava::commands {

// Makes a host of any bytes one of ASCII; false when it cannot be. *ascii is empty before.
using HostToAscii = bool (*)(std::string_view host, std::string* ascii);
void InstallHostToAscii(HostToAscii convert);

// A URL or a host, without its fragment; false when the norm keeps it as it is, or its host cannot
// be in ASCII. What comes out need not be a URL.
bool IriToAscii(types::UrlNorm norm, std::string_view text, std::string* ascii);

// types::NormalizeUrl, also for IRIs. Those are put into *ascii, to which host and rest then
// point; of other URLs it stays as it was.
types::SplitUrl NormalizeIri(types::UrlNorm norm, std::string_view url, char* room,
                             std::string* ascii);
// types::NormalizeUrlHost, also for IRIs and their hosts.
std::string NormalizeIriHost(types::UrlNorm norm, std::string_view text);

}  // namespace sava::commands
