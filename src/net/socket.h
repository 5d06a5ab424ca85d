// Sockets: opening listeners, taking connections, their addresses. Errors are texts for people.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sava::net {

// A listening socket, not blocking.
base::Result<int> ListenTcp(const std::string& address, int port, int backlog);
base::Result<int> ListenUnix(const std::string& path, uint32_t permissions, int backlog);

struct Accepted {
  int fd = -1;
  uint64_t id = 0;     // for the owner's use
  bool http = false;   // for the owner's use
  bool local = false;  // from this machine
  bool unix_socket = false;
  std::string peer;  // "127.0.0.1:5000", "[::1]:5000", or the socket's path with ":0"
  std::string self;
};

// A connected socket and its two addresses.
Accepted Describe(int fd);
// fd -1 when none waits (or the kernel refuses: *error is then set).
Accepted Accept(int listener, int* error);

void SetNoDelay(int fd, bool on = true);
void SetKeepAlive(int fd, int seconds);

}  // namespace sava::net
