// ProcessMonitor: the process's memory and its rates, as INFO and MEMORY show them.
//
// Thread safety: Tick on the first loop's thread; Memory and Purge inside the gate; the rest from
// any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "admin/process_facts.h"
#include "base/process_memory.h"
#include "engine/engine.h"

namespace sava::admin {

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

class ProcessMonitor {
 public:
  // `log_bytes`: how much is on its way to the log. `facts` are filled before the first Tick.
  ProcessMonitor(engine::Engine* engine, const ProcessFacts* facts,
                 std::function<size_t()> log_bytes);

  // About ten times a second, inside the gate.
  void Tick();
  // What is in use now is what an empty server takes.
  void NoteStartup() { startup_memory_ = engine_.memory().Used(); }

  MemoryFigures Memory();
  // Gives unused memory back to the system (MEMORY PURGE).
  void Purge();

  // Operations a second, bytes in and out a second: sampled by the first loop ten times a second.
  struct Rates {
    std::atomic<int64_t> ops{0};
    std::atomic<int64_t> input_bytes{0};
    std::atomic<int64_t> output_bytes{0};
    std::atomic<int64_t> replica_input{0};   // of the same: from the master
    std::atomic<int64_t> replica_output{0};  // and to replicas
  };
  const Rates& rates() const { return rates_; }

 private:
  void Account(const base::AllocatorFigures& allocator);

  engine::Engine& engine_;
  const ProcessFacts& facts_;
  const std::function<size_t()> log_bytes_;
  std::atomic<size_t> peak_memory_{0};
  size_t startup_memory_ = 0;
  Rates rates_;
  struct RateSample {
    int64_t at_ms = 0;
    uint64_t ops = 0;
    uint64_t input = 0;
    uint64_t output = 0;
    uint64_t replica_input = 0;
    uint64_t replica_output = 0;
  };
  RateSample last_sample_;
  unsigned ticks_ = 0;
};

}  // namespace sava::admin
