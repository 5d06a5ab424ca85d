#include "data/user_dao.h"

#include <algorithm>
#include <charconv>

#include "data/change_log.h"

namespace timeline {
namespace {

constexpr const char* kColumns =
    "id, email, password, displayName, aboutMe, picture, followers, following, administrator";

User UserOf(const Row& row) {
  return {IntegerOf(row[0]), TextOf(row[1]),    TextOf(row[2]),
          TextOf(row[3]),    TextOf(row[4]),    TextOf(row[5]),
          IntegerOf(row[6]), IntegerOf(row[7]), IntegerOf(row[8]) != 0};
}

std::optional<User> FirstUser(const SqlResult& result) {
  if (result.rows.empty()) return std::nullopt;
  return UserOf(result.rows[0]);
}

std::vector<User> UsersOf(const SqlResult& result) {
  std::vector<User> users;
  for (const auto& row : result.rows) users.push_back(UserOf(row));
  return users;
}

std::vector<Id> IdsOf(const SqlResult& result) {
  std::vector<Id> ids;
  for (const auto& row : result.rows) ids.push_back(IntegerOf(row[0]));
  return ids;
}

std::string ColumnOf(Connection& connection, const char* column, Id user) {
  auto result =
      connection.Run(std::string("SELECT ") + column + " FROM users WHERE id = ?", {user});
  return result.rows.empty() ? "" : TextOf(result.rows[0][0]);
}

}  // namespace

std::vector<Id> SplitIds(const std::string& text) {
  std::vector<Id> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    Id id = 0;
    auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc()) break;
    ids.push_back(id);
    at = next + 1;
  }
  return ids;
}

std::string JoinIds(const std::vector<Id>& ids) {
  std::string text;
  for (auto id : ids) {
    if (!text.empty()) text += ',';
    text += std::to_string(id);
  }
  return text;
}

Id UserDao::Create(Connection& connection, const User& user, bool* taken) const {
  std::string columns = layout_ == Layout::kDocument ? ", followingIds, followerIds" : "";
  std::string values = layout_ == Layout::kDocument ? ", '', ''" : "";
  auto result = connection.Run(
      "INSERT INTO users (email, password, displayName, aboutMe, picture, followers, following, "
      "administrator" +
          columns + ") VALUES (?, ?, ?, ?, ?, 0, 0, 0" + values + ")",
      {user.email, user.password, user.display_name, user.about, user.picture});
  *taken = result.duplicate;
  return result.ok ? result.last_id : 0;
}

std::optional<User> UserDao::Find(Connection& connection, Id id) const {
  return FirstUser(
      connection.Run(std::string("SELECT ") + kColumns + " FROM users WHERE id = ?", {id}));
}

std::optional<User> UserDao::FindByEmail(Connection& connection, const std::string& email) const {
  return FirstUser(
      connection.Run(std::string("SELECT ") + kColumns + " FROM users WHERE email = ?", {email}));
}

std::vector<User> UserDao::FindMany(Connection& connection, const std::vector<Id>& ids) const {
  if (ids.empty()) return {};
  std::vector<Value> parameters;
  AppendPadded(ids, &parameters);
  return UsersOf(connection.Run(std::string("SELECT ") + kColumns + " FROM users WHERE id IN (" +
                                    Placeholders(ids.size()) + ") ORDER BY id",
                                parameters));
}

std::vector<User> UserDao::Search(Connection& connection, const std::string& text, int most) const {
  std::string pattern = "%";
  for (char c : text) {
    if (c == '%' || c == '_' || c == '!') pattern += '!';
    pattern += c;
  }
  pattern += '%';
  return UsersOf(connection.Run(std::string("SELECT ") + kColumns +
                                    " FROM users WHERE displayName LIKE ? ESCAPE '!' ORDER BY id "
                                    "LIMIT ?",
                                {pattern, static_cast<std::int64_t>(most)}));
}

bool UserDao::Update(Connection& connection, const User& user) const {
  return connection
      .Run("UPDATE users SET displayName = ?, aboutMe = ?, picture = ? WHERE id = ?",
           {user.display_name, user.about, user.picture, user.id})
      .ok;
}

bool UserDao::MakeAdministrator(Connection& connection, const std::string& email) const {
  return connection.Run("UPDATE users SET administrator = 1 WHERE email = ?", {email}).changed > 0;
}

std::int64_t UserDao::Count(Connection& connection) const {
  auto result = connection.Run("SELECT COUNT(*) FROM users");
  return result.rows.empty() ? 0 : IntegerOf(result.rows[0][0]);
}

std::vector<Id> UserDao::Following(Connection& connection, Id user) const {
  if (layout_ == Layout::kDocument) return SplitIds(ColumnOf(connection, "followingIds", user));
  return IdsOf(connection.Run("SELECT followee FROM follows WHERE follower = ?", {user}));
}

std::vector<Id> UserDao::Followers(Connection& connection, Id user) const {
  if (layout_ == Layout::kDocument) return SplitIds(ColumnOf(connection, "followerIds", user));
  return IdsOf(connection.Run("SELECT follower FROM follows WHERE followee = ?", {user}));
}

