// Event loops over transports of the test's own: answers that wait, input that epoll says nothing
// of, writes that are tried again, connections that a loop opens itself.
#include "front/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>

#include "engine_fixture.h"
#include "front/loops.h"
#include "net/tls_transport.h"

namespace sava::front {
namespace {

using Outcome = net::Transfer::Outcome;

struct TestBarrier final : journal::Barrier {
  uint64_t kept() const override { return tickets.load(); }
  bool always() const override { return waits_for_reads.load(); }
  bool quick() const override { return writes_soon.load(); }
  bool good() const override { return true; }

  std::atomic<uint64_t> tickets{0};
  std::atomic<bool> waits_for_reads{false};
  std::atomic<bool> writes_soon{false};
};

struct TestHost final : FrontHost {
  void PrepareThread() override {}
  void Tick() override {}
  const journal::Barrier* barrier() const override { return has_wall.load() ? &wall : nullptr; }
  bool shutting_down() const override { return false; }
  bool hurried() const override { return true; }
  size_t client_count() const override { return 0; }
  bool ending() const override { return false; }
  int64_t start_unix_ms() const override { return 0; }
  void NoteRefused(const engine::Client& client, const std::string& user, int64_t now_ms) override {
    static_cast<void>(client), static_cast<void>(user), static_cast<void>(now_ms);
  }

  TestBarrier wall;
  std::atomic<bool> has_wall{false};
};

// Takes all the socket has and gives it out in small pieces; every other write comes too early.
class SlowTransport final : public net::Transport {
 public:
  explicit SlowTransport(int fd) : socket_(fd) {}
  net::Transfer Read(char* target, size_t room) override {
    char bytes[64 * 1024];
    net::Transfer read = socket_.Read(bytes, sizeof bytes);
    if (read.done()) kept_.append(bytes, read.bytes);
    if (kept_.empty()) return read;
    const size_t size = std::min<size_t>({room, kept_.size(), 7});
    memcpy(target, kept_.data(), size);
    kept_.erase(0, size);
    return {Outcome::kDone, size};
  }
  net::Transfer Writev(const iovec* vectors, size_t count) override {
    std::string offered;
    for (size_t i = 0; i < count; ++i) {
      offered.append(static_cast<const char*>(vectors[i].iov_base), vectors[i].iov_len);
    }
    EXPECT_TRUE(offered.starts_with(refused_));
    refused_.clear();
    early_ = !early_;
    if (early_) {
      refused_ = offered;
      return {Outcome::kAgain, 0};
    }
    const iovec vector{offered.data(), offered.size()};
    return socket_.Writev(&vector, 1);
  }
  bool Pending() const override { return !kept_.empty(); }
  uint32_t Interest(uint32_t wanted) const override { return wanted; }
  uint32_t Ready(uint32_t events) const override { return events; }
  void Shutdown() override { socket_.Shutdown(); }
  void Close() override { socket_.Close(); }
  int fd() const override { return socket_.fd(); }

 private:
  net::SocketTransport socket_;
  std::string kept_;
  std::string refused_;
  bool early_ = false;
};

// The test's end of a connection.
struct Peer {
  explicit Peer(int socket) : fd(socket) {}
  ~Peer() { close(fd); }
  void Send(std::string_view text) const {
    ASSERT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Waits for so many bytes; fewer when the connection ends.
  std::string Receive(size_t size) const {
    std::string text(size, '\0');
    const ssize_t n = recv(fd, text.data(), size, MSG_WAITALL);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }
  bool nothing_there() const {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
  }
  const int fd;
};

struct Front {
  Front() : test(2), loops(&host, &test.engine, &limits) {
    limits.refuse_strangers.store(false);
    loops.Start();
  }
  ~Front() { loops.Stop(); }

  template <typename Kind = net::SocketTransport>
  std::unique_ptr<Peer> Open(ConnectionMaker make = {}, bool http = false) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    const int flags = fcntl(fds[0], F_GETFL);
    fcntl(fds[0], F_SETFL, flags | O_NONBLOCK);
    Arrival arrival;
    arrival.socket = net::Describe(fds[0]);
    arrival.socket.id = test.engine.NewClientId();
    arrival.socket.http = http;
    arrival.transport = std::make_unique<Kind>(fds[0]);
    arrival.make = std::move(make);
    loops.NextLoop().Adopt(std::move(arrival));
    return std::make_unique<Peer>(fds[1]);
  }

