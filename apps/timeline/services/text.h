// Checks of what people type, and small texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace timeline {

std::string Trimmed(std::string_view text);
std::string Lowered(std::string_view text);
// Valid UTF-8 without control characters but line ends and tabs.
bool IsCleanText(std::string_view text);
// At least `least` and at most `most` bytes of clean text; else a sentence about `name` in
// *message.
bool CheckText(const char* name, const std::string& text, std::size_t least, std::size_t most,
               std::string* message);
bool IsEmail(std::string_view text);
bool IsWebAddress(
    std::string_view text);  // http:// or https://, nothing that could end an attribute

}  // namespace timeline
