#include "services/user_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "services/password.h"
#include "services/text.h"

namespace timeline {
namespace {

constexpr std::size_t kLongestName = 100;
constexpr std::size_t kLongestAbout = 2000;
constexpr std::size_t kLongestPicture = 400;
constexpr std::size_t kShortestPassword = 8;
constexpr std::size_t kLongestPassword = 200;
constexpr std::size_t kTokenLength = 64;
constexpr const char* kTooOften = "Too many attempts. Please wait a minute.";

Outcome OutcomeOf(FollowResult result, std::string* message) {
  switch (result) {
    case FollowResult::kDone:
    case FollowResult::kAlready:
      return Outcome::kDone;
    case FollowResult::kNobody:
      *message = "There is no such person to follow.";
      return Outcome::kMissing;
    case FollowResult::kTooMany:
      *message = fmt::format("One can follow {} people.", UserDao::kMostFollowed);
      return Outcome::kInvalid;
    case FollowResult::kFailed:
      break;
  }
  *message = "The database does not answer.";
  return Outcome::kFailed;
}

}  // namespace

bool UserService::MayTry(const std::string& email, const std::string& address, std::int64_t now) {
  // Both are counted even if the first refuses.
  bool from_here = limiter_.Take("address:" + address, limits_.per_address, 60, now);
  bool account = limiter_.Take("account:" + HashToken(email), limits_.per_account, 60, now);
  return from_here && account;
}

SignInResult UserService::Register(const std::string& email, const std::string& password,
                                   const std::string& display_name, const std::string& address,
                                   std::int64_t now) {
  SignInResult result;
  result.outcome = Outcome::kInvalid;
  User user;
  user.email = Lowered(Trimmed(email));
  user.display_name = Trimmed(display_name);
  if (!IsEmail(user.email)) {
    result.message = "This is not an e-mail address.";
    return result;
  }
  if (!CheckText("password", password, kShortestPassword, kLongestPassword, &result.message) ||
      !CheckText("display name", user.display_name, 1, kLongestName, &result.message)) {
    return result;
  }
  if (!limiter_.Take("address:" + address, limits_.per_address, 60, now)) {
    result.outcome = Outcome::kForbidden;
    result.message = kTooOften;
    return result;
  }
  user.password = HashPassword(password);
  bool taken = false;
  {
    auto database = pool_->Borrow();
    if (database && !user.password.empty()) result.user = users_.Create(*database, user, &taken);
  }
  if (taken) {
    result.message = "There is an account with this e-mail address.";
    return result;
  }
  result.outcome = Outcome::kFailed;
  result.message = "The database does not answer.";
  if (result.user == 0) return result;
  result.token = StartSession(result.user, now);
  if (!result.token.empty()) result.outcome = Outcome::kDone;
  return result;
}

SignInResult UserService::SignIn(const std::string& email, const std::string& password,
                                 const std::string& address, std::int64_t now) {
  SignInResult result;
  auto known_as = Lowered(Trimmed(email));
  if (known_as.size() > 254 || password.size() > kLongestPassword) {
    result.outcome = Outcome::kInvalid;
    result.message = "E-mail address and password do not match.";
    return result;
  }
  if (!MayTry(known_as, address, now)) {
    result.outcome = Outcome::kForbidden;
    result.message = kTooOften;
    return result;
  }
  std::optional<User> user;
  {
    auto database = pool_->Borrow();
    if (!database) {
      result.message = "The database does not answer.";
      return result;
    }
    user = users_.FindByEmail(*database, known_as);
  }
  // An unknown address takes as long as a wrong password.
  static const std::string kNobody = HashPassword(RandomToken());
  bool matches =
      CheckPassword(user && !user->password.empty() ? user->password : kNobody, password);
  if (!user || user->password.empty() || !matches) {
    result.outcome = Outcome::kInvalid;
    result.message = "E-mail address and password do not match.";
    return result;
  }
  result.user = user->id;
  result.token = StartSession(user->id, now);
  result.outcome = result.token.empty() ? Outcome::kFailed : Outcome::kDone;
  return result;
}

std::string UserService::StartSession(Id user, std::int64_t now) {
  auto token = RandomToken();
  auto database = pool_->Borrow();
  if (!database ||
      !users_.CreateSession(*database, HashToken(token), user, now + kSessionSeconds * 1000)) {
    return "";
  }
  return token;
}

void UserService::ForgetExpiredSessions(std::int64_t now) {
  if (auto database = pool_->Borrow()) users_.DeleteExpiredSessions(*database, now);
}

bool UserService::SignOut(const std::string& token, std::int64_t now) {
  bool ok = false;
  {
    auto database = pool_->Borrow();
    ok = database && users_.DeleteSession(*database, HashToken(token), now);
  }
  if (ok) synchronizer_->Changed();
  return ok;
}

std::optional<Session> UserService::FindSession(const std::string& token, std::int64_t now) {
  if (token.size() != kTokenLength) return std::nullopt;
  auto hashed = HashToken(token);
  bool cached = settings_->use_cache && (synchronizer_->trusted() || synchronizer_->CatchUp());
  if (cached) {
    auto text = cache_->Session(hashed, synchronizer_->position());
    Session session;
    int administrator = 0;
    if (text && std::istringstream(*text) >> session.user >> administrator) {
      session.administrator = administrator != 0;
      return session;
    }
  }
  std::int64_t position = -1;
  std::optional<SessionRow> row;
  {
    auto database = pool_->Borrow();
    if (!database) return std::nullopt;
    // The position first: a sign-out that comes between the two makes the store refuse to keep it.
    if (cached) position = ChangeLog::Position(*database);
    row = users_.FindSession(*database, hashed);
  }
  if (!row || row->expires <= now) return std::nullopt;
  if (cached) {
    auto seconds = std::min(kCachedSeconds, (row->expires - now) / 1000);
    cache_->KeepSession(hashed, fmt::format("{} {}", row->user, row->administrator ? 1 : 0),
                        seconds, position);
  }
  return Session{row->user, row->administrator};
}

std::string UserService::FormToken(const std::string& cookie) const {
  return KeyedHash(secret_, "form " + cookie);
}

bool UserService::IsFormToken(const std::string& cookie, const std::string& token) const {
  return !cookie.empty() && SameText(FormToken(cookie), token);
}

std::optional<User> UserService::Find(Id id) {
  auto database = pool_->Borrow();
  if (!database) return std::nullopt;
  return users_.Find(*database, id);
}

std::vector<User> UserService::FindMany(std::vector<Id> ids, std::size_t most) {
  std::sort(ids.begin(), ids.end());
  if (ids.size() > most) ids.resize(most);
  auto database = pool_->Borrow();
  if (!database) return {};
  return users_.FindMany(*database, ids);
}

std::vector<User> UserService::Search(const std::string& text) {
  auto database = pool_->Borrow();
  if (!database || text.size() > kLongestName || !IsCleanText(text)) return {};
  return users_.Search(*database, text, 50);
}

Outcome UserService::Edit(const User& user, std::string* message) {
  if (!CheckText("display name", user.display_name, 1, kLongestName, message) ||
      !CheckText("text about you", user.about, 0, kLongestAbout, message) ||
      !CheckText("address of the picture", user.picture, 0, kLongestPicture, message)) {
    return Outcome::kInvalid;
  }
  if (!user.picture.empty() && !IsWebAddress(user.picture)) {
    *message = "The address of the picture begins with http:// or https://.";
    return Outcome::kInvalid;
  }
  auto database = pool_->Borrow();
  return database && users_.Update(*database, user) ? Outcome::kDone : Outcome::kFailed;
}

Outcome UserService::Follow(Id user, Id other, std::int64_t now, std::string* message) {
  FollowResult result = FollowResult::kFailed;
  {
    auto database = pool_->Borrow();
    if (database) result = users_.Follow(*database, user, other, now);
  }
  if (result == FollowResult::kDone) synchronizer_->Changed();
  return OutcomeOf(result, message);
}

Outcome UserService::Unfollow(Id user, Id other, std::int64_t now, std::string* message) {
  FollowResult result = FollowResult::kFailed;
  {
    auto database = pool_->Borrow();
    if (database) result = users_.Unfollow(*database, user, other, now);
  }
  if (result == FollowResult::kDone) synchronizer_->Changed();
  return OutcomeOf(result, message);
}

bool UserService::Follows(Id user, Id other) {
  auto database = pool_->Borrow();
  return database && users_.Follows(*database, user, other);
}

std::vector<Id> UserService::Members(Id user, bool following) {
  if (settings_->use_cache && (synchronizer_->trusted() || synchronizer_->CatchUp())) {
    auto read = cache_->Intersect({following ? FollowingKey(user) : FollowersKey(user)});
    if (read.answered && read.complete) return read.ids;
    return following ? synchronizer_->FillFollowing(user) : synchronizer_->FillFollowers(user);
  }
  auto database = pool_->Borrow();
  if (!database) return {};
  return following ? users_.Following(*database, user) : users_.Followers(*database, user);
}

std::vector<Id> UserService::Following(Id user) { return Members(user, true); }
std::vector<Id> UserService::Followers(Id user) { return Members(user, false); }

std::vector<Id> UserService::Mutual(Id user, Id other) {
  if (settings_->use_cache && (synchronizer_->trusted() || synchronizer_->CatchUp())) {
    auto read = cache_->Intersect({FollowingKey(user), FollowingKey(other)});
    if (read.answered && read.complete) return read.ids;
  }
  auto one = Following(user), two = Following(other), both = std::vector<Id>();
  std::sort(one.begin(), one.end());
  std::sort(two.begin(), two.end());
  std::set_intersection(one.begin(), one.end(), two.begin(), two.end(), std::back_inserter(both));
  return both;
}

}  // namespace timeline
