// Users, who follows whom, and sessions in the database.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/model.h"
#include "data/schema.h"
#include "data/sql.h"

namespace timeline {

enum class FollowResult { kDone, kAlready, kNobody, kTooMany, kFailed };

struct SessionRow {
  Id user = 0;
  bool administrator = false;
  std::int64_t expires = 0;
};

// The ids in one column of the document's layout: "3,17,42".
std::vector<Id> SplitIds(const std::string& text);
std::string JoinIds(const std::vector<Id>& ids);

class UserDao {
 public:
  // How many people a user may follow; a statement has a limited number of parameters.
  static constexpr std::int64_t kMostFollowed = 10000;

  explicit UserDao(Layout layout) : layout_(layout) {}

  // The new user's id; 0 with *taken when the address has an account, 0 otherwise after an error.
  Id Create(Connection& connection, const User& user, bool* taken) const;
  std::optional<User> Find(Connection& connection, Id id) const;
  std::optional<User> FindByEmail(Connection& connection, const std::string& email) const;
  std::vector<User> FindMany(Connection& connection, const std::vector<Id>& ids) const;
  std::vector<User> Search(Connection& connection, const std::string& text, int most) const;
  bool Update(Connection& connection, const User& user) const;
  bool MakeAdministrator(Connection& connection, const std::string& email) const;
  std::int64_t Count(Connection& connection) const;

  std::vector<Id> Following(Connection& connection, Id user) const;
  std::vector<Id> Followers(Connection& connection, Id user) const;
  bool Follows(Connection& connection, Id user, Id other) const;
  // Both commit.
  FollowResult Follow(Connection& connection, Id user, Id other, std::int64_t now) const;
  FollowResult Unfollow(Connection& connection, Id user, Id other, std::int64_t now) const;

  bool CreateSession(Connection& connection, const std::string& token, Id user,
                     std::int64_t expires) const;
  std::optional<SessionRow> FindSession(Connection& connection, const std::string& token) const;
  // Nobody sees the difference: they are refused anyway.
  bool DeleteExpiredSessions(Connection& connection, std::int64_t now) const;
  // Commits.
  bool DeleteSession(Connection& connection, const std::string& token, std::int64_t now) const;

 private:
  bool WriteFollow(Connection& connection, Id user, Id other, bool follow) const;
  bool WriteColumns(Connection& connection, Id user, Id other, bool follow) const;

  Layout layout_;
};

}  // namespace timeline
