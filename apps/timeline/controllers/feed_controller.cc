// The timeline, posts, following and unfollowing.
#include <fmt/format.h>

#include <chrono>

#include "controllers/controllers.h"
#include "web/json.h"
#include "web/visit.h"

namespace timeline {
namespace {

void ShowFeed(Visit& visit, int status, const std::string& message, const Post& draft) {
  auto& application = visit.application();
  PageRequest request{visit.PageNumber(), application.settings.front_page};
  auto page = application.posts.Feed(visit.user(), request);
  if (!page.ok) {
    visit.Refuse(503, "The database does not answer.");
    return;
  }
  auto frame = visit.Frame("Timeline");
  frame.message = message;
  auto form =
      Form(frame, "/posts",
           fmt::format("<input name=\"title\" placeholder=\"Title\" value=\"{}\">"
                       "<textarea name=\"message\" rows=\"3\" placeholder=\"What is new?\">{}"
                       "</textarea><button id=\"post\">Post</button>",
                       Escape(draft.title), Escape(draft.message)));
  JsonObject json;
  json.Text("csrf", frame.form_token).Raw("posts", PostsJson(page, request.number));
  if (!message.empty()) json.Text("error", message);
  visit.Answer(status, frame,
               "<section>" + form + "</section>" + PostsHtml(frame, page, "/feed", request.number),
               json.str());
}

void AddPost(Visit& visit) {
  Post post;
  post.owner = visit.user();
  post.title = visit.Field("title");
  post.message = visit.Field("message");
  Id id = 0;
  std::string message;
  auto outcome = visit.application().posts.Add(post, visit.now(), &id, &message);
  if (outcome == Outcome::kInvalid) {
    // A text far too long is not sent back.
    if (post.message.size() > 2 * PostLimits::kMessage) post.message.clear();
    ShowFeed(visit, 400, message, post);
  } else if (outcome != Outcome::kDone) {
    visit.Refuse(StatusOf(outcome), "The database does not answer.");
  } else {
    visit.Done("/feed", JsonObject().Flag("ok", true).Number("id", id).str());
  }
}

void DeletePost(Visit& visit) {
  auto id = visit.PathId(1);
  auto outcome =
      id ? visit.application().posts.Remove(*id, visit.user(), visit.now()) : Outcome::kMissing;
  switch (outcome) {
    case Outcome::kDone:
      visit.Done("/feed", JsonObject().Flag("ok", true).str());
      break;
    case Outcome::kForbidden:
      visit.Refuse(403, "This is somebody else's post.");
      break;
    case Outcome::kMissing:
      visit.Refuse(404, "There is no such post.");
      break;
    default:
      visit.Refuse(503, "The database does not answer.");
  }
}

void ChangeFollow(Visit& visit, bool follow) {
  auto& users = visit.application().users;
  auto other = visit.PathId(1).value_or(0);
  std::string message;
  auto outcome = follow ? users.Follow(visit.user(), other, visit.now(), &message)
                        : users.Unfollow(visit.user(), other, visit.now(), &message);
  if (outcome == Outcome::kDone) {
    visit.Done(fmt::format("/users/{}", other), JsonObject().Flag("ok", true).str());
  } else {
    visit.Refuse(StatusOf(outcome), message);
  }
}

}  // namespace

void AddFeedController(httplib::Server* server, Application* application) {
  OnGet(server, application, "/feed", Access::kSignedIn, [](Visit& visit) {
    bool cache = visit.application().settings.use_cache;
    auto start = std::chrono::steady_clock::now();
    ShowFeed(visit, 200, "", {});
    std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    visit.application().times.Add(cache, taken.count());
  });
  OnPost(server, application, "/posts", Access::kSignedIn, AddPost);
  OnPost(server, application, R"(/posts/(\d{1,18})/delete)", Access::kSignedIn, DeletePost);
  OnPost(server, application, R"(/users/(\d{1,18})/follow)", Access::kSignedIn,
         [](Visit& visit) { ChangeFollow(visit, true); });
  OnPost(server, application, R"(/users/(\d{1,18})/unfollow)", Access::kSignedIn,
         [](Visit& visit) { ChangeFollow(visit, false); });
}

}  // namespace timeline
