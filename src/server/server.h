// Server: the composition root. Owns the configuration, the command table, the engine and the event
// loops, and answers the administrative commands' questions about them.
//
// Thread safety: Start, Wait and the destructor on the main thread. What the administrative
// commands call runs on a loop's thread, inside the gate or with the gate closed, as each says.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "admin/info.h"
#include "admin/process_facts.h"
#include "admin/process_monitor.h"
#include "base/result.h"
#include "commands/registry.h"
#include "config/config.h"
#include "config/oom_score.h"
#include "engine/engine.h"
#include "front/front_host.h"
#include "front/loop_limits.h"

namespace sava::front {
class Loops;
}
namespace sava::persistence {
class Persistence;
}
namespace sava::replication {
class Follower;
class Master;
class Migrations;
}  // namespace sava::replication
namespace sava::script {
class Scripts;
}

namespace sava::server {

class Server final : public engine::Host, public front::FrontHost {
 public:
  explicit Server(std::unique_ptr<config::Config> config);
  ~Server() override;

  // Opens the directory and the sockets; an error text when it cannot.
  base::Status Open();
  // Starts the threads. From here on the settings belong to them.
  void Start();
  // Blocks until the data is loaded. False when shutdown was asked for meanwhile: the process is to
  // end at once.
  base::Result<bool> WaitLoaded();
  // Blocks until shutdown was asked for (signal or SHUTDOWN) and could be done; returns the exit
  // code.
  int Wait();

  config::Config& config() { return *config_; }
  engine::Engine& engine() { return *engine_; }
  const commands::CommandTable& table() const { return table_; }

  // Asks Wait to return. Callable from anywhere. The client is answered, with an error, when the
  // server goes on. `flags`: engine::ShutdownFlag bits.
  void RequestShutdown(uint32_t flags, size_t lane = 0, uint64_t client = 0, uint64_t token = 0);
  // SHUTDOWN ABORT, for all requests made so far: false when there is none.
  bool AbortShutdown();
  // The shutdown waits no longer: NOW, a second signal, ABORT.
  bool hurried() const override;
  bool shutting_down() const override { return shutting_down_.load(std::memory_order_relaxed); }
  // The last save is being made: writes stay paused whatever clients ask for.
  bool ending() const override { return ending_.load(std::memory_order_relaxed); }

  persistence::Persistence& persistence() { return *persistence_; }
  bool FlushedAll(uint64_t changes) override;
  void AnswerWhenSaved(const engine::Client& client, const std::string& reply) override;
  void OutOfMemory() override;

  size_t client_count() const override;
  void PrepareThread() override;
  const journal::Barrier* barrier() const override;
  void NoteRefused(const engine::Client& client, const std::string& user, int64_t now_ms) override;

  int64_t start_unix_ms() const override { return facts_.start_unix_ms; }
  const std::string& run_id() const { return facts_.run_id; }
  // 0: none.
  int64_t http_port() const;
  void set_executable(std::string path) { facts_.executable = std::move(path); }
  size_t thread_count() const { return facts_.threads; }
  // As it was called; for the process's title.
  void set_program(std::string name) { program_ = std::move(name); }

  // Called by the first loop about ten times a second, inside the gate.
  void Tick() override;

 private:
  // A byte of the shutdown pipe besides the numbers of signals.
  static constexpr char kAsked = 0;     // by RequestShutdown
  static constexpr char kLoaded = 127;  // by the keeper

  struct ShutdownRequest {
    uint32_t flags = 0;
    size_t lane = 0;
    uint64_t client = 0;  // 0: none waits for an answer
    uint64_t token = 0;
  };

  // Shows handlers the parts they may ask for.
  void LendParts();
  void ApplyHooks();
  void LoadLimits();
  base::Status ApplyOomScore(const config::Settings& settings);
  base::Status RenameCommands();
  base::Status OpenUsers();
  std::string UnknownLimitedUser() const;
  base::Status OpenFiles();
  base::Status Listen();
  // Reads the certificates again; errors in them are logged.
  bool UseTls(const config::Settings& settings);
  void ShowTitle(const config::Settings& settings) const;
  // The next byte of the shutdown pipe; false when there is none any more.
  bool ReadRequest(char* byte);
  // The next request. False: none came in time (-1: for ever), or it was called off meanwhile.
  bool TakeRequest(int wait_ms, ShutdownRequest* request);
  void AwaitTurn(ShutdownRequest* request);
  void TakeMore(ShutdownRequest* request);
  void AwaitScripts(ShutdownRequest* request);
  bool Shutdown(const ShutdownRequest& request);
  // From here on the end cannot be called off any more. False: it was already.
  bool PassNoReturn();
  void RefuseShutdown();
  bool AwaitsFirstBase(bool force) const;
  bool TakeHurry();

  std::unique_ptr<config::Config> config_;
  commands::CommandTable table_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<script::Scripts> scripts_;
  std::unique_ptr<persistence::Persistence> persistence_;
  std::unique_ptr<replication::Master> master_;
  std::unique_ptr<replication::Follower> follower_;
  std::unique_ptr<replication::Migrations> migrations_;
  std::unique_ptr<front::Loops> loops_;
  engine::Background growing_{"sava-pages"};  // makes memory ready ahead of the need
  admin::ProcessFacts facts_;
  std::unique_ptr<admin::ProcessMonitor> monitor_;
  admin::InfoSections info_;
  std::string program_;
  const std::string log_path_;  // absolute; empty: standard output
  const std::string start_folder_;
  config::OomScore oom_score_;
  bool scored_as_replica_ = false;
  std::atomic<bool> shutting_down_{false};
  std::atomic<int64_t> end_ms_{0};  // by then replicas are not waited for any more; 0: never
  std::atomic<bool> ending_{false};
  int shutdown_pipe_[2] = {-1, -1};
  std::atomic<bool> hurried_{false};
  std::atomic<bool> aborted_{false};
  std::mutex shutdown_mutex_;
  bool shutdown_begun_ = false;  // a request was taken and is not refused; guarded by it
  bool no_return_ = false;       // guarded by shutdown_mutex_
  std::vector<ShutdownRequest> shutdown_requests_;  // guarded by shutdown_mutex_
  std::vector<ShutdownRequest> shutdown_clients_;   // guarded by shutdown_mutex_
  front::LoopLimits limits_;
  unsigned ticks_ = 0;
};

}  // namespace sava::server
