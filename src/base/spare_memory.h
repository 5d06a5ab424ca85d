// Spare memory: a few megabytes of address space put aside for work that has no way to fail, as a
// loop's own lists, mail, or the answer that there is no memory. When an allocation finds nothing,
// some of it is given back to the system and the allocation is tried again. A thread that is ready
// for std::bad_alloc (MayFail) does not touch it.
//
// Thread safety: any thread.
#pragma once

namespace sava::base {

// Puts the memory aside, and has operator new ask for it. Once, before there are threads.
void InstallSpareMemory();
// Puts aside again what was given back, if it can be had.
void RefillSpareMemory();
// Gives some of it back. False: there is none, or the thread may fail.
bool ReleaseSpareMemory();

// While it lives, this thread does not use the spare memory: what it does handles std::bad_alloc.
class MayFail {
 public:
  MayFail() { ++depth_; }
  MayFail(const MayFail&) = delete;
  MayFail& operator=(const MayFail&) = delete;
  ~MayFail() { --depth_; }

  static bool here() { return depth_ > 0; }

 private:
  static constinit thread_local int depth_;
};

}  // namespace sava::base
