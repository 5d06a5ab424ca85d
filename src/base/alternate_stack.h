// A stack of its own for the signal handlers of a thread, so that a thread which has used up its
// stack can still report that. One object at the beginning of each thread; not in sanitizer builds,
// which have such stacks already.
#pragma once

#include <cstddef>

namespace sava::base {

class AlternateStack {
 public:
  AlternateStack();
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_ = nullptr;  // nullptr: there was none to be had, handlers use the thread's stack
};

}  // namespace sava::base
