// Work that finds no memory fails like work that finds no room on the disk.
#pragma once

#include "base/if_memory.h"
#include "base/result.h"

namespace sava::persistence {

template <typename Work>
base::Status WithMemory(const Work& work) {
  base::Status status;
  if (base::IfMemory([&] { status = work(); })) return status;
  return base::Error{"out of memory"};
}

}  // namespace sava::persistence
