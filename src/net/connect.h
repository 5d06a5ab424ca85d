// Connect: one attempt to reach another server, without blocking. Its owner looks at it at the end
// of a round; it is settled when the connection is open, was refused, or has taken too long.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/loop.h"
#include "net/socket.h"

namespace sava::net {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// All addresses of a host name, or the one of a number. May take as long as the resolver does: not
// for a loop's thread.
base::Result<std::vector<Address>> Resolve(const std::string& host, int port);

// On the loop's thread.
class Connect final : public Source {
 public:
  // `deadline_ms`: in the owner's time, until when it may take.
  Connect(Loop* loop, const Address& to, int64_t deadline_ms);
  ~Connect() override;  // closes a connection that was not taken
  Connect(const Connect&) = delete;
  Connect& operator=(const Connect&) = delete;

  void OnEvents(uint32_t events) override;

  bool settled(int64_t now_ms) const { return fd_ < 0 || ready_ || now_ms >= deadline_ms_; }
  // The connected socket, which the loop no longer watches, or why there is none. REQUIRES:
  // settled(), and only once.
  base::Result<Accepted> Take();

 private:
  Loop* const loop_;
  const int64_t deadline_ms_;
  int fd_ = -1;
  bool ready_ = false;
  std::string error_;
};

}  // namespace sava::net
