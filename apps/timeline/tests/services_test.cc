// The services with a store that lives in this process, so that a test can look into it, take it
// away and let another writer come in between.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <set>

#include "services/application.h"
#include "services/text.h"
#include "web/json.h"
#include "web/page.h"

namespace timeline {
namespace {

// What the fake server holds, shared by its connections.
struct Memory {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, std::set<std::string>> sets;
  std::map<std::string, std::uint64_t> versions;  // of every key ever written
  std::uint64_t clock = 0;
  bool up = true;
  // Runs once, before the next EXEC that writes: what another client does in that moment.
  std::function<void()> before_exec;

  void Touch(const std::string& key) { versions[key] = ++clock; }
  bool Exists(const std::string& key) const {
    return texts.count(key) || lists.count(key) || sets.count(key);
  }
  bool Remove(const std::string& key) {
    bool was = Exists(key);
    texts.erase(key);
    lists.erase(key);
    sets.erase(key);
    if (was) Touch(key);
    return was;
  }
};

Reply Integer(std::int64_t number) {
  Reply reply;
  reply.kind = Reply::Kind::kInteger;
  reply.integer = number;
  return reply;
}
Reply Text(const std::string& text) {
  Reply reply;
  reply.kind = Reply::Kind::kText;
  reply.text = text;
  return reply;
}
template <typename Texts>
Reply Array(const Texts& texts) {
  Reply reply;
  reply.kind = Reply::Kind::kArray;
  for (const auto& text : texts) reply.elements.push_back(Text(text));
  return reply;
}

class FakeConnection : public StoreConnection {
 public:
  explicit FakeConnection(Memory* memory) : memory_(memory) {}

  bool Run(const std::vector<Command>& commands, std::vector<Reply>* replies) override {
    replies->clear();
    for (const auto& command : commands) {
      if (!memory_->up) return usable_ = false;
      replies->push_back(One(command));
    }
    return true;
  }
  bool usable() const override { return usable_; }

 private:
  Reply One(const Command& command) {
    const auto& name = command[0];
    if (name == "WATCH") {
      for (std::size_t i = 1; i < command.size(); ++i) {
        watched_[command[i]] = memory_->versions[command[i]];
      }
      return Text("OK");
    }
    if (name == "UNWATCH") {
      watched_.clear();
      return Text("OK");
    }
    if (name == "MULTI") {
      queued_.emplace();
      return Text("OK");
    }
    if (name == "EXEC") return Exec();
    if (queued_) {
      queued_->push_back(command);
      return Text("QUEUED");
    }
    return Execute(command);
  }

  Reply Exec() {
    bool writes = std::any_of(queued_->begin(), queued_->end(), [](const Command& command) {
      return command[0] == "SET" || command[0] == "RPUSH";
    });
    if (memory_->before_exec && writes) std::exchange(memory_->before_exec, nullptr)();
    auto commands = std::move(*queued_);
    queued_.reset();
    auto watched = std::exchange(watched_, {});
    for (const auto& [key, version] : watched) {
      if (memory_->versions[key] != version) return Reply();
    }
    Reply reply;
    reply.kind = Reply::Kind::kArray;
    for (const auto& command : commands) reply.elements.push_back(Execute(command));
    return reply;
  }

  Reply Execute(const Command& command) {
    const auto& name = command[0];
    const auto& key = command.size() > 1 ? command[1] : name;
    if (name == "GET") return memory_->texts.count(key) ? Text(memory_->texts[key]) : Reply();
    if (name == "MGET") {
      Reply reply;
      reply.kind = Reply::Kind::kArray;
      for (std::size_t i = 1; i < command.size(); ++i) {
        reply.elements.push_back(Execute({"GET", command[i]}));
      }
      return reply;
    }
    if (name == "SET") {
      if (command.back() == "NX" && memory_->Exists(key)) return Reply();
      memory_->texts[key] = command[2];
      memory_->Touch(key);
      return Text("OK");
    }
    if (name == "DEL" || name == "UNLINK" || name == "EXISTS") {
      std::int64_t count = 0;
      for (std::size_t i = 1; i < command.size(); ++i) {
        count += name == "EXISTS" ? memory_->Exists(command[i]) : memory_->Remove(command[i]);
      }
      return Integer(count);
    }
    if (name == "SCAN") return Scan(command[3]);
    return name[0] == 'S' ? ExecuteSet(command) : ExecuteList(command);
  }

  Reply Scan(const std::string& pattern) {
    auto prefix = pattern.substr(0, pattern.size() - 1);
    std::vector<std::string> keys;
    for (const auto& [key, version] : memory_->versions) {
      if (key.rfind(prefix, 0) == 0 && memory_->Exists(key)) keys.push_back(key);
    }
    Reply reply;
    reply.kind = Reply::Kind::kArray;
    reply.elements = {Text("0"), Array(keys)};
    return reply;
  }

