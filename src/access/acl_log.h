// AclLog: what was refused, which ACL LOG shows: attempts to authenticate, commands, keys and
// channels. Equal ones within a minute share an entry.
//
// Thread safety: one lock of its own, a leaf, taken only when there is something to record or show.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "access/permissions.h"

namespace sava::access {

struct AclLogEntry {
  int64_t id = 0;
  int64_t count = 1;
  Reason reason = Reason::kAuth;
  std::string context;  // "toplevel", "multi" or "lua"
  std::string object;   // the command, the key or the channel; of an attempt the command as written
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

  // INFO's acl_access_denied_auth, _cmd, _key and _channel.
  int64_t denied(Reason reason) const;
  void ResetDenied();

 private:
  mutable std::mutex mutex_;
  std::deque<AclLogEntry> entries_;  // newest first; guarded by mutex_
  int64_t next_id_ = 0;              // guarded by mutex_
  std::array<int64_t, 5> denied_{};  // by Reason; guarded by mutex_
};

}  // namespace sava::access
