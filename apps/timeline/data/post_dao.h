// Posts in the database. Lists are newest first: by time, then by id, both descending.
#pragma once

#include <optional>
#include <vector>

#include "data/model.h"
#include "data/schema.h"
#include "data/sql.h"

namespace timeline {

class PostDao {
 public:
  explicit PostDao(Layout layout) : layout_(layout) {}

  // The timeline straight from the database; limit -1 means all. Null after an error.
  std::optional<std::vector<Post>> Feed(Connection& connection, Id user, std::int64_t offset,
                                        std::int64_t limit) const;
  std::optional<std::vector<Id>> FeedIds(Connection& connection, Id user, std::int64_t limit) const;
  // The posts among `ids` that exist, and the change log's position at that moment.
  std::optional<std::vector<Post>> ByIds(Connection& connection, const std::vector<Id>& ids,
                                         std::int64_t* position) const;
  std::optional<std::vector<Post>> ByOwner(Connection& connection, Id owner, std::int64_t offset,
                                           std::int64_t limit) const;
  std::vector<Id> IdsByOwner(Connection& connection, Id owner) const;
  std::optional<Post> Find(Connection& connection, Id id) const;

  // The new post's id; 0 when it could not be written. Commits.
  Id Create(Connection& connection, const Post& post, std::int64_t now) const;
  // True when the post existed, belonged to `owner` and is gone. Commits.
  bool Delete(Connection& connection, Id id, Id owner, std::int64_t now) const;

 private:
  Layout layout_;
};

}  // namespace timeline
