#include "server/loops.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "http/problem.h"
#include "protocol/http_response.h"
#include "protocol/reply.h"
#include "server/server.h"

namespace sava::server {

namespace {

constexpr std::string_view kFull = "max number of clients reached";
constexpr std::string_view kDenied =
    "Sava is running in protected mode because protected mode is enabled and no password is set "
    "for the default user. In this mode connections are only accepted from the loopback interface. "
    "To connect from other machines set a password with requirepass (CONFIG SET requirepass ... "
    "from this machine, or in the configuration file), or, if the port cannot be reached from "
    "outside, disable protected mode with CONFIG SET protected-mode no.";

void Refuse(const net::Accepted& accepted, std::string_view code, int status,
            std::string_view why) {
  protocol::OutBuffer out;
  if (accepted.http) {
    protocol::HttpResponse response;
    http::Problem(&response, status, why);
    protocol::HttpFraming framing;
    framing.close = true;
    protocol::WriteResponse(&out, response, framing);
  } else {
    protocol::Reply(&out, 2).Error(fmt::format("{} {}", code, why));
  }
  const std::string_view text = out.Since(0);
  if (send(accepted.fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) {
  }
  close(accepted.fd);
}

// "127.0.0.1:6379", "[::1]:6379"
std::string AddressText(const std::string& address, int64_t port) {
  const bool colons = address.find(':') != std::string::npos && address != "::*";
  return fmt::format(fmt::runtime(colons ? "[{}]:{}" : "{}:{}"), address, port);
}

}  // namespace

class Loops::Listener final : public net::Source {
 public:
  Listener(Loops* owner, int fd, bool http) : fd_(fd), http_(http), owner_(owner) {}
  ~Listener() override {
    if (fd_ >= 0) close(fd_);
  }
  void OnEvents(uint32_t events) override {
    static_cast<void>(events);
    owner_->Accept(*this);
  }
  int fd() const { return fd_; }
  bool http() const { return http_; }
  void Shut() {
    close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  const bool http_;
  Loops* const owner_;
};

Loops::Loops(Server* server) : server_(*server) {
  for (auto& lane : server->engine().lanes()) {
    loops_.push_back(std::make_unique<EventLoop>(server, lane.get()));
  }
}

Loops::~Loops() { Stop(); }

base::Status Loops::Listen(const engine::Settings& settings) {
  struct Fresh {
    std::string address;
    std::unique_ptr<Listener> listener;  // nullptr: one that is open already
  };
  std::vector<Fresh> wanted;
  const auto backlog = static_cast<int>(settings.tcp_backlog);
  const auto open = [this](const std::string& text) {
    return std::find(addresses_.begin(), addresses_.end(), text) != addresses_.end();
  };
  const auto want = [&](const std::string& entry, int64_t port, bool http) -> base::Status {
    const bool optional = entry.starts_with('-');
    const std::string address = optional ? entry.substr(1) : entry;
    const std::string text = (http ? "http://" : "") + AddressText(address, port);
    if (open(text)) {
      wanted.push_back({text, nullptr});
      return {};
    }
    auto fd = net::ListenTcp(address, static_cast<int>(port), backlog);
    if (fd) {
      wanted.push_back({text, std::make_unique<Listener>(this, *fd, http)});
    } else if (!optional) {
      return base::Error{http ? fd.error() + " (for HTTP: another --http-port, or 0 for none)"
                              : fd.error()};
    }
    return {};
  };
  for (const std::string& entry : settings.bind) {
    if (settings.port == 0) break;
    if (base::Status status = want(entry, settings.port, false); !status) return status;
  }
  for (const std::string& entry : settings.http_bind) {
    if (settings.http_port == 0 || !http_) break;
    if (base::Status status = want(entry, settings.http_port, true); !status) return status;
  }
  if (!settings.unixsocket.empty()) {
    const std::string text = "unix:" + settings.unixsocket;
    if (open(text)) {
      wanted.push_back({text, nullptr});
    } else {
      auto fd = net::ListenUnix(settings.unixsocket, settings.unixsocketperm, backlog);
      if (!fd) return base::Error{fd.error()};
      wanted.push_back({text, std::make_unique<Listener>(this, *fd, false)});
      unix_path_ = settings.unixsocket;
    }
  }
  std::vector<std::unique_ptr<Listener>> kept;
  std::vector<std::string> addresses;
  for (Fresh& item : wanted) {
    if (item.listener == nullptr) {
      const auto at = std::find(addresses_.begin(), addresses_.end(), item.address);
      item.listener = std::move(listeners_[static_cast<size_t>(at - addresses_.begin())]);
    } else {
      loops_[0]->loop().Add(item.listener->fd(), EPOLLIN, item.listener.get());
    }
    if (item.listener == nullptr) continue;  // named twice
    addresses.push_back(item.address);
    kept.push_back(std::move(item.listener));
  }
  for (auto& listener : listeners_) {
    if (listener == nullptr) continue;
    loops_[0]->loop().Remove(listener->fd());
    listener->Shut();
    retired_.push_back(std::move(listener));  // the first loop may still be telling it
  }
  listeners_ = std::move(kept);
  addresses_ = std::move(addresses);
  return {};
}

void Loops::Accept(const Listener& listener) {
  for (int i = 0; i < 256; ++i) {
    int error = 0;
    net::Accepted accepted = net::Accept(listener.fd(), &error);
    accepted.http = listener.http();
    if (accepted.fd < 0) {
      if (error != 0 && !server_.shutting_down())
        spdlog::warn("Accepting client connection: {}", strerror(error));
      return;
    }
    const LoopLimits& limits = server_.limits();
    if (server_.client_count() >= limits.maxclients.load(std::memory_order_relaxed)) {
      server_.engine().lanes()[0]->stats.rejected_connections.Add();
      Refuse(accepted, "ERR", 503, kFull);
      continue;
    }
    if (!accepted.local && limits.refuse_strangers.load(std::memory_order_relaxed)) {
      server_.engine().lanes()[0]->stats.rejected_connections.Add();
      Refuse(accepted, "DENIED", 403, kDenied);
      continue;
    }
    server_.client_counter().fetch_add(1, std::memory_order_relaxed);
    server_.engine().lanes()[0]->stats.connections.Add();
    if (!accepted.unix_socket) {
      net::SetNoDelay(accepted.fd);
      const auto keepalive = static_cast<int>(limits.keepalive.load(std::memory_order_relaxed));
      if (keepalive > 0) net::SetKeepAlive(accepted.fd, keepalive);
    }
    accepted.id = server_.engine().NewClientId();
    NextLoop().Adopt(std::move(accepted));
  }
}

// The one with the fewest connections. Under `appendfsync always` all writers wait for the same
// disk, and on few cores threads that wake each other take longer than one that does it all: there
// it is the first loop, unless the user asked for a number of threads.
EventLoop& Loops::NextLoop() const {
  EventLoop* target = loops_[0].get();
  if (server_.limits().one_loop.load(std::memory_order_relaxed)) return *target;
  for (const auto& loop : loops_) {
    if (loop->connection_count() < target->connection_count()) target = loop.get();
  }
  return *target;
}

void Loops::Start() {
  for (auto& loop : loops_) loop->Start();
  started_ = true;
}

void Loops::Drain() {
  if (std::exchange(drained_, true)) return;
  for (auto& listener : listeners_) {
    loops_[0]->loop().Remove(listener->fd());
  }
  for (auto& loop : loops_) loop->Drain();
  using std::chrono::steady_clock;
  const auto deadline =
      steady_clock::now() +
      std::chrono::seconds(server_.limits().shutdown_timeout.load(std::memory_order_relaxed));
  const auto drained = [this] {
    return std::ranges::all_of(loops_, [](const auto& loop) { return loop->drained(); });
  };
  while (!drained() && steady_clock::now() < deadline && !server_.hurried()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Loops::EndDrain() {
  drained_ = false;
  for (auto& loop : loops_) loop->EndDrain();
  for (auto& listener : listeners_) {
    loops_[0]->loop().Add(listener->fd(), EPOLLIN, listener.get());
  }
}

void Loops::AwaitReleased() {
  const auto released = [this] {
    return std::ranges::none_of(loops_, [](const auto& loop) { return loop->holding(); });
  };
  WakeHolders();
  for (int i = 0; i < 500 && !released(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Loops::WakeHolders() {
  for (auto& loop : loops_) loop->WakeIfHolding();
}

void Loops::Stop() {
  if (!started_) return;
  started_ = false;
  Drain();
  for (auto& loop : loops_) loop->Stop();
  for (auto& loop : loops_) loop->Join();
  listeners_.clear();
  if (!unix_path_.empty()) unlink(unix_path_.c_str());
  loops_.clear();
}

}  // namespace sava::server
