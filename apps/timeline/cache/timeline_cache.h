// The keys of the timeline in the store, one function for each question and change.
//
//   userFeed:ID       list of post ids, newest first, one's own included
//   userFollowers:ID  set of user ids       userFollowing:ID  set of user ids
//   userSession:TOKEN "USER ADMINISTRATOR", with a time to live; TOKEN is hashed
//   timeline:position "IDENTITY POSITION": the database and the last change of it that is in the
//   keys
//
// A key that exists is right at that position. Every write to them happens in a transaction that
// watches the position, so it happens at the position it was computed for, or not at all.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/store.h"
#include "data/model.h"

namespace timeline {

std::string FeedKey(Id user);
std::string FollowersKey(Id user);
std::string FollowingKey(Id user);
inline constexpr const char* kPositionKey = "timeline:position";

struct FeedRead {
  bool answered = false;       // the store answered and holds this database's keys
  std::int64_t position = -1;  // up to where it has heard
  std::int64_t length = 0;     // 0: there is no such feed
  std::vector<Id> ids;         // the part asked for
};

class TimelineCache {
 public:
  // `identity` names the database and what the keys' contents depend on.
  TimelineCache(Store* store, std::string identity)
      : store_(store), identity_(std::move(identity)) {}

  Store& store() { return *store_; }

  // Items from..to of a feed (to -1: the last one), its length and the position, at one moment.
  FeedRead ReadFeed(Id user, std::int64_t from, std::int64_t to);

  struct SetsRead {
    bool answered = false;
    std::int64_t position = -1;
    bool complete = false;  // every set exists
    std::vector<Id> ids;
  };
  // The members that all of these sets share.
  SetsRead Intersect(const std::vector<std::string>& keys);

  // Starts a transaction: watches the position and the keys, and reads the position. -1: the store
  // holds nothing or another database's keys; null: it does not answer.
  std::optional<std::int64_t> Watch(StoreConnection& connection,
                                    const std::vector<std::string>& keys);
  // Runs the commands as one transaction. A command that meets a key of another type changes
  // nothing; such a key is no feed and no set for any reader, and the next fill replaces it.
  enum class Executed { kDone, kOvertaken, kRefused };
  Executed Execute(StoreConnection& connection, std::vector<Command> commands);
  // Ends what Watch began without changing anything.
  void Forget(StoreConnection& connection);
  Command SetPosition(std::int64_t position) const;

  // Removes every key of the timeline and says that it knows the database at `position`.
  bool Purge(StoreConnection& connection, std::int64_t position);

  // The session, unless the store has not heard of all changes up to `needed`.
  std::optional<std::string> Session(const std::string& token, std::int64_t needed);
  // Kept only if the store is at `position`, where the database was when it was asked.
  void KeepSession(const std::string& token, const std::string& value, std::int64_t seconds,
                   std::int64_t position);

  struct Statistics {
    bool answered = false;
    std::int64_t keys = 0;
    std::int64_t memory = 0;
  };
  Statistics ReadStatistics();

 private:
  std::int64_t PositionOf(const Reply& reply) const;

  Store* store_;
  const std::string identity_;
};

// Commands that replace a key by these ids; a key without ids is removed.
void AppendReplaceList(const std::string& key, const std::vector<Id>& ids,
                       std::vector<Command>* out);
void AppendReplaceSet(const std::string& key, const std::vector<Id>& ids,
                      std::vector<Command>* out);
std::vector<Id> IdsOf(const Reply& reply);

}  // namespace timeline