  engine::TestEngine test;
  TestHost host;
  LoopLimits limits;
  Loops loops;
};

// Answers each byte with that byte, and says that this tells of the ticket the byte names.
struct Echo final : Connection {
  Echo(EventLoop* owner, std::counting_semaphore<>* done, bool reads)
      : loop(*owner), answered(done), tells_of_reads(reads) {}
  void OnEvents(uint32_t events) override {
    if (closed) return;
    if ((events & EPOLLIN) == 0) return loop.Flush(*this);
    char byte;
    const net::Transfer read = loop.Receive(*this, &byte, 1);
    if (read.outcome == Outcome::kAgain) return;
    if (!read.done()) return loop.Close(*this);
    (tells_of_reads ? client.sending.saw : client.sending.wrote) =
        static_cast<uint64_t>(byte - '0');
    client.out.Append({&byte, 1});
    loop.Flush(*this);
    answered->release();
  }
  void Resume() override {}
  void Release() override { loop.Flush(*this); }
  void GoOn() override {}

  EventLoop& loop;
  std::counting_semaphore<>* const answered;
  const bool tells_of_reads;
};

struct EchoPeer {
  explicit EchoPeer(Front& front, bool reads = false)
      : peer(front.Open([this, reads](EventLoop& loop) {
          return std::make_unique<Echo>(&loop, &answered, reads);
        })) {}
  // Sends it; afterwards the loop has the answer.
  void Say(std::string_view byte) {
    peer->Send(byte);
    answered.acquire();
  }
  std::counting_semaphore<> answered{0};
  std::unique_ptr<Peer> peer;
};

class HeldAnswers : public testing::TestWithParam<bool> {};

TEST_P(HeldAnswers, LeaveInOrderWhenTheyAreKept) {
  Front front;
  front.host.has_wall.store(true);
  front.host.wall.writes_soon.store(GetParam());
  EchoPeer echo(front);
  echo.Say("0");
  EXPECT_EQ(echo.peer->Receive(1), "0");
  echo.Say("3");
  echo.Say("0");
  echo.Say("5");
  EXPECT_TRUE(echo.peer->nothing_there());
  front.host.wall.tickets.store(4);
  front.loops.WakeHolders();
  EXPECT_EQ(echo.peer->Receive(2), "30");
  EXPECT_TRUE(echo.peer->nothing_there());
  front.host.wall.tickets.store(5);
  front.loops.WakeHolders();
  EXPECT_EQ(echo.peer->Receive(1), "5");
}

INSTANTIATE_TEST_SUITE_P(WhoeverWrites, HeldAnswers, testing::Bool());

TEST(EventLoop, WhatAClientHasReadIsWaitedForWithAlwaysOnly) {
  Front front;
  front.host.has_wall.store(true);
  EchoPeer echo(front, true);
  echo.Say("3");
  EXPECT_EQ(echo.peer->Receive(1), "3");
  front.host.wall.waits_for_reads.store(true);
  echo.Say("4");
  EXPECT_TRUE(echo.peer->nothing_there());
  front.host.wall.tickets.store(4);
  front.loops.WakeHolders();
  EXPECT_EQ(echo.peer->Receive(1), "4");
}

TEST(EventLoop, ReadsWhatTheTransportHasTakenAlready) {
  Front front;
  const auto resp = front.Open<SlowTransport>();
  const auto http = front.Open<SlowTransport>({}, true);
  std::string commands;
  std::string replies;
  for (int i = 0; i < 500; ++i) {
    commands += "SET k v\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    replies += "+OK\r\n$1\r\nv\r\n";
  }
  resp->Send(commands);
  http->Send(
      "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(resp->Receive(replies.size()), replies);
  const std::string answers = http->Receive(100000);
  EXPECT_TRUE(answers.starts_with("HTTP/1.1 404"));
  EXPECT_NE(answers.find("HTTP/1.1 404", 1), std::string::npos);
}

TEST(EventLoop, ReadsOnAfterAWaitWhatTheTransportHasTakenAlready) {
  Front front;
  const auto waiter = front.Open<SlowTransport>();
  const auto pusher = front.Open();
  waiter->Send("BLPOP q 0\r\nEXISTS a\r\nEXISTS b\r\nGET c\r\n");
  pusher->Send("EXISTS a\r\n");
  EXPECT_EQ(pusher->Receive(4), ":0\r\n");
  pusher->Send("RPUSH q v\r\n");
  const std::string replies = "*2\r\n$1\r\nq\r\n$1\r\nv\r\n:0\r\n:0\r\n$-1\r\n";
  EXPECT_EQ(waiter->Receive(replies.size()), replies);
}

TEST(EventLoop, LetsEverythingLeaveWhenTheBarrierGoes) {
  Front front;
  front.host.has_wall.store(true);
  EchoPeer echo(front);
  echo.Say("9");
  EXPECT_TRUE(echo.peer->nothing_there());
  front.host.has_wall.store(false);
  front.loops.WakeHolders();
  EXPECT_EQ(echo.peer->Receive(1), "9");
}

TEST(EventLoop, WhoDoesNotSayWhoItIsMayNotBeSilentForLong) {
  Front front;
  front.test.engine.Exclusively(front.test.engine.house_lane(), [&front] {
    front.test.engine.users().SetDefaultPassword("secret");
  });
  const auto stranger = front.Open();
  stranger->Send("GET k\r\n");
  EXPECT_EQ(stranger->Receive(7), "-NOAUTH");
  front.test.clock.AdvanceMillis(61000);
  EXPECT_LT(stranger->Receive(1000).size(), 1000U);  // until it is closed
}

TEST(EventLoop, HandshakesEndInTime) {
  Front front;
  auto context = net::TlsContext::Make(net::TlsRole::kServer, {});
  ASSERT_TRUE(context.ok());
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) | O_NONBLOCK);
  Arrival arrival;
  arrival.socket = net::Describe(fds[0]);
  arrival.socket.id = front.test.engine.NewClientId();
  arrival.transport = std::make_unique<net::TlsTransport>(fds[0], **context, net::PeerCheck::kNone);
  front.loops.NextLoop().Adopt(std::move(arrival));
  const Peer peer(fds[1]);
  peer.Send("\x16\x03\x01");  // the beginning of a record
  const auto other = front.Open();
  other->Send("GET k\r\n");
  EXPECT_EQ(other->Receive(5), "$-1\r\n");
  EXPECT_TRUE(peer.nothing_there());
  // Again and again: on a busy machine its loop may take it up only after the first time.
  while (peer.nothing_there()) {
    front.test.clock.AdvanceMillis(11000);
    usleep(1000);
  }
  EXPECT_EQ(peer.Receive(1), "");
}

TEST(EventLoop, ServesConnectionsThatItHasOpened) {
  struct Greeter final : Connection {
    explicit Greeter(EventLoop* owner) : loop(*owner) {}
    void Opened() override {
      client.out.Append("hello");
      loop.Flush(*this);
    }
    void OnEvents(uint32_t events) override {
      if (!closed && (events & (EPOLLHUP | EPOLLIN)) != 0) loop.Close(*this);
    }
    void Resume() override {}
    void Release() override {}
    void GoOn() override {}
    EventLoop& loop;
  };
  Front front;
  base::Result<int> listener = net::ListenTcp("127.0.0.1", 0, 8);
  ASSERT_TRUE(listener.ok());
  net::Address address;
  address.length = sizeof address.storage;
  getsockname(*listener, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  const ConnectionMaker make = [](EventLoop& loop) { return std::make_unique<Greeter>(&loop); };
  fcntl(*listener, F_SETFL, fcntl(*listener, F_GETFL) & ~O_NONBLOCK);
  std::promise<std::string> trouble;
  const auto failed = [&](const std::string& error) { trouble.set_value(error); };
  {
    front.loops.NextLoop().Connect({address, 10000, make, failed});
    const Peer peer(accept(*listener, nullptr, nullptr));
    EXPECT_EQ(peer.Receive(5), "hello");
    EXPECT_EQ(front.loops.client_count(), 1U);
  }
  close(*listener);
  front.loops.NextLoop().Connect({address, 10000, make, failed});
  EXPECT_EQ(trouble.get_future().get(), "Connection refused");
}

}  // namespace
}  // namespace sava::front
