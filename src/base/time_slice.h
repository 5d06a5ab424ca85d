// The time slice of a thread: how long it may compute before another thread that waits gets the
// processor. Who has a short one and wakes up does not wait until the slice of whoever computes
// there has ended; its share of the processor stays the same. Linux keeps it from 6.12 on; systems
// before that do nothing.
#pragma once

#include <cstdint>

namespace sava::base {

// Of the calling thread. 0: the system's own. The system takes 100 us for anything shorter.
void SetTimeSlice(uint64_t nanos);
// What the system says; 0 when it has no such thing, or another kind of scheduling was chosen for
// this thread, to which SetTimeSlice does nothing.
uint64_t TimeSlice();

}  // namespace sava::base
