#include "http/guard.h"

#include <algorithm>

#include "base/text.h"
#include "http/problem.h"
#include "http/text.h"

namespace sava::http {

namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Four numbers with points between. What is not quite an address does not resolve either, so it
// need not be exact.
bool IsAddress4(std::string_view text) {
  int points = 0;
  for (const char c : text) {
    if (c == '.') {
      ++points;
    } else if (c < '0' || c > '9') {
      return false;
    }
  }
  return points == 3;
}

bool IsAddress6(std::string_view text) {
  return text.size() > 4 && text.front() == '[' && text.back() == ']' &&
         std::ranges::all_of(text.substr(1, text.size() - 2), [](char c) {
           const char lower = base::LowerChar(c);
           return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'f') || c == ':' || c == '.';
         });
}

struct SchemeAndRest {
  std::string_view scheme;
  std::string_view rest;
};
SchemeAndRest SplitScheme(std::string_view authorization) {
  const size_t blank = std::min(authorization.find(' '), authorization.size());
  std::string_view rest = authorization.substr(blank);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return {authorization.substr(0, blank), rest};
}

}  // namespace

bool IsOurHost(std::string_view host, std::span<const std::string> hosts) {
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && !host.ends_with(']')) {
    if (!IsDigits(host.substr(colon + 1)) && colon + 1 != host.size()) return false;
    host = host.substr(0, colon);
  }
  if (IsAddress4(host) || IsAddress6(host) || base::EqualsNoCase(host, "localhost")) return true;
  return std::ranges::any_of(hosts, [host](const std::string& known) {
    return known == "*" || base::EqualsNoCase(known, host);
  });
}

std::string UserOf(std::string_view authorization) {
  const auto [scheme, rest] = SplitScheme(authorization);
  std::string pair;
  if (base::EqualsNoCase(scheme, "basic") && Base64Decode(rest, &pair)) {
    const size_t colon = pair.find(':');
    if (colon != std::string::npos && colon > 0) return pair.substr(0, colon);
  }
  return "default";
}

bool Proves(std::string_view authorization, const access::Users& users) {
  const auto [scheme, rest] = SplitScheme(authorization);
  if (base::EqualsNoCase(scheme, "bearer")) {
    return users.Authenticate("default", rest) != nullptr;
  }
  if (!base::EqualsNoCase(scheme, "basic")) return users.open();
  std::string pair;
  if (!Base64Decode(rest, &pair)) return users.open();
  const size_t colon = pair.find(':');
  if (colon == std::string::npos) return users.open();
  return users.Authenticate(UserOf(authorization), std::string_view(pair).substr(colon + 1)) !=
         nullptr;
}

bool IsCrossSite(const protocol::HttpRequest& request) {
  const std::string_view site = request.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  std::string_view origin = request.origin;
  if (origin.empty()) return false;
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return true;  // "null": a page without a site
  origin.remove_prefix(scheme + 3);
  return !base::EqualsNoCase(origin, request.host);
}

bool IsMediaType(std::string_view content_type, std::string_view wanted) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return base::EqualsNoCase(type, wanted);
}

bool MayEnter(const protocol::HttpRequest& request, const Site& site,
              protocol::HttpResponse* response) {
  const bool nameless = request.http10 && request.host.empty();
  if (!nameless && !IsOurHost(request.host, site.hosts)) {
    Problem(response, 421,
            "This server does not go by that name: use its address, localhost, or a name listed "
            "in the setting http-hosts.");
    return false;
  }
  if (site.users != nullptr && !Proves(request.authorization, *site.users)) {
    Problem(response, 401, "The password is needed: Authorization Basic or Bearer.");
    response->AddField("WWW-Authenticate", R"(Basic realm="sava", charset="UTF-8")");
    response->AddField("WWW-Authenticate", R"(Bearer realm="sava")");
    return false;
  }
  using Method = protocol::HttpMethod;
  const bool reads = request.method == Method::kGet || request.method == Method::kHead ||
                     request.method == Method::kOptions;
  if (!reads && IsCrossSite(request)) {
    Problem(response, 403, "Pages of other sites may not change anything here.");
    return false;
  }
  return true;
}

}  // namespace sava::http
