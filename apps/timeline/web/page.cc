#include "web/page.h"

#include <fmt/format.h>

#include <ctime>

#include "web/json.h"

namespace timeline {

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string TimeText(std::int64_t milliseconds) {
  std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  auto size = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &parts);
  return std::string(text, size);
}

std::string Form(const PageFrame& frame, const std::string& action, const std::string& fields,
                 const std::string& css) {
  return fmt::format(
      "<form method=\"post\" action=\"{}\" class=\"{}\" enctype=\"multipart/form-data\">"
      "<input type=\"hidden\" name=\"csrf\" value=\"{}\">{}</form>",
      Escape(action), css, frame.form_token, fields);
}

std::string WholePage(const PageFrame& frame, const std::string& content) {
  std::string links;
  if (frame.user != 0) {
    links = fmt::format(
        "<a href=\"/feed\">Timeline</a><a href=\"/users/{}\">Profile</a>"
        "<a href=\"/people\">People</a>",
        frame.user);
    if (frame.administrator) links += "<a href=\"/admin\">Administration</a>";
    links += Form(frame, "/logout", "<button id=\"logout\">Sign out</button>", "inline");
  }
  auto message =
      frame.message.empty() ? "" : fmt::format("<p id=\"message\">{}</p>", Escape(frame.message));
  return fmt::format(
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>"
      "<meta name=\"viewport\" content=\"width=device-width\">"
      "<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/style.css\">"
      "<script src=\"/timeline.js\" defer></script></head><body><header><b>Sava timeline</b>"
      "<nav>{}</nav></header><main>{}{}</main></body></html>",
      Escape(frame.title), links, message, content);
}

std::string PictureHtml(const std::string& picture, const std::string& name) {
  if (!picture.empty()) {
    return fmt::format("<img class=\"picture\" alt=\"\" src=\"{}\">", Escape(picture));
  }
  return fmt::format(
      "<span class=\"picture\">{}</span>",
      Escape(name.substr(0, name.empty() || static_cast<unsigned char>(name[0]) >= 128 ? 0 : 1)));
}

std::string PostsHtml(const PageFrame& frame, const PostPage& page, const std::string& path,
                      std::int64_t number) {
  std::string out = "<div id=\"posts\">";
  for (const auto& post : page.posts) {
    std::string remove;
    if (post.owner == frame.user) {
      remove = Form(frame, fmt::format("/posts/{}/delete", post.id),
                    "<button class=\"delete\">Delete</button>", "inline");
    }
    out += fmt::format(
        "<article id=\"post-{}\">{}<div><h2>{}</h2><p class=\"by\"><a href=\"/users/{}\">{}</a> "
        "<time>{}</time></p><p class=\"text\">{}</p>{}</div></article>",
        post.id, PictureHtml(post.picture, post.display_name), Escape(post.title), post.owner,
        Escape(post.display_name), TimeText(post.created), Escape(post.message), remove);
  }
  out += "</div>";
  if (page.posts.empty() && number == 0) out += "<p class=\"empty\">No posts yet.</p>";
  if (page.more) {
    out += fmt::format("<p><a id=\"more\" class=\"button\" href=\"{}?page={}\">Show more</a></p>",
                       path, number + 1);
  }
  return out;
}

std::string PostsJson(const PostPage& page, std::int64_t number) {
  JsonArray posts;
  for (const auto& post : page.posts) {
    posts.Raw(JsonObject()
                  .Number("id", post.id)
                  .Text("title", post.title)
                  .Text("message", post.message)
                  .Number("owner", post.owner)
                  .Text("displayName", post.display_name)
                  .Text("picture", post.picture)
                  .Number("created", post.created)
                  .str());
  }
  return JsonObject()
      .Number("page", number)
      .Flag("more", page.more)
      .Raw("posts", posts.str())
      .str();
}

std::string PeopleHtml(const std::vector<User>& users) {
  std::string out = "<ul id=\"people\">";
  for (const auto& user : users) {
    out += fmt::format(
        "<li>{}<a href=\"/users/{}\">{}</a> <small>{} followers, follows {}</small></li>",
        PictureHtml(user.picture, user.display_name), user.id, Escape(user.display_name),
        user.followers, user.following);
  }
  return out + (users.empty() ? "</ul><p class=\"empty\">Nobody.</p>" : "</ul>");
}

std::string UserJson(const User& user) {
  return JsonObject()
      .Number("id", user.id)
      .Text("displayName", user.display_name)
      .Text("about", user.about)
      .Text("picture", user.picture)
      .Number("followers", user.followers)
      .Number("following", user.following)
      .str();
}

std::string PeopleJson(const std::vector<User>& users) {
  JsonArray people;
  for (const auto& user : users) people.Raw(UserJson(user));
  return people.str();
}

const char* const kStyle =
    R"(body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1b2733; background: #eef2f5; }
header { display: flex; justify-content: space-between; align-items: center; padding: 10px 24px; background: #14505c; color: #fff; }
nav { display: flex; gap: 18px; align-items: center; }
header a { color: #d8f1f5; text-decoration: none; }
main { max-width: 720px; margin: 24px auto; padding: 0 16px; }
article, section, li { background: #fff; border-radius: 8px; padding: 14px 18px; margin: 0 0 14px; box-shadow: 0 1px 2px #0002; }
article { display: flex; gap: 14px; }
article div { flex: 1; min-width: 0; }
h1 { font-size: 24px; margin: 0 0 12px; }
h2 { font-size: 18px; margin: 0; overflow-wrap: anywhere; }
.by, small, time { color: #5b6b79; font-size: 14px; margin: 0; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: 8px 0; }
.picture { width: 44px; height: 44px; border-radius: 50%; background: #bcd9de; display: inline-flex; align-items: center; justify-content: center; flex: none; object-fit: cover; margin-right: 10px; }
form { display: grid; gap: 8px; }
form.inline { display: inline-block; }
input, textarea, select { font: inherit; padding: 8px; border: 1px solid #b8c4cd; border-radius: 6px; width: 100%; box-sizing: border-box; }
button, .button { font: inherit; padding: 7px 16px; border: 0; border-radius: 6px; background: #14505c; color: #fff; cursor: pointer; text-decoration: none; display: inline-block; }
.delete { background: #e8ecef; color: #7a2a2a; padding: 2px 10px; }
ul { list-style: none; padding: 0; }
li { display: flex; align-items: center; gap: 8px; }
#message { background: #fff3cd; border-radius: 6px; padding: 10px 14px; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; }
table { border-collapse: collapse; } td { padding: 2px 14px 2px 0; }
)";

const char* const kScript = R"('use strict';
// "Show more" puts the next page under this one; without JavaScript it is a link to it.
document.addEventListener('click', async (event) => {
  const link = event.target.closest('#more');
  if (!link) return;
  event.preventDefault();
  const answer = await fetch(link.href, { headers: { Accept: 'text/html' } });
  if (!answer.ok) { location.href = link.href; return; }
  const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const posts = document.getElementById('posts');
  for (const article of next.querySelectorAll('#posts > article')) {
    if (!document.getElementById(article.id)) posts.append(article);
  }
  const more = next.getElementById('more');
  if (more) link.href = more.getAttribute('href'); else link.parentElement.remove();
});
)";

}  // namespace timeline
