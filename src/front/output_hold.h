// OutputHold: which bytes of a connection may leave. A reply waits until the changes it tells of
// are kept (journal/barrier.h), and replies leave in the order in which they were produced.
//
// HoldList: the connections of one loop with bytes that wait, and how the loop learns that more is
// kept. A loop looks at what is kept whenever it is awake; before it waits it says so, looks once
// more, and is then woken by the thread that keeps more. Since both sides exchange one flag, the
// second of the two sees what the first has done.
//
// Thread safety: the loop's thread, but for Tell and holding.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sava::front {

struct Connection;

class OutputHold {
 public:
  explicit OutputHold(Connection* owner) : owner_(owner) {}
  OutputHold(const OutputHold&) = delete;
  OutputHold& operator=(const OutputHold&) = delete;

  // `pending` bytes wait to be sent. Those produced since the last call may leave when everything
  // below `ticket` is kept; everything below `kept` is. Returns how many may leave now.
  size_t Produced(size_t pending, uint64_t ticket, uint64_t kept) {
    const uint64_t produced = sent_ + pending;
    if (holds_.empty() && ticket <= kept) [[likely]] {
      released_ = produced;
      return pending;
    }
    Kept(kept);
    Note(produced, ticket, kept);
    return writable();
  }
  // Everything below `kept` is kept.
  void Kept(uint64_t kept);
  void Sent(size_t bytes) { sent_ += bytes; }

  // How many of the pending bytes may leave.
  size_t writable() const { return static_cast<size_t>(released_ - sent_); }
  // Some may not.
  bool waits() const { return !holds_.empty(); }
  // The ticket that must be kept before more may leave. REQUIRES: waits().
  uint64_t next_ticket() const { return holds_.front().ticket; }
  // The ticket that must be kept before all may leave. REQUIRES: waits().
  uint64_t last_ticket() const { return holds_.back().ticket; }
  Connection& owner() const { return *owner_; }
  // Since when it has been in the loop's list.
  int64_t since_ms() const { return since_ms_; }

 private:
  friend class HoldList;

  struct Hold {
    uint64_t end;  // bytes up to here, counted from the first one ever produced
    uint64_t ticket;
  };

  void Note(uint64_t produced, uint64_t ticket, uint64_t kept);

  Connection* const owner_;
  std::vector<Hold> holds_;  // few
  uint64_t sent_ = 0;        // bytes ever sent
  uint64_t released_ = 0;    // bytes ever that may leave
  bool listed_ = false;
  int64_t since_ms_ = 0;
};

class HoldList {
 public:
  // REQUIRES: hold.waits().
  void Add(OutputHold& hold, int64_t now_ms);
  void Remove(OutputHold& hold);
  // Takes out those of which more may leave. Valid until the next call.
  const std::vector<OutputHold*>& TakeKept(uint64_t kept);

  bool empty() const { return holds_.empty(); }
  const std::vector<OutputHold*>& all() const { return holds_; }
  // The highest ticket that one of them has waited for.
  uint64_t newest() const { return newest_; }

  // From now on Tell says that the loop must be woken. REQUIRES: the caller checks what is kept
  // afterwards, before it waits.
  void BeginWait();
  void EndWait();

  // ---- any thread ----
  // More is kept. Returns whether the loop waits and must be woken: true once for each BeginWait.
  bool Tell() { return waits_.exchange(false, std::memory_order_acq_rel); }
  bool holding() const { return count_.load(std::memory_order_relaxed) > 0; }

 private:
  std::vector<OutputHold*> holds_;
  std::vector<OutputHold*> taken_;
  uint64_t newest_ = 0;
  bool waiting_ = false;  // between BeginWait and EndWait
  std::atomic<size_t> count_{0};
  std::atomic<bool> waits_{false};  // and Tell has not been called
};

}  // namespace sava::front
