// The native types as the host's module types: the same names and versions as the ids in our own
// files, and the same items, so that files and DUMP payloads are good on either side.
//
// Registered when the module is loaded. The host saves in a forked child, and frees on any thread:
// saving takes no lock and changes nothing.
#pragma once

#include <string>
#include <string_view>

#include "module/host_api.h"
#include "types/value/object.h"

namespace sava::module {

// The type of the values of the commands `family`.* ("bf"); nullptr when they have none of their
// own.
const types::TypeInfo* TypeOfFamily(std::string_view family);

// False when the host has another type of that name.
bool RegisterType(host::Ctx* ctx, const types::TypeInfo& info);
// nullptr before RegisterType.
host::Type* HostTypeOf(const types::TypeInfo& info);
bool IsOurs(const host::Type* type);

// Lets go of what a file that was being loaded had for its values to refer to.
void FollowLoading(host::Ctx* ctx);

}  // namespace sava::module
