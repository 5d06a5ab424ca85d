#include "data/post_dao.h"

#include <algorithm>
#include <limits>

#include "data/change_log.h"
#include "data/user_dao.h"

namespace timeline {
namespace {

constexpr const char* kColumns =
    "p.id, p.title, p.message, p.ownerUserId, u.displayName, u.picture, p.createdTime";

std::vector<Post> PostsOf(const SqlResult& result) {
  std::vector<Post> posts;
  posts.reserve(result.rows.size());
  for (const auto& row : result.rows) {
    posts.push_back({IntegerOf(row[0]), TextOf(row[1]), TextOf(row[2]), IntegerOf(row[3]),
                     TextOf(row[4]), TextOf(row[5]), IntegerOf(row[6])});
  }
  return posts;
}

std::vector<Id> IdsOf(const SqlResult& result) {
  std::vector<Id> ids;
  ids.reserve(result.rows.size());
  for (const auto& row : result.rows) ids.push_back(IntegerOf(row[0]));
  return ids;
}

std::int64_t LimitOf(std::int64_t limit) {
  return limit < 0 ? std::numeric_limits<std::int64_t>::max() / 2 : limit;
}

// Whose posts the timeline of `user` shows, in the document's layout.
std::vector<Id> Owners(Connection& connection, Id user) {
  std::vector<Id> owners = UserDao(Layout::kDocument).Following(connection, user);
  owners.push_back(user);
  return owners;
}

// The ids of a timeline in the indexed layout: for each of some hundred owners a range of the index
// on owner and time, then a sort of ids. CROSS JOIN keeps SQLite from walking all posts instead; IN
// with a union makes MariaDB ask it again for every post.
constexpr const char* kIndexedIds =
    "SELECT x.id FROM (SELECT followee AS owner FROM follows WHERE follower = ? UNION ALL SELECT "
    "?) o "
    "CROSS JOIN posts x WHERE x.ownerUserId = o.owner ORDER BY x.createdTime DESC, x.id DESC LIMIT "
    "?";

}  // namespace

std::optional<std::vector<Post>> PostDao::Feed(Connection& connection, Id user, std::int64_t offset,
                                               std::int64_t limit) const {
  std::vector<Value> parameters;
  std::string sql;
  if (layout_ == Layout::kDocument) {
    auto owners = Owners(connection, user);
    sql = std::string("SELECT ") + kColumns +
          " FROM posts p JOIN users u ON p.ownerUserId = u.id WHERE p.ownerUserId IN (" +
          Placeholders(owners.size()) + ") ORDER BY p.createdTime DESC, p.id DESC LIMIT ? OFFSET ?";
    AppendPadded(owners, &parameters);
  } else {
    sql = std::string("SELECT ") + kColumns + " FROM (" + kIndexedIds +
          " OFFSET ?) f JOIN posts p ON p.id = f.id "
          "JOIN users u ON u.id = p.ownerUserId ORDER BY p.createdTime DESC, p.id DESC";
    parameters = {user, user};
  }
  parameters.emplace_back(LimitOf(limit));
  parameters.emplace_back(offset);
  auto result = connection.Run(sql, parameters);
  if (!result.ok) return std::nullopt;
  return PostsOf(result);
}

std::optional<std::vector<Id>> PostDao::FeedIds(Connection& connection, Id user,
                                                std::int64_t limit) const {
  std::vector<Value> parameters;
  std::string sql = kIndexedIds;
  if (layout_ == Layout::kDocument) {
    auto owners = Owners(connection, user);
    sql = "SELECT id FROM posts WHERE ownerUserId IN (" + Placeholders(owners.size()) +
          ") ORDER BY createdTime DESC, id DESC LIMIT ?";
    AppendPadded(owners, &parameters);
  } else {
    parameters = {user, user};
  }
  parameters.emplace_back(LimitOf(limit));
  auto result = connection.Run(sql, parameters);
  if (!result.ok) return std::nullopt;
  return IdsOf(result);
}

std::optional<std::vector<Post>> PostDao::ByIds(Connection& connection, const std::vector<Id>& ids,
                                                std::int64_t* position) const {
  constexpr std::size_t kAtOnce = 1000;
  std::vector<Post> posts;
  *position = -1;
  for (std::size_t from = 0; from < ids.size(); from += kAtOnce) {
    std::vector<Id> part(
        ids.begin() + static_cast<std::ptrdiff_t>(from),
        ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), from + kAtOnce)));
    std::vector<Value> parameters;
    AppendPadded(part, &parameters);
    auto result = connection.Run(
        std::string("SELECT ") + kColumns +
            ", (SELECT position FROM state WHERE id = 1) FROM posts p JOIN users u ON "
            "p.ownerUserId = u.id WHERE p.id IN (" +
            Placeholders(part.size()) + ") ORDER BY p.createdTime DESC, p.id DESC",
        parameters);
    if (!result.ok) return std::nullopt;
    for (const auto& row : result.rows) *position = IntegerOf(row[7]);
    auto found = PostsOf(result);
    posts.insert(posts.end(), found.begin(), found.end());
  }
  if (*position < 0) *position = ChangeLog::Position(connection);
  return posts;
}

std::optional<std::vector<Post>> PostDao::ByOwner(Connection& connection, Id owner,
                                                  std::int64_t offset, std::int64_t limit) const {
  auto result = connection.Run(
      std::string("SELECT ") + kColumns +
          " FROM posts p JOIN users u ON p.ownerUserId = u.id WHERE p.ownerUserId = ? ORDER BY "
          "p.createdTime DESC, p.id DESC LIMIT ? OFFSET ?",
      {owner, LimitOf(limit), offset});
  if (!result.ok) return std::nullopt;
  return PostsOf(result);
}

std::vector<Id> PostDao::IdsByOwner(Connection& connection, Id owner) const {
  return IdsOf(connection.Run("SELECT id FROM posts WHERE ownerUserId = ?", {owner}));
}

std::optional<Post> PostDao::Find(Connection& connection, Id id) const {
  std::int64_t position = 0;
  auto posts = ByIds(connection, {id}, &position);
  if (!posts || posts->empty()) return std::nullopt;
  return posts->front();
}

Id PostDao::Create(Connection& connection, const Post& post, std::int64_t now) const {
  Change change{0, ChangeKind::kPost, post.owner, 0, ""};
  std::int64_t created = 0;
  if (!ChangeLog::Begin(connection, now, &change.position, &created)) return 0;
  auto inserted = connection.Run(
      "INSERT INTO posts (title, message, ownerUserId, createdTime) VALUES (?, ?, ?, ?)",
      {post.title, post.message, post.owner, created});
  change.subject = inserted.last_id;
  bool ok =
      inserted.ok && connection.Run("UPDATE state SET lastCreated = ? WHERE id = 1", {created}).ok;
  if (!ok) {
    connection.Rollback();
    return 0;
  }
  return ChangeLog::Commit(connection, change) ? change.subject : 0;
}

bool PostDao::Delete(Connection& connection, Id id, Id owner, std::int64_t now) const {
  Change change{0, ChangeKind::kDeletePost, owner, id, ""};
  std::int64_t created = 0;
  if (!ChangeLog::Begin(connection, now, &change.position, &created)) return false;
  auto deleted = connection.Run("DELETE FROM posts WHERE id = ? AND ownerUserId = ?", {id, owner});
  if (!deleted.ok || deleted.changed == 0) {
    connection.Rollback();
    return false;
  }
  return ChangeLog::Commit(connection, change);
}

}  // namespace timeline
