// The commands on data: those of Redis's types, and those of the types Redis does not have.
#pragma once

#include <span>
#include <vector>

#include "commands/native/families.h"
#include "commands/redis/families.h"

namespace sava::commands {

inline std::vector<std::span<const CommandSpec>> DataFamilies() {
  auto all = RedisFamilies();
  for (const auto family : NativeFamilies()) all.push_back(family);
  return all;
}

}  // namespace sava::commands
