// The counters that the golden files hold (tests/golden/afc/NAME.bin), and how to make them anew.
// A file is written once, by the version that introduced its format, and never again: later
// versions must read it.
#pragma once

#include <memory>
#include <string>

#include "afc_members.h"
#include "types/counters/afc.h"

namespace sava::types {

inline constexpr int64_t kGoldenNow = 1'700'000'000'000;

struct GoldenAfc {
  const char* name;
  std::unique_ptr<Afc> (*make)();
};

// `members` of a kind, counts 1 … 9, last changed in a scrambled order.
inline std::unique_ptr<Afc> MakeAfc(const Afc::Options& options, int members, MemberName name) {
  auto afc = std::make_unique<Afc>(options, kGoldenNow - 3000);
  for (int i = 0; i < members; ++i) afc->Add(name(i), 1, kGoldenNow - 2000);
  for (int i = 0; i < members; ++i) {
    const int at = static_cast<int>(Scrambled(i, 7) % static_cast<uint64_t>(members));
    const uint64_t n = Scrambled(i, 8) % 9;
    if (n > 0) afc->Add(name(at), n, kGoldenNow - 2000 + 2000 * i / members);
  }
  return afc;
}

inline const GoldenAfc kGoldenAfcs[] = {
    {"empty", [] { return std::make_unique<Afc>(); }},
    {"one", [] { return MakeAfc({}, 1, WordName); }},
    {"words", [] { return MakeAfc({}, 40, WordName); }},
    {"uuids", [] { return MakeAfc({}, 100, UuidName); }},
    {"binary", [] { return MakeAfc({}, 100, BinaryName); }},
    {"mixed", [] { return MakeAfc({}, 60, MixedName); }},
    {"indexed", [] { return MakeAfc({}, 1500, WordName); }},
    {"extremes",
     [] {
       auto afc = std::make_unique<Afc>();
       afc->Add("most", Afc::kMaxCount, kGoldenNow);
       afc->Add("", 300, kGoldenNow);
       afc->Add(std::string(2000, 'l'), 1, kGoldenNow);
       afc->Add(std::string("\0\xff", 2), 1ULL << 40, kGoldenNow);
       return afc;
     }},
    {"maxlen", [] { return MakeAfc({.maxlen = 30}, 100, WordName); }},
    {"halflife", [] { return MakeAfc({.halflife_ms = 60'000}, 50, UuidName); }},
    {"halflife_maxlen", [] { return MakeAfc({.maxlen = 20, .halflife_ms = 1000}, 50, WordName); }},
    {"window", [] { return MakeAfc({.window_ms = 1000}, 50, WordName); }},
    {"window_maxlen", [] { return MakeAfc({.maxlen = 20, .window_ms = 60'000}, 50, UuidName); }},
    {"reserved",
     [] {
       return std::make_unique<Afc>(Afc::Options{.maxlen = 5, .window_ms = 1000}, kGoldenNow);
     }},
};

}  // namespace sava::types