  std::set<std::string> MembersOf(const std::string& key) const {
    auto found = memory_->sets.find(key);
    return found == memory_->sets.end() ? std::set<std::string>() : found->second;
  }

  Reply ExecuteSet(const Command& command) {
    const auto& key = command[1];
    if (command[0] == "SMEMBERS" || command[0] == "SINTER") {
      auto members = MembersOf(key);
      for (std::size_t i = 2; i < command.size(); ++i) {
        auto others = MembersOf(command[i]);
        std::erase_if(members, [&](const auto& member) { return !others.count(member); });
      }
      return Array(members);
    }
    for (std::size_t i = 2; i < command.size(); ++i) {
      if (command[0] == "SADD") memory_->sets[key].insert(command[i]);
      if (command[0] == "SREM") memory_->sets[key].erase(command[i]);
    }
    if (memory_->sets[key].empty()) memory_->sets.erase(key);
    memory_->Touch(key);
    return Integer(1);
  }

  Reply ExecuteList(const Command& command) {
    const auto& name = command[0];
    const auto& key = command[1];
    if (name == "LLEN") {
      return Integer(memory_->lists.count(key) ? std::ssize(memory_->lists[key]) : 0);
    }
    if (!memory_->lists.count(key) && name != "RPUSH") {
      return name == "LRANGE" ? Array(std::vector<std::string>()) : Integer(0);
    }
    auto& list = memory_->lists[key];
    if (name == "LRANGE") return Array(Part(list, std::stol(command[2]), std::stol(command[3])));
    memory_->Touch(key);
    if (name == "RPUSH") list.insert(list.end(), command.begin() + 2, command.end());
    if (name == "LPUSHX") list.insert(list.begin(), command[2]);
    if (name == "LTRIM") list = Part(list, std::stol(command[2]), std::stol(command[3]));
    if (name == "LREM") {
      auto found = std::find(list.begin(), list.end(), command[3]);
      if (found != list.end()) list.erase(found);
    }
    if (list.empty()) memory_->lists.erase(key);
    return Integer(1);
  }

  static std::vector<std::string> Part(const std::vector<std::string>& list, long from, long to) {
    auto size = static_cast<long>(list.size());
    if (to < 0) to += size;
    if (from >= size || to < from) return {};
    return {list.begin() + from, list.begin() + std::min(size, to + 1)};
  }

  Memory* memory_;
  bool usable_ = true;
  std::map<std::string, std::uint64_t> watched_;
  std::optional<std::vector<Command>> queued_;
};

class FakeStore : public Store {
 public:
  explicit FakeStore(Memory* memory) : memory_(memory) {}

 protected:
  std::unique_ptr<StoreConnection> Open() override {
    return memory_->up ? std::make_unique<FakeConnection>(memory_) : nullptr;
  }

