// SHA-1 (FIPS 180-4), for what others define by it: Redis's DEBUG DIGEST. Not for secrets, and not
// for bulk data: a plain loop.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sava::base {

using Sha1Digest = std::array<uint8_t, 20>;

Sha1Digest Sha1(std::string_view bytes);

}  // namespace sava::base
