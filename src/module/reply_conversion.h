// What a handler has replied, handed to the host call by call: the host counts what it is told, and
// cannot be given bytes. Handlers write in the client's protocol, so that what RESP2 tells apart
// (null and null array) stays apart.
//
// Pure but for its calls of the host; main thread only.
#pragma once

#include <string_view>

#include "module/host_api.h"

namespace sava::module {

// REQUIRES: whole replies as protocol::Reply writes them.
void ReplyWith(host::Ctx* ctx, std::string_view bytes);

}  // namespace sava::module
