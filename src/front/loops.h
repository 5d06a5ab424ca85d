// Loops: the event-loop threads and the listening sockets. The first loop takes connections and
// gives each to the loop that has the fewest.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "front/event_loop.h"
#include "front/front_host.h"
#include "front/loop_limits.h"
#include "front/tls.h"

namespace sava::front {

class Loops {
 public:
  Loops(FrontHost* host, engine::Engine* engine, const LoopLimits* limits);
  ~Loops();

  // Opens the listening sockets of the settings and closes the earlier ones; when some cannot be
  // opened the earlier ones stay.
  base::Status Listen(const config::Settings& settings);
  // What connections that come, or are opened, from now on are encrypted with. REQUIRES: before
  // Start, or with the gate closed.
  void UseTls(Tls tls) { tls_ = std::move(tls); }
  // Inside the gate.
  const Tls& tls() const { return tls_; }
  // From now on none is opened for HTTP, but for HTTP over TLS.
  void WithoutHttp() { http_ = false; }
  bool http() const { return http_; }
  void Start();
  // Stops taking HTTP connections, which wait meanwhile, and lets HTTP requests that have begun
  // end. Others are still taken: one of them may call the end of the server off.
  void Drain();
  // Takes HTTP connections again.
  void EndDrain();
  // Gives replies that wait for the log a moment to leave.
  void AwaitReleased();
  // Wakes the loops that hold replies back until the log is synced. From any thread.
  void WakeHolders();
  // Drains, ends the threads, closes everything.
  // `stopped` is called when no loop runs any more, and their mailboxes are still there.
  void Stop(const std::function<void()>& stopped = nullptr);

  FrontHost& host() const { return host_; }
  engine::Engine& engine() const { return engine_; }
  const LoopLimits& limits() const { return limits_; }
  // The loop that gets the next connection. After Start, before Stop.
  EventLoop& NextLoop() const;
  // From any thread:
  // Number of connections now.
  size_t client_count() const;
  // Those of each loop, separated by commas.
  std::string ClientCounts() const;
  // Whether no other loop has connections.
  bool AllBelongTo(const EventLoop& loop) const;

 private:
  class Listener;
  struct Place {
    std::string name;     // "127.0.0.1:6379", "http://127.0.0.1:7379", "tls://…", "unix:PATH"
    std::string address;  // or the path
    int port = 0;         // 0: a unix socket
    bool http = false;
    bool tls = false;
    bool optional = false;  // "-ADDRESS": no reason to fail
  };

  std::vector<Place> Wanted(const config::Settings& settings) const;
  base::Result<std::unique_ptr<Listener>> Open(const config::Settings& settings,
                                               const Place& place);
  base::Status OpenMissing(const config::Settings& settings, const std::vector<Place>& places,
                           std::vector<std::unique_ptr<Listener>>* opened);
  void AddListeners(std::vector<std::unique_ptr<Listener>> listeners);
  std::vector<Place> CloseOthers(const std::vector<Place>& places);
  void Accept(const Listener& listener);
  std::unique_ptr<net::Transport> Carry(int fd, const Listener& listener) const;

  FrontHost& host_;
  engine::Engine& engine_;
  const LoopLimits& limits_;
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::mutex mutex_;  // CONFIG SET, and the main thread when the server ends
  std::vector<std::unique_ptr<Listener>> listeners_;  // guarded by mutex_
  Tls tls_;                                           // guarded by the gate
  bool http_ = true;
  std::vector<std::unique_ptr<Listener>> retired_;
  std::string unix_path_;
  bool started_ = false;
  bool drained_ = false;  // guarded by mutex_
};

}  // namespace sava::front
