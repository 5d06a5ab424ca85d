// People: accounts, sessions, following.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "services/limiter.h"
#include "services/post_service.h"
#include "services/synchronizer.h"

namespace timeline {

struct Session {
  Id user = 0;
  bool administrator = false;
};

struct SignInResult {
  Outcome outcome = Outcome::kFailed;
  std::string message;  // for people
  std::string token;    // the session's secret, for the cookie
  Id user = 0;
};

class UserService {
 public:
  // How often one may try a password: for one account, and from one address, in a minute.
  struct Limits {
    std::int64_t per_account = 5;
    std::int64_t per_address = 30;
  };
  static constexpr std::int64_t kSessionSeconds = 30 * 24 * 3600;
  static constexpr std::int64_t kCachedSeconds = 600;

  UserService(Pool* pool, TimelineCache* cache, Synchronizer* synchronizer,
              const Settings* settings, Layout layout, std::string secret, Limits limits)
      : pool_(pool),
        cache_(cache),
        synchronizer_(synchronizer),
        settings_(settings),
        users_(layout),
        secret_(std::move(secret)),
        limits_(limits),
        limiter_(&cache->store(), settings) {}

  SignInResult Register(const std::string& email, const std::string& password,
                        const std::string& display_name, const std::string& address,
                        std::int64_t now);
  SignInResult SignIn(const std::string& email, const std::string& password,
                      const std::string& address, std::int64_t now);
  bool SignOut(const std::string& token, std::int64_t now);
  std::optional<Session> FindSession(const std::string& token, std::int64_t now);
  // A session for a user without a password: for load tests, from the command line only.
  std::string StartSession(Id user, std::int64_t now);
  // Removes the rows of sessions that are over.
  void ForgetExpiredSessions(std::int64_t now);

  // The token that a form of this session or visitor carries.
  std::string FormToken(const std::string& cookie) const;
  bool IsFormToken(const std::string& cookie, const std::string& token) const;

  std::optional<User> Find(Id id);
  std::vector<User> FindMany(std::vector<Id> ids, std::size_t most);
  std::vector<User> Search(const std::string& text);
  Outcome Edit(const User& user, std::string* message);
  Outcome Follow(Id user, Id other, std::int64_t now, std::string* message);
  Outcome Unfollow(Id user, Id other, std::int64_t now, std::string* message);
  bool Follows(Id user, Id other);
  std::vector<Id> Following(Id user);
  std::vector<Id> Followers(Id user);
  // Whom both follow: an intersection in the store, or here when it does not answer.
  std::vector<Id> Mutual(Id user, Id other);

 private:
  std::vector<Id> Members(Id user, bool following);
  bool MayTry(const std::string& email, const std::string& address, std::int64_t now);

  Pool* pool_;
  TimelineCache* cache_;
  Synchronizer* synchronizer_;
  const Settings* settings_;
  const UserDao users_;
  const std::string secret_;
  const Limits limits_;
  Limiter limiter_;
};

}  // namespace timeline
