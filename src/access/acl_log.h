// AclLog: the refused attempts to authenticate, which ACL LOG shows. Equal attempts within a minute
// share an entry.
//
// Thread safety: one lock of its own, a leaf, taken only when there is something to record or show.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace sava::access {

struct AclLogEntry {
  int64_t id = 0;
  int64_t count = 1;
  std::string context;  // "toplevel" or "multi"
  std::string object;   // the command as it was written
  std::string username;
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
  std::string client_info;
};

class AclLog {
 public:
  // Counts the attempt and keeps it, `max_length` entries at most; id and times are set here.
  void Add(AclLogEntry entry, int64_t now_ms, size_t max_length);
  std::vector<AclLogEntry> Newest(size_t count) const;
  // Forgets the entries, not the count.
  void Reset();

  // INFO's acl_access_denied_auth.
  int64_t denied() const;
  void ResetDenied();

 private:
  mutable std::mutex mutex_;
  std::deque<AclLogEntry> entries_;  // newest first; guarded by mutex_
  int64_t next_id_ = 0;              // guarded by mutex_
  int64_t denied_ = 0;               // guarded by mutex_
};

}  // namespace sava::access
