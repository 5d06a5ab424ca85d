// What must hold for any bytes given to FUNCTION RESTORE: they are refused, or give libraries that
// are packed and read back the same. Shared by the fuzz target and by the unit test that replays
// its corpus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/function_libraries.h"
#include "types/value/save.h"

namespace sava::engine {

inline std::string CheckPayload(std::string_view payload) {
  const auto codes = FunctionLibraries::Unpack(payload);
  if (!codes) return codes.error().empty() ? "an error without a word" : "";
  FunctionLibraries libraries;
  libraries.Put(codes.value(), true);
  const std::vector<std::string> kept = libraries.sources();
  if (kept.size() > codes.value().size()) return "more libraries than there were";
  const auto again = FunctionLibraries::Unpack(libraries.Pack());
  if (!again || again.value() != kept) return "what was packed does not read back";
  return "";
}

// Empty if all is well, otherwise what went wrong. The bytes are tried as they are, and as what a
// good seal covers.
inline std::string CheckFunctionRestore(std::string_view bytes) {
  if (std::string problem = CheckPayload(bytes); !problem.empty()) return problem;
  std::string sealed(bytes);
  types::SealDump(&sealed);
  return CheckPayload(sealed);
}

}  // namespace sava::engine
