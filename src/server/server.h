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

#include "base/result.h"
#include "commands/registry.h"
#include "engine/engine.h"
#include "server/acl_log.h"
#include "server/config.h"
#include "server/front_host.h"
#include "server/loop_limits.h"
#include "server/memory.h"

namespace sava::server {

class Loops;
class Persistence;

// What the allocator and the kernel say about the process's memory.
struct MemoryFigures {
  size_t used = 0;  // used_memory
  size_t peak = 0;
  size_t startup = 0;
  size_t dataset = 0;   // keyspace only
  size_t overhead = 0;  // everything else
  size_t rss = 0;
  size_t allocated = 0;  // allocator: handed out
  size_t active = 0;     // allocator: pages with something in them
  size_t resident = 0;   // allocator: in memory
  size_t system_total = 0;
  size_t clients = 0;  // buffers of connections
};

class Server final : public engine::Host, public FrontHost {
 public:
  explicit Server(std::unique_ptr<Config> config);
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

  // The Server behind a handler's context.
  static Server& Of(commands::Context& context);

  Config& config() { return *config_; }
  engine::Engine& engine() { return *engine_; }
  const commands::CommandTable& table() const { return table_; }

  // Asks Wait to return. Callable from anywhere. The client is answered, with an error, when the
  // server goes on. `flags`: engine::ShutdownFlag bits.
  void RequestShutdown(uint32_t flags, size_t lane = 0, uint64_t client = 0, uint64_t token = 0);
  // SHUTDOWN ABORT: false when there is none to be ended.
  bool AbortShutdown();
  // Nobody wants to wait any more for the shutdown: NOW, a second signal, ABORT.
  bool hurried() const override;
  bool shutting_down() const override { return shutting_down_.load(std::memory_order_relaxed); }
  // The last save is being made: writes stay paused whatever clients ask for.
  bool ending() const { return ending_.load(std::memory_order_relaxed); }

  Persistence& persistence() { return *persistence_; }
  bool FlushedAll(uint64_t changes) override;
  void AnswerWhenSaved(const engine::Client& client, const std::string& reply) override;
  void OutOfMemory() override;

  // Every connected client. REQUIRES: gate closed.
  void ForEachClient(const std::function<void(engine::Client&)>& visit);
  // Makes the client go away soon. REQUIRES: gate closed.
  void CloseClient(engine::Client& client);
  // Number of connections now.
  size_t client_count() const;

  void PrepareThread() override;
  const journal::Barrier* barrier() const override;
  void NoteRefused(const engine::Client& client, const std::string& user, int64_t now_ms) override;

  MemoryFigures Memory();
  // Gives unused memory back to the system (MEMORY PURGE).
  void PurgeMemory();

  int64_t start_unix_ms() const override { return start_unix_ms_; }
  const std::string& run_id() const { return run_id_; }
  // 0: none.
  int64_t http_port() const;
  // The connections of each loop, separated by commas.
  std::string loop_clients() const;
  size_t thread_count() const { return threads_; }
  const std::string& executable() const { return executable_; }
  void set_executable(std::string path) { executable_ = std::move(path); }
  // As it was called; for the process's title.
  void set_program(std::string name) { program_ = std::move(name); }

  // Operations a second, bytes in and out a second: sampled by the first loop ten times a second.
  struct Rates {
    std::atomic<int64_t> ops{0};
    std::atomic<int64_t> input_bytes{0};
    std::atomic<int64_t> output_bytes{0};
  };
  Rates& rates() { return rates_; }
  std::atomic<size_t>& peak_memory() { return peak_memory_; }
  // Refused attempts to authenticate.
  AclLog& acl_log() { return acl_log_; }
  // Called by the first loop about ten times a second, inside the gate.
  void Tick() override;
  // CONFIG RESETSTAT.
  void ResetStats();

 private:
  struct ShutdownRequest {
    uint32_t flags = 0;
    size_t lane = 0;
    uint64_t client = 0;  // 0: nobody is to be answered
    uint64_t token = 0;
  };

  void ApplyHooks();
  void AccountMemory(const AllocatorFigures& allocator);
  base::Status OpenFiles();
  base::Status Listen();
  void ShowTitle(const engine::Settings& settings) const;
  // The next byte of the shutdown pipe; false when there is none any more.
  bool ReadRequest(char* byte);
  ShutdownRequest TakeRequest(char byte);
  bool Shutdown(const ShutdownRequest& request);
  void RefuseShutdown();

  std::unique_ptr<Config> config_;
  commands::CommandTable table_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Persistence> persistence_;
  std::unique_ptr<Loops> loops_;
  engine::Background growing_{"sava-pages"};  // makes memory ready ahead of the need
  size_t threads_ = 1;
  int64_t start_unix_ms_ = 0;
  std::string run_id_;
  std::string executable_;
  std::string program_;
  const std::string log_path_;  // absolute; empty: standard output
  OomScore oom_score_;
  std::atomic<size_t> peak_memory_{0};
  size_t startup_memory_ = 0;
  std::atomic<bool> shutting_down_{false};
  std::atomic<bool> ending_{false};
  int shutdown_pipe_[2] = {-1, -1};
  std::atomic<bool> hurried_{false};
  std::atomic<bool> aborted_{false};
  std::mutex shutdown_mutex_;
  std::vector<ShutdownRequest> shutdown_requests_;  // guarded by shutdown_mutex_
  std::vector<ShutdownRequest> shutdown_clients_;   // guarded by shutdown_mutex_
  LoopLimits limits_;
  Rates rates_;
  AclLog acl_log_;
  struct RateSample {
    int64_t at_ms = 0;
    uint64_t ops = 0;
    uint64_t input = 0;
    uint64_t output = 0;
  };
  RateSample last_sample_;
  unsigned ticks_ = 0;
};

// The rows of the server's own families.
std::span<const commands::CommandSpec> ConnectionCommands();  // AUTH HELLO PING CLIENT …
std::span<const commands::CommandSpec> AdminCommands();       // CONFIG INFO DEBUG …

}  // namespace sava::server
