// Sockets as transports, and connections that this side opens.
#include "net/transport.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "net/connect.h"
#include "net/loop.h"
#include "net/socket.h"

namespace sava::net {
namespace {

using Outcome = Transfer::Outcome;

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    near = fds[0];
    far = fds[1];
  }
  int near;
  int far;
};

std::string ReadAll(Transport& transport) {
  std::string text;
  char bytes[1000];
  while (true) {
    const Transfer read = transport.Read(bytes, sizeof bytes);
    if (!read.done()) return text;
    text.append(bytes, read.bytes);
  }
}

TEST(SocketTransport, CarriesBytesBothWays) {
  const Pair pair;
  SocketTransport near(pair.near);
  SocketTransport far(pair.far);
  std::string first = "one ";
  std::string second = "two";
  const iovec vectors[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  EXPECT_EQ(near.Writev(vectors, 2).bytes, 7U);
  EXPECT_EQ(near.Writev(vectors, 1).bytes, 4U);
  EXPECT_EQ(ReadAll(far), "one twoone ");
  EXPECT_EQ(far.Read(first.data(), 4).outcome, Outcome::kAgain);
  EXPECT_FALSE(far.Pending());
  EXPECT_EQ(far.Interest(EPOLLIN | EPOLLOUT), uint32_t{EPOLLIN | EPOLLOUT});
  EXPECT_EQ(far.Ready(EPOLLHUP), uint32_t{EPOLLHUP});
}

TEST(SocketTransport, WritesWhatTheSocketTakesAndThenNothing) {
  const Pair pair;
  SocketTransport near(pair.near);
  SocketTransport far(pair.far);
  std::string large(8 << 20, 'x');
  const iovec vector{large.data(), large.size()};
  const Transfer sent = near.Writev(&vector, 1);
  ASSERT_TRUE(sent.done());
  ASSERT_LT(sent.bytes, large.size());
  EXPECT_EQ(near.Writev(&vector, 1).outcome, Outcome::kAgain);
  EXPECT_EQ(ReadAll(far).size(), sent.bytes);
  EXPECT_TRUE(near.Writev(&vector, 1).done());
}

TEST(SocketTransport, TellsTheEndFromAFailure) {
  const Pair pair;
  SocketTransport near(pair.near);
  char byte = 'x';
  const iovec vector{&byte, 1};
  {
    SocketTransport far(pair.far);
    near.Shutdown();
    EXPECT_EQ(far.Read(&byte, 1).outcome, Outcome::kEnd);
    EXPECT_TRUE(far.Writev(&vector, 1).done());
    EXPECT_TRUE(near.Read(&byte, 1).done());
  }
  EXPECT_EQ(near.Read(&byte, 1).outcome, Outcome::kEnd);
  EXPECT_EQ(near.Writev(&vector, 1).outcome, Outcome::kFailed);
  near.Close();
  EXPECT_EQ(near.fd(), -1);
}

// A listener, and where it is.
struct Door {
  Door() {
    base::Result<int> listener = ListenTcp("127.0.0.1", 0, 8);
    EXPECT_TRUE(listener.ok());
    fd = *listener;
    address.length = sizeof(sockaddr_in);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  }
  int port() const { return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port); }
  int fd;
  Address address;
};

struct NoRounds : Rounds {
  void BeforeRound() override {}
  bool Enough() override { return false; }
  void AfterRound() override {}
};

TEST(Connect, ReachesAListener) {
  const Door door;
  NoRounds rounds;
  Loop loop(&rounds);
  auto found = Resolve("127.0.0.1", door.port());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1U);
  Connect connect(&loop, found->front(), 1000);
  while (!connect.settled(0)) loop.Turn(100);
  base::Result<Accepted> socket = connect.Take();
  ASSERT_TRUE(socket.ok());
  EXPECT_EQ(socket->peer, "127.0.0.1:" + std::to_string(door.port()));
  EXPECT_TRUE(socket->local);
  SocketTransport near(socket->fd);
  int error = 0;
  SocketTransport far(Accept(door.fd, &error).fd);
  char byte = 'x';
  const iovec vector{&byte, 1};
  EXPECT_TRUE(near.Writev(&vector, 1).done());
  EXPECT_EQ(ReadAll(far), "x");
  close(door.fd);
}

TEST(Connect, TellsThatNobodyListens) {
  const Door door;
  close(door.fd);
  NoRounds rounds;
  Loop loop(&rounds);
  Connect connect(&loop, door.address, 1000);
  while (!connect.settled(0)) loop.Turn(100);
  const base::Result<Accepted> socket = connect.Take();
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error(), "Connection refused");
}

TEST(Connect, IsSettledWhenItTakesTooLong) {
  const Door door;
  NoRounds rounds;
  Loop loop(&rounds);
  Connect connect(&loop, door.address, 1000);
  EXPECT_FALSE(connect.settled(999));
  ASSERT_TRUE(connect.settled(1000));
  const base::Result<Accepted> socket = connect.Take();
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error(), "Connection timed out");
  close(door.fd);
}

TEST(Connect, ANameThatNobodyHasIsAnError) { EXPECT_FALSE(Resolve("name with blanks", 1).ok()); }

}  // namespace
}  // namespace sava::net
