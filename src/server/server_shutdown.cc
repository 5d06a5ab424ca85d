// The end of a server: what asks for it, what is finished and saved first, and how it is cancelled.
#include <errno.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "front/loops.h"
#include "persistence/persistence.h"
#include "replication/follower.h"
#include "replication/master.h"
#include "replication/migration.h"
#include "script/scripts.h"
#include "server/server.h"

namespace sava::server {

bool Server::ReadRequest(char* byte) {
  while (true) {
    const ssize_t n = read(shutdown_pipe_[0], byte, 1);
    if (n == 1) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool Server::TakeRequest(int wait_ms, ShutdownRequest* request) {
  pollfd asked{shutdown_pipe_[0], POLLIN, 0};
  if (poll(&asked, 1, wait_ms) <= 0) return false;
  std::lock_guard lock(shutdown_mutex_);
  char byte = 0;
  if (poll(&asked, 1, 0) <= 0 || !ReadRequest(&byte)) return false;
  if (byte == SIGTERM || byte == SIGINT) {
    spdlog::warn("Received {} scheduling shutdown...", byte == SIGTERM ? "SIGTERM" : "SIGINT");
    *request = {};
    request->flags = (byte == SIGTERM ? limits_.on_sigterm : limits_.on_sigint).load();
  } else {
    if (shutdown_requests_.empty()) return false;
    *request = shutdown_requests_.front();
    shutdown_requests_.erase(shutdown_requests_.begin());
    if (request->client != 0) shutdown_clients_.push_back(*request);
  }
  shutdown_begun_ = true;
  return true;
}

int Server::Wait() {
  aborted_.store(false);  // what was asked for while the data was loaded
  ShutdownRequest request;
  while (true) {
    if (!TakeRequest(-1, &request)) continue;
    AwaitTurn(&request);
    AwaitScripts(&request);
    if (Shutdown(request)) break;
    RefuseShutdown();
  }
  spdlog::warn("Sava is now ready to exit, bye bye...");
  return 0;
}

// A signal is seen by a chore that repeats, which DEBUG PAUSE-CRON stops.
void Server::AwaitTurn(ShutdownRequest* request) {
  while (request->client == 0 && engine_->switches().cron_paused.load() && !aborted_.load()) {
    TakeMore(request);
  }
}

// Waits a moment for a further request, which joins the one that is under way.
void Server::TakeMore(ShutdownRequest* request) {
  constexpr int kLookMs = 5;
  const uint32_t flags = request->flags;
  if (!TakeRequest(kLookMs, request)) return;
  if ((request->flags & config::kShutdownNosave) == 0) request->flags |= flags;
}

// The scripts that run come first, unless the request ends them: until they have ended no other
// thread gets into the gate. Requests that come meanwhile count, and may say that nothing will be
// saved. A signal does not wait for ever: after shutdown-timeout it ends the scripts, and nothing
// is saved, so that no half of a script is.
void Server::AwaitScripts(ShutdownRequest* request) {
  const int64_t began = engine_->clock().MonotonicMicros();
  const int64_t patience = limits_.shutdown_timeout.load() * 1'000'000;
  while ((request->flags & config::kShutdownNosave) == 0 && !aborted_.load() &&
         scripts_->running().AnyBefore(began)) {
    if (request->client == 0 && engine_->clock().MonotonicMicros() - began > patience) {
      spdlog::warn("A script still runs: it is ended, and nothing is saved.");
      request->flags = (request->flags & ~config::kShutdownSave) | config::kShutdownNosave;
      return;
    }
    TakeMore(request);
  }
}

// Whether the first base of the log is being written, and the end has to wait for it.
bool Server::AwaitsFirstBase(bool force) const {
  if (!persistence_->writes_first_base()) return false;
  spdlog::warn("Writing initial AOF{}", force ? ". Exit anyway." : ", can't exit.");
  return !force;
}

// HTTP requests that have begun are answered, then writes wait and the data is saved.
// False when that failed: everything is as before.
bool Server::Shutdown(const ShutdownRequest& request) {
  spdlog::warn("User requested shutdown...");
  const bool force = (request.flags & config::kShutdownForce) != 0;
  if (aborted_.load() || AwaitsFirstBase(force)) {
    scripts_->EndAll(false);
    return false;
  }
  if ((request.flags & config::kShutdownNosave) != 0) scripts_->EndAll(true);
  hurried_.store((request.flags & config::kShutdownNow) != 0);
  shutting_down_.store(true);
  loops_->Drain();
  const int64_t paused_until = engine_->admission().pause_until();
  const bool paused_writes = engine_->admission().pause_writes_only();
  ending_.store(true);
  follower_->Suspend();
  engine_->admission().Pause(INT64_MAX, true);
  if ((request.flags & config::kShutdownNow) == 0) {
    const int64_t patience = limits_.shutdown_timeout.load() * 1000;
    end_ms_.store(engine_->clock().WallMillis() + patience);
    static_cast<void>(master_->AwaitReplicas(patience, [this] { return TakeHurry(); }));
  }
  base::Status status;
  if (!aborted_.load() && AwaitsFirstBase(force)) {
    status = base::Error{"The log has no base yet."};
  } else if (!aborted_.load()) {
    status = persistence_->Prepare({(request.flags & config::kShutdownSave) != 0,
                                    (request.flags & config::kShutdownNosave) != 0});
  }
  if (!status) spdlog::warn("{}", status.error());
  if ((status || force) && PassNoReturn()) {
    loops_->AwaitReleased();
    persistence_->OnDurable(nullptr);
    loops_->Stop([this] { migrations_.reset(); });
    persistence_->Stop();
    return true;
  }
  ending_.store(false);
  end_ms_.store(0);
  scripts_->EndAll(false);
  engine_->admission().Unpause();
  if (paused_until != 0) engine_->admission().Pause(paused_until, paused_writes);
  loops_->EndDrain();
  follower_->Resume();
  return false;
}

bool Server::PassNoReturn() {
  std::lock_guard lock(shutdown_mutex_);
  no_return_ = !aborted_.load();
  return no_return_;
}

// SHUTDOWN ABORT is for the requests that nobody has looked at yet, too.
void Server::RefuseShutdown() {
  std::vector<ShutdownRequest> clients;
  {
    std::lock_guard lock(shutdown_mutex_);
    clients.swap(shutdown_clients_);
    if (aborted_.load()) {
      for (const ShutdownRequest& one : std::exchange(shutdown_requests_, {})) {
        if (one.client != 0) clients.push_back(one);
      }
      pollfd asked{shutdown_pipe_[0], POLLIN, 0};
      char byte = 0;
      while (poll(&asked, 1, 0) > 0 && ReadRequest(&byte)) continue;
    } else {
      spdlog::warn("Errors trying to shut down the server. Check the logs for more information.");
    }
    aborted_.store(false);
    shutdown_begun_ = false;
    shutting_down_.store(false);
    persistence_->GoOn();
  }
  for (const ShutdownRequest& one : clients) {
    auto message = std::make_shared<engine::Message>();
    message->resp2 = "-ERR Errors trying to SHUTDOWN. Check logs.\r\n";
    engine_->lanes()[one.lane]->mailbox.Post(
        {engine::Mail::Kind::kReply, one.client, std::move(message), one.token});
  }
}

// A further SHUTDOWN waits with the first, and hears what becomes of it; one with NOW, and a
// signal, ends the waiting.
bool Server::TakeHurry() {
  ShutdownRequest more;
  while (!hurried_.load() && !aborted_.load() && TakeRequest(0, &more)) {
    if (more.client == 0 || (more.flags & config::kShutdownNow) != 0) hurried_.store(true);
  }
  return hurried_.load() || aborted_.load();
}

bool Server::hurried() const {
  pollfd asked{shutdown_pipe_[0], POLLIN, 0};
  return hurried_.load() || aborted_.load() || poll(&asked, 1, 0) > 0;
}

void Server::RequestShutdown(uint32_t flags, size_t lane, uint64_t client, uint64_t token) {
  if ((flags & config::kShutdownNosave) != 0) {
    // The way out of a script that takes long: the first base of a log waits for the script, too.
    if (scripts_->running().LongKind()) flags |= config::kShutdownForce;
    // A request that is under way may wait for a script. For one that will be refused none is
    // ended.
    const bool refused = persistence_->writes_first_base() && (flags & config::kShutdownForce) == 0;
    if (!refused) scripts_->EndAll(true);
  }
  {
    std::lock_guard lock(shutdown_mutex_);
    shutdown_requests_.push_back({flags, lane, client, token});
  }
  if (write(shutdown_pipe_[1], &kAsked, 1) < 0) {
  }
}

bool Server::AbortShutdown() {
  std::lock_guard lock(shutdown_mutex_);
  pollfd asked{shutdown_pipe_[0], POLLIN, 0};
  const bool any = shutdown_begun_ || !shutdown_requests_.empty() || poll(&asked, 1, 0) > 0;
  if (!any || no_return_) return false;
  spdlog::warn("Shutdown manually aborted");
  aborted_.store(true);
  if (shutting_down()) persistence_->GiveUp();
  return true;
}

}  // namespace sava::server
