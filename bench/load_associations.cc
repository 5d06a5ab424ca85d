// Load for association counters: the same work as AFC commands for Sava and as sorted-set commands
// for stock Redis, over many pipelined connections of one thread. Only the server's CPU is judged
// (bench/associations.py reads it), so what this program costs itself does not matter much.
//
//   sava_load_associations --port P --verb add|zincrby|top|zrevrange --mode fill|random
//       [--associators 100000] [--members 100] [--distinct 100000] [--kind uuid|bytes]
//       [--order document|mixed] [--repetitions 1] [--requests N] [--connections 50] [--pipeline
//       16] [--seed 1]
//
// fill goes through all associators as the document's client does, each of its members 1 to
// `repetitions` times, or (mixed) through all associators for each member in turn, so that all of
// them grow at the same time; random sends `requests` commands for random pairs out of those. With
// --distinct an associator's members are that many of a common stock, without (0) its own.
// Prints one line of JSON: commands, seconds.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"

namespace {

enum class Verb : uint8_t { kAdd, kZincrby, kTop, kZrevrange };

struct Options {
  uint64_t port = 0;
  Verb verb = Verb::kAdd;
  bool fill = false;
  bool mixed = false;
  uint64_t associators = 100000;
  uint64_t members = 100;
  uint64_t distinct = 100000;
  bool uuid = true;
  uint64_t repetitions = 1;
  uint64_t requests = 1000000;
  uint64_t connections = 50;
  uint64_t pipeline = 16;
  uint64_t seed = 1;
};

[[noreturn]] void Die(std::string_view text) {
  fmt::print(stderr, "sava_load_associations: {}\n", text);
  exit(1);
}

uint64_t Scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// ---- what is sent ----

// Which member the j-th of an associator is, and its bytes.
class Shape {
 public:
  explicit Shape(const Options& options) : options_(options) {}

  uint64_t Member(uint64_t associator, uint64_t j) const {
    if (options_.distinct == 0) return associator * options_.members + j;
    // A walk through the stock in steps that meet every member once.
    const uint64_t mixed = Scramble(associator);
    uint64_t step = 1 + (mixed >> 20) % options_.distinct;
    while (std::gcd(step, options_.distinct) != 1) ++step;
    return (mixed + j * step) % options_.distinct;
  }

  void AppendMember(uint64_t member, std::string* out) const {
    const uint64_t words[] = {Scramble(member * 2 + 1), Scramble(member * 2 + 2)};
    char bytes[16];
    memcpy(bytes, words, sizeof bytes);
    if (!options_.uuid) {
      out->append("$16\r\n").append(bytes, sizeof bytes).append("\r\n");
      return;
    }
    out->append("$36\r\n");
    static constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof bytes; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) out->push_back('-');
      const auto byte = static_cast<unsigned char>(bytes[i]);
      out->push_back(kDigits[byte >> 4]);
      out->push_back(kDigits[byte & 15]);
    }
    out->append("\r\n");
  }

  void AppendCommand(uint64_t associator, uint64_t j, std::string* out) const {
    char key[32];
    const size_t length = static_cast<size_t>(
        fmt::format_to_n(key, sizeof key, "$12\r\nassoc:{:06}\r\n", associator).size);
    const std::string_view name(key, length);
    switch (options_.verb) {
      case Verb::kAdd:
        out->append("*3\r\n$7\r\nAFC.ADD\r\n").append(name);
        AppendMember(Member(associator, j), out);
        break;
      case Verb::kZincrby:
        out->append("*4\r\n$7\r\nZINCRBY\r\n").append(name).append("$1\r\n1\r\n");
        AppendMember(Member(associator, j), out);
        break;
      case Verb::kTop:
        out->append("*4\r\n$7\r\nAFC.TOP\r\n").append(name);
        out->append("$2\r\n20\r\n$10\r\nWITHCOUNTS\r\n");
        break;
      case Verb::kZrevrange:
        out->append("*5\r\n$9\r\nZREVRANGE\r\n").append(name);
        out->append("$1\r\n0\r\n$2\r\n19\r\n$10\r\nWITHSCORES\r\n");
        break;
    }
  }

 private:
  const Options& options_;
};

// Hands out the commands one after the other.
class Source {
 public:
  explicit Source(const Options& options)
      : options_(options), shape_(options), rng_(options.seed), left_(options.requests) {}

  // False when there are no more.
  bool Append(std::string* out) { return options_.fill ? AppendNext(out) : AppendRandom(out); }

 private:
  bool AppendNext(std::string* out) {
    if (repeat_ == 0) {
      if (pair_ == options_.associators * options_.members) return false;
      repeat_ = 1 + rng_.Below(options_.repetitions);
    }
    if (options_.mixed) {
      shape_.AppendCommand(pair_ % options_.associators, pair_ / options_.associators, out);
    } else {
      shape_.AppendCommand(pair_ / options_.members, pair_ % options_.members, out);
    }
    if (--repeat_ == 0) ++pair_;
    return true;
  }
  bool AppendRandom(std::string* out) {
    if (left_ == 0) return false;
    --left_;
    shape_.AppendCommand(rng_.Below(options_.associators), rng_.Below(options_.members), out);
    return true;
  }

  const Options& options_;
  Shape shape_;
  sava::base::Rng rng_;
  uint64_t left_;
  uint64_t pair_ = 0;
  uint64_t repeat_ = 0;
};

