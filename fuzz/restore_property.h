// What must hold for any bytes given to the reader of values. Shared by the fuzz target and by the
// unit test that replays its corpus.
#pragma once

#include <string>
#include <string_view>

#include "types/value/save.h"

namespace sava::types {

// No honest reader makes more of its input than this many times its size.
inline constexpr size_t kMostGrowth = 88;

// Reads `bytes` as one string; when that works, what is written for it must read back the same.
inline std::string CheckString(std::string_view bytes) {
  Reader in(bytes);
  const std::string value = in.String();
  if (!in.ok()) return value.empty() ? "" : "a failed string has bytes";
  if (value.size() > bytes.size() * kMostGrowth + 20) return "more bytes than the input can hold";
  for (const bool compress : {true, false}) {
    std::string written;
    Writer out(&written, compress);
    out.String(value);
    Reader again(written);
    if (again.String() != value || !again.ok() || again.remaining() != 0) {
      return "a string does not read back";
    }
  }
  return "";
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckRestore(std::string_view bytes) {
  // As a payload: a good seal covers exactly the bytes before it.
  std::string_view body;
  if (OpenDump(bytes, &body)) {
    if (body.size() + 10 != bytes.size() || body.data() != bytes.data()) return "the wrong body";
  }
  std::string sealed(bytes);
  SealDump(&sealed);
  if (!OpenDump(sealed, &body) || body != bytes) return "what was sealed does not open";

  if (std::string problem = CheckString(bytes); !problem.empty()) return problem;
  if (bytes.empty()) return "";

  // As items in the order the first byte says, until something fails.
  const auto order = static_cast<unsigned char>(bytes[0]);
  Reader in(bytes.substr(1));
  size_t before = in.remaining() + 1;
  while (in.ok() && in.remaining() < before) {
    before = in.remaining();
    switch ((order + before) % 9) {
      case 0:
        in.Length();
        break;
      case 1:
        in.Count(3);
        break;
      case 2:
        in.String();
        break;
      case 3:
        in.Double();
        break;
      case 4:
        in.ModuleSigned();
        break;
      case 5:
        in.ModuleString();
        break;
      case 6:
        in.ModuleFloat();
        break;
      case 7:
        in.SkipModule();
        break;
      default:
        in.Fixed32();
    }
  }
  if (!in.ok() && in.remaining() != 0) return "bytes are left after a failure";
  return "";
}

}  // namespace sava::types
