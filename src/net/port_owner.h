// The process that listens on a TCP port of this machine, for an error message: a best effort by
// what /proc shows. The process of another user is not found.
#pragma once

#include <string>

namespace sava::net {

struct PortOwner {
  int pid = 0;
  std::string name;  // the command line's first word, without its folder
};

// pid 0 when none is found.
PortOwner FindPortOwner(int port);

}  // namespace sava::net
