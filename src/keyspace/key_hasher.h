// KeyHasher: the one place where a key becomes a hash. Stripe, segment, bucket and fingerprint are
// all read from this value.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace sava::keyspace {

class KeyHasher {
 public:
  explicit KeyHasher(uint64_t seed) : seed_(seed) {}
  uint64_t operator()(std::string_view key) const { return base::HashBytes(key, seed_); }

 private:
  uint64_t seed_;
};

}  // namespace sava::keyspace
