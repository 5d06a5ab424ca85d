// `sava_timeline generate`: fills an empty database, in steps that are each a transaction and are
// written down, so that an interrupted run goes on where it ended.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "load/dump.h"
#include "load/network.h"
#include "load/progress.h"
#include "program/options.h"
#include "services/password.h"
#include "services/text.h"

namespace timeline {
namespace {

constexpr std::int64_t kStep = 2000;     // users or posts in a transaction
constexpr std::size_t kRowsAtOnce = 50;  // rows in a statement
constexpr std::size_t kFollowsAtOnce = 500;
constexpr std::size_t kLongestMessage = 8000;
constexpr std::size_t kLongestTitle = 390;

int Fail(const std::string& message) {
  fmt::print(stderr, "sava_timeline generate: {}\n", message);
  return 1;
}

std::string Rows(std::size_t rows, std::size_t columns) {
  std::string row = "(?";
  for (std::size_t i = 1; i < columns; ++i) row += ",?";
  row += ")";
  std::string text = row;
  for (std::size_t i = 1; i < rows; ++i) text += "," + row;
  return text;
}

// Collects rows of one table and writes many with one statement.
class Writer {
 public:
  Writer(Connection* connection, std::string start, std::size_t columns, std::size_t at_once)
      : connection_(connection), start_(std::move(start)), columns_(columns), at_once_(at_once) {}

  bool Add(std::vector<Value> row) {
    std::move(row.begin(), row.end(), std::back_inserter(values_));
    return values_.size() < columns_ * at_once_ || Flush();
  }
  bool Flush() {
    if (values_.empty()) return true;
    auto result = connection_->Run(start_ + Rows(values_.size() / columns_, columns_), values_);
    if (!result.ok) fmt::print(stderr, "\n{}\n", result.error);
    values_.clear();
    return result.ok;
  }

 private:
  Connection* connection_;
  std::string start_;
  std::size_t columns_;
  std::size_t at_once_;
  std::vector<Value> values_;
};

// Where users and posts come from: the seed, or a dump. Asked in order, once for each.
class Source {
 public:
  virtual ~Source() = default;
  virtual bool NextUser(User* user) = 0;
  virtual bool NextPost(Post* post) = 0;
};

class SeedSource : public Source {
 public:
  explicit SeedSource(const NetworkSize& size) : size_(size), network_(size) {}
  bool NextUser(User* user) override {
    if (user_ >= size_.users) return false;
    *user = network_.MakeUser(++user_);
    return true;
  }
  bool NextPost(Post* post) override {
    if (post_ >= size_.posts) return false;
    *post = network_.MakePost(++post_);
    return true;
  }

 private:
  NetworkSize size_;
  Network network_;
  Id user_ = 0;
  Id post_ = 0;
};

class DumpSource : public Source {
 public:
  DumpSource(const NetworkSize& size, const std::string& users, const std::string& posts)
      : size_(size), users_(users), posts_(posts) {}
  bool ok() const { return users_.ok() && posts_.ok(); }

  bool NextUser(User* user) override {
    std::map<std::string, std::string> row;
    while (static_cast<std::int64_t>(ids_.size()) < size_.users && users_.Next(&row)) {
      auto theirs = std::atoll(row["Id"].c_str());
      if (theirs <= 0 || ids_.count(theirs)) continue;
      auto id = static_cast<Id>(ids_.size()) + 1;
      ids_[theirs] = id;
      user->id = id;
      user->email = fmt::format("user{}@example.org", id);
      user->display_name = PlainText(row["DisplayName"], 100);
      user->about = PlainText(row["AboutMe"], 2000);
      // As for one who types it in: nothing but an address of the web.
      user->picture = row["ProfileImageUrl"].substr(0, 400);
      if (!IsWebAddress(user->picture)) user->picture.clear();
      return true;
    }
    return false;
  }

  bool NextPost(Post* post) override {
    std::map<std::string, std::string> row;
    while (post_ < size_.posts && posts_.Next(&row)) {
      auto owner = ids_.find(std::atoll(row["OwnerUserId"].c_str()));
      auto created = DumpTime(row["CreationDate"]);
      if (owner == ids_.end() || created == 0) continue;
      post->id = ++post_;
      post->owner = owner->second;
      post->created = created;
      post->title = PlainText(row["Title"].empty() ? "Answer" : row["Title"], kLongestTitle);
      post->message = PlainText(row["Body"], kLongestMessage);
      return true;
    }
    return false;
  }

