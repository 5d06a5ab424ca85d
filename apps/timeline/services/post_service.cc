#include "services/post_service.h"

#include <algorithm>

#include "services/text.h"

namespace timeline {
namespace {

// One post more than the page holds is asked for: it says whether there is more to show.
void Cut(FeedPage* page, std::int64_t size) {
  page->more = size >= 0 && static_cast<std::int64_t>(page->posts.size()) > size;
  if (page->more) page->posts.resize(static_cast<std::size_t>(size));
}

std::vector<Id> Slice(const std::vector<Id>& ids, std::int64_t from, std::int64_t to) {
  auto size = static_cast<std::int64_t>(ids.size());
  auto end = to < 0 ? size : std::min(size, to + 1);
  if (from >= end) return {};
  return {ids.begin() + from, ids.begin() + end};
}

}  // namespace

FeedPage PostService::Feed(Id user, const PageRequest& request) {
  FeedPage page;
  if (settings_->use_cache && FromCache(user, request, &page)) return page;
  return FromDatabase(user, request);
}

FeedPage PostService::FromDatabase(Id user, const PageRequest& request) {
  FeedPage page;
  auto database = pool_->Borrow();
  if (!database) return page;
  bool all = request.size < 0;
  auto posts = posts_.Feed(*database, user, all ? 0 : request.number * request.size,
                           all ? -1 : request.size + 1);
  if (!posts) return page;
  page.ok = true;
  page.posts = std::move(*posts);
  Cut(&page, request.size);
  return page;
}

FeedPage PostService::FromIds(const std::vector<Id>& ids, std::int64_t size,
                              std::int64_t* position) {
  FeedPage page;
  auto database = pool_->Borrow();
  if (!database) return page;
  auto posts = posts_.ByIds(*database, ids, position);
  if (!posts) return page;
  page.ok = true;
  page.from_cache = true;
  page.posts = std::move(*posts);
  // A post that was deleted meanwhile is not there; what follows is still to be shown.
  page.more = size >= 0 && static_cast<std::int64_t>(ids.size()) > size;
  if (page.more && static_cast<std::int64_t>(page.posts.size()) > size) {
    page.posts.resize(static_cast<std::size_t>(size));
  }
  return page;
}

bool PostService::FromCache(Id user, const PageRequest& request, FeedPage* page) {
  bool all = request.size < 0;
  std::int64_t from = all ? 0 : request.number * request.size;
  std::int64_t to = all ? -1 : from + request.size;  // one more than the page
  auto full_length = synchronizer_->feed_length();
  std::int64_t needed = -1;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto read = cache_->ReadFeed(user, from, to);
    if (!read.answered || read.position < needed) {
      if (!synchronizer_->CatchUp()) return false;
      continue;
    }
    if (read.length == 0) {
      ++misses_;
      auto ids = synchronizer_->FillFeed(user);
      if (!ids) return false;
      if (static_cast<std::int64_t>(ids->size()) >= full_length && (all || to >= full_length)) {
        return false;
      }
      std::int64_t position = 0;
      *page = FromIds(Slice(*ids, from, to), request.size, &position);
      page->from_cache = false;
      return page->ok;
    }
    // What a full feed does not hold is only in the database.
    if (read.length >= full_length && (all || to >= read.length)) return false;
    std::int64_t position = 0;
    *page = FromIds(read.ids, request.size, &position);
    if (!page->ok) return false;
    if (needed < 0 && position > read.position) {
      // The store has not heard of something that was written before this page was asked for.
      needed = position;
      if (!synchronizer_->CatchUp()) return false;
      continue;
    }
    ++hits_;
    return true;
  }
  return false;
}

FeedPage PostService::Profile(Id owner, const PageRequest& request) {
  FeedPage page;
  auto database = pool_->Borrow();
  if (!database) return page;
  bool all = request.size < 0;
  auto posts = posts_.ByOwner(*database, owner, all ? 0 : request.number * request.size,
                              all ? -1 : request.size + 1);
  if (!posts) return page;
  page.ok = true;
  page.posts = std::move(*posts);
  Cut(&page, request.size);
  return page;
}

Outcome PostService::Add(Post post, std::int64_t now, Id* id, std::string* message) {
  post.title = Trimmed(post.title);
  post.message = Trimmed(post.message);
  if (!CheckText("title", post.title, 1, PostLimits::kTitle, message) ||
      !CheckText("message", post.message, 1, PostLimits::kMessage, message)) {
    return Outcome::kInvalid;
  }
  {
    auto database = pool_->Borrow();
    *id = database ? posts_.Create(*database, post, now) : 0;
  }
  if (*id == 0) return Outcome::kFailed;
  synchronizer_->Changed();
  return Outcome::kDone;
}

Outcome PostService::Remove(Id post, Id user, std::int64_t now) {
  {
    auto database = pool_->Borrow();
    if (!database) return Outcome::kFailed;
    auto found = posts_.Find(*database, post);
    if (!found) return Outcome::kMissing;
    if (found->owner != user) return Outcome::kForbidden;
    if (!posts_.Delete(*database, post, user, now)) return Outcome::kFailed;
  }
  synchronizer_->Changed();
  return Outcome::kDone;
}

}  // namespace timeline
