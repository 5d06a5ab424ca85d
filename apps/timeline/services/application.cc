#include "services/application.h"

#include <fmt/format.h>

#include <chrono>

#include "services/password.h"

namespace timeline {

struct Application::Ground {
  std::unique_ptr<Database> database;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Store> store;
  Layout layout = Layout::kIndexed;
  std::string secret;
  Settings settings;
  std::unique_ptr<TimelineCache> cache;
  std::unique_ptr<Synchronizer> synchronizer;
};

void ResponseTimes::Add(bool cache, double milliseconds) {
  std::lock_guard lock(mutex_);
  auto& times = times_[cache ? 1 : 0];
  times.push_back(milliseconds);
  if (times.size() > kKept) times.pop_front();
}

std::vector<double> ResponseTimes::Last(bool cache) const {
  std::lock_guard lock(mutex_);
  const auto& times = times_[cache ? 1 : 0];
  return {times.begin(), times.end()};
}

std::unique_ptr<Application> Application::Open(const ApplicationOptions& options,
                                               std::string* error, std::unique_ptr<Store> store) {
  if (!PrepareCrypto()) {
    *error = "no randomness for secrets";
    return nullptr;
  }
  auto ground = std::make_unique<Ground>();
  ground->database = MakeDatabase(options.database, error);
  if (!ground->database) return nullptr;
  ground->store = store ? std::move(store) : MakeRespStore(options.store);
  ground->pool = std::make_unique<Pool>(ground->database.get(), options.connections);
  std::string identity;
  {
    auto connection = ground->database->Open(error);
    if (!connection || !PrepareSchema(*connection, ground->database->is_mariadb(), options.layout,
                                      &ground->layout, error)) {
      return nullptr;
    }
    identity = MetaOf(*connection, "identity");
    ground->secret = MetaOf(*connection, "secret");
    ground->settings.Load(*connection);
  }
  ground->cache = std::make_unique<TimelineCache>(
      ground->store.get(), fmt::format("{}/{}", identity, options.feed_length));
  ground->synchronizer =
      std::make_unique<Synchronizer>(ground->pool.get(), ground->cache.get(), &ground->settings,
                                     ground->layout, options.feed_length);
  return std::unique_ptr<Application>(new Application(std::move(ground), options));
}

Application::Application(std::unique_ptr<Ground> ground, const ApplicationOptions& options)
    : ground_(std::move(ground)),
      pool(*ground_->pool),
      cache(*ground_->cache),
      settings(ground_->settings),
      synchronizer(*ground_->synchronizer),
      layout(ground_->layout),
      posts(&pool, &cache, &synchronizer, &settings, layout),
      users(&pool, &cache, &synchronizer, &settings, layout, ground_->secret, options.limits) {}

Application::~Application() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_all();
  if (repairer_.joinable()) repairer_.join();
}

std::int64_t Application::now() const {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void Application::StartRepairing() {
  repairer_ = std::thread([this] { Repair(); });
}

void Application::Repair() {
  constexpr std::int64_t kSweepMilliseconds = 3600 * 1000;
  std::int64_t next_sweep = 0;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    if (auto connection = pool.Borrow()) settings.Load(*connection);
    if (now() >= next_sweep) {
      users.ForgetExpiredSessions(now());
      next_sweep = now() + kSweepMilliseconds;
    }
    if (settings.use_cache && !synchronizer.trusted()) synchronizer.CatchUp();
    lock.lock();
    ending_changed_.wait_for(lock, std::chrono::milliseconds(500), [&] { return ending_; });
  }
}

}  // namespace timeline