 private:
  NetworkSize size_;
  DumpReader users_;
  DumpReader posts_;
  std::unordered_map<long long, Id> ids_;
  Id post_ = 0;
};

class Generator {
 public:
  Generator(Connection* connection, bool mariadb, Layout layout, const NetworkSize& size,
            std::string plan, Source* source)
      : connection_(connection),
        mariadb_(mariadb),
        layout_(layout),
        size_(size),
        network_(size),
        plan_(std::move(plan)),
        source_(source) {}

  bool Run(std::string* error) {
    if (!Resume(error)) return false;
    if (step_ == 0 && done_ == 0) DropIndexes();
    bool ok = Users() && Posts() && Finish(error);
    if (!ok && error->empty()) *error = "the database could not be written; run it again to go on";
    return ok;
  }

 private:
  bool Resume(std::string* error) {
    auto text = MetaOf(*connection_, "generate");
    auto bar = text.rfind('|');
    if (text.empty()) {
      if (UserDao(layout_).Count(*connection_) == 0) return Note(0, 0);
      *error = "the database is not empty";
      return false;
    }
    if (text.substr(0, bar) != plan_) {
      *error = "the database was made with other sizes: " + text.substr(0, bar);
      return false;
    }
    long long done = 0;
    std::sscanf(text.c_str() + bar + 1, "%d %lld", &step_, &done);
    done_ = done;
    return true;
  }

  bool Note(int step, std::int64_t done) {
    return SetMeta(*connection_, "generate", fmt::format("{}|{} {}", plan_, step, done));
  }

  void DropIndexes() {
    if (layout_ != Layout::kIndexed) return;
    connection_->Run(mariadb_ ? "DROP INDEX posts_by_owner ON posts" : "DROP INDEX posts_by_owner");
    connection_->Run(mariadb_ ? "DROP INDEX follows_back ON follows" : "DROP INDEX follows_back");
  }

  // Who follows each user: counted, and listed for the layout that keeps lists.
  void Transpose() {
    auto users = static_cast<std::size_t>(size_.users);
    starts_.assign(users + 2, 0);
    Progress progress("follows", (layout_ == Layout::kDocument ? 2 : 1) * size_.users, 0);
    for (Id id = 1; id <= size_.users; ++id) {
      for (auto other : network_.Following(id)) ++starts_[static_cast<std::size_t>(other) + 1];
      progress.Add(1);
    }
    for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
    if (layout_ == Layout::kDocument) {
      followers_.resize(static_cast<std::size_t>(starts_.back()));
      auto next = starts_;
      for (Id id = 1; id <= size_.users; ++id) {
        for (auto other : network_.Following(id)) {
          followers_[static_cast<std::size_t>(next[static_cast<std::size_t>(other)]++)] =
              static_cast<std::uint32_t>(id);
        }
        progress.Add(1);
      }
    }
    progress.Finish();
  }

  std::vector<Value> UserRow(const User& user, const std::vector<Id>& following) {
    auto from = starts_[static_cast<std::size_t>(user.id)];
    auto to = starts_[static_cast<std::size_t>(user.id) + 1];
    // The first user can sign in and look around; the others cannot.
    bool demo = user.id == 1;
    std::vector<Value> row = {user.id,
                              demo ? "demo@example.org" : user.email,
                              demo ? HashPassword("demo-password") : "",
                              user.display_name,
                              user.about,
                              user.picture,
                              to - from,
                              static_cast<std::int64_t>(following.size()),
                              std::int64_t{0}};
    if (layout_ == Layout::kDocument) {
      row.emplace_back(JoinIds(following));
      std::vector<Id> followers(followers_.begin() + from, followers_.begin() + to);
      row.emplace_back(JoinIds(followers));
    }
    return row;
  }

  bool Users() {
    User user;
    if (step_ > 0) {
      while (source_->NextUser(&user)) {  // a dump's ids are needed for its posts
      }
      return true;
    }
    Transpose();
    bool lists = layout_ == Layout::kDocument;
    Writer users(
        connection_,
        std::string("INSERT INTO users (id, email, password, displayName, aboutMe, picture, "
                    "followers, following, administrator") +
            (lists ? ", followingIds, followerIds) VALUES " : ") VALUES "),
        lists ? 11 : 9, kRowsAtOnce);
    Writer follows(connection_, "INSERT INTO follows (follower, followee) VALUES ", 2,
                   kFollowsAtOnce);
    for (std::int64_t i = 0; i < done_; ++i) source_->NextUser(&user);
    Progress progress("users", size_.users, done_);
    while (done_ < size_.users) {
      if (!connection_->BeginWrite()) return false;
      std::int64_t made = 0;
      while (made < kStep && source_->NextUser(&user)) {
        auto following = network_.Following(user.id);
        bool ok = users.Add(UserRow(user, following));
        for (std::size_t i = 0; ok && !lists && i < following.size(); ++i) {
          ok = follows.Add({user.id, following[i]});
        }
        if (!ok) return false;
        ++made;
      }
      if (made == 0) return connection_->Commit();
      done_ += made;
      if (!users.Flush() || !follows.Flush() || !Note(0, done_) || !connection_->Commit())
        return false;
      progress.Add(made);
    }
    progress.Finish();
    step_ = 1;
    done_ = 0;
    return Note(1, 0);
  }

