// The administration page: the cache's switch and strategy, page lengths, invalidation of one user,
// and how the cache does.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "controllers/controllers.h"
#include "web/json.h"
#include "web/visit.h"

namespace timeline {
namespace {

constexpr std::int64_t kLongestPage = 1000;

double Mean(const std::vector<double>& times) {
  if (times.empty()) return 0;
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

std::string Line(const std::vector<double>& times, double highest, const char* color) {
  std::string points;
  for (std::size_t i = 0; i < times.size(); ++i) {
    points +=
        fmt::format("{:.1f},{:.1f} ", 5.0 * static_cast<double>(i), 150 - 140 * times[i] / highest);
  }
  return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>",
                     color, points);
}

std::string Chart(const std::vector<double>& with, const std::vector<double>& without) {
  double highest = 0.1;
  for (const auto* times : {&with, &without}) {
    for (double time : *times) highest = std::max(highest, time);
  }
  return fmt::format(
      "<svg id=\"chart\" viewBox=\"0 0 600 170\" width=\"600\" height=\"170\"><line x1=\"0\" "
      "y1=\"150\" "
      "x2=\"600\" y2=\"150\" stroke=\"#999\"/>{}{}<text x=\"4\" y=\"12\" font-size=\"12\">{:.2f} "
      "ms</text><text x=\"4\" y=\"166\" font-size=\"12\" fill=\"#a33\">without cache</text><text "
      "x=\"110\" y=\"166\" font-size=\"12\" fill=\"#14505c\">with cache</text></svg>",
      Line(without, highest, "#a33"), Line(with, highest, "#14505c"), highest);
}

std::string SettingsForm(const PageFrame& frame, const Settings& settings) {
  auto option = [](const char* value, const char* text, bool chosen) {
    return fmt::format("<option value=\"{}\"{}>{}</option>", value, chosen ? " selected" : "",
                       text);
  };
  bool update = settings.strategy.load() == Strategy::kUpdate;
  return Form(
      frame, "/admin",
      fmt::format(
          "<input type=\"hidden\" name=\"action\" value=\"settings\"><label>Cache<select "
          "name=\"cache\">{}{}</select></label><label>Posts on the front page (-1: all)<input "
          "name=\"frontPage\" value=\"{}\"></label><label>Posts on a profile page (-1: all)<input "
          "name=\"profilePage\" value=\"{}\"></label><label>When the database changes<select "
          "name=\"strategy\">{}{}</select></label><button id=\"save\">Save</button>",
          option("on", "on", settings.use_cache), option("off", "off", !settings.use_cache),
          settings.front_page.load(), settings.profile_page.load(),
          option("update", "update the store", update),
          option("delete", "delete, and refill at the next read", !update)));
}

void ShowAdmin(Visit& visit, int status, const std::string& message) {
  auto& application = visit.application();
  const auto& settings = application.settings;
  auto frame = visit.Frame("Administration");
  frame.message = message;
  TimelineCache::Statistics store;
  if (settings.use_cache) store = application.cache.ReadStatistics();
  auto hits = application.posts.hits(), misses = application.posts.misses();
  double rate = hits + misses == 0
                    ? 0
                    : 100.0 * static_cast<double>(hits) / static_cast<double>(hits + misses);
  auto with = application.times.Last(true), without = application.times.Last(false);
  auto content = fmt::format(
      "<h1>Administration</h1><section>{}</section><section>{}</"
      "section><section><table><tr><td>Hit "
      "rate</td><td id=\"rate\">{:.1f} % ({} of {})</td></tr><tr><td>Keys in the "
      "store</td><td>{}</td></tr><tr><td>Memory of the store</td><td>{:.1f} "
      "MB</td></tr><tr><td>Mean "
      "of the last front pages</td><td>{:.2f} ms with, {:.2f} ms without the "
      "cache</td></tr></table>{}</section>",
      SettingsForm(frame, settings),
      Form(frame, "/admin",
           "<input type=\"hidden\" name=\"action\" value=\"invalidate\"><label>Invalidate the "
           "cache of "
           "the user with the id<input name=\"user\"></label><button "
           "id=\"invalidate\">Invalidate</button>"),
      rate, hits, hits + misses, store.answered ? std::to_string(store.keys) : "unknown",
      static_cast<double>(store.memory) / 1e6, Mean(with), Mean(without), Chart(with, without));
  JsonObject json;
  json.Text("csrf", frame.form_token)
      .Flag("cache", settings.use_cache)
      .Number("frontPage", settings.front_page)
      .Number("profilePage", settings.profile_page)
      .Text("strategy", settings.strategy.load() == Strategy::kUpdate ? "update" : "delete")
      .Number("hits", hits)
      .Number("misses", misses)
      .Flag("storeAnswers", store.answered)
      .Number("keys", store.keys)
      .Number("memory", store.memory)
      .Number("storeCommands", static_cast<std::int64_t>(application.cache.store().asked()))
      .Decimal("meanWith", Mean(with))
      .Decimal("meanWithout", Mean(without));
  if (!message.empty()) json.Text(status == 200 ? "message" : "error", message);
  visit.Answer(status, frame, content, json.str());
}

void ChangeSettings(Visit& visit) {
  auto& application = visit.application();
  auto cache = visit.Field("cache");
  auto way = visit.Field("strategy");
  auto front = visit.NumberField("frontPage"), profile = visit.NumberField("profilePage");
  auto fits = [](std::optional<std::int64_t> size) {
    return size && (*size == -1 || (*size >= 1 && *size <= kLongestPage));
  };
  if (!fits(front) || !fits(profile)) {
    ShowAdmin(visit, 400, fmt::format("A page has 1 to {} posts, or -1 for all.", kLongestPage));
    return;
  }
  if ((cache != "on" && cache != "off") || (way != "update" && way != "delete")) {
    ShowAdmin(visit, 400, "The cache is on or off, the strategy update or delete.");
    return;
  }
  bool saved = false;
  if (auto connection = application.pool.Borrow()) {
    saved = application.settings.Change(*connection, cache == "on", *front, *profile,
                                        way == "update" ? Strategy::kUpdate : Strategy::kDelete);
  }
  // What happened while the cache was off is told to the store before it is asked again.
  if (saved && cache == "on") application.synchronizer.CatchUp();
  ShowAdmin(visit, saved ? 200 : 503, saved ? "Saved." : "The database does not answer.");
}

void Invalidate(Visit& visit) {
  auto& application = visit.application();
  auto id = visit.NumberField("user");
  if (!id || !application.users.Find(*id)) {
    ShowAdmin(visit, 404, "There is no such person.");
  } else if (!application.settings.use_cache) {
    ShowAdmin(visit, 400, "The cache is off.");
  } else if (!application.synchronizer.Reload(*id)) {
    ShowAdmin(visit, 503, "The store does not answer.");
  } else {
    ShowAdmin(visit, 200, fmt::format("The keys of user {} are loaded anew.", *id));
  }
}

}  // namespace

void AddAdminController(httplib::Server* server, Application* application) {
  OnGet(server, application, "/admin", Access::kAdministrator,
        [](Visit& visit) { ShowAdmin(visit, 200, ""); });
  OnPost(server, application, "/admin", Access::kAdministrator, [](Visit& visit) {
    auto action = visit.Field("action");
    if (action == "settings") {
      ChangeSettings(visit);
    } else if (action == "invalidate") {
      Invalidate(visit);
    } else {
      ShowAdmin(visit, 400, "There is no such action.");
    }
  });
}

}  // namespace timeline
