// GUIDs as texts: one value of 128 bits has several, as .NET's Guid.Parse knows them.
#pragma once

#include <string>
#include <string_view>

namespace sava::http {

// *out becomes the canonical text, 8-4-4-4-12 digits with hyphens in lower case, of a GUID that is
// written so or in upper case, without hyphens, in braces or in parentheses. False, with *out as it
// was, when the text is none.
bool CanonicalGuid(std::string_view text, std::string* out);

}  // namespace sava::http
