// ClearAndTrim: empties a vector that is used again and again. One that had to grow beyond `most`
// elements gives its memory back, so that a single huge command is not remembered for ever.
#pragma once

#include <cstddef>
#include <vector>

namespace sava::base {

template <typename T>
void ClearAndTrim(std::vector<T>* vector, size_t most) {
  if (vector->capacity() > most) {
    std::vector<T>().swap(*vector);
  } else {
    vector->clear();
  }
}

}  // namespace sava::base
