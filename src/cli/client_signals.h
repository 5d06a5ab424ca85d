// The signals of an interactive session as something to wait for, beside sockets and the terminal.
//
// While an object lives, SIGINT, SIGTSTP, SIGWINCH, SIGTERM and SIGHUP are blocked in the calling
// thread and arrive through fd(). Use one object, in a process with one thread.
#pragma once

#include <csignal>
#include <cstdint>

namespace sava::cli {

class Signals {
 public:
  enum class Event : uint8_t { kNone, kInterrupt, kSuspend, kResize, kTerminate };

  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Readable when Next() has something to tell.
  int fd() const { return fd_; }

  Event Next();

  // Stops the process as Ctrl-Z would; returns when it is continued.
  void Suspend();

  // Takes what has come while nobody waited: true if the user asked to stop what is under way.
  // Suspends if that was asked for.
  bool TakeInterrupt();

  // Whether the process was told to end.
  bool terminated() const { return terminated_; }

 private:
  int fd_ = -1;
  bool terminated_ = false;
  sigset_t caught_;
  sigset_t before_;
};

}  // namespace sava::cli
