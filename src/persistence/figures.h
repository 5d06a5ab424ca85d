// What INFO and others are told of saves, rewrites and loading. Times are Unix seconds, lengths
// seconds (-1: never).
#pragma once

#include <cstdint>

namespace sava::persistence {

struct SavingFigures {
  enum class Activity : uint8_t { kNone, kLoad, kBgsave, kSave, kRewrite, kCopy, kOther };

  struct Save {
    bool scheduled = false;
    bool after_flush = false;       // FLUSHALL wants one, or it is under way
    bool runs_after_flush = false;  // the save under way is that one, and no client asked for it
    int64_t last_s = 0;
    int64_t last_try_s = 0;
    int64_t last_seconds = -1;
    bool last_ok = true;
    uint64_t count = 0;
    uint64_t dirty = 0;  // changes that it has
    uint64_t dirty_at_flush = 0;
    int64_t last_images = 0;
  };
  struct Rewrite {
    bool scheduled = false;
    int64_t last_seconds = -1;
    bool last_ok = true;
    uint64_t count = 0;
    uint64_t failures = 0;  // one after another
    int64_t next_auto_s = 0;
    int64_t last_images = 0;
  };

  Activity activity = Activity::kNone;
  int64_t activity_since_s = 0;
  bool cut_made = false;  // the job under way has its snapshot: its number of keys is known
  Save save;
  Rewrite rewrite;
};

struct LoadingFigures {
  int64_t start_ms = 0;
  uint64_t total_bytes = 0;
  uint64_t loaded_bytes = 0;
  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;
  double rate = 0;  // bytes a second
  int64_t eta_s = 0;
};

}  // namespace sava::persistence
