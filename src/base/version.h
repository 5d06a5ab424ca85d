// The version of Sava, and the Redis version whose behaviour clients may expect.
#pragma once

#include <string_view>

namespace sava::base {

inline constexpr std::string_view kVersion = "0.1.0";
inline constexpr std::string_view kRedisVersion = "7.2.4";

}  // namespace sava::base
