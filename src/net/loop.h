// Loop: waits on epoll and tells each ready source; one per thread. A round is everything that was
// ready at one wait; the owner's Rounds interface frames it, so that work of all sources of a round
// can be gathered into one batch.
//
// Everything on the loop's thread, except Wake, Stop and stopping.
#pragma once

#include <atomic>
#include <cstdint>

namespace sava::net {

// Something with a file descriptor. It outlives the round in which it is removed (the owner frees
// it in AfterRound or later).
class Source {
 public:
  virtual ~Source() = default;
  virtual void OnEvents(uint32_t events) = 0;
};

class Rounds {
 public:
  virtual ~Rounds() = default;
  // Something may be ready: sources are told next.
  virtual void BeforeRound() = 0;
  // Asked after each source: true ends the round; sources not told yet are ready again in the next.
  virtual bool Enough() = 0;
  // All ready sources have been told, or enough of them.
  virtual void AfterRound() = 0;
};

class Loop {
 public:
  explicit Loop(Rounds* rounds);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Add(int fd, uint32_t events, Source* source);
  void Change(int fd, uint32_t events, Source* source);
  void Remove(int fd);

  // One round, after waiting that many milliseconds at most; 0: only looking.
  void Turn(int wait);
  // For a thread that has to wait in the middle of a round. Whether a source is ready within so
  // many milliseconds; and tells those that are, outside of any round.
  bool Ready(int wait);
  void TellReady();
  // From any thread: makes the loop go round once; many calls may share one round.
  void Wake();
  void Stop();
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }

 private:
  void TakeWake();

  Rounds* const rounds_;
  int epoll_;
  int event_;
  int next_ = 0;  // where a round begins that follows one that was cut short
  std::atomic<bool> woken_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace sava::net
