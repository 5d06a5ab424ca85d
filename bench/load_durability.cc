// Load for bench/durability.py: writes at a fixed rate, or as fast as they are answered, to random
// keys of a filled server or to random members of one counter, from one thread, until SIGTERM.
//
//   sava_load_durability --port P [--verb set|add|zincrby] [--count 10000000] [--order random|once]
//       [--rate 0] [--tick-us 0] [--connections 50] [--pipeline 16] [--seed 1] [--samples FILE]
//
// set writes 32 bytes to the keys key:000000000000 …, add and zincrby count UUID texts in the key
// `counter`. `once` goes through all `count` of them and ends, `random` never ends by itself.
//
// With a rate the loop is open: command i is meant for the instant i / rate, rounded up to a tick,
// and is sent then whether others are answered or not, so that a server that stands still delays
// all that is sent meanwhile. Without, each connection sends `pipeline` commands when all are
// answered. --samples writes one line for each command answered: nanoseconds of the monotonic clock
// at which it was due; nanoseconds from its sending until its answer was read; nanoseconds by which
// it was sent late, because this program did not get a processor in time. Prints one line of JSON:
// commands, seconds, cpu_seconds.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"

namespace {

enum class Verb : uint8_t { kSet, kAdd, kZincrby };

constexpr uint64_t kSecond = 1000000000;
constexpr uint64_t kSilentSeconds = 60;
constexpr int kPriority = -10;

struct Options {
  uint64_t port = 0;
  Verb verb = Verb::kSet;
  bool once = false;
  uint64_t count = 10000000;
  uint64_t rate = 0;
  uint64_t tick_us = 0;
  uint64_t connections = 50;
  uint64_t pipeline = 16;
  uint64_t seed = 1;
  std::string samples;
};

volatile sig_atomic_t g_ended = 0;

[[noreturn]] void Die(std::string_view text) {
  fmt::print(stderr, "sava_load_durability: {}\n", text);
  exit(1);
}

uint64_t Clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}
uint64_t Now() { return Clock(CLOCK_MONOTONIC); }

uint64_t Scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// ---- what is sent ----

class Source {
 public:
  explicit Source(const Options& options) : options_(options), rng_(options.seed) {}

  // False when there are no more.
  bool Append(std::string* out) {
    if (options_.once && next_ == options_.count) return false;
    const uint64_t item = options_.once ? next_ : rng_.Below(options_.count);
    ++next_;
    switch (options_.verb) {
      case Verb::kSet:
        fmt::format_to(std::back_inserter(*out),
                       "*3\r\n$3\r\nSET\r\n$16\r\nkey:{:012}\r\n$32\r\n{:012}{:020}\r\n", item,
                       item, next_);
        break;
      case Verb::kAdd:
        out->append("*3\r\n$7\r\nAFC.ADD\r\n$7\r\ncounter\r\n");
        AppendMember(item, out);
        break;
      case Verb::kZincrby:
        out->append("*4\r\n$7\r\nZINCRBY\r\n$7\r\ncounter\r\n$1\r\n1\r\n");
        AppendMember(item, out);
        break;
    }
    return true;
  }

 private:
  static void AppendMember(uint64_t member, std::string* out) {
    const uint64_t a = Scramble(member * 2 + 1);
    const uint64_t b = Scramble(member * 2 + 2);
    fmt::format_to(std::back_inserter(*out), "$36\r\n{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\r\n",
                   a >> 32, (a >> 16) & 0xffff, a & 0xffff, b >> 48, b & 0xffffffffffff);
  }

  const Options& options_;
  sava::base::Rng rng_;
  uint64_t next_ = 0;
};

// ---- what comes back ----

// Takes whole replies off the front of what arrived; knows lines and bulk strings.
class Replies {
 public:
  void Feed(std::string_view bytes) { rest_.append(bytes); }

  uint64_t Take() {
    uint64_t done = 0;
    size_t at = 0;
    while (true) {
      const size_t end = rest_.find("\r\n", at);
      if (end == std::string::npos) break;
      size_t next = end + 2;
      if (rest_[at] == '-') Die("error reply: " + rest_.substr(at + 1, end - at - 1));
      if (rest_[at] == '$') next += static_cast<size_t>(atoll(rest_.c_str() + at + 1)) + 2;
      if (next > rest_.size()) break;
      at = next;
      ++done;
    }
    rest_.erase(0, at);
    return done;
  }