 private:
  Memory* memory_;
};

class ServicesTest : public testing::TestWithParam<Layout> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("timeline-services-" + std::to_string(getpid()) + "-" +
               std::to_string(static_cast<int>(GetParam())));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    application_ = Open(5);
    for (const char* name : {"ann", "bob", "cid"}) ids_.push_back(MakeUser(name));
  }
  void TearDown() override {
    application_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<Application> Open(std::int64_t feed_length) {
    ApplicationOptions options;
    options.database = folder_ / "test.db";
    options.layout = GetParam();
    options.feed_length = feed_length;
    std::string error;
    auto application = Application::Open(options, &error, std::make_unique<FakeStore>(&memory_));
    EXPECT_TRUE(application) << error;
    return application;
  }

  Id MakeUser(const std::string& name) {
    User user;
    user.email = name + "@example.org";
    user.display_name = name;
    bool taken = false;
    return UserDao(GetParam()).Create(*application_->pool.Borrow(), user, &taken);
  }
  Id Say(std::size_t who, const std::string& title) {
    Post post;
    post.owner = ids_[who];
    post.title = post.message = title;
    Id id = 0;
    std::string message;
    EXPECT_EQ(application_->posts.Add(post, ++now_, &id, &message), Outcome::kDone) << message;
    return id;
  }
  void Follow(std::size_t who, std::size_t whom) {
    std::string message;
    EXPECT_EQ(application_->users.Follow(ids_[who], ids_[whom], ++now_, &message), Outcome::kDone);
  }
  void Unfollow(std::size_t who, std::size_t whom) {
    std::string message;
    EXPECT_EQ(application_->users.Unfollow(ids_[who], ids_[whom], ++now_, &message),
              Outcome::kDone);
  }
  std::vector<Id> Feed(std::size_t who, std::int64_t page = 0, std::int64_t size = 25) {
    auto found = application_->posts.Feed(ids_[who], {page, size});
    EXPECT_TRUE(found.ok);
    std::vector<Id> ids;
    for (const auto& post : found.posts) ids.push_back(post.id);
    return ids;
  }
  std::vector<Id> Stored(std::size_t who) {
    std::vector<Id> ids;
    auto found = memory_.lists.find(FeedKey(ids_[who]));
    if (found == memory_.lists.end()) return ids;
    for (const auto& text : found->second) ids.push_back(std::stol(text));
    return ids;
  }

  std::filesystem::path folder_;
  Memory memory_;
  std::unique_ptr<Application> application_;
  std::vector<Id> ids_;
  std::int64_t now_ = 1700000000000;
};

using Ids = std::vector<Id>;

TEST_P(ServicesTest, PostGoesToEveryFollowersFeed) {
  Follow(0, 2);
  Follow(1, 2);
  auto first = Say(2, "one");
  EXPECT_EQ(Feed(0), Ids({first}));
  EXPECT_EQ(Feed(1), Ids({first}));
  auto second = Say(2, "two");
  EXPECT_EQ(Stored(0), Ids({second, first}));
  EXPECT_EQ(Stored(1), Ids({second, first}));
}

TEST_P(ServicesTest, FeedIsNotMadeByAPostAlone) {
  Say(0, "one");
  EXPECT_EQ(Stored(0), Ids());
}

TEST_P(ServicesTest, FillThatAPostOvertakesIsNotKeptStale) {
  auto first = Say(0, "one");
  Id second = 0;
  // The fill has read the database; before it writes the store, a post is written and told.
  memory_.before_exec = [&] { second = Say(0, "two"); };
  auto found = Feed(0);
  EXPECT_GT(second, first);
  EXPECT_EQ(found, Ids({second, first}));
  EXPECT_EQ(Stored(0), Ids({second, first}));
}

TEST_P(ServicesTest, ChangeThatAnotherProcessToldIsNotToldTwice) {
  auto first = Say(0, "one");
  EXPECT_EQ(Feed(0), Ids({first}));
  auto other = Open(5);
  // Just before this process tells the post, the other one does.
  memory_.before_exec = [&] { EXPECT_TRUE(other->synchronizer.CatchUp()); };
  auto second = Say(0, "two");
  EXPECT_EQ(Stored(0), Ids({second, first}));
}

TEST_P(ServicesTest, FullFeedThatLosesAPostIsDeleted) {
  Ids posts;
  for (int i = 0; i < 7; ++i) posts.insert(posts.begin(), Say(0, "p"));
  EXPECT_EQ(Feed(0), posts);
  EXPECT_EQ(Stored(0), Ids(posts.begin(), posts.begin() + 5));
  EXPECT_EQ(application_->posts.Remove(posts[1], ids_[0], ++now_), Outcome::kDone);
  EXPECT_EQ(Stored(0), Ids());
  posts.erase(posts.begin() + 1);
  EXPECT_EQ(Feed(0, 0, 3), Ids(posts.begin(), posts.begin() + 3));
  EXPECT_EQ(Stored(0), Ids(posts.begin(), posts.begin() + 5));
  EXPECT_EQ(Feed(0, 1, 3), Ids(posts.begin() + 3, posts.end()));
}

TEST_P(ServicesTest, FullFeedIsDeletedByUnfollowToo) {
  Follow(0, 1);
  for (int i = 0; i < 6; ++i) Say(static_cast<std::size_t>(i % 2), "p");
  EXPECT_EQ(Feed(0).size(), 6u);
  Unfollow(0, 1);
  EXPECT_EQ(Stored(0), Ids());
  EXPECT_EQ(Feed(0).size(), 3u);
}

TEST_P(ServicesTest, WhatTheStoreMissedIsTold) {
  Follow(0, 1);
  auto first = Say(1, "one");
  EXPECT_EQ(Feed(0), Ids({first}));
  memory_.up = false;
  auto second = Say(1, "two");
  EXPECT_EQ(application_->posts.Remove(first, ids_[1], ++now_), Outcome::kDone);
  EXPECT_EQ(Feed(0), Ids({second}));
  EXPECT_FALSE(application_->synchronizer.trusted());
  memory_.up = true;
  usleep(150 * 1000);  // the store rests after a failed attempt
  EXPECT_EQ(Feed(0), Ids({second}));
  EXPECT_EQ(Feed(0), Ids({second}));
  EXPECT_EQ(Stored(0), Ids({second}));
  EXPECT_TRUE(application_->synchronizer.trusted());
}

TEST_P(ServicesTest, StoreWithOlderKeysIsBroughtUpToDate) {
  Follow(0, 1);
  auto first = Say(1, "one");
  Feed(0);
  auto old = memory_;
  auto second = Say(1, "two");
  EXPECT_EQ(Feed(0), Ids({second, first}));
  memory_.texts = old.texts;
  memory_.lists = old.lists;
  memory_.sets = old.sets;
  EXPECT_EQ(Feed(0), Ids({second, first}));
  EXPECT_EQ(Stored(0), Ids({second, first}));
}

TEST_P(ServicesTest, OtherFeedLengthEmptiesTheStore) {
  for (int i = 0; i < 7; ++i) Say(0, "p");
  Feed(0);
  EXPECT_EQ(Stored(0).size(), 5u);
  application_ = Open(3);
  Feed(0, 0, 2);
  EXPECT_EQ(Stored(0).size(), 3u);
}

TEST_P(ServicesTest, TimesGoForwardEvenWhenTheClockDoesNot) {
  auto first = Say(0, "one");
  now_ -= 1000000;
  auto second = Say(0, "two");
  EXPECT_EQ(Feed(0), Ids({second, first}));
  application_->settings.use_cache = false;
  EXPECT_EQ(Feed(0), Ids({second, first}));
}

TEST_P(ServicesTest, CacheThatIsOffIsNotAsked) {
  application_->settings.use_cache = false;
  memory_.up = false;
  auto generation = application_->cache.store().generation();
  Follow(0, 1);
  auto post = Say(1, "one");
  EXPECT_EQ(Feed(0), Ids({post}));
  EXPECT_EQ(application_->users.Mutual(ids_[0], ids_[1]), Ids());
  EXPECT_EQ(application_->cache.store().generation(), generation);
}

TEST_P(ServicesTest, MutualFriendsAreAnIntersection) {
  Follow(0, 1);
  Follow(0, 2);
  ids_.push_back(MakeUser("dan"));
  Follow(3, 2);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(application_->users.Mutual(ids_[0], ids_[3]), Ids({ids_[2]}));
  EXPECT_EQ(memory_.sets[FollowingKey(ids_[3])].size(), 1u);
  Unfollow(3, 2);
  EXPECT_EQ(application_->users.Mutual(ids_[0], ids_[3]), Ids());
}

TEST_P(ServicesTest, FollowTwiceCountsOnce) {
  Follow(0, 1);
  Follow(0, 1);
  EXPECT_EQ(application_->users.Find(ids_[1])->followers, 1);
  EXPECT_EQ(application_->users.Find(ids_[0])->following, 1);
  Unfollow(0, 1);
  Unfollow(0, 1);
  EXPECT_EQ(application_->users.Find(ids_[1])->followers, 0);
}

TEST_P(ServicesTest, SessionsThatAreOverLeaveNoRow) {
  auto old_token = application_->users.StartSession(ids_[0], now_);
  auto later = now_ + UserService::kSessionSeconds * 1000;
  auto new_token = application_->users.StartSession(ids_[1], later - 1);
  auto rows = [&] {
    return IntegerOf(
        application_->pool.Borrow()->Run("SELECT COUNT(*) FROM sessions", {}).rows[0][0]);
  };
  application_->users.ForgetExpiredSessions(later - 1);
  EXPECT_EQ(rows(), 2);
  application_->users.ForgetExpiredSessions(later);
  EXPECT_EQ(rows(), 1);
  EXPECT_FALSE(application_->users.FindSession(old_token, later));
  EXPECT_TRUE(application_->users.FindSession(new_token, later));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ServicesTest,
                         testing::Values(Layout::kDocument, Layout::kIndexed),
                         [](const auto& which) { return std::string(NameOf(which.param)); });

TEST(TextTest, RefusesWhatIsNotText) {
  EXPECT_TRUE(IsCleanText("Čačak\n\t😀"));
  EXPECT_FALSE(IsCleanText(std::string("a\0b", 3)));
  EXPECT_FALSE(IsCleanText("\xc0\xaf"));          // overlong
  EXPECT_FALSE(IsCleanText("\xed\xa0\x80"));      // a surrogate
  EXPECT_FALSE(IsCleanText("\xf4\x90\x80\x80"));  // beyond Unicode
  EXPECT_FALSE(IsCleanText("\xe2\x82"));          // cut off
}

TEST(TextTest, KnowsAddresses) {
  EXPECT_TRUE(IsEmail("a.b@example.org"));
  for (const char* bad : {"", "a", "@b.c", "a@b", "a@b@c.d", "a b@c.d", "a@.d", "a@d."}) {
    EXPECT_FALSE(IsEmail(bad)) << bad;
  }
  EXPECT_TRUE(IsWebAddress("https://example.org/a.png?x=1"));
  EXPECT_FALSE(IsWebAddress("javascript:alert(1)"));
  EXPECT_FALSE(IsWebAddress("http://x/\"onload=1"));
}

TEST(PageTest, EscapesMarkup) {
  EXPECT_EQ(Escape("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(JsonText("a\"\\\n</b>"), "\"a\\\"\\\\\\u000a</b>\"");
}

}  // namespace
}  // namespace timeline
