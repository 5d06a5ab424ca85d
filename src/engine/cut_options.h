// CutOptions: what a snapshot needs to know of the settings.
#pragma once

#include "engine/aging.h"
#include "engine/settings.h"
#include "journal/snapshot.h"

namespace sava::engine {

inline journal::Snapshot::Options CutOptions(const Settings& settings, int64_t now_ms,
                                             bool abort_on_flush) {
  using Ages = journal::Snapshot::Options::Ages;
  const MaxmemoryPolicy policy = settings.maxmemory_policy;
  journal::Snapshot::Options options;
  options.abort_on_flush = abort_on_flush;
  if (UsesLfu(policy)) {
    options.ages = Ages::kFrequency;
  } else if (policy == MaxmemoryPolicy::kAllkeysLru || policy == MaxmemoryPolicy::kVolatileLru) {
    options.ages = Ages::kIdle;
  }
  options.lru_clock = LruClock(now_ms);
  return options;
}

}  // namespace sava::engine
