// Loops: the event-loop threads and the listening sockets. The first loop takes connections and
// gives each to the loop that has the fewest.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/settings.h"
#include "server/event_loop.h"

namespace sava::server {

class Loops {
 public:
  explicit Loops(Server* server);
  ~Loops();

  // Opens the listening sockets of the settings; closes the earlier ones when all could be opened.
  base::Status Listen(const engine::Settings& settings);
  // From now on none is opened for HTTP.
  void WithoutHttp() { http_ = false; }
  bool http() const { return http_; }
  void Start();
  // Stops taking connections, which wait meanwhile, and lets HTTP requests that have begun end.
  void Drain();
  // Takes connections again. REQUIRES: the gate is closed.
  void EndDrain();
  // Gives replies that wait for the log a moment to leave.
  void AwaitReleased();
  // Wakes the loops that hold replies back until the log is synced. From any thread.
  void WakeHolders();
  // Drains, ends the threads, closes everything.
  void Stop();
  std::vector<std::unique_ptr<EventLoop>>& all() { return loops_; }
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  class Listener;

  void Accept(const Listener& listener);
  EventLoop& NextLoop() const;

  Server& server_;
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  bool http_ = true;
  std::vector<std::unique_ptr<Listener>> retired_;
  std::vector<std::string> addresses_;
  std::string unix_path_;
  bool started_ = false;
  bool drained_ = false;
};

}  // namespace sava::server
