#include "front/loops.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "http/problem.h"
#include "net/tls_transport.h"
#include "protocol/http_response.h"
#include "protocol/reply.h"

namespace sava::front {

namespace {

constexpr std::string_view kFull = "max number of clients reached";
constexpr std::string_view kDenied =
    "Sava is running in protected mode because protected mode is enabled and no password is set "
    "for the default user. In this mode connections are only accepted from the loopback interface. "
    "To connect from other machines set a password with requirepass (CONFIG SET requirepass ... "
    "from this machine, or in the configuration file), or, if the port cannot be reached from "
    "outside, disable protected mode with CONFIG SET protected-mode no.";

// Closes it. A TLS client gets no error text: a handshake would have to come first.
void Refuse(const net::Accepted& accepted, bool tls, std::string_view code, int status,
            std::string_view why) {
  if (tls) {
    close(accepted.fd);
    return;
  }
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
  iovec vectors[1];
  net::SocketTransport(accepted.fd).Writev(vectors, out.Gather(vectors, 1));
}

// "127.0.0.1:6379", "[::1]:6379"
std::string AddressText(const std::string& address, int64_t port) {
  const bool colons = address.find(':') != std::string::npos && address != "::*";
  return fmt::format(fmt::runtime(colons ? "[{}]:{}" : "{}:{}"), address, port);
}

}  // namespace

class Loops::Listener final : public net::Source {
 public:
  Listener(Loops* owner, int fd, Place place) : fd_(fd), place_(std::move(place)), owner_(owner) {}
  ~Listener() override {
    if (fd_ >= 0) close(fd_);
  }
  void OnEvents(uint32_t events) override {
    static_cast<void>(events);
    owner_->Accept(*this);
  }
  int fd() const { return fd_; }
  const Place& place() const { return place_; }
  bool http() const { return place_.http; }
  bool tls() const { return place_.tls; }
  void Shut() {
    close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  const Place place_;
  Loops* const owner_;
};

Loops::Loops(FrontHost* host, engine::Engine* engine, const LoopLimits* limits)
    : host_(*host), engine_(*engine), limits_(*limits) {
  for (auto& lane : engine->lanes()) {
    loops_.push_back(std::make_unique<EventLoop>(this, lane.get()));
  }
}

Loops::~Loops() { Stop(); }

// Where the settings want listeners, each place once.
std::vector<Loops::Place> Loops::Wanted(const config::Settings& settings) const {
  std::vector<Place> places;
  const auto add = [&](const std::string& entry, int64_t port, bool http, bool tls) {
    Place place;
    place.optional = entry.starts_with('-');
    place.address = place.optional ? entry.substr(1) : entry;
    place.port = static_cast<int>(port);
    place.http = http;
    place.tls = tls;
    place.name = (http ? (tls ? "https://" : "http://") : (tls ? "tls://" : "")) +
                 AddressText(place.address, port);
    const auto same = [&](const Place& other) { return other.name == place.name; };
    if (std::ranges::none_of(places, same)) places.push_back(std::move(place));
  };
  if (settings.port != 0) {
    for (const std::string& entry : settings.bind) add(entry, settings.port, false, false);
  }
  if (settings.tls_port != 0) {
    for (const std::string& entry : settings.bind) add(entry, settings.tls_port, false, true);
  }
  if (settings.http_port != 0 && http_) {
    for (const std::string& entry : settings.http_bind) add(entry, settings.http_port, true, false);
  }
  if (settings.http_tls_port != 0) {
    for (const std::string& entry : settings.http_bind) {
      add(entry, settings.http_tls_port, true, true);
    }
  }
  if (!settings.unixsocket.empty()) {
    Place place;
    place.address = settings.unixsocket;
    place.name = "unix:" + settings.unixsocket;
    places.push_back(std::move(place));
  }
  return places;
}

base::Result<std::unique_ptr<Loops::Listener>> Loops::Open(const config::Settings& settings,
                                                           const Place& place) {
  const auto backlog = static_cast<int>(settings.tcp_backlog);
  base::Result<int> fd = place.port == 0
                             ? net::ListenUnix(place.address, settings.unixsocketperm, backlog)
                             : net::ListenTcp(place.address, place.port, backlog);
  if (!fd) {
    const bool in_use = fd.error().find(strerror(EADDRINUSE)) != std::string::npos;
    const char* const option = place.http ? (place.tls ? "--http-tls-port" : "--http-port")
                                          : (place.tls ? "--tls-port" : "--port");
    const std::string advice = place.http
                                   ? fmt::format(" (for HTTP: another {}, or 0 for none)", option)
                               : in_use ? fmt::format(". End it, or choose another {}", option)
                                        : "";
    return base::Error{fd.error() + advice};
  }
  if (place.port == 0) unix_path_ = place.address;
  return std::make_unique<Listener>(this, *fd, place);
}

// Opens the places that have no listener yet; none if one of them fails.
base::Status Loops::OpenMissing(const config::Settings& settings, const std::vector<Place>& places,
                                std::vector<std::unique_ptr<Listener>>* opened) {
  opened->clear();
  for (const Place& place : places) {
    const auto is_here = [&](const auto& listener) { return listener->place().name == place.name; };
    if (std::ranges::any_of(listeners_, is_here)) continue;
    auto listener = Open(settings, place);
    if (listener) {
      opened->push_back(std::move(*listener));
    } else if (!place.optional) {
      opened->clear();
      return base::Error{listener.error()};
    }
  }
  return {};
}

void Loops::AddListeners(std::vector<std::unique_ptr<Listener>> listeners) {
  for (auto& listener : listeners) {
    const bool waits = drained_ && listener->http();  // EndDrain adds it
    if (!waits) loops_[0]->loop().Add(listener->fd(), EPOLLIN, listener.get());
    listeners_.push_back(std::move(listener));
  }
}

// Closes the listeners that are at none of the places; returns where they were.
std::vector<Loops::Place> Loops::CloseOthers(const std::vector<Place>& places) {
  std::vector<Place> closed;
  std::erase_if(listeners_, [&](auto& listener) {
    const auto same = [&](const Place& place) { return place.name == listener->place().name; };
    if (std::ranges::any_of(places, same)) return false;
    closed.push_back(listener->place());
    loops_[0]->loop().Remove(listener->fd());
    listener->Shut();
    retired_.push_back(std::move(listener));  // the first loop may still be telling it
    return true;
  });
  return closed;
}

// The new ones are opened before the old ones are closed, so that a failure changes nothing. But a
// listener for all addresses cannot be opened beside one for a single address on the same port, nor
// the other way round: there the old ones have to go first, and come back after a failure.
base::Status Loops::Listen(const config::Settings& settings) {
  const std::lock_guard lock(mutex_);
  const std::vector<Place> places = Wanted(settings);
  std::vector<std::unique_ptr<Listener>> opened;
  base::Status status = OpenMissing(settings, places, &opened);
  const bool in_the_way = !status && std::ranges::any_of(listeners_, [&](const auto& listener) {
    const Place& old = listener->place();
    const auto named = [&](const Place& place) { return place.name == old.name; };
    return old.port != 0 && std::ranges::none_of(places, named) &&
           std::ranges::any_of(places, [&](const Place& one) { return one.port == old.port; });
  });
  if (in_the_way) {
    const std::vector<Place> closed = CloseOthers(places);
    status = OpenMissing(settings, places, &opened);
    if (!status && !OpenMissing(settings, closed, &opened)) {
      spdlog::warn("The server does not listen any more at the addresses it had before");
    }
  }
  AddListeners(std::move(opened));
  if (!status) return status;
  CloseOthers(places);
  return {};
}

void Loops::Accept(const Listener& listener) {
  for (int i = 0; i < 256; ++i) {
    int error = 0;
    net::Accepted accepted = net::Accept(listener.fd(), &error);
    accepted.http = listener.http();
    if (accepted.fd < 0) {
      if (error != 0 && !host_.shutting_down())
        spdlog::warn("Accepting client connection: {}", strerror(error));
      return;
    }
    if (client_count() >= limits_.maxclients.load(std::memory_order_relaxed)) {
      engine_.lanes()[0]->stats.clients.rejected.Add();
      Refuse(accepted, listener.tls(), "ERR", 503, kFull);
      continue;
    }
    if (!accepted.local && limits_.refuse_strangers.load(std::memory_order_relaxed)) {
      engine_.lanes()[0]->stats.clients.rejected.Add();
      Refuse(accepted, listener.tls(), "DENIED", 403, kDenied);
      continue;
    }
    engine_.lanes()[0]->stats.clients.connections.Add();
    if (!accepted.unix_socket) {
      net::SetNoDelay(accepted.fd);
      const auto keepalive = static_cast<int>(limits_.keepalive.load(std::memory_order_relaxed));
      if (keepalive > 0) net::SetKeepAlive(accepted.fd, keepalive);
    }
    accepted.id = engine_.NewClientId();
    auto transport = Carry(accepted.fd, listener);
    NextLoop().Adopt({std::move(accepted), std::move(transport), {}});
  }
}

std::unique_ptr<net::Transport> Loops::Carry(int fd, const Listener& listener) const {
  if (!listener.tls()) return std::make_unique<net::SocketTransport>(fd);
  auto transport = std::make_unique<net::TlsTransport>(fd, *tls_.server, tls_.clients);
  if (listener.http()) transport->SpeakHttp();
  return transport;
}

// The one with the fewest connections. Under `appendfsync always` all writers wait for the same
// disk, and on few cores threads that wake each other take longer than one that does it all: there
// it is the first loop, unless the user asked for a number of threads.
EventLoop& Loops::NextLoop() const {
  EventLoop* target = loops_[0].get();
  if (limits_.one_loop.load(std::memory_order_relaxed)) return *target;
  for (const auto& loop : loops_) {
    if (loop->connection_count() < target->connection_count()) target = loop.get();
  }
  return *target;
}

size_t Loops::client_count() const {
  size_t count = 0;
  for (const auto& loop : loops_) count += loop->connection_count();
  return count;
}

std::string Loops::ClientCounts() const {
  std::vector<size_t> counts;
  for (const auto& loop : loops_) counts.push_back(loop->connection_count());
  return fmt::format("{}", fmt::join(counts, ","));
}

bool Loops::AllBelongTo(const EventLoop& loop) const {
  return std::ranges::all_of(loops_, [&loop](const auto& other) {
    return other.get() == &loop || other->connection_count() == 0;
  });
}

void Loops::Start() {
  for (auto& loop : loops_) loop->Start();
  started_ = true;
}

void Loops::Drain() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(drained_, true)) return;
    for (auto& listener : listeners_) {
      if (listener->http()) loops_[0]->loop().Remove(listener->fd());
    }
  }
  for (auto& loop : loops_) loop->Drain();
  using std::chrono::steady_clock;
  const auto deadline =
      steady_clock::now() +
      std::chrono::seconds(limits_.shutdown_timeout.load(std::memory_order_relaxed));
  const auto drained = [this] {
    return std::ranges::all_of(loops_, [](const auto& loop) { return loop->drained(); });
  };
  while (!drained() && steady_clock::now() < deadline && !host_.hurried()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Loops::EndDrain() {
  for (auto& loop : loops_) loop->EndDrain();
  const std::lock_guard lock(mutex_);
  if (!std::exchange(drained_, false)) return;
  for (auto& listener : listeners_) {
    if (listener->http()) loops_[0]->loop().Add(listener->fd(), EPOLLIN, listener.get());
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

void Loops::Stop(const std::function<void()>& stopped) {
  if (!started_) return;
  started_ = false;
  Drain();
  for (auto& loop : loops_) loop->Stop();
  for (auto& loop : loops_) loop->Join();
  if (stopped) stopped();
  listeners_.clear();
  if (!unix_path_.empty()) unlink(unix_path_.c_str());
  loops_.clear();
}

}  // namespace sava::front
