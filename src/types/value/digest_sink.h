// DigestSink: what DEBUG DIGEST gets of a value, in Redis's way: some parts have their place,
// others may come in any order among their like.
#pragma once

#include <string_view>

namespace sava::types {

class DigestSink {
 public:
  virtual ~DigestSink() = default;
  // Has its place behind what was ordered before.
  virtual void Ordered(std::string_view text) = 0;
  // In any order: a text, or two that belong together.
  virtual void Unordered(std::string_view text) = 0;
  virtual void UnorderedPair(std::string_view first, std::string_view second) = 0;
};

}  // namespace sava::types
