// Timelines and posts: decides whether a page comes from the store's ids or from the database
// alone.
#pragma once

#include <atomic>
#include <string>

#include "services/synchronizer.h"

namespace timeline {

enum class Outcome { kDone, kInvalid, kForbidden, kMissing, kFailed };

struct PostLimits {
  static constexpr std::size_t kTitle = 200;     // bytes
  static constexpr std::size_t kMessage = 8000;  // bytes
};

struct FeedPage : PostPage {
  bool ok = false;
  bool from_cache = false;
};

class PostService {
 public:
  PostService(Pool* pool, TimelineCache* cache, Synchronizer* synchronizer,
              const Settings* settings, Layout layout)
      : pool_(pool),
        cache_(cache),
        synchronizer_(synchronizer),
        settings_(settings),
        posts_(layout) {}

  FeedPage Feed(Id user, const PageRequest& request);
  FeedPage Profile(Id owner, const PageRequest& request);

  // A problem with the text becomes *message.
  Outcome Add(Post post, std::int64_t now, Id* id, std::string* message);
  Outcome Remove(Id post, Id user, std::int64_t now);

  std::int64_t hits() const { return hits_.load(); }
  std::int64_t misses() const { return misses_.load(); }

 private:
  FeedPage FromDatabase(Id user, const PageRequest& request);
  bool FromCache(Id user, const PageRequest& request, FeedPage* page);
  FeedPage FromIds(const std::vector<Id>& ids, std::int64_t size, std::int64_t* position);

  Pool* pool_;
  TimelineCache* cache_;
  Synchronizer* synchronizer_;
  const Settings* settings_;
  const PostDao posts_;
  std::atomic<std::int64_t> hits_{0};
  std::atomic<std::int64_t> misses_{0};
};

}  // namespace timeline
