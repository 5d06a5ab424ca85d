// The commands of the native families in the host.
//
// A family is what stands before the point of its commands' names (INCREX is one by itself). A
// family of which the host has a command already, or whose type cannot be had, is left out as a
// whole and reported; so is one that the module's arguments do not name.
//
// Main thread only.
#pragma once

#include <string>
#include <vector>

#include "module/host_api.h"

namespace sava::module {

struct Families {
  std::vector<std::string> registered;
  std::vector<std::string> taken;  // left out because of the host
};

// `wanted`: names of families; empty: all. *unknown is a wanted name that there is not, if any.
Families RegisterFamilies(host::Ctx* ctx, const std::vector<std::string>& wanted,
                          std::string* unknown);

}  // namespace sava::module
