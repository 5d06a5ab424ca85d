// INFO's text: sections of name:value lines, as Redis's tools read them.
//
// The figures are sums of counters that other threads go on writing: each was true a moment ago.
// The sections about clients and memory look at every connection and need the gate closed; without
// (lane.exclusive false) their figures about connections are left at zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "commands/spec.h"
#include "engine/engine.h"

namespace sava::server {

class Server;

// The sections named, in Redis's order whatever the order of the names; none means the default
// ones. `all`, `everything` and `default` are understood, unknown names are not minded.
std::string InfoText(Server& server, engine::Lane& lane,
                     std::span<const std::string_view> sections);

// What INFO with these arguments has to lock.
commands::LockClass InfoLock(commands::Args args);

// a / b, or 0 when there is nothing to divide by.
inline double Ratio(size_t a, size_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}
inline int64_t Difference(size_t a, size_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

}  // namespace sava::server
