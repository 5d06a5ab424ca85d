// What a stock Redis 7.0 can read of the values in files, and what becomes of the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/rdb_writer.h"
#include "types/value/object.h"

namespace sava::cli {

// The newest RDB version that it reads.
inline constexpr int kPortableRdbVersion = 10;

// Whether it reads this value: no native type, no times of fields.
bool IsPortable(const types::Object& value);

// What is written in place of a value it does not read.
struct Conversion {
  std::string_view into;  // "sorted sets"; empty: there is none such
  bool empty = false;     // nothing is in it, and Redis has no empty ones: left out
};
// Writes the key with the nearest value that Redis has; an association counter becomes a sorted
// set with the counts of this moment as scores (above 2^53 these are rounded), a hash with times of
// fields one without them.
Conversion WriteConverted(storage::RdbWriter& out, const snapshot::CutKey& key,
                          const types::Object& value, int64_t now_ms);

}  // namespace sava::cli
