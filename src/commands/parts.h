// Parts: what the composition root lends to handlers, found by type. A handler can name only the
// parts of rooms that its own room may include, so this opens no doors.
//
// Filled before the first command runs, then only read.
#pragma once

#include <cassert>
#include <utility>
#include <vector>

namespace sava::commands {

class Parts {
 public:
  // REQUIRES: the part outlives every use.
  template <typename T>
  void Put(T* part) {
    parts_.emplace_back(&kTag<T>, const_cast<void*>(static_cast<const void*>(part)));
  }
  // REQUIRES: it was put.
  template <typename T>
  T& Get() const {
    for (const auto& [tag, part] : parts_) {
      if (tag == &kTag<T>) return *static_cast<T*>(part);
    }
    assert(false);
    __builtin_unreachable();
  }

 private:
  // Its address stands for the type; not const, so that no two are merged.
  template <typename T>
  static inline char kTag = 0;

  std::vector<std::pair<const char*, void*>> parts_;
};

}  // namespace sava::commands
