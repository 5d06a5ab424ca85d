// Strings of Writer and Reader inside another host: the host compresses what it writes, and has
// undone it in what it hands out.
#include "types/value/save.h"

namespace sava::types {

bool Writer::Compressed(std::string_view /*bytes*/) { return false; }

std::string_view Reader::Decompressed(std::string* /*scratch*/) {
  Fail("a string that the host did not compress");
  return {};
}

}  // namespace sava::types
