// Keeps the store's keys equal to the database: tells it the changes it has not heard of yet, in
// the order of the change log, and fills keys that are missing. ADR 11 says why this is right; in
// short, what is written to the store is computed from one state of the database and written only
// while the store stands at that very state. Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "cache/timeline_cache.h"
#include "data/change_log.h"
#include "data/post_dao.h"
#include "data/user_dao.h"
#include "services/settings.h"

namespace timeline {

class Synchronizer {
 public:
  Synchronizer(Pool* pool, TimelineCache* cache, const Settings* settings, Layout layout,
               std::int64_t feed_length)
      : pool_(pool),
        cache_(cache),
        settings_(settings),
        posts_(layout),
        users_(layout),
        feed_length_(feed_length) {}

  // Brings the store to the database's position, at least that of the moment of the call. False
  // when the store does not answer.
  bool CatchUp();

  // After a change was committed: tells the store, or notes that it was not told.
  void Changed();

  // True while nothing happened since the last CatchUp that could have made the store forget or
  // miss a change of this process.
  bool trusted() const { return verified_.load() == cache_->store().generation(); }

  // How far the store was after the last CatchUp. A store that says less has gone back in time.
  std::int64_t position() const { return position_.load(); }

  // The newest posts of a user's timeline, at most feed_length, from the database; put into the
  // store unless it does not answer or changes go on all the time.
  std::optional<std::vector<Id>> FillFeed(Id user);
  // The same for the two sets of a user.
  std::vector<Id> FillFollowing(Id user);
  std::vector<Id> FillFollowers(Id user);
  // Deletes a user's three keys and fills them at once.
  bool Reload(Id user);

  std::int64_t feed_length() const { return feed_length_; }

 private:
  enum class Step { kDone, kAgain, kFailed };
  bool CatchUpLocked();  // mutex_ is held
  Step CatchUpOnce(Connection& database, StoreConnection& store);
  // What a change means for the store, as commands of a transaction. `alone` when it is the only
  // one being told; otherwise the database has moved on and feeds that need it are deleted, not
  // rebuilt.
  bool Translate(Connection& database, StoreConnection& store, const Change& change, bool alone,
                 std::vector<Command>* out);
  bool TranslatePost(Connection& database, StoreConnection& store, const Change& change, bool alone,
                     std::vector<Command>* out);
  bool TranslateFollow(Connection& database, StoreConnection& store, const Change& change,
                       bool alone, std::vector<Command>* out);
  bool TranslateSets(StoreConnection& store, const Change& change, std::vector<Command>* out);
  bool RemovePosts(Connection& database, StoreConnection& store, const Change& change,
                   std::vector<Command>* out);
  // The ids from the database, and written to the key as a list or set at the same position.
  template <typename Ask>
  std::optional<std::vector<Id>> Fill(const std::string& key, bool list, const Ask& ask);

  Pool* pool_;
  TimelineCache* cache_;
  const Settings* settings_;
  const PostDao posts_;
  const UserDao users_;
  const std::int64_t feed_length_;
  std::mutex mutex_;  // one CatchUp at a time in this process
  std::atomic<std::uint64_t> verified_{0};
  std::atomic<std::int64_t> position_{0};
};

}  // namespace timeline
