// Registering, signing in and out, profiles, and finding people.
#include <fmt/format.h>

#include "controllers/controllers.h"
#include "services/text.h"
#include "web/json.h"
#include "web/visit.h"

namespace timeline {
namespace {

constexpr std::size_t kShownPeople = 200;

std::string WelcomeHtml(const PageFrame& frame) {
  return "<h1>A small social network</h1><div class=\"columns\"><section><h2>Sign in</h2>" +
         Form(frame, "/login",
              "<input name=\"email\" type=\"email\" placeholder=\"E-mail\" required>"
              "<input name=\"password\" type=\"password\" placeholder=\"Password\" required>"
              "<button id=\"login\">Sign in</button>") +
         "</section><section><h2>Register</h2>" +
         Form(frame, "/register",
              "<input name=\"email\" type=\"email\" placeholder=\"E-mail\" required>"
              "<input name=\"displayName\" placeholder=\"Display name\" required>"
              "<input name=\"password\" type=\"password\" placeholder=\"Password\" required>"
              "<button id=\"register\">Register</button>") +
         "</section></div>";
}

void ShowWelcome(Visit& visit, int status, const std::string& message) {
  auto frame = visit.Frame("Welcome");
  frame.message = message;
  JsonObject json;
  json.Text("csrf", frame.form_token).Number("user", visit.user());
  if (!message.empty()) json.Text("error", message);
  visit.Answer(status, frame, WelcomeHtml(frame), json.str());
}

void Enter(Visit& visit, const SignInResult& result) {
  if (result.outcome != Outcome::kDone) {
    int status = result.outcome == Outcome::kForbidden ? 429 : StatusOf(result.outcome);
    ShowWelcome(visit, status, result.message);
    return;
  }
  visit.SetSession(result.token);
  visit.Done("/feed", JsonObject()
                          .Flag("ok", true)
                          .Number("user", result.user)
                          .Text("csrf", visit.application().users.FormToken(result.token))
                          .str());
}

std::string FollowForm(Visit& visit, const PageFrame& frame, Id id) {
  bool follows = visit.application().users.Follows(visit.user(), id);
  return Form(frame, fmt::format("/users/{}/{}", id, follows ? "unfollow" : "follow"),
              fmt::format("<button id=\"follow\">{}</button>", follows ? "Unfollow" : "Follow"),
              "inline");
}

void ShowUser(Visit& visit) {
  auto& application = visit.application();
  auto id = visit.PathId(1);
  auto user = id ? application.users.Find(*id) : std::nullopt;
  if (!user) {
    visit.Refuse(404, "There is no such person.");
    return;
  }
  PageRequest request{visit.PageNumber(), application.settings.profile_page};
  auto page = application.posts.Profile(*id, request);
  if (!page.ok) {
    visit.Refuse(503, "The database does not answer.");
    return;
  }
  auto frame = visit.Frame(user->display_name);
  auto path = fmt::format("/users/{}", *id);
  std::string buttons;
  if (*id == visit.user()) {
    buttons = "<a class=\"button\" href=\"/profile\">Edit profile</a>";
  } else {
    buttons = FollowForm(visit, frame, *id) +
              fmt::format(" <a href=\"{}/mutual\">Whom we both follow</a>", path);
  }
  auto content = fmt::format(
      "<section id=\"profile\">{}<b>{}</b><p class=\"text\">{}</p><p><a href=\"{}/followers\">{} "
      "followers</a>, <a href=\"{}/following\">follows {}</a></p>{}</section>{}",
      PictureHtml(user->picture, user->display_name), Escape(user->display_name),
      Escape(user->about), path, user->followers, path, user->following, buttons,
      PostsHtml(frame, page, path, request.number));
  visit.Answer(200, frame, content,
               JsonObject()
                   .Raw("user", UserJson(*user))
                   .Flag("followed", application.users.Follows(visit.user(), *id))
                   .Text("csrf", frame.form_token)
                   .Raw("posts", PostsJson(page, request.number))
                   .str());
}

void ShowPeople(Visit& visit, const std::string& title, const std::vector<User>& people,
                std::size_t total, const std::string& before) {
  auto frame = visit.Frame(title);
  auto content = fmt::format("<h1>{}</h1>{}{}", Escape(title), before, PeopleHtml(people));
  if (total > people.size()) {
    content += fmt::format("<p>{} of {} are shown.</p>", people.size(), total);
  }
  visit.Answer(200, frame, content,
               JsonObject()
                   .Raw("people", PeopleJson(people))
                   .Number("count", static_cast<std::int64_t>(total))
                   .Text("csrf", frame.form_token)
                   .str());
}

// The three lists of people about a user.
void ShowList(Visit& visit, const char* title,
              const std::function<std::vector<Id>(UserService&, Id)>& ask) {
  auto id = visit.PathId(1);
  auto user = id ? visit.application().users.Find(*id) : std::nullopt;
  if (!user) {
    visit.Refuse(404, "There is no such person.");
    return;
  }
  auto ids = ask(visit.application().users, *id);
  ShowPeople(visit, fmt::format("{}: {}", user->display_name, title),
             visit.application().users.FindMany(ids, kShownPeople), ids.size(), "");
}

void ShowEditor(Visit& visit, int status, const User& user, const std::string& message) {
  auto frame = visit.Frame("Edit profile");
  frame.message = message;
  auto fields = fmt::format(
      "<label>Display name<input name=\"displayName\" value=\"{}\"></label>"
      "<label>About me<textarea name=\"about\" rows=\"4\">{}</textarea></label>"
      "<label>Address of a picture<input name=\"picture\" value=\"{}\"></label>"
      "<button id=\"save\">Save</button>",
      Escape(user.display_name), Escape(user.about), Escape(user.picture));
  JsonObject json;
  json.Raw("user", UserJson(user)).Text("csrf", frame.form_token);
  if (!message.empty()) json.Text("error", message);
  visit.Answer(status, frame, "<section>" + Form(frame, "/profile", fields) + "</section>",
               json.str());
}

void SaveProfile(Visit& visit) {
  User user;
  user.id = visit.user();
  user.display_name = Trimmed(visit.Field("displayName"));
  user.about = Trimmed(visit.Field("about"));
  user.picture = Trimmed(visit.Field("picture"));
  std::string message;
  auto outcome = visit.application().users.Edit(user, &message);
  if (outcome != Outcome::kDone) {
    ShowEditor(visit, StatusOf(outcome), user, message);
    return;
  }
  visit.Done(fmt::format("/users/{}", user.id), JsonObject().Flag("ok", true).str());
}

void AddLists(httplib::Server* server, Application* application) {
  OnGet(server, application, R"(/users/(\d{1,18})/followers)", Access::kSignedIn, [](Visit& visit) {
    ShowList(visit, "followers", [](UserService& users, Id id) { return users.Followers(id); });
  });
  OnGet(server, application, R"(/users/(\d{1,18})/following)", Access::kSignedIn, [](Visit& visit) {
    ShowList(visit, "following", [](UserService& users, Id id) { return users.Following(id); });
  });
  OnGet(server, application, R"(/users/(\d{1,18})/mutual)", Access::kSignedIn, [](Visit& visit) {
    ShowList(visit, "whom we both follow",
             [&](UserService& users, Id id) { return users.Mutual(visit.user(), id); });
  });
  OnGet(server, application, "/people", Access::kSignedIn, [](Visit& visit) {
    auto text = Trimmed(visit.Field("q"));
    auto form = fmt::format(
        "<form method=\"get\" action=\"/people\"><input name=\"q\" value=\"{}\" "
        "placeholder=\"Part of a name\"><button>Find</button></form>",
        Escape(text));
    auto people = visit.application().users.Search(text);
    ShowPeople(visit, "People", people, people.size(), form);
  });
}

}  // namespace

void AddWelcomeController(httplib::Server* server, Application* application) {
  OnGet(server, application, "/", Access::kAnybody, [](Visit& visit) {
    if (visit.session()) {
      visit.Done(
          "/feed",
          JsonObject().Number("user", visit.user()).Text("csrf", visit.Frame("").form_token).str());
    } else {
      ShowWelcome(visit, 200, "");
    }
  });
  OnPost(server, application, "/register", Access::kAnybody, [](Visit& visit) {
    Enter(visit, visit.application().users.Register(visit.Field("email"), visit.Field("password"),
                                                    visit.Field("displayName"), visit.address(),
                                                    visit.now()));
  });
  OnPost(server, application, "/login", Access::kAnybody, [](Visit& visit) {
    Enter(visit, visit.application().users.SignIn(visit.Field("email"), visit.Field("password"),
                                                  visit.address(), visit.now()));
  });
  OnPost(server, application, "/logout", Access::kSignedIn, [](Visit& visit) {
    if (!visit.application().users.SignOut(visit.cookie(), visit.now())) {
      visit.Refuse(503, "The database does not answer.");
      return;
    }
    visit.ClearSession();
    visit.Done("/", JsonObject().Flag("ok", true).str());
  });
  OnGet(server, application, "/profile", Access::kSignedIn, [](Visit& visit) {
    auto user = visit.application().users.Find(visit.user());
    ShowEditor(visit, user ? 200 : 503, user.value_or(User()), "");
  });
  OnPost(server, application, "/profile", Access::kSignedIn, SaveProfile);
  OnGet(server, application, R"(/users/(\d{1,18}))", Access::kSignedIn, ShowUser);
  AddLists(server, application);
}

}  // namespace timeline
