// Mailbox: how other threads reach a lane. First in, first out; all receivers of a message
// share its bytes. The last lock in the lock order: nothing is locked while one is held.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "protocol/out_buffer.h"

namespace sava::engine {

// A message in both protocols; resp3 is empty when both are the same bytes.
struct Message {
  enum class Via : uint8_t {
    kDirect,
    kChannel,
    kShardChannel,
    kPattern,
    // Of client-side caching (engine/tracking.h): resp2 is the array of keys.
    kTable,      // keys that the client has read
    kBroadcast,  // keys with one of its prefixes
    kForget,     // all keys
  };

  std::string resp2;
  std::string resp3;
  // Which subscription it comes through: a client that has given that up meanwhile does not get it.
  Via via = Via::kDirect;
  std::string subscription;
  // Instead of resp2, the output of a command that was run for a client that waits.
  protocol::OutBuffer out;
};

struct Mail {
  enum class Kind : uint8_t {
    kMessage,  // append to the client's output
    kWake,     // look at the client's flags (killed, resumed)
    kReply,    // the answer of a blocked client, which may then go on
    kAlarm,    // a blocked client must be woken earlier than it asked
    // Client-side caching: for a client that tracks; for the one it redirects to (token: the one
    // that tracks); for one that tracks, that the other (token) is gone.
    kInvalidate,
    kRedirected,
    kRedirectLost,
  };
  Kind kind = Kind::kMessage;
  uint64_t client = 0;  // 0 with kWake: the whole lane (paused clients may go on)
  std::shared_ptr<const Message> message;
  uint64_t token = 0;   // with kReply and kAlarm: the client's block_token when it was blocked
  uint64_t ticket = 0;  // the change it tells of is logged below this ticket
};

class Mailbox {
 public:
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
  // The lane's thread is to look around, though there is no mail for it.
  void Wake() const {
    if (wake_) wake_();
  }

  // Takes no memory: mail that must not be lost is made before the change it tells of.
  void Post(std::list<Mail>&& mails) noexcept {
    if (mails.empty()) return;
    bool first;
    {
      std::lock_guard lock(mutex_);
      first = queue_.empty();
      queue_.splice(queue_.end(), mails);
    }
    if (first && wake_) wake_();
  }
  void Post(std::vector<Mail>&& mails) {
    Post(std::list<Mail>(std::make_move_iterator(mails.begin()),
                         std::make_move_iterator(mails.end())));
  }
  void Post(Mail mail) {
    std::list<Mail> one;
    one.push_back(std::move(mail));
    Post(std::move(one));
  }
  // Does not wake the loop. REQUIRES: on the thread that takes, which will look before it sleeps.
  void PostQuietly(std::list<Mail>&& mails) noexcept {
    std::lock_guard lock(mutex_);
    queue_.splice(queue_.end(), mails);
  }
  std::list<Mail> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(queue_, {});
  }

 private:
  std::mutex mutex_;
  std::list<Mail> queue_;  // guarded by mutex_
  std::function<void()> wake_;
};

}  // namespace sava::engine
