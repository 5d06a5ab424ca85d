// The guard: which requests are let in at all. Judges a request by its head alone, so that no
// client can make the server read a body it will not use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "access/users.h"
#include "protocol/http_parser.h"
#include "protocol/http_response.h"

namespace sava::http {

// What the routes need to know of the configuration.
struct Site {
  const access::Users* users = nullptr;  // nullptr: no password is needed
  std::span<const std::string> hosts;    // names this server may be called by; "*": any
  std::string_view associations_prefix = "assoc:";
  int64_t associations_top = 20;
  bool associations_guid_keys = false;
  size_t max_key = 2048;  // bytes of a key, in the path or not: it fits into a path
  int64_t uptime_s = 0;
  bool refuses_writes = false;  // the disk is in trouble
};

// A name that leads here: an address, localhost or one of the list, with or without a port. Any
// other may be a web page's own name that has been pointed at this machine.
bool IsOurHost(std::string_view host, std::span<const std::string> hosts);

// The user it names: `default` unless Basic names another.
std::string UserOf(std::string_view authorization);

// Whether it proves to be that user: Basic with its name and password, or Bearer with the password
// of `default`, which needs no proof when it has no password.
bool Proves(std::string_view authorization, const access::Users& users);

// A write that a browser sends for a page of another site.
bool IsCrossSite(const protocol::HttpRequest& request);

// The media type without its parameters is this one.
bool IsMediaType(std::string_view content_type, std::string_view wanted);

// False with the problem in *response when the request must be refused, whatever it is for.
bool MayEnter(const protocol::HttpRequest& request, const Site& site,
              protocol::HttpResponse* response);

}  // namespace sava::http
