// The version of the library.
#pragma once

#include <sava/export.h>

#include <string_view>

namespace sava {

// For example "0.1.0". Safe from any thread.
SAVA_EXPORT std::string_view Version() noexcept;

}  // namespace sava
