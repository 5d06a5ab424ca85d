#include "admin/process_monitor.h"

#include <algorithm>
#include <utility>

#include "base/page_pool.h"
#include "base/process_memory.h"

namespace sava::admin {

namespace {

// How often free pages are given back, and of how many regions at once: some 100 us each.
constexpr unsigned kTicksPerTrim = 5;
constexpr int kRegionsPerTrim = 16;

}  // namespace

ProcessMonitor::ProcessMonitor(engine::Engine* engine, const ProcessFacts* facts,
                               std::function<size_t()> log_bytes)
    : engine_(*engine), facts_(*facts), log_bytes_(std::move(log_bytes)) {}

MemoryFigures ProcessMonitor::Memory() {
  MemoryFigures figures;
  const base::AllocatorFigures allocator = base::ReadAllocator();
  figures.allocated = allocator.allocated;
  figures.active = allocator.active;
  figures.resident = allocator.resident;
  Account(allocator);
  figures.used = engine_.memory().Used();
  figures.dataset = std::min(engine_.keyspace().UsedBytes(), figures.used);
  figures.overhead = figures.used - figures.dataset;
  figures.startup = startup_memory_;
  figures.rss = base::ResidentBytes();
  figures.system_total = base::SystemMemory();
  if (figures.used > peak_memory_.load(std::memory_order_relaxed)) {
    peak_memory_.store(figures.used, std::memory_order_relaxed);
  }
  figures.peak = peak_memory_.load(std::memory_order_relaxed);
  return figures;
}

// What the allocator has given out, and is in use, besides the keyspace's own account.
void ProcessMonitor::Account(const base::AllocatorFigures& allocator) {
  const size_t allocated = allocator.allocated - allocator.cached;
  const size_t held = engine_.keyspace().HeldBytes() + base::PagePool::Shared().free_bytes();
  // The allocator of a sanitizer does not say: then buffers are all that is known.
  const int64_t other = allocated == 0
                            ? engine_.memory().BufferBytes()
                            : static_cast<int64_t>(allocated) - static_cast<int64_t>(held);
  engine_.memory().SetOther(other, log_bytes_());
}

void ProcessMonitor::Purge() {
  base::PagePool& pages = base::PagePool::Shared();
  for (size_t regions = pages.region_count(); regions > 0; --regions) {
    pages.Trim(base::PagePool::kPages / 32);
  }
  base::PurgeAllocator();
}

void ProcessMonitor::Tick() {
  base::PagePool& pages = base::PagePool::Shared();
  if (++ticks_ % kTicksPerTrim == 0) {
    const size_t least = pages.WorthTrimming();
    for (int regions = 0; least > 0 && regions < kRegionsPerTrim && pages.Trim(least); ++regions) {
    }
  }
  Account(base::ReadAllocator());
  const size_t used = engine_.memory().Used();
  if (used > peak_memory_.load(std::memory_order_relaxed)) peak_memory_.store(used);

  RateSample sample;
  sample.at_ms = engine_.clock().MonotonicMicros() / 1000;
  sample.ops = engine_.Total(&engine::LaneStats::commands);
  const engine::ReplicationFigures replication = facts_.replication();
  sample.replica_input = replication.input_bytes;
  sample.replica_output = replication.output_bytes;
  sample.input =
      engine_.Total(&engine::LaneStats::net, &engine::NetStats::input) + sample.replica_input;
  sample.output = engine_.Total(&engine::LaneStats::net, &engine::NetStats::output);
  const int64_t elapsed = sample.at_ms - last_sample_.at_ms;
  if (last_sample_.at_ms != 0 && elapsed > 0) {
    const auto rate = [elapsed](uint64_t now, uint64_t before) {
      return now < before ? 0 : static_cast<int64_t>((now - before) * 1000) / elapsed;
    };
    // Smoothed over about a second and a half.
    const auto blend = [](std::atomic<int64_t>& value, int64_t latest) {
      value.store((value.load(std::memory_order_relaxed) * 15 + latest) / 16,
                  std::memory_order_relaxed);
    };
    blend(rates_.ops, rate(sample.ops, last_sample_.ops));
    blend(rates_.input_bytes, rate(sample.input, last_sample_.input));
    blend(rates_.output_bytes, rate(sample.output, last_sample_.output));
    blend(rates_.replica_input, rate(sample.replica_input, last_sample_.replica_input));
    blend(rates_.replica_output, rate(sample.replica_output, last_sample_.replica_output));
  }
  last_sample_ = sample;
}

}  // namespace sava::admin
