// What the files of the key family share: small helpers, and the rows each of them adds to
// KeyCommands(). Nobody outside the family needs this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "commands/context.h"
#include "commands/spec.h"

namespace sava::commands::keys {

// Argument i as the number of a database. Replies the error and returns false when it is none.
bool DbArg(Context& context, size_t i, int* db);
// The same without looking whether there is such a database; `error` is what to say when it is no
// number, empty for Redis's general words.
bool Int32Arg(Context& context, size_t i, int* out, std::string_view error = {});

std::span<const CommandSpec> DatabaseRows();  // keys_database.cc
std::span<const CommandSpec> ExpireRows();    // expire.cc
std::span<const CommandSpec> ScanRows();      // scan.cc
std::span<const CommandSpec> ObjectRows();    // keys_object.cc
std::span<const CommandSpec> DumpRows();      // dump.cc

}  // namespace sava::commands::keys
