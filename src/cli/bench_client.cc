#include "cli/bench_client.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "cli/client_connection.h"

namespace sava::cli {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr auto kWatchInterval = std::chrono::milliseconds(100);
constexpr int kConnectTimeoutMs = 10000;
// A server that answers nobody for so long is given up.
constexpr auto kSilence = std::chrono::seconds(60);

using SteadyClock = std::chrono::steady_clock;

struct Peer {
  explicit Peer(Wire wire) : connection(nullptr, kConnectTimeoutMs), scanner(wire) {}

  Connection connection;  // opens and authenticates; then only its descriptor is used
  ReplyScanner scanner;
  std::string out;
  size_t written = 0;
  std::string in;
  uint32_t awaited = 0;
  bool watches_writing = false;
  SteadyClock::time_point sent_at;
};

}  // namespace

class LoadClient::Worker {
 public:
  Worker(const LoadSettings& settings, uint32_t peers, std::atomic<uint64_t>* done,
         const std::atomic<bool>* stop)
      : settings_(settings), done_(done), stop_(stop), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (uint32_t i = 0; i < peers; ++i) peers_.push_back(std::make_unique<Peer>(settings.wire));
  }
  ~Worker() { close(epoll_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  base::Status Connect();
  // `reply`, if not null, is given the last reply's bytes.
  PhaseResult Run(const NextRequest& next, std::string* reply = nullptr);

 private:
  base::Status Authenticate(Connection* connection);
  // The next batch; false when there is nothing more to send.
  bool Refill(Peer* peer, const NextRequest& next);
  void Write(Peer* peer);
  void Read(Peer* peer);
  void TakeReplies(Peer* peer);
  void Fail(std::string message) {
    if (failure_.empty()) failure_ = std::move(message);
  }

  const LoadSettings& settings_;
  std::atomic<uint64_t>* const done_;
  const std::atomic<bool>* const stop_;
  const int epoll_;
  std::vector<std::unique_ptr<Peer>> peers_;
  PhaseResult result_;
  std::string failure_;  // sticks: after it nobody knows which reply is whose
  std::string* last_reply_ = nullptr;
};

base::Status LoadClient::Worker::Connect() {
  for (const std::unique_ptr<Peer>& peer : peers_) {
    base::Status status = peer->connection.Open(settings_.endpoint);
    if (status) status = Authenticate(&peer->connection);
    if (!status) return status;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = peer.get();
    epoll_ctl(epoll_, EPOLL_CTL_ADD, peer->connection.fd(), &event);
  }
  return {};
}

base::Status LoadClient::Worker::Authenticate(Connection* connection) {
  if (settings_.wire != Wire::kResp || settings_.password.empty()) return {};
  std::vector<std::string> words = {"AUTH"};
  if (!settings_.user.empty()) words.push_back(settings_.user);
  words.push_back(settings_.password);
  base::Status sent = connection->Send(words);
  if (!sent) return sent;
  Reply reply;
  if (connection->Read(&reply) != Connection::ReadStatus::kReply) {
    return base::Error{connection->error()};
  }
  if (reply.is_error()) return base::Error{reply.text};
  return {};
}

PhaseResult LoadClient::Worker::Run(const NextRequest& next, std::string* reply) {
  result_ = {};
  last_reply_ = reply;
  size_t busy = 0;
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (failure_.empty() && Refill(peer.get(), next)) ++busy;
  }
  SteadyClock::time_point last_sign = SteadyClock::now();
  std::vector<epoll_event> events(peers_.size());
  while (busy > 0 && failure_.empty()) {
    const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 1000);
    if (ready > 0) {
      last_sign = SteadyClock::now();
    } else if (SteadyClock::now() - last_sign > kSilence) {
      Fail("the server does not answer");
    }
    for (int i = 0; i < ready; ++i) {
      auto* peer = static_cast<Peer*>(events[static_cast<size_t>(i)].data.ptr);
      if ((events[static_cast<size_t>(i)].events & EPOLLOUT) != 0) Write(peer);
      const bool was_busy = peer->awaited > 0;
      Read(peer);
      if (was_busy && peer->awaited == 0 && !Refill(peer, next)) --busy;
    }
  }
  result_.failure = failure_;
  return std::move(result_);
}

bool LoadClient::Worker::Refill(Peer* peer, const NextRequest& next) {
  if (stop_->load(std::memory_order_relaxed)) return false;
  peer->out.clear();
  peer->written = 0;
  while (peer->awaited < settings_.pipeline && next(&peer->out)) ++peer->awaited;
  if (peer->awaited == 0) return false;
  peer->sent_at = SteadyClock::now();
  Write(peer);
  return true;
}