bool UserDao::Follows(Connection& connection, Id user, Id other) const {
  if (layout_ == Layout::kDocument) {
    auto ids = Following(connection, user);
    return std::find(ids.begin(), ids.end(), other) != ids.end();
  }
  return !connection.Run("SELECT 1 FROM follows WHERE follower = ? AND followee = ?", {user, other})
              .rows.empty();
}

bool UserDao::WriteColumns(Connection& connection, Id user, Id other, bool follow) const {
  auto change = [&](const char* column, Id row, Id id) {
    auto ids = SplitIds(ColumnOf(connection, column, row));
    if (follow) {
      ids.push_back(id);
    } else {
      ids.erase(std::remove(ids.begin(), ids.end(), id), ids.end());
    }
    return connection
        .Run(std::string("UPDATE users SET ") + column + " = ? WHERE id = ?", {JoinIds(ids), row})
        .ok;
  };
  return change("followingIds", user, other) && change("followerIds", other, user);
}

bool UserDao::WriteFollow(Connection& connection, Id user, Id other, bool follow) const {
  bool ok;
  if (layout_ == Layout::kDocument) {
    ok = WriteColumns(connection, user, other, follow);
  } else {
    ok = connection
             .Run(follow ? "INSERT INTO follows (follower, followee) VALUES (?, ?)"
                         : "DELETE FROM follows WHERE follower = ? AND followee = ?",
                  {user, other})
             .ok;
  }
  std::int64_t step = follow ? 1 : -1;
  return ok &&
         connection.Run("UPDATE users SET following = following + ? WHERE id = ?", {step, user})
             .ok &&
         connection.Run("UPDATE users SET followers = followers + ? WHERE id = ?", {step, other})
             .ok;
}

FollowResult UserDao::Follow(Connection& connection, Id user, Id other, std::int64_t now) const {
  Change change{0, ChangeKind::kFollow, user, other, ""};
  std::int64_t created = 0;
  if (!ChangeLog::Begin(connection, now, &change.position, &created)) return FollowResult::kFailed;
  auto self = Find(connection, user);
  auto result = FollowResult::kDone;
  if (user == other || !self || !Find(connection, other)) {
    result = FollowResult::kNobody;
  } else if (Follows(connection, user, other)) {
    result = FollowResult::kAlready;
  } else if (self->following >= kMostFollowed) {
    result = FollowResult::kTooMany;
  } else if (!WriteFollow(connection, user, other, true)) {
    result = FollowResult::kFailed;
  }
  if (result != FollowResult::kDone) {
    connection.Rollback();
    return result;
  }
  return ChangeLog::Commit(connection, change) ? result : FollowResult::kFailed;
}

FollowResult UserDao::Unfollow(Connection& connection, Id user, Id other, std::int64_t now) const {
  Change change{0, ChangeKind::kUnfollow, user, other, ""};
  std::int64_t created = 0;
  if (!ChangeLog::Begin(connection, now, &change.position, &created)) return FollowResult::kFailed;
  auto result = FollowResult::kDone;
  if (!Follows(connection, user, other)) {
    result = Find(connection, other) ? FollowResult::kAlready : FollowResult::kNobody;
  } else if (!WriteFollow(connection, user, other, false)) {
    result = FollowResult::kFailed;
  }
  if (result != FollowResult::kDone) {
    connection.Rollback();
    return result;
  }
  return ChangeLog::Commit(connection, change) ? result : FollowResult::kFailed;
}

bool UserDao::CreateSession(Connection& connection, const std::string& token, Id user,
                            std::int64_t expires) const {
  return connection
      .Run("INSERT INTO sessions (token, userId, expires) VALUES (?, ?, ?)", {token, user, expires})
      .ok;
}

std::optional<SessionRow> UserDao::FindSession(Connection& connection,
                                               const std::string& token) const {
  auto result = connection.Run(
      "SELECT s.userId, u.administrator, s.expires FROM sessions s JOIN users u ON u.id = s.userId "
      "WHERE s.token = ?",
      {token});
  if (result.rows.empty()) return std::nullopt;
  const auto& row = result.rows[0];
  return SessionRow{IntegerOf(row[0]), IntegerOf(row[1]) != 0, IntegerOf(row[2])};
}

bool UserDao::DeleteExpiredSessions(Connection& connection, std::int64_t now) const {
  return connection.Run("DELETE FROM sessions WHERE expires <= ?", {now}).ok;
}

bool UserDao::DeleteSession(Connection& connection, const std::string& token,
                            std::int64_t now) const {
  Change change{0, ChangeKind::kSignOut, 0, 0, token};
  std::int64_t created = 0;
  if (!ChangeLog::Begin(connection, now, &change.position, &created)) return false;
  if (!connection.Run("DELETE FROM sessions WHERE token = ?", {token}).ok) {
    connection.Rollback();
    return false;
  }
  return ChangeLog::Commit(connection, change);
}

}  // namespace timeline
