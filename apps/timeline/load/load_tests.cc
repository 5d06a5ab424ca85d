// Both load tests: of the data behind a front page, and of the page itself over HTTP.
#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "program/options.h"

namespace timeline {
namespace {

using Clock = std::chrono::steady_clock;

int Fail(const std::string& message) {
  fmt::print(stderr, "sava_timeline: {}\n", message);
  return 1;
}

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Outcomes {
  std::vector<double> times;  // milliseconds
  std::int64_t errors = 0;
  double seconds = 0;
};

// `threads` threads begin at once and each does `rounds` requests; `one` says whether it succeeded.
Outcomes Storm(int threads, int rounds, const std::function<bool(int thread, int round)>& one) {
  std::vector<Outcomes> parts(static_cast<std::size_t>(threads));
  std::barrier ready(threads + 1);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      auto& part = parts[static_cast<std::size_t>(i)];
      ready.arrive_and_wait();
      for (int round = 0; round < rounds; ++round) {
        auto start = Clock::now();
        if (!one(i, round)) ++part.errors;
        part.times.push_back(MillisecondsSince(start));
      }
    });
  }
  ready.arrive_and_wait();
  auto start = Clock::now();
  for (auto& thread : running) thread.join();
  Outcomes all;
  all.seconds = MillisecondsSince(start) / 1000;
  for (const auto& part : parts) {
    all.times.insert(all.times.end(), part.times.begin(), part.times.end());
    all.errors += part.errors;
  }
  std::sort(all.times.begin(), all.times.end());
  return all;
}

double Percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

void PrintRow(const std::string& name, int threads, const Outcomes& all) {
  double mean = all.times.empty() ? 0
                                  : std::accumulate(all.times.begin(), all.times.end(), 0.0) /
                                        static_cast<double>(all.times.size());
  fmt::print(
      "{{\"test\":\"{}\",\"threads\":{},\"requests\":{},\"errors\":{},\"mean\":{:.3f},\"min\":{:."
      "3f},"
      "\"max\":{:.3f},\"p90\":{:.3f},\"p95\":{:.3f},\"perSecond\":{:.2f}}}\n",
      name, threads, all.times.size(), all.errors, mean, all.times.empty() ? 0 : all.times.front(),
      all.times.empty() ? 0 : all.times.back(), Percentile(all.times, 0.90),
      Percentile(all.times, 0.95), static_cast<double>(all.times.size()) / all.seconds);
  std::fflush(stdout);
}

std::vector<int> NumbersOf(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream in(text);
  std::string part;
  while (std::getline(in, part, ',')) numbers.push_back(std::atoi(part.c_str()));
  std::erase_if(numbers, [](int number) { return number < 1 || number > 1000; });
  return numbers;
}

constexpr const char* kAllThreads = "10,20,40,80,160";

}  // namespace

int BenchDirect(const std::vector<std::string>& words) {
  auto known = kCommonOptions;
  known.insert({{"threads", true},
                {"cache", true},
                {"rounds", true},
                {"seed", true},
                {"page", true},
                {"users", true},
                {"cold", false}});
  Options options;
  std::string error;
  if (!options.Parse(words, known, &error)) return Fail(error);
  auto threads = NumbersOf(options.Text("threads", kAllThreads));
  auto rounds = static_cast<int>(options.Number("rounds", 3, 1, 100000, &error));
  auto seed = options.Number("seed", 1, 0, 1000000000, &error);
  auto page = options.Number("page", 25, -1, 1000, &error);
  auto count = options.Number("users", 500, 1, 10000000, &error);
  if (threads.empty()) error = "--threads is a list of numbers";
  auto settings = ApplicationOptionsOf(options, &error);
  if (!error.empty()) return Fail(error);
  settings.connections = *std::max_element(threads.begin(), threads.end());
  auto application = Application::Open(settings, &error);
  if (!application) return Fail(error);
  bool cache = options.Text("cache", "on") == "on";
  application->settings.use_cache = cache;
  std::vector<Id> users;
  {
    // A connection for each thread, open before the clock starts.
    std::vector<Pool::Lease> leases;
    for (int i = 0; i < settings.connections; ++i) leases.push_back(application->pool.Borrow());
    auto result = leases[0]->Run("SELECT MAX(id) FROM users");
    auto highest = result.rows.empty() ? 0 : IntegerOf(result.rows[0][0]);
    if (highest == 0) return Fail("there are no users");
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    for (std::int64_t i = 0; i < count; ++i) {
      users.push_back(1 + static_cast<Id>(random() % static_cast<std::uint64_t>(highest)));
    }
  }
  auto look = [&](Id user) { return application->posts.Feed(user, {0, page}).ok; };
  if (cache) {
    if (!application->synchronizer.CatchUp()) return Fail("the store does not answer");
    std::vector<Reply> replies;
    for (auto user : users) {
      if (!options.Has("cold")) {
        look(user);
      } else if (auto store = application->cache.store().Borrow()) {
        store->Run({{"DEL", FeedKey(user)}}, &replies);
      }
    }
  }
  for (int number : threads) {
    auto all = Storm(number, rounds, [&](int thread, int round) {
      auto which =
          static_cast<std::size_t>(thread) * 7919 + static_cast<std::size_t>(round) * 104729;
      return look(users[which % users.size()]);
    });
    PrintRow(fmt::format("direct, cache {}{}", cache ? "on" : "off",
                         options.Has("cold") ? ", cold" : ""),
             number, all);
  }
  return 0;
}

int BenchHttp(const std::vector<std::string>& words) {
  const std::map<std::string, bool> known = {{"url", true},     {"sessions", true},
                                             {"threads", true}, {"rounds", true},
                                             {"warm", false},   {"name", true}};
  Options options;
  std::string error;
  if (!options.Parse(words, known, &error)) return Fail(error);
  auto threads = NumbersOf(options.Text("threads", kAllThreads));
  auto rounds = static_cast<int>(options.Number("rounds", 3, 1, 100000, &error));
  auto url = options.Text("url", "http://127.0.0.1:8080");
  std::vector<std::string> tokens;
  std::ifstream file(options.Text("sessions", ""));
  std::string user, token;
  while (file >> user >> token) tokens.push_back(token);
  if (tokens.empty()) error = "--sessions names a file that `sava_timeline sessions` printed";
  if (threads.empty()) error = "--threads is a list of numbers";
  if (!error.empty()) return Fail(error);
  auto fetch = [&](httplib::Client& client, const std::string& session) {
    auto answer = client.Get("/feed", {{"Cookie", "session=" + session}, {"Accept", "text/html"}});
    return answer && answer->status == 200;
  };
  auto make = [&] {
    auto client = std::make_unique<httplib::Client>(url);
    client->set_keep_alive(true);
    client->set_tcp_nodelay(true);
    client->set_read_timeout(300, 0);
    return client;
  };
  if (options.Has("warm")) {
    auto client = make();
    for (const auto& session : tokens) {
      if (!fetch(*client, session)) return Fail("the application does not answer");
    }
  }
  for (int number : threads) {
    std::vector<std::unique_ptr<httplib::Client>> clients;
    for (int i = 0; i < number; ++i) clients.push_back(make());
    auto all = Storm(number, rounds, [&](int thread, int round) {
      auto which =
          static_cast<std::size_t>(thread) * 7919 + static_cast<std::size_t>(round) * 104729;
      return fetch(*clients[static_cast<std::size_t>(thread)], tokens[which % tokens.size()]);
    });
    PrintRow(options.Text("name", "http"), number, all);
  }
  return 0;
}

}  // namespace timeline
