#include "base/version.h"

#include <sava/version.h>

namespace sava {

std::string_view Version() noexcept { return base::kVersion; }

}  // namespace sava
