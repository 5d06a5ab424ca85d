// Digests of values and of whole databases (DEBUG DIGEST): equal contents give equal digests,
// whatever order the keys were made in, and the same ones as in Redis 7.0 as long as there are no
// native types. 20 bytes, shown as 40 hexadecimal digits; all zero for nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "commands/context.h"
#include "keyspace/keyspace.h"

namespace sava::admin {

class Digest20 {
 public:
  void Xor(const Digest20& other);
  // Something that may come in any order among its like.
  void XorHashOf(std::string_view text);
  // Something that has its place.
  void Mix(std::string_view text);
  std::string Hex() const;

  std::array<uint8_t, 20> bytes{};
};

// Of a value alone, its expiry counted as being there or not. A missing value gives zero.
Digest20 ValueDigest(const commands::Value& value);

// Of every key that is not past its time, in all databases. REQUIRES: gate closed.
Digest20 KeyspaceDigest(const keyspace::Keyspace& keyspace, int64_t now_ms);

}  // namespace sava::admin
