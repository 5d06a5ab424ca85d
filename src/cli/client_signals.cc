// Signals through a signalfd: no handlers, no shared state, no race between a check and a wait.
#include "cli/client_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>

namespace sava::cli {

Signals::Signals() {
  sigemptyset(&caught_);
  for (const int number : {SIGINT, SIGTSTP, SIGWINCH, SIGTERM, SIGHUP}) {
    sigaddset(&caught_, number);
  }
  sigprocmask(SIG_BLOCK, &caught_, &before_);
  fd_ = signalfd(-1, &caught_, SFD_NONBLOCK | SFD_CLOEXEC);
}

Signals::~Signals() {
  if (fd_ >= 0) close(fd_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Signals::Event Signals::Next() {
  signalfd_siginfo info;
  if (fd_ < 0 || read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return Event::kNone;
  }
  switch (info.ssi_signo) {
    case SIGINT:
      return Event::kInterrupt;
    case SIGTSTP:
      return Event::kSuspend;
    case SIGWINCH:
      return Event::kResize;
    default:
      terminated_ = true;
      return Event::kTerminate;
  }
}

void Signals::Suspend() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

bool Signals::TakeInterrupt() {
  bool interrupted = false;
  for (Event event = Next(); event != Event::kNone; event = Next()) {
    if (event == Event::kSuspend) Suspend();
    if (event == Event::kInterrupt || event == Event::kTerminate) interrupted = true;
  }
  return interrupted;
}

}  // namespace sava::cli
