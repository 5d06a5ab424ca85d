// CutOptions: the settings that a snapshot needs.
#pragma once

#include "config/settings.h"
#include "engine/aging.h"
#include "snapshot/snapshot.h"

namespace sava::engine {

inline snapshot::Snapshot::Options CutOptions(const config::Settings& settings, int64_t now_ms,
                                              bool abort_on_flush) {
  using Ages = snapshot::Snapshot::Options::Ages;
  const config::MaxmemoryPolicy policy = settings.maxmemory_policy;
  snapshot::Snapshot::Options options;
  options.abort_on_flush = abort_on_flush;
  if (UsesLfu(policy)) {
    options.ages = Ages::kFrequency;
  } else if (policy == config::MaxmemoryPolicy::kAllkeysLru ||
             policy == config::MaxmemoryPolicy::kVolatileLru) {
    options.ages = Ages::kIdle;
  }
  options.lru_clock = LruClock(now_ms);
  return options;
}

}  // namespace sava::engine
