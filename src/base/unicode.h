// Just enough of Unicode to cut a text into words: code points of UTF-8, which of them belong to
// words, and their lower case. Independent of any locale; the same on every machine. Stateless.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sava::base {

// What stands for bytes that are no UTF-8; belongs to no word.
inline constexpr uint32_t kNoCodePoint = UINT32_MAX;

// Takes the first code point off `text`; one byte and kNoCodePoint where there is none (overlong
// forms, surrogates and what lies beyond U+10FFFF are none). REQUIRES: text is not empty.
uint32_t TakeCodePoint(std::string_view* text);
void AppendCodePoint(std::string* out, uint32_t point);

// Letters, marks and numbers.
bool IsWordPart(uint32_t point);
// The simple mapping, one code point to one; the same when there is no other.
uint32_t LowerCase(uint32_t point);

}  // namespace sava::base
