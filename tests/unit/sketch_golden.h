// The sketches that the golden files hold (tests/golden/sketches/NAME.bin), and how to make them
// anew. A file is written once, by the version that introduced its format, and never again: later
// versions must read it.
#pragma once

#include <memory>
#include <string>

#include "sketch_streams.h"
#include "types/sketches/count_min.h"
#include "types/sketches/simhash.h"
#include "types/sketches/simhash_text.h"
#include "types/sketches/top_k.h"
#include "types/value/object.h"

namespace sava::types {

struct GoldenSketch {
  const char* name;
  size_t type;  // in kSketchTypes
  std::unique_ptr<Object> (*make)();
};

inline std::unique_ptr<Object> MakeCountMin(uint64_t width, uint64_t depth, int events) {
  auto sketch = CountMin::Make(width, depth);
  ZipfStream stream(5000, 1.0, 1);
  for (int i = 0; i < events; ++i) sketch->Add(ZipfStream::Name(stream.Next()), 1 + (i % 3 == 0));
  return sketch;
}

inline std::unique_ptr<Object> MakeTopK(const TopK::Options& options, int events) {
  auto top = std::make_unique<TopK>(options);
  ZipfStream stream(5000, 1.0, 2);
  for (int i = 0; i < events; ++i) top->Add(ZipfStream::Name(stream.Next()), 1);
  return top;
}

// Every fourth document is removed again.
inline std::unique_ptr<Object> MakeSimHash(int documents) {
  auto all = std::make_unique<SimHash>();
  base::Rng rng(3);
  for (int i = 0; i < documents; ++i) all->Add("doc:" + std::to_string(i), rng.Next());
  for (int i = 0; i < documents; i += 4) all->Remove("doc:" + std::to_string(i));
  return all;
}

inline const GoldenSketch kGoldenSketches[] = {
    {"cms_empty", 0, [] { return MakeCountMin(100, 3, 0); }},
    {"cms_one_cell", 0, [] { return MakeCountMin(1, 1, 10); }},
    {"cms_small", 0, [] { return MakeCountMin(200, 5, 2000); }},
    {"cms_blocks", 0, [] { return MakeCountMin(4000, 5, 3000); }},
    {"cms_extremes", 0,
     []() -> std::unique_ptr<Object> {
       auto sketch = CountMin::Make(50, 2);
       sketch->Add("most", CountMin::kMost);
       sketch->Add("", 1);
       sketch->Add("more", CountMin::kMaxTotal);
       return sketch;
     }},
    {"topk_empty", 1, [] { return MakeTopK({.k = 3, .width = 50, .depth = 4, .decay = 0.5}, 0); }},
    {"topk_few", 1, [] { return MakeTopK({.k = 10}, 8); }},
    {"topk_full", 1, [] { return MakeTopK({.k = 10}, 5000); }},
    {"topk_blocks", 1, [] { return MakeTopK({.k = 60, .width = 1500}, 5000); }},
    {"topk_extremes", 1,
     []() -> std::unique_ptr<Object> {
       auto top = std::make_unique<TopK>(TopK::Options{.k = 2, .decay = 1});
       top->Add("", 1);
       top->Add(std::string("\0\xff", 2), TopK::kMaxCount);
       top->Add(std::string(2000, 'l'), 7);
       return top;
     }},
    {"simhash_empty", 2, []() -> std::unique_ptr<Object> { return std::make_unique<SimHash>(); }},
    {"simhash_texts", 2,
     []() -> std::unique_ptr<Object> {
       auto all = std::make_unique<SimHash>();
       all->Add("fox", FingerprintOfText("The quick brown fox jumps over the lazy dog"));
       all->Add("", FingerprintOfText("Šta je Sava? Reka."));
       all->Add(std::string("\0\xff", 2), UINT64_MAX);
       all->Add(std::string(500, 'x'), 0);
       return all;
     }},
    {"simhash_many", 2, [] { return MakeSimHash(1500); }},
};

}  // namespace sava::types
