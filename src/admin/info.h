// INFO's text: sections of name:value lines, as Redis's tools read them.
//
// The figures are sums of counters that other threads go on writing: each was true a moment ago.
// The sections about clients and memory look at every connection and need the gate closed; without
// (lane.exclusive() false) their figures about connections are left at zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands/spec.h"
#include "engine/info.h"

namespace sava::admin {

// The sections in Redis's order. Other rooms bring theirs.
struct InfoSections {
  InfoSections(engine::InfoSection clients, engine::InfoSection persistence,
               engine::InfoSection replication);
  const std::vector<engine::InfoSection> all;
};

// The sections named, in Redis's order whatever the order of the names; none means the default
// ones. `all`, `everything` and `default` are understood, unknown names are not minded.
std::string InfoText(engine::Engine& engine, engine::Lane& lane,
                     std::span<const std::string_view> names);

// What INFO with these arguments has to lock.
commands::LockClass InfoLock(commands::Args args);

}  // namespace sava::admin
