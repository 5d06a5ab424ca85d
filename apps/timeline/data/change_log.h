// Every change that a cached key could show gets a row here, in the transaction that makes it. The
// rows are numbered without gaps in the order of commits (the row in `state` is locked first), so a
// store that says up to which position it has heard says exactly what it has missed.
#pragma once

#include <string>
#include <vector>

#include "data/model.h"
#include "data/sql.h"

namespace timeline {

enum class ChangeKind { kPost = 1, kDeletePost, kFollow, kUnfollow, kSignOut };

struct Change {
  std::int64_t position = 0;
  ChangeKind kind = ChangeKind::kPost;
  Id actor = 0;        // who did it; the owner of a post
  Id subject = 0;      // the post, or the other user
  std::string detail;  // of a sign-out: the session's hashed token
};

class ChangeLog {
 public:
  // Older rows are dropped; a store that is further behind is emptied instead of repaired.
  static constexpr std::int64_t kKept = 100000;

  // Begins a writing transaction and takes the next position. `created` becomes a time later than
  // that of every post before it, so posts are ordered by time as they are by position.
  static bool Begin(Connection& connection, std::int64_t now, std::int64_t* position,
                    std::int64_t* created);
  // Records the change and commits; rolls back when either fails.
  static bool Commit(Connection& connection, const Change& change);

  static std::int64_t Position(Connection& connection);
  // Up to `most` changes after `position`, oldest first.
  static std::vector<Change> After(Connection& connection, std::int64_t position, int most);
};

}  // namespace timeline