void LoadClient::Worker::Write(Peer* peer) {
  while (peer->written < peer->out.size()) {
    const ssize_t count = send(peer->connection.fd(), peer->out.data() + peer->written,
                               peer->out.size() - peer->written, MSG_NOSIGNAL);
    if (count >= 0) {
      peer->written += static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return Fail(std::strerror(errno));
    }
  }
  const bool unfinished = peer->written < peer->out.size();
  if (unfinished == peer->watches_writing) return;
  peer->watches_writing = unfinished;
  epoll_event event{};
  event.events = unfinished ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.ptr = peer;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, peer->connection.fd(), &event);
}

void LoadClient::Worker::Read(Peer* peer) {
  char bytes[kReadBytes];
  const ssize_t count = recv(peer->connection.fd(), bytes, sizeof bytes, 0);
  if (count > 0) {
    peer->in.append(bytes, static_cast<size_t>(count));
    return TakeReplies(peer);
  }
  if (count == 0) return Fail("the server closed a connection");
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) Fail(std::strerror(errno));
}

void LoadClient::Worker::TakeReplies(Peer* peer) {
  const SteadyClock::time_point now = SteadyClock::now();
  uint64_t replies = 0;
  std::string_view rest = peer->in;
  while (!rest.empty()) {
    const ReplyScanner::Status status = peer->scanner.Scan(rest);
    if (status == ReplyScanner::Status::kNeedMore) break;
    if (status == ReplyScanner::Status::kBroken) return Fail("the server's reply makes no sense");
    if (replies == peer->awaited) return Fail("the server sent a reply nobody asked for");
    ++replies;
    if (peer->scanner.is_error()) {
      if (result_.errors++ == 0) {
        result_.first_error = peer->scanner.ErrorText(rest.substr(0, peer->scanner.size()));
      }
    }
    if (last_reply_ != nullptr) last_reply_->assign(rest.substr(0, peer->scanner.size()));
    rest.remove_prefix(peer->scanner.size());
  }
  peer->in.erase(0, peer->in.size() - rest.size());
  peer->awaited -= static_cast<uint32_t>(replies);
  result_.operations += replies;
  const auto nanos =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - peer->sent_at).count();
  result_.latency.RecordMany(static_cast<uint64_t>(nanos), replies);
  done_->fetch_add(replies, std::memory_order_relaxed);
}

LoadClient::LoadClient(const LoadSettings& settings) : settings_(settings) {
  for (uint32_t i = 0; i < settings_.threads; ++i) {
    const uint32_t peers =
        settings_.clients / settings_.threads + (i < settings_.clients % settings_.threads ? 1 : 0);
    workers_.push_back(std::make_unique<Worker>(settings_, peers, &done_, &stop_));
  }
}

LoadClient::~LoadClient() = default;

base::Status LoadClient::Connect() {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    base::Status status = worker->Connect();
    if (!status) return status;
  }
  return {};
}

base::Result<std::string> LoadClient::Ask(const std::string& request) {
  stop_ = false;
  bool sent = false;
  std::string reply;
  const PhaseResult result = workers_[0]->Run(
      [&](std::string* out) {
        if (sent) return false;
        out->append(request);
        return sent = true;
      },
      &reply);
  if (!result.failure.empty()) return base::Error{result.failure};
  if (result.errors > 0) return base::Error{result.first_error};
  return reply;
}

PhaseResult LoadClient::Run(const std::vector<NextRequest>& streams, const Watch& watch) {
  done_ = 0;
  stop_ = false;
  std::mutex mutex;
  std::condition_variable changed;
  size_t running = workers_.size();
  std::vector<PhaseResult> results(workers_.size());
  std::vector<std::thread> threads;
  const SteadyClock::time_point start = SteadyClock::now();
  for (size_t i = 0; i < workers_.size(); ++i) {
    threads.emplace_back([&, i] {
      results[i] = workers_[i]->Run(streams[i]);
      if (!results[i].failure.empty()) stop_ = true;
      const std::lock_guard lock(mutex);
      --running;
      changed.notify_one();
    });
  }
  for (std::unique_lock lock(mutex); running > 0;) {
    if (changed.wait_for(lock, kWatchInterval, [&] { return running == 0; })) break;
    lock.unlock();
    if (!watch(done_.load(std::memory_order_relaxed))) stop_ = true;
    lock.lock();
  }
  PhaseResult total;
  total.seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  for (std::thread& thread : threads) thread.join();
  for (const PhaseResult& result : results) {
    total.operations += result.operations;
    total.errors += result.errors;
    total.latency.Merge(result.latency);
    if (total.first_error.empty()) total.first_error = result.first_error;
    if (total.failure.empty()) total.failure = result.failure;
  }
  return total;
}

}  // namespace sava::cli