 private:
  std::string rest_;
};

struct Command {
  uint64_t due;   // when it was meant to be sent
  uint64_t sent;  // when it was, or when the server was to take it
};

struct Connection {
  int fd = -1;
  std::string out;
  size_t sent = 0;
  std::deque<Command> open;  // not answered yet
  Replies replies;
};

struct Sample {
  uint64_t due;
  uint64_t took;
  uint64_t late;
};

class Load {
 public:
  explicit Load(const Options& options) : options_(options), source_(options) {
    epoll_ = epoll_create1(0);
    connections_.resize(options.connections);
    for (size_t i = 0; i < connections_.size(); ++i) Open(i);
  }
  ~Load() {
    for (const Connection& connection : connections_) close(connection.fd);
    close(epoll_);
  }

  // Until there is no more to send, or the signal came, and all is answered.
  void Run() {
    begin_ = last_reply_ = Now();
    if (options_.rate == 0) {
      for (Connection& connection : connections_) NextBatch(connection);
    }
    std::vector<epoll_event> events(connections_.size());
    while (pending_ > 0 || !over()) {
      if (options_.rate != 0 && !over()) SendDue();
      timespec wait{1, 0};
      if (options_.rate != 0 && !over()) {
        const uint64_t now = Now();
        const uint64_t due = DueTime(scheduled_);
        wait = due > now ? Span(due - now) : timespec{0, 0};
      }
      const int count =
          epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &wait, nullptr);
      for (int i = 0; i < count; ++i) Handle(events[static_cast<size_t>(i)]);
      if (pending_ > 0 && Now() - last_reply_ > kSilentSeconds * kSecond) Die("no reply for 60 s");
      if (pending_ == 0) last_reply_ = Now();
    }
  }

  uint64_t answered() const { return answered_; }
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  static timespec Span(uint64_t nanos) {
    nanos = std::min(nanos, kSecond);
    return {static_cast<time_t>(nanos / kSecond), static_cast<long>(nanos % kSecond)};
  }

  bool over() const { return g_ended != 0 || exhausted_; }

  void Open(size_t index) {
    Connection& connection = connections_[index];
    connection.fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(options_.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      Die(fmt::format("cannot connect: {}", strerror(errno)));
    }
    const int on = 1;
    setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = index;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
  }

  // When the command of that number is meant to be sent.
  uint64_t DueTime(uint64_t number) const {
    const auto after =
        static_cast<uint64_t>(static_cast<unsigned __int128>(number) * kSecond / options_.rate);
    const uint64_t tick = std::max<uint64_t>(options_.tick_us * 1000, 1);
    return begin_ + (after + tick - 1) / tick * tick;
  }

  void SendDue() {
    const uint64_t now = Now();
    const uint64_t first = scheduled_;
    while (DueTime(scheduled_) <= now) {
      Connection& connection = connections_[scheduled_ % connections_.size()];
      Trim(connection);
      if (!source_.Append(&connection.out)) {
        exhausted_ = true;
        break;
      }
      connection.open.push_back({DueTime(scheduled_), now});
      ++pending_;
      ++scheduled_;
    }
    const uint64_t touched = std::min<uint64_t>(scheduled_ - first, connections_.size());
    for (uint64_t i = 0; i < touched; ++i) Send(connections_[(first + i) % connections_.size()]);
  }

  void NextBatch(Connection& connection) {
    Trim(connection);
    const uint64_t now = Now();
    while (!over() && connection.open.size() < options_.pipeline) {
      if (!source_.Append(&connection.out)) {
        exhausted_ = true;
        break;
      }
      connection.open.push_back({now, now});
      ++pending_;
    }
    Send(connection);
  }

  static void Trim(Connection& connection) {
    if (connection.sent < connection.out.size()) return;
    connection.out.clear();
    connection.sent = 0;
  }

  void Send(Connection& connection) {
    while (connection.sent < connection.out.size()) {
      const ssize_t n = send(connection.fd, connection.out.data() + connection.sent,
                             connection.out.size() - connection.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN) return;
        Die(fmt::format("cannot send: {}", strerror(errno)));
      }
      connection.sent += static_cast<size_t>(n);
    }
  }

  void Handle(const epoll_event& event) {
    Connection& connection = connections_[event.data.u64];
    if ((event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) Receive(connection);
    Send(connection);
  }

  // Reads all there is: the events are edges.
  void Receive(Connection& connection) {
    while (true) {
      const ssize_t n = recv(connection.fd, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) Die("the server closed the connection");
      connection.replies.Feed({buffer_, static_cast<size_t>(n)});
      const uint64_t done = connection.replies.Take();
      if (done > connection.open.size()) Die("more replies than commands");
      const uint64_t now = Now();
      for (uint64_t i = 0; i < done; ++i) {
        if (!options_.samples.empty()) {
          const Command& command = connection.open.front();
          samples_.push_back({command.due, now - command.sent, command.sent - command.due});
        }
        connection.open.pop_front();
      }
      answered_ += done;
      pending_ -= done;
      if (done > 0) last_reply_ = now;
      if (options_.rate == 0 && connection.open.empty() && !over()) NextBatch(connection);
    }
  }

  const Options& options_;
  Source source_;
  std::vector<Connection> connections_;
  std::vector<Sample> samples_;
  int epoll_ = -1;
  bool exhausted_ = false;
  uint64_t begin_ = 0;
  uint64_t last_reply_ = 0;
  uint64_t scheduled_ = 0;
  uint64_t pending_ = 0;
  uint64_t answered_ = 0;
  char buffer_[1 << 16];
};

