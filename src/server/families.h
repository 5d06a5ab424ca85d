// Every command of the server: one list, read by the server and by the tools for data files.
#pragma once

#include <span>
#include <vector>

#include "commands/spec.h"

namespace sava::server {

std::vector<std::span<const commands::CommandSpec>> AllFamilies();
// Those that are not about data: transactions, connections, administration.
std::vector<std::span<const commands::CommandSpec>> ServerFamilies();

}  // namespace sava::server
