#include "base/time_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sava::base {

namespace {

// The kernel's struct sched_attr, first version. Debian 12's C library has neither it nor the
// calls.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // the slice
  uint64_t deadline = 0;
  uint64_t period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

// False unless the thread has ordinary scheduling.
bool Get(SchedulingAttributes* attributes) {
  return syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0 &&
         (attributes->policy == SCHED_OTHER || attributes->policy == SCHED_BATCH);
}

}  // namespace

void SetTimeSlice(uint64_t nanos) {
  SchedulingAttributes attributes;
  if (!Get(&attributes)) return;
  attributes.size = sizeof attributes;
  attributes.runtime = nanos;
  // Without a slice all goes on as it was.
  static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
}

uint64_t TimeSlice() {
  SchedulingAttributes attributes;
  return Get(&attributes) ? attributes.runtime : 0;
}

}  // namespace sava::base
