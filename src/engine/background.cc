#include "engine/background.h"

#include <pthread.h>

#include "base/alternate_stack.h"

namespace sava::engine {

Background::Background(const char* name)
    : thread_([this, name] {
        const base::AlternateStack stack;
        pthread_setname_np(pthread_self(), name);
        Work();
      }) {}

Background::~Background() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Background::Run(std::function<void()> job, int64_t objects) {
  pending_.fetch_add(objects, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(job), objects});
  }
  changed_.notify_all();
}

void Background::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void Background::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job.run();
    job.run = nullptr;
    pending_.fetch_sub(job.objects, std::memory_order_relaxed);
    done_.fetch_add(job.objects, std::memory_order_relaxed);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace sava::engine
