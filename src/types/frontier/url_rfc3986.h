// The long way of normalising a URL by RFC 3986, for what is not normal already. Boost.URL parses
// it; what sections 6.2.2 and 6.2.3 ask for is done here, because Boost.URL 1.81's own
// normalisation decodes escapes of reserved characters (%2F in a path) and keeps `..` at the root.
// Only url.cc needs it.
#pragma once

#include <string>
#include <string_view>

#include "types/frontier/url.h"

namespace sava::types {

struct UrlParts {
  bool secure = false;
  std::string host;  // with its port, when it is not the scheme's
  std::string rest;  // path, from its slash on, and query
};

// REQUIRES: `url` has no fragment. host.size() + rest.size() is at most url.size() - 6.
UrlFault ParseRfc3986(std::string_view url, UrlParts* parts);

}  // namespace sava::types
