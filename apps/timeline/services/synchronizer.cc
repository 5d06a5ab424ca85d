#include "services/synchronizer.h"

#include <algorithm>
#include <unordered_set>

namespace timeline {
namespace {

constexpr int kMostChanges = 200;
// Enough for the whole log, and for some that another process was faster with.
constexpr int kMostTries = 2 * ChangeLog::kKept / kMostChanges;

// Ends a reading transaction however the function that began it ends.
class Reading {
 public:
  explicit Reading(Connection& connection) : connection_(connection), ok_(connection.BeginRead()) {}
  ~Reading() {
    if (ok_) connection_.Commit();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  bool ok() const { return ok_; }

 private:
  Connection& connection_;
  bool ok_;
};

}  // namespace

void Synchronizer::Changed() {
  if (settings_->use_cache) {
    CatchUp();
  } else {
    verified_ = 0;
  }
}

bool Synchronizer::CatchUp() {
  std::lock_guard lock(mutex_);
  bool done = CatchUpLocked();
  if (!done) verified_ = 0;
  return done;
}

bool Synchronizer::CatchUpLocked() {
  auto store = cache_->store().Borrow();
  if (!store) return false;
  auto generation = cache_->store().generation();
  auto database = pool_->Borrow();
  if (!database) return false;
  for (int i = 0; i < kMostTries; ++i) {
    auto step = CatchUpOnce(*database, *store);
    if (step == Step::kDone) {
      verified_ = generation;
      return true;
    }
    if (step == Step::kFailed) return false;
  }
  return false;
}

Synchronizer::Step Synchronizer::CatchUpOnce(Connection& database, StoreConnection& store) {
  auto at = cache_->Watch(store, {});
  if (!at) return Step::kFailed;
  Reading reading(database);
  if (!reading.ok()) return Step::kFailed;
  auto goal = ChangeLog::Position(database);
  if (goal < 0) return Step::kFailed;
  if (*at == goal) {
    position_ = goal;
    cache_->Forget(store);
    return Step::kDone;
  }
  auto changes = *at < 0 ? std::vector<Change>() : ChangeLog::After(database, *at, kMostChanges);
  if (*at > goal || changes.empty() || changes.front().position != *at + 1) {
    cache_->Forget(store);
    return cache_->Purge(store, goal) ? Step::kAgain : Step::kFailed;
  }
  bool alone = goal == *at + 1;
  std::vector<Command> commands;
  for (const auto& change : changes) {
    if (!Translate(database, store, change, alone, &commands)) return Step::kFailed;
  }
  commands.push_back(cache_->SetPosition(changes.back().position));
  auto executed = cache_->Execute(store, std::move(commands));
  return executed == TimelineCache::Executed::kRefused ? Step::kFailed : Step::kAgain;
}

bool Synchronizer::Translate(Connection& database, StoreConnection& store, const Change& change,
                             bool alone, std::vector<Command>* out) {
  switch (change.kind) {
    case ChangeKind::kPost:
    case ChangeKind::kDeletePost:
      return TranslatePost(database, store, change, alone, out);
    case ChangeKind::kFollow:
    case ChangeKind::kUnfollow:
      return TranslateFollow(database, store, change, alone, out);
    case ChangeKind::kSignOut:
      out->push_back({"DEL", "userSession:" + change.detail});
      return true;
  }
  return true;
}

bool Synchronizer::TranslatePost(Connection& database, StoreConnection& store, const Change& change,
                                 bool alone, std::vector<Command>* out) {
  // Followers as the store knows them, else as the database does. They may differ by follows that
  // are told in the same transaction; those delete or rebuild the feed in question.
  std::vector<Reply> replies;
  auto key = FollowersKey(change.actor);
  if (!store.Run({{"SMEMBERS", key}}, &replies)) return false;
  auto readers = IdsOf(replies[0]);
  if (readers.empty()) {
    readers = users_.Followers(database, change.actor);
    if (alone && !readers.empty()) AppendReplaceSet(key, readers, out);
  }
  readers.push_back(change.actor);
  auto id = std::to_string(change.subject);
  auto last = std::to_string(feed_length_ - 1);
  bool update = settings_->strategy.load() == Strategy::kUpdate;
  if (update && change.kind == ChangeKind::kPost) {
    for (auto reader : readers) {
      out->push_back({"LPUSHX", FeedKey(reader), id});
      out->push_back({"LTRIM", FeedKey(reader), "0", last});
    }
    return true;
  }
  if (!update || !alone) {
    for (auto reader : readers) out->push_back({"DEL", FeedKey(reader)});
    return true;
  }
  // A full feed that loses a post would lack the one that moves up into it: it is deleted.
  std::vector<Command> ask;
  Command watch = {"WATCH"};
  for (auto reader : readers) watch.push_back(FeedKey(reader));
  ask.push_back(std::move(watch));
  for (auto reader : readers) ask.push_back({"LLEN", FeedKey(reader)});
  if (!store.Run(ask, &replies)) return false;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (replies[i + 1].integer >= feed_length_) {
      out->push_back({"DEL", FeedKey(readers[i])});
    } else if (replies[i + 1].integer > 0) {
      out->push_back({"LREM", FeedKey(readers[i]), "1", id});
    }
  }
  return true;
}

bool Synchronizer::TranslateFollow(Connection& database, StoreConnection& store,
                                   const Change& change, bool alone, std::vector<Command>* out) {
  auto feed = FeedKey(change.actor);
  if (!alone || settings_->strategy.load() == Strategy::kDelete) {
    out->push_back({"DEL", feed, FollowingKey(change.actor), FollowersKey(change.subject)});
    return true;
  }
  if (!TranslateSets(store, change, out)) return false;
  if (change.kind == ChangeKind::kUnfollow) return RemovePosts(database, store, change, out);
  auto ids = posts_.FeedIds(database, change.actor, feed_length_);
  if (!ids) return false;
  AppendReplaceList(feed, *ids, out);
  return true;
}

bool Synchronizer::TranslateSets(StoreConnection& store, const Change& change,
                                 std::vector<Command>* out) {
  auto following = FollowingKey(change.actor);
  auto followers = FollowersKey(change.subject);
  std::vector<Reply> replies;
  if (!store.Run({{"WATCH", following, followers}, {"EXISTS", following}, {"EXISTS", followers}},
                 &replies)) {
    return false;
  }
  const char* command = change.kind == ChangeKind::kFollow ? "SADD" : "SREM";
  if (replies[1].integer > 0) {
    out->push_back({command, following, std::to_string(change.subject)});
  }
  if (replies[2].integer > 0) {
    out->push_back({command, followers, std::to_string(change.actor)});
  }
  return true;
}

bool Synchronizer::RemovePosts(Connection& database, StoreConnection& store, const Change& change,
                               std::vector<Command>* out) {
  auto feed = FeedKey(change.actor);
  std::vector<Reply> replies;
  if (!store.Run({{"WATCH", feed}, {"LRANGE", feed, "0", "-1"}}, &replies)) return false;
  auto ids = IdsOf(replies[1]);
  if (static_cast<std::int64_t>(ids.size()) >= feed_length_) {
    out->push_back({"DEL", feed});
    return true;
  }
  auto gone = posts_.IdsByOwner(database, change.subject);
  std::unordered_set<Id> theirs(gone.begin(), gone.end());
  for (auto id : ids) {
    if (theirs.count(id)) out->push_back({"LREM", feed, "1", std::to_string(id)});
  }
  return true;
}

template <typename Ask>
std::optional<std::vector<Id>> Synchronizer::Fill(const std::string& key, bool list,
                                                  const Ask& ask) {
  std::optional<std::vector<Id>> ids;
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    std::int64_t position = -1;
    {
      auto database = pool_->Borrow();
      if (!database) return std::nullopt;
      Reading reading(*database);
      if (!reading.ok()) return std::nullopt;
      position = ChangeLog::Position(*database);
      ids = ask(*database);
    }
    if (!ids) return std::nullopt;
    if (!settings_->use_cache) return ids;
    auto at = std::optional<std::int64_t>();
    {
      auto store = cache_->store().Borrow();
      if (!store) return ids;
      at = cache_->Watch(*store, {});
      if (!at) return ids;
      if (*at == position) {
        std::vector<Command> commands;
        if (list) {
          AppendReplaceList(key, *ids, &commands);
        } else {
          AppendReplaceSet(key, *ids, &commands);
        }
        auto executed = cache_->Execute(*store, std::move(commands));
        if (executed != TimelineCache::Executed::kOvertaken) return ids;
        continue;
      }
      cache_->Forget(*store);
    }
    if (*at < position && !CatchUp()) return ids;
  }
  return ids;
}

std::optional<std::vector<Id>> Synchronizer::FillFeed(Id user) {
  return Fill(FeedKey(user), true,
              [&](Connection& database) { return posts_.FeedIds(database, user, feed_length_); });
}

std::vector<Id> Synchronizer::FillFollowing(Id user) {
  auto ids = Fill(FollowingKey(user), false, [&](Connection& database) {
    return std::make_optional(users_.Following(database, user));
  });
  return ids.value_or(std::vector<Id>());
}

std::vector<Id> Synchronizer::FillFollowers(Id user) {
  auto ids = Fill(FollowersKey(user), false, [&](Connection& database) {
    return std::make_optional(users_.Followers(database, user));
  });
  return ids.value_or(std::vector<Id>());
}

bool Synchronizer::Reload(Id user) {
  if (!settings_->use_cache || !CatchUp()) return false;
  {
    auto store = cache_->store().Borrow();
    std::vector<Reply> replies;
    if (!store ||
        !store->Run({{"DEL", FeedKey(user), FollowersKey(user), FollowingKey(user)}}, &replies)) {
      return false;
    }
  }
  FillFollowing(user);
  FillFollowers(user);
  return FillFeed(user).has_value();
}

}  // namespace timeline
