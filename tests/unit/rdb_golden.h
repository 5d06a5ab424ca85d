// The RDB files in tests/golden/rdb that our writer made, and how to make them anew. A file is
// written once, by the version that introduced its form, and never again: later versions must read
// it. The end-to-end tests give them to a stock Redis.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "afc_golden.h"
#include "storage/rdb_writer.h"
#include "types/counters/member_dictionary.h"

namespace sava::storage {

inline constexpr int64_t kYear2100Ms = 4'102'444'800'000;
inline constexpr RdbWriter::Origin kGoldenOrigin{
    .redis_version = "7.2.4", .ctime_s = 1'700'000'000, .used_memory = 1'048'576};

inline void WriteStrings(RdbWriter& out) {
  out.Begin(kGoldenOrigin);
  out.SelectDb(0, 14, 2);
  out.String({"greeting"}, "hello");
  out.String({""}, "");
  out.String({"12"}, "12");
  out.Number({"int8"}, -128);
  out.Number({"int16"}, 32767);
  out.Number({"int32"}, std::numeric_limits<int32_t>::min());
  out.Number({"int64"}, std::numeric_limits<int64_t>::max());
  out.String({"not a number"}, "007");
  out.String({"binary"}, std::string_view("\0\xff\r\n", 4));
  out.String({"63 bytes"}, std::string(63, 'x'));
  out.String({"300 bytes"}, std::string(300, 'y'));
  out.String({"20000 bytes"}, std::string(20000, 'z'));
  out.String({"expiring", kYear2100Ms}, "soon");
  out.Number({"expiring number", kYear2100Ms + 1}, 5);
  out.SelectDb(3, 2, 1);
  out.String({"idle", kYear2100Ms, 3600}, "for an hour");
  out.String({"frequent", -1, -1, 255}, "always");
  out.End();
}

inline void WriteCounters(RdbWriter& out, bool refer) {
  types::MemberDictionary::Shared().Pin();
  const auto words = types::MakeAfc({}, 40, types::WordName);
  const auto large = types::MakeAfc({}, 1500, types::WordName);
  const auto bounded = types::MakeAfc({.maxlen = 20, .window_ms = 60'000}, 50, types::UuidName);
  out.Begin(kGoldenOrigin);
  if (refer) out.AuxData();
  out.SelectDb(0, 4, 1);
  out.String({"greeting"}, "hello");
  out.Object({"words"}, *words);
  out.Object({"large"}, *large);
  out.Object({"bounded", kYear2100Ms}, *bounded);
  out.End();
  types::MemberDictionary::Shared().Unpin();
}

struct GoldenRdb {
  const char* name;
  RdbWriter::Options options;
  void (*write)(RdbWriter& out);
};

inline const GoldenRdb kGoldenRdbs[] = {
    {"strings", {.compress = false}, WriteStrings},
    {"strings_compressed", {}, WriteStrings},
    {"strings_unchecked", {.compress = false, .checksum = false}, WriteStrings},
    {"counters", {}, [](RdbWriter& out) { WriteCounters(out, false); }},
    {"counters_dictionary", {}, [](RdbWriter& out) { WriteCounters(out, true); }},
};

inline std::string Written(const RdbWriter::Options& options, void (*write)(RdbWriter& out)) {
  std::string file;
  RdbWriter out([&file](std::string_view bytes) { file += bytes; }, options);
  write(out);
  return file;
}

}  // namespace sava::storage
