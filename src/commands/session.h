// Session: who is connected, as far as commands may know and change it.
#pragma once

#include <cstdint>
#include <string>

namespace sava::commands {

struct Session {
  uint64_t id = 0;
  std::string name;
  std::string user = "default";
  int resp = 2;
  bool authenticated = true;
};

}  // namespace sava::commands
