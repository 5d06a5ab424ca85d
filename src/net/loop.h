// Loop: waits on epoll and tells each ready source; one per thread. A round is everything that was
// ready at one wait; the owner's Rounds interface frames it, so that work of all sources of a round
// can be gathered into one batch.
//
// Everything on the loop's thread, except Wake and Stop.
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
  // How long to wait at most, in milliseconds; 0: only look.
  virtual int BeforeWait() = 0;
  // Something may be ready: sources are told next.
  virtual void BeforeRound() = 0;
  // Asked after each source: true ends the round; who has not been told is ready again in the next.
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

  void Run();
  // From any thread: makes the loop go round once; many calls may share one round.
  void Wake();
  void Stop();

 private:
  Rounds* const rounds_;
  int epoll_;
  int event_;
  std::atomic<bool> woken_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace sava::net
