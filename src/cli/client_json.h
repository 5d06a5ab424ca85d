// Replies as JSON text (RFC 8259), one value a reply.
//
//   string, status, verbatim   "text"; valid UTF-8 stands as it is. A string that is not valid
//   UTF-8
//                              is written byte by byte: every byte from 0x80 up becomes \u0080 to
//                              \u00ff, so reading the JSON and encoding as Latin-1 gives it back.
//   integer, double            a number; infinities and NaN "inf", "-inf", "nan"
//   big number                 "digits", since most readers would round a number
//   nil, boolean               null, true, false
//   array, set, push           [...]
//   map                        {...}; keys that are no strings are written as their JSON in a
//   string error                      {"error":"..."}
#pragma once

#include <string>
#include <string_view>

#include "cli/client_reply.h"

namespace sava::cli {

std::string FormatJson(const Reply& reply);

// The text as a JSON string, quotes included.
std::string JsonString(std::string_view text);

bool IsUtf8(std::string_view text);

}  // namespace sava::cli
