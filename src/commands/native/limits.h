// The rate limit family's handlers: RL.* and CL.THROTTLE in limits.cc, INCREX in limits_increx.cc.
// Buckets are strings with an expiry, so the log and every other command see ordinary keys; the
// algorithms and the strings' forms stand in types/counters/rate_limit.h.
#pragma once

#include "commands/key_context.h"

namespace sava::commands::limits {

void Take(KeyContext& context);
void Peek(KeyContext& context);
void Refund(KeyContext& context);
void TakeAll(KeyContext& context);
void Throttle(KeyContext& context);
void Increx(KeyContext& context);

}  // namespace sava::commands::limits