// ---- command line ----

struct Number {
  std::string_view name;
  uint64_t Options::*field;
};
constexpr Number kNumbers[] = {
    {"--port", &Options::port},
    {"--count", &Options::count},
    {"--rate", &Options::rate},
    {"--tick-us", &Options::tick_us},
    {"--connections", &Options::connections},
    {"--pipeline", &Options::pipeline},
    {"--seed", &Options::seed},
};

bool Parse(std::string_view name, const char* value, Options* options) {
  for (const Number& number : kNumbers) {
    if (name != number.name) continue;
    char* end = nullptr;
    options->*number.field = strtoull(value, &end, 10);
    return end != value && *end == '\0';
  }
  const std::string_view word = value;
  if (name == "--samples") {
    options->samples = word;
  } else if (name == "--order" && (word == "random" || word == "once")) {
    options->once = word == "once";
  } else if (name == "--verb" && (word == "set" || word == "add" || word == "zincrby")) {
    options->verb = word == "set" ? Verb::kSet : word == "add" ? Verb::kAdd : Verb::kZincrby;
  } else {
    return false;
  }
  return true;
}

void WriteSamples(const std::string& path, const std::vector<Sample>& samples) {
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) Die(fmt::format("cannot write {}: {}", path, strerror(errno)));
  for (const Sample& sample : samples) {
    fmt::print(file, "{} {} {}\n", sample.due, sample.took, sample.late);
  }
  if (fclose(file) != 0) Die(fmt::format("cannot write {}: {}", path, strerror(errno)));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !Parse(argv[i], argv[i + 1], &options)) {
      Die(fmt::format("what is {}?", argv[i]));
    }
  }
  if (options.port == 0 || options.port > UINT16_MAX || options.count == 0 ||
      options.connections == 0 || options.pipeline == 0 || options.count > 1000000000000) {
    Die("these options make no sense");
  }
  struct sigaction action {};
  action.sa_handler = [](int) { g_ended = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  // A load that is late itself would say nothing about the server. Where it is not allowed:
  // without.
  setpriority(PRIO_PROCESS, 0, kPriority);
  prctl(PR_SET_TIMERSLACK, 1UL);

  Load load(options);
  const uint64_t begin = Now();
  load.Run();
  const double seconds = static_cast<double>(Now() - begin) / kSecond;
  if (!options.samples.empty()) WriteSamples(options.samples, load.samples());
  fmt::print("{{\"commands\": {}, \"seconds\": {:.6f}, \"cpu_seconds\": {:.6f}}}\n",
             load.answered(), seconds,
             static_cast<double>(Clock(CLOCK_PROCESS_CPUTIME_ID)) / kSecond);
  return 0;
}
