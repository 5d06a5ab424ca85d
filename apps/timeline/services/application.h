// The services of one running application, wired together, and what it remembers of its own speed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "services/post_service.h"
#include "services/user_service.h"

namespace timeline {

// The last response times of the front page, in milliseconds, with and without the cache.
class ResponseTimes {
 public:
  void Add(bool cache, double milliseconds);
  std::vector<double> Last(bool cache) const;

 private:
  static constexpr std::size_t kKept = 120;
  mutable std::mutex mutex_;
  std::deque<double> times_[2];  // guarded by mutex_
};

struct ApplicationOptions {
  std::string database = "timeline.db";
  std::string store = "127.0.0.1:6379";
  std::optional<Layout> layout;
  std::int64_t feed_length = 1000;
  int connections = 32;
  UserService::Limits limits;
};

class Application {
 public:
  // Null with an error. `store` may be given by a test; otherwise it is connected to by its
  // address.
  static std::unique_ptr<Application> Open(const ApplicationOptions& options, std::string* error,
                                           std::unique_ptr<Store> store = nullptr);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // From now on a thread repairs the store as soon as it answers again, and reads the settings that
  // another process may have changed.
  void StartRepairing();
  std::int64_t now() const;

 private:
  struct Ground;  // what the services stand on
  std::unique_ptr<Ground> ground_;

 public:
  Pool& pool;
  TimelineCache& cache;
  Settings& settings;
  Synchronizer& synchronizer;
  const Layout layout;
  PostService posts;
  UserService users;
  ResponseTimes times;

 private:
  Application(std::unique_ptr<Ground> ground, const ApplicationOptions& options);
  void Repair();

  std::mutex mutex_;
  std::condition_variable ending_changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread repairer_;
};

}  // namespace timeline
