// The filters that the golden files hold (tests/golden/filters/NAME.bin), and how to make them
// anew. A file is written once, by the version that introduced its format, and never again: later
// versions must read it.
#pragma once

#include <memory>
#include <string>

#include "types/filters/bloom.h"
#include "types/filters/cuckoo.h"

namespace sava::types {

template <typename Filter>
struct GoldenFilter {
  const char* name;
  std::unique_ptr<Filter> (*make)();
  int items;  // "item0" … are in it
};

inline uint64_t ItemHash(int i) { return FilterHash("item" + std::to_string(i)); }

inline std::unique_ptr<Bloom> MakeBloom(const Bloom::Options& options, int items) {
  std::unique_ptr<Bloom> bloom = Bloom::Make(options);
  for (int i = 0; i < items; ++i) bloom->Add(ItemHash(i));
  return bloom;
}

inline const GoldenFilter<Bloom> kGoldenBlooms[] = {
    {"empty", [] { return MakeBloom({}, 0); }, 0},
    {"exact", [] { return MakeBloom({}, 100); }, 100},
    {"table", [] { return MakeBloom({}, 6000); }, 6000},
    {"blocked", [] { return MakeBloom({.capacity = 1000, .reserved = true}, 800); }, 800},
    {"blocked_4",
     [] { return MakeBloom({.error = 0.1, .capacity = 1000, .reserved = true}, 1000); }, 1000},
    {"blocked_16",
     [] { return MakeBloom({.error = 1e-5, .capacity = 1000, .reserved = true}, 1000); }, 1000},
    {"blocked_grown", [] { return MakeBloom({.capacity = 200, .reserved = true}, 900); }, 900},
    {"classic",
     [] {
       return MakeBloom({.capacity = 999, .layout = BloomLayout::kClassic, .reserved = true}, 700);
     },
     700},
    {"nonscaling",
     [] {
       return MakeBloom({.error = 0.001, .capacity = 300, .expansion = 0, .reserved = true}, 300);
     },
     299},
    {"document",
     [] {
       std::unique_ptr<Bloom> bloom = Bloom::MakeClassic(1000, 3);
       for (int i = 0; i < 20; ++i) bloom->Add(ItemHash(i));
       return bloom;
     },
     20},
    {"deletable",
     [] {
       std::unique_ptr<Bloom> bloom = MakeBloom({.deletable = true}, 5000);
       for (int i = 0; i < 5000; i += 7) bloom->Add(ItemHash(i));
       for (int i = 0; i < 5000; i += 14) bloom->Remove(ItemHash(i));
       return bloom;
     },
     5000},
    {"merged",
     [] {
       std::unique_ptr<Bloom> bloom = MakeBloom({.capacity = 200, .reserved = true}, 200);
       const std::unique_ptr<Bloom> other =
           MakeBloom({.capacity = 300, .layout = BloomLayout::kClassic, .reserved = true}, 250);
       const Bloom* const others[] = {other.get()};
       bloom->Merge(others);
       return bloom;
     },
     250},
};

inline std::unique_ptr<Cuckoo> MakeCuckoo(const Cuckoo::Options& options, int items) {
  auto cuckoo = std::make_unique<Cuckoo>(options);
  for (int i = 0; i < items; ++i) cuckoo->Add(ItemHash(i));
  for (int i = 0; i < items; i += 3) cuckoo->Add(ItemHash(i));
  for (int i = 0; i < items; i += 6) cuckoo->Remove(ItemHash(i));
  return cuckoo;
}

inline const GoldenFilter<Cuckoo> kGoldenCuckoos[] = {
    {"cuckoo_empty", [] { return MakeCuckoo({}, 0); }, 0},
    {"cuckoo_exact", [] { return MakeCuckoo({}, 100); }, 100},
    {"cuckoo_table", [] { return MakeCuckoo({.capacity = 4, .bucket_size = 1}, 6000); }, 6000},
    {"cuckoo_bounded",
     [] { return MakeCuckoo({.capacity = 20'000, .bucket_size = 4, .expansion = 0}, 5000); }, 5000},
};

}  // namespace sava::types
