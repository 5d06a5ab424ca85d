#include "cache/timeline_cache.h"

#include <charconv>

namespace timeline {
namespace {

// So many ids in one command at most; a longer list takes several.
constexpr std::size_t kAtOnce = 1000;

Id IdOf(const std::string& text) {
  Id id = 0;
  std::from_chars(text.data(), text.data() + text.size(), id);
  return id;
}

void AppendReplace(const char* command, const std::string& key, const std::vector<Id>& ids,
                   std::vector<Command>* out) {
  out->push_back({"DEL", key});
  for (std::size_t from = 0; from < ids.size(); from += kAtOnce) {
    Command next = {command, key};
    for (std::size_t i = from; i < ids.size() && i < from + kAtOnce; ++i) {
      next.push_back(std::to_string(ids[i]));
    }
    out->push_back(std::move(next));
  }
}

}  // namespace

std::string FeedKey(Id user) { return "userFeed:" + std::to_string(user); }
std::string FollowersKey(Id user) { return "userFollowers:" + std::to_string(user); }
std::string FollowingKey(Id user) { return "userFollowing:" + std::to_string(user); }

void AppendReplaceList(const std::string& key, const std::vector<Id>& ids,
                       std::vector<Command>* out) {
  AppendReplace("RPUSH", key, ids, out);
}

void AppendReplaceSet(const std::string& key, const std::vector<Id>& ids,
                      std::vector<Command>* out) {
  AppendReplace("SADD", key, ids, out);
}

std::vector<Id> IdsOf(const Reply& reply) {
  std::vector<Id> ids;
  ids.reserve(reply.elements.size());
  for (const auto& element : reply.elements) ids.push_back(IdOf(element.text));
  return ids;
}

std::int64_t TimelineCache::PositionOf(const Reply& reply) const {
  auto space = reply.text.find(' ');
  if (space == std::string::npos || reply.text.compare(0, space, identity_) != 0) return -1;
  return IdOf(reply.text.substr(space + 1));
}

Command TimelineCache::SetPosition(std::int64_t position) const {
  return {"SET", kPositionKey, identity_ + " " + std::to_string(position)};
}

FeedRead TimelineCache::ReadFeed(Id user, std::int64_t from, std::int64_t to) {
  FeedRead read;
  auto connection = store_->Borrow();
  std::vector<Reply> replies;
  auto key = FeedKey(user);
  if (!connection || !connection->Run({{"MULTI"},
                                       {"GET", kPositionKey},
                                       {"LLEN", key},
                                       {"LRANGE", key, std::to_string(from), std::to_string(to)},
                                       {"EXEC"}},
                                      &replies)) {
    return read;
  }
  const auto& parts = replies.back().elements;
  if (parts.size() != 3) return read;
  read.position = PositionOf(parts[0]);
  read.answered = read.position >= 0;
  read.length = parts[1].integer;
  read.ids = IdsOf(parts[2]);
  return read;
}

TimelineCache::SetsRead TimelineCache::Intersect(const std::vector<std::string>& keys) {
  SetsRead read;
  auto connection = store_->Borrow();
  std::vector<Reply> replies;
  Command exists = {"EXISTS"}, intersect = {"SINTER"};
  exists.insert(exists.end(), keys.begin(), keys.end());
  intersect.insert(intersect.end(), keys.begin(), keys.end());
  if (!connection ||
      !connection->Run({{"MULTI"}, {"GET", kPositionKey}, exists, intersect, {"EXEC"}}, &replies)) {
    return read;
  }
  const auto& parts = replies.back().elements;
  if (parts.size() != 3) return read;
  read.position = PositionOf(parts[0]);
  read.answered = read.position >= 0;
  read.complete = parts[1].integer == static_cast<std::int64_t>(keys.size());
  read.ids = IdsOf(parts[2]);
  return read;
}

std::optional<std::int64_t> TimelineCache::Watch(StoreConnection& connection,
                                                 const std::vector<std::string>& keys) {
  Command watch = {"WATCH", kPositionKey};
  watch.insert(watch.end(), keys.begin(), keys.end());
  std::vector<Reply> replies;
  if (!connection.Run({watch, {"GET", kPositionKey}}, &replies)) return std::nullopt;
  return PositionOf(replies[1]);
}

TimelineCache::Executed TimelineCache::Execute(StoreConnection& connection,
                                               std::vector<Command> commands) {
  commands.insert(commands.begin(), {"MULTI"});
  commands.push_back({"EXEC"});
  std::vector<Reply> replies;
  if (!connection.Run(commands, &replies)) return Executed::kRefused;
  const auto& last = replies.back();
  if (last.is_nil()) return Executed::kOvertaken;
  return last.kind == Reply::Kind::kArray ? Executed::kDone : Executed::kRefused;
}

bool TimelineCache::Purge(StoreConnection& connection, std::int64_t position) {
  std::vector<Reply> replies;
  // Without a position nobody reads or fills, so the walk sees every key there is.
  if (!connection.Run({{"DEL", kPositionKey}}, &replies)) return false;
  for (const char* pattern :
       {"userFeed:*", "userFollowers:*", "userFollowing:*", "userSession:*"}) {
    std::string cursor = "0";
    do {
      if (!connection.Run({{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}}, &replies) ||
          replies[0].elements.size() != 2) {
        return false;
      }
      cursor = replies[0].elements[0].text;
      Command unlink = {"UNLINK"};
      for (const auto& key : replies[0].elements[1].elements) unlink.push_back(key.text);
      if (unlink.size() > 1 && !connection.Run({unlink}, &replies)) return false;
    } while (cursor != "0");
  }
  // Another process may have been faster; then its position stands.
  auto set = SetPosition(position);
  set.emplace_back("NX");
  return connection.Run({set}, &replies) && !replies[0].is_error();
}

std::optional<std::string> TimelineCache::Session(const std::string& token, std::int64_t needed) {
  auto connection = store_->Borrow();
  std::vector<Reply> replies;
  if (!connection || !connection->Run({{"MGET", kPositionKey, "userSession:" + token}}, &replies)) {
    return std::nullopt;
  }
  const auto& parts = replies[0].elements;
  if (parts.size() != 2 || PositionOf(parts[0]) < needed || parts[1].is_nil()) return std::nullopt;
  return parts[1].text;
}

void TimelineCache::KeepSession(const std::string& token, const std::string& value,
                                std::int64_t seconds, std::int64_t position) {
  auto connection = store_->Borrow();
  if (!connection || seconds <= 0) return;
  if (Watch(*connection, {}) == position) {
    Execute(*connection, {{"SET", "userSession:" + token, value, "EX", std::to_string(seconds)}});
  } else {
    Forget(*connection);
  }
}

void TimelineCache::Forget(StoreConnection& connection) {
  std::vector<Reply> replies;
  if (connection.usable()) connection.Run({{"UNWATCH"}}, &replies);
}

TimelineCache::Statistics TimelineCache::ReadStatistics() {
  Statistics statistics;
  auto connection = store_->Borrow();
  std::vector<Reply> replies;
  if (!connection || !connection->Run({{"DBSIZE"}, {"INFO", "memory"}}, &replies))
    return statistics;
  statistics.answered = true;
  statistics.keys = replies[0].integer;
  constexpr std::string_view kUsed = "used_memory:";
  auto at = replies[1].text.find(kUsed);
  if (at != std::string::npos) statistics.memory = IdOf(replies[1].text.substr(at + kUsed.size()));
  return statistics;
}

}  // namespace timeline
