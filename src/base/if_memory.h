// For what can be left out when there is no memory for it: notes, statistics, work that is done
// again later.
#pragma once

#include <new>

namespace sava::base {

// Whether the work came to its end. False: it found no memory, and has undone what it had begun.
template <typename Work>
bool IfMemory(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace sava::base