// ---- what comes back ----

// Counts whole replies; knows the forms that these commands answer with.
class ReplyCounter {
 public:
  // How many replies ended in these bytes.
  uint64_t Feed(std::string_view bytes) {
    rest_.append(bytes);
    uint64_t done = 0;
    size_t at = 0;
    while (Step(&at)) {
      if (open_ == 0) ++done;
    }
    rest_.erase(0, at);
    return done;
  }

 private:
  // Passes over one element; false when it is not all there.
  bool Step(size_t* at) {
    const size_t end = rest_.find("\r\n", *at);
    if (end == std::string::npos) return false;
    const char kind = rest_[*at];
    const std::string line = rest_.substr(*at + 1, end - *at - 1);
    size_t next = end + 2;
    if (kind == '-') Die("error reply: " + line);
    if (kind == '$') {
      next += static_cast<size_t>(atoll(line.c_str())) + 2;
      if (next > rest_.size()) return false;
    } else if (kind == '*') {
      open_ += static_cast<uint64_t>(atoll(line.c_str())) + 1;
    } else if (kind != ':' && kind != '+') {
      Die("not a reply: " + rest_.substr(*at, 40));
    }
    if (open_ > 0) --open_;
    *at = next;
    return true;
  }

  std::string rest_;
  uint64_t open_ = 0;  // elements still to come
};

struct Connection {
  int fd = -1;
  std::string out;
  size_t sent = 0;
  uint64_t due = 0;
  ReplyCounter replies;
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

  // Returns how many commands were answered.
  uint64_t Run() {
    for (Connection& connection : connections_) NextBatch(connection);
    std::vector<epoll_event> events(connections_.size());
    while (busy_ > 0) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 60000);
      if (count == 0) Die("no reply for 60 s");
      for (int i = 0; i < count; ++i) {
        Connection& connection = connections_[events[static_cast<size_t>(i)].data.u64];
        if ((events[static_cast<size_t>(i)].events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) {
          Receive(connection);
        }
        if (connection.sent < connection.out.size()) Send(connection);
      }
    }
    return answered_;
  }

 private:
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

  void NextBatch(Connection& connection) {
    connection.out.clear();
    connection.sent = 0;
    while (connection.due < options_.pipeline && source_.Append(&connection.out)) ++connection.due;
    if (connection.due == 0) return;
    ++busy_;
    Send(connection);
  }

  void Send(Connection& connection) {
    while (connection.sent < connection.out.size()) {
      const ssize_t n = send(connection.fd, connection.out.data() + connection.sent,
                             connection.out.size() - connection.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        Die(fmt::format("cannot send: {}", strerror(errno)));
      }
      connection.sent += static_cast<size_t>(n);
    }
  }

  // Reads all there is: the events are edges.
  void Receive(Connection& connection) {
    while (true) {
      const ssize_t n = recv(connection.fd, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n <= 0) Die("the server closed the connection");
      const uint64_t done = connection.replies.Feed({buffer_, static_cast<size_t>(n)});
      if (done > connection.due) Die("more replies than commands");
      connection.due -= done;
      answered_ += done;
      if (done > 0 && connection.due == 0) {
        --busy_;
        NextBatch(connection);
      }
    }
  }

  const Options& options_;
  Source source_;
  std::vector<Connection> connections_;
  int epoll_ = -1;
  uint64_t busy_ = 0;
  uint64_t answered_ = 0;
  char buffer_[1 << 16];
};

bool ParseVerb(std::string_view text, Verb* verb) {
  static constexpr std::string_view kNames[] = {"add", "zincrby", "top", "zrevrange"};
  for (size_t i = 0; i < 4; ++i) {
    if (text != kNames[i]) continue;
    *verb = static_cast<Verb>(i);
    return true;
  }
  return false;
}

struct Number {
  std::string_view name;
  uint64_t Options::*field;
};
constexpr Number kNumbers[] = {
    {"--port", &Options::port},
    {"--associators", &Options::associators},
    {"--members", &Options::members},
    {"--distinct", &Options::distinct},
    {"--repetitions", &Options::repetitions},
    {"--requests", &Options::requests},
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
  if (name == "--verb") return ParseVerb(value, &options->verb);
  const std::string_view word = value;
  if (name == "--mode" && (word == "fill" || word == "random")) {
    options->fill = word == "fill";
  } else if (name == "--order" && (word == "document" || word == "mixed")) {
    options->mixed = word == "mixed";
  } else if (name == "--kind" && (word == "uuid" || word == "bytes")) {
    options->uuid = word == "uuid";
  } else {
    return false;
  }
  return true;
}

bool Sensible(const Options& options) {
  return options.port != 0 && options.port <= UINT16_MAX && options.associators != 0 &&
         options.associators <= 1000000 && options.members != 0 && options.repetitions != 0 &&
         options.connections != 0 && options.pipeline != 0 &&
         (options.distinct == 0 || options.distinct >= options.members);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !Parse(argv[i], argv[i + 1], &options)) {
      Die(fmt::format("what is {}?", argv[i]));
    }
  }
  if (!Sensible(options)) Die("these options make no sense");
  Load load(options);
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t commands = load.Run();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  fmt::print("{{\"commands\": {}, \"seconds\": {:.6f}}}\n", commands, elapsed.count());
  return 0;
}
