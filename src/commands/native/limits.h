// The rate limit family's handlers: RL.* and CL.THROTTLE in limits.cc, INCREX in limits_increx.cc.
// Buckets are strings with an expiry, so the log and every other command see ordinary keys; the
// algorithms and the strings' forms stand in types/counters/rate_limit.h.
#pragma once

#include "commands/context.h"

namespace sava::commands::limits {

void Take(Context& context);
void Peek(Context& context);
void Refund(Context& context);
void TakeAll(Context& context);
void Throttle(Context& context);
void Increx(Context& context);

}  // namespace sava::commands::limits
