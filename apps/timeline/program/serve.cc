// The command that serves the pages, and the small ones an administrator uses.
#include <fmt/format.h>
#include <httplib.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "controllers/controllers.h"
#include "program/options.h"
#include "services/password.h"
#include "services/text.h"
#include "web/json.h"
#include "web/page.h"

namespace timeline {
namespace {

constexpr std::size_t kLargestBody = 64 * 1024;

// A connection that is kept open has a thread of its own: this many are served at once.
constexpr std::size_t kThreads = 256;

int Fail(const std::string& message) {
  fmt::print(stderr, "sava_timeline: {}\n", message);
  return 1;
}

// The application of a command line; null after an error, which was printed.
std::unique_ptr<Application> OpenFor(const Options& options, std::string* error) {
  auto settings = ApplicationOptionsOf(options, error);
  if (!error->empty()) return nullptr;
  return Application::Open(settings, error);
}

void AddFiles(httplib::Server* server) {
  server->Get("/style.css", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(kStyle, "text/css");
  });
  server->Get("/timeline.js", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(kScript, "text/javascript");
  });
  server->set_error_handler([](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;
    std::string message = response.status == 404   ? "There is no such page."
                          : response.status == 413 ? "This is too much at once."
                                                   : "This request is not understood.";
    if (request.get_header_value("Accept").find("application/json") != std::string::npos) {
      response.set_content(JsonObject().Text("error", message).str(), "application/json");
    } else {
      PageFrame frame;
      frame.title = frame.message = message;
      response.set_content(WholePage(frame, "<p><a href=\"/\">Back to the start</a></p>"),
                           "text/html; charset=utf-8");
    }
  });
}

}  // namespace

int Serve(const std::vector<std::string>& words) {
  auto known = kCommonOptions;
  known.insert({{"port", true}, {"host", true}, {"keep-alive", true}});
  Options options;
  std::string error;
  if (!options.Parse(words, known, &error)) return Fail(error);
  auto port = static_cast<int>(options.Number("port", 8080, 0, 65535, &error));
  auto host = options.Text("host", "127.0.0.1");
  auto keep_alive = options.Number("keep-alive", 5, 1, 3600, &error);
  if (!error.empty()) return Fail(error);
  auto application = OpenFor(options, &error);
  if (!application) return Fail(error);

  // Signals are waited for by one thread; the others, made later, inherit that they are blocked.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  httplib::Server server;
  AddFiles(&server);
  AddWelcomeController(&server, application.get());
  AddFeedController(&server, application.get());
  AddAdminController(&server, application.get());
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kLargestBody);
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(1000000);
  // An idle connection holds a thread.
  server.set_keep_alive_timeout(keep_alive);
  int listening = -1;
  server.set_socket_options([&](socket_t socket) {
    int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    listening = socket;
  });
  if (port == 0) {
    port = server.bind_to_any_port(host);
  } else if (!server.bind_to_port(host, port)) {
    port = -1;
  }
  if (port < 0) return Fail("this address cannot be listened to");
  // The library lets five connections wait; a load test opens 160 in one moment.
  listen(listening, 1024);
  application->StartRepairing();
  std::thread waiter([&] {
    int signal_number = 0;
    sigwait(&signals, &signal_number);
    server.stop();
  });
  fmt::print("listening on http://{}:{}/ ({} layout)\n", host, port, NameOf(application->layout));
  std::fflush(stdout);
  server.listen_after_bind();
  pthread_kill(waiter.native_handle(), SIGINT);
  waiter.join();
  return 0;
}

int MakeAdministrator(const std::vector<std::string>& words) {
  Options options;
  std::string error;
  if (!options.Parse(words, kCommonOptions, &error)) return Fail(error);
  if (options.rest().size() != 1) return Fail("usage: sava_timeline admin EMAIL [--database …]");
  auto application = OpenFor(options, &error);
  if (!application) return Fail(error);
  auto connection = application->pool.Borrow();
  auto email = Lowered(Trimmed(options.rest()[0]));
  if (!connection || !UserDao(application->layout).MakeAdministrator(*connection, email)) {
    return Fail("nobody has registered with " + email);
  }
  fmt::print("{} is an administrator\n", email);
  return 0;
}

int ChangeSettingsCommand(const std::vector<std::string>& words) {
  auto known = kCommonOptions;
  known.insert({{"cache", true}, {"front-page", true}, {"profile-page", true}, {"strategy", true}});
  Options options;
  std::string error;
  if (!options.Parse(words, known, &error)) return Fail(error);
  auto application = OpenFor(options, &error);
  if (!application) return Fail(error);
  auto& settings = application->settings;
  auto cache = options.Text("cache", settings.use_cache ? "on" : "off");
  auto way =
      options.Text("strategy", settings.strategy.load() == Strategy::kUpdate ? "update" : "delete");
  auto front = options.Number("front-page", settings.front_page, -1, 1000, &error);
  auto profile = options.Number("profile-page", settings.profile_page, -1, 1000, &error);
  if (cache != "on" && cache != "off") error = "--cache is on or off";
  if (way != "update" && way != "delete") error = "--strategy is update or delete";
  if (front == 0 || profile == 0) error = "a page has at least one post";
  if (!error.empty()) return Fail(error);
  auto connection = application->pool.Borrow();
  if (!connection || !settings.Change(*connection, cache == "on", front, profile,
                                      way == "update" ? Strategy::kUpdate : Strategy::kDelete)) {
    return Fail("the database does not answer");
  }
  fmt::print("cache {}, front page {}, profile page {}, strategy {}\n", cache, front, profile, way);
  return 0;
}

int MakeSessions(const std::vector<std::string>& words) {
  auto known = kCommonOptions;
  known.insert({{"count", true}, {"seed", true}});
  Options options;
  std::string error;
  if (!options.Parse(words, known, &error)) return Fail(error);
  auto count = options.Number("count", 100, 1, 1000000, &error);
  auto seed = options.Number("seed", 1, 0, 1000000000, &error);
  auto application = OpenFor(options, &error);
  if (!application) return Fail(error);
  std::int64_t highest = 0;
  if (auto connection = application->pool.Borrow()) {
    auto result = connection->Run("SELECT MAX(id) FROM users");
    if (!result.rows.empty()) highest = IntegerOf(result.rows[0][0]);
  }
  if (highest == 0) return Fail("there are no users");
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 0x9E3779B97F4A7C15u + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto user = static_cast<Id>((state >> 33) % static_cast<std::uint64_t>(highest)) + 1;
    auto token = application->users.StartSession(user, application->now());
    if (token.empty()) return Fail("the database does not answer");
    fmt::print("{} {}\n", user, token);
  }
  return 0;
}

}  // namespace timeline
