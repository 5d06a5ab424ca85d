#include "net/loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace sava::net {

namespace {
constexpr int kMaxEvents = 512;
}

Loop::Loop(Rounds* rounds)
    : rounds_(rounds),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (epoll_ < 0 || event_ < 0) {
    perror("sava: epoll");
    abort();
  }
  Add(event_, EPOLLIN, nullptr);
}

Loop::~Loop() {
  close(epoll_);
  close(event_);
}

void Loop::Add(int fd, uint32_t events, Source* source) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = source;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void Loop::Change(int fd, uint32_t events, Source* source) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = source;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Loop::Remove(int fd) { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

void Loop::Wake() {
  if (woken_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  if (write(event_, &one, sizeof one) < 0) return;  // full: it is awake anyway
}

void Loop::Stop() {
  stopping_.store(true, std::memory_order_release);
  Wake();
}

void Loop::Turn(int wait) {
  epoll_event events[kMaxEvents];
  // A round that follows at once looks for events after its owner's own work, which clients may
  // answer meanwhile.
  int count = wait == 0 ? 0 : epoll_wait(epoll_, events, kMaxEvents, wait);
  rounds_->BeforeRound();
  if (wait == 0) count = epoll_wait(epoll_, events, kMaxEvents, 0);
  // A round that was cut short left the later ones waiting: epoll names all that are ready in the
  // same order again, so the next round begins where that one ended.
  const int start = count > 0 ? next_ % count : 0;
  next_ = 0;
  for (int k = 0; k < count; ++k) {
    const epoll_event& event = events[(start + k) % count];
    auto* source = static_cast<Source*>(event.data.ptr);
    if (source != nullptr) {
      source->OnEvents(event.events);
      if (rounds_->Enough()) {
        next_ = start + k + 1;
        break;
      }
    } else {
      TakeWake();
    }
  }
  rounds_->AfterRound();
}

void Loop::TakeWake() {
  uint64_t value;
  if (read(event_, &value, sizeof value) > 0) {
  }
  woken_.store(false, std::memory_order_release);
}

bool Loop::Ready(int wait) {
  pollfd ready{epoll_, POLLIN, 0};
  return poll(&ready, 1, wait) > 0;
}

// The round that goes on afterwards takes up what the loop was woken for.
void Loop::TellReady() {
  epoll_event events[64];
  const int count = epoll_wait(epoll_, events, 64, 0);
  for (int i = 0; i < count; ++i) {
    auto* const source = static_cast<Source*>(events[i].data.ptr);
    if (source != nullptr) {
      source->OnEvents(events[i].events);
    } else {
      TakeWake();
    }
  }
}

}  // namespace sava::net
