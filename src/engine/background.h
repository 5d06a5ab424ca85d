// Background: one thread for what would make a loop stall, such as freeing large values and whole
// tables.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace sava::engine {

class Background {
 public:
  explicit Background(const char* name);
  // Finishes the queued work.
  ~Background();

  // `objects` is what INFO's lazyfree_pending_objects counts until it is done.
  void Run(std::function<void()> job, int64_t objects = 1);
  int64_t pending() const { return pending_.load(std::memory_order_relaxed); }
  int64_t done() const { return done_.load(std::memory_order_relaxed); }
  void ResetDone() { done_.store(0, std::memory_order_relaxed); }
  // Waits until nothing is queued.
  void Drain();

 private:
  struct Job {
    std::function<void()> run;
    int64_t objects;
  };

  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;   // guarded by mutex_
  bool busy_ = false;      // guarded by mutex_
  bool stopping_ = false;  // guarded by mutex_
  std::atomic<int64_t> pending_{0};
  std::atomic<int64_t> done_{0};
  std::thread thread_;
};

}  // namespace sava::engine