  bool Posts() {
    Post post;
    Writer posts(connection_,
                 "INSERT INTO posts (id, title, message, ownerUserId, createdTime) VALUES ", 5,
                 kRowsAtOnce);
    if (step_ > 1) return true;
    for (std::int64_t i = 0; i < done_; ++i) source_->NextPost(&post);
    Progress progress("posts", size_.posts, done_);
    while (done_ < size_.posts) {
      if (!connection_->BeginWrite()) return false;
      std::int64_t made = 0;
      while (made < kStep && source_->NextPost(&post)) {
        if (!posts.Add({post.id, post.title, post.message, post.owner, post.created})) return false;
        ++made;
      }
      if (made == 0) {
        if (!connection_->Commit()) return false;
        break;
      }
      done_ += made;
      if (!posts.Flush() || !Note(1, done_) || !connection_->Commit()) return false;
      progress.Add(made);
    }
    progress.Finish();
    step_ = 2;
    return Note(2, 0);
  }

  bool Finish(std::string* error) {
    fmt::print(stderr, "indexes\n");
    if (!CreateIndexes(*connection_, layout_, error)) return false;
    connection_->Run(mariadb_ ? "ANALYZE TABLE posts" : "ANALYZE");
    // A store filled before belongs to another network now: the new name says so.
    return connection_
               ->Run(
                   "UPDATE state SET lastCreated = (SELECT COALESCE(MAX(createdTime), 0) FROM "
                   "posts) "
                   "WHERE id = 1")
               .ok &&
           SetMeta(*connection_, "identity", RandomToken().substr(0, 16)) && Note(3, 0);
  }

  Connection* connection_;
  bool mariadb_;
  Layout layout_;
  NetworkSize size_;
  Network network_;
  std::string plan_;
  Source* source_;
  int step_ = 0;
  std::int64_t done_ = 0;
  std::vector<std::int64_t> starts_;      // of each user's followers
  std::vector<std::uint32_t> followers_;  // the document's layout only
};

}  // namespace

int Generate(const std::vector<std::string>& words) {
  auto known = kCommonOptions;
  known.insert(
      {{"users", true}, {"posts", true}, {"follows", true}, {"seed", true}, {"from", true}});
  Options options;
  std::string error;
  if (!options.Parse(words, known, &error)) return Fail(error);
  NetworkSize size;
  size.users = options.Number("users", 1000, 2, 4000000000, &error);
  size.posts = options.Number("posts", 5000, 0, 4000000000, &error);
  size.seed = static_cast<std::uint64_t>(options.Number("seed", 1, 0, 1000000000, &error));
  auto follows = options.Text("follows", "200..800");
  long long fewest = 0, most = 0;
  if (std::sscanf(follows.c_str(), "%lld..%lld", &fewest, &most) != 2 || fewest < 0 ||
      most < fewest || most > UserDao::kMostFollowed) {
    error = "--follows is FEWEST..MOST";
  }
  size.fewest_follows = fewest;
  size.most_follows = most;
  std::unique_ptr<Source> source;
  if (options.Has("from")) {
    if (options.rest().size() != 1) return Fail("--from needs two files: Users.xml Posts.xml");
    auto dump = std::make_unique<DumpSource>(size, options.Text("from", ""), options.rest()[0]);
    if (!dump->ok()) return Fail("the dump cannot be read");
    source = std::move(dump);
  } else {
    source = std::make_unique<SeedSource>(size);
  }
  if (!error.empty()) return Fail(error);
  auto application = Application::Open(ApplicationOptionsOf(options, &error), &error);
  if (!application) return Fail(error);
  auto connection = application->pool.Borrow();
  if (!connection) return Fail("the database does not answer");
  auto plan = fmt::format("{} users, {} posts, {}..{} follows, seed {}{}", size.users, size.posts,
                          fewest, most, size.seed, options.Has("from") ? ", from a dump" : "");
  Generator generator(&*connection, application->pool.is_mariadb(), application->layout, size, plan,
                      source.get());
  if (!generator.Run(&error)) return Fail(error);
  fmt::print("{}\n", plan);
  return 0;
}

}  // namespace timeline
