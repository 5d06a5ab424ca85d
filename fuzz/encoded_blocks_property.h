// What must hold of dictionary-encoded blocks for any bytes: cut into texts at zero bytes, what is
// encoded of them reads back; as a program of changes, three bytes each, a list that encodes its
// blocks stays the list that does not. Shared by the fuzz target and by the unit test that replays
// its corpus.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "types/collections/encoded_entries.h"
#include "types/collections/list.h"

namespace sava::types {

// Empty if all is well, otherwise what went wrong.
inline std::string CheckEncodedTexts(std::string_view bytes) {
  std::string plain;
  size_t count = 0;
  while (!bytes.empty() && plain.size() < 60'000) {
    const std::string_view text = bytes.substr(0, bytes.find('\0'));
    bytes.remove_prefix(std::min(text.size() + 1, bytes.size()));
    const list_entry::New entry(text);
    plain.resize(plain.size() + entry.size());
    entry.Write(plain.data() + plain.size() - entry.size());
    ++count;
  }
  std::string encoded;
  if (!EncodeEntries(plain, count, &encoded)) return "";
  if (encoded.size() * 4 > plain.size() * 3) return "less than a quarter is saved";
  const EncodedEntries entries(encoded);
  if (entries.count() != count) return "the count is wrong";
  if (entries.Size(0, count) != plain.size()) return "the size is wrong";
  std::string again(plain.size(), '\0');
  entries.Expand(0, count, again.data());
  return again == plain ? "" : "the entries are wrong";
}

class ListPair {
 public:
  ListPair() {
    CollectionLimits off;
    off.dictionary_encoding = false;
    encoding_.set_encoding(kDefaultCollectionLimits);
    plain_.set_encoding(off);
  }

  void Change(uint8_t what, uint8_t a, uint8_t b) {
    const size_t size = plain_.size();
    const size_t at = size * a / 256;
    const auto end = (what & 1) != 0 ? List::End::kHead : List::End::kTail;
    const std::string value = Value(b);
    Both([&](List& list) {
      switch (what / 2 % 8) {
        case 0:
        case 1:
        case 2:
          for (size_t i = 0; i < size_t{a} && list.size() < kMost; ++i) {
            list.Push(end, Value(static_cast<uint8_t>(b + i * (what / 16))));
          }
          return;
        case 3:
          return list.Drop(end, std::min<size_t>(size, a));
        case 4:
          return list.Insert(at, value);
        case 5:
          if (at < size) list.Set(at, value);
          return;
        case 6:
          list.Remove(value, end, 1 + a % 4);
          return;
        default:
          if (a >= 128) list.Trim(at / 8, size - at / 4);
      }
    });
  }

  std::string Problem() const {
    for (const List* list : {&encoding_, &plain_}) {
      if (std::string problem = list->Check(); !problem.empty()) return problem;
    }
    if (plain_.encoded_blocks() != 0) return "a block is encoded that was not to be";
    if (Text(encoding_) != Text(plain_)) return "the lists differ";
    return Text(*encoding_.Copy()) == Text(plain_) ? "" : "the copy differs";
  }

 private:
  static constexpr size_t kMost = 4000;

  static std::string Value(uint8_t number) {
    if (number >= 250) return std::to_string(number * 1'000'003);
    return std::string(20 + number % 90, 'v') + std::to_string(number % 32);
  }
  static std::string Text(const Object& list) {
    std::string all;
    list.Digest([&all](std::string_view part) { all.append(part).append(1, '\n'); });
    return all;
  }
  template <typename Work>
  void Both(const Work& work) {
    work(encoding_);
    work(plain_);
  }

  List encoding_;
  List plain_;
};

inline std::string CheckEncodedBlocks(std::string_view bytes) {
  if (std::string problem = CheckEncodedTexts(bytes); !problem.empty()) return problem;
  ListPair lists;
  const auto byte = [&bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  for (size_t i = 0; i + 3 <= std::min<size_t>(bytes.size(), 600); i += 3) {
    lists.Change(byte(i), byte(i + 1), byte(i + 2));
  }
  return lists.Problem();
}

}  // namespace sava::types
