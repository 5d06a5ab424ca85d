// The engine without sockets: how it scales from one thread to two, locks and journal tickets on.
//
//   sava_bench_engine [--json] [--seconds S] [--keys N] [--only ROW]
//
// Each thread is a lane that runs batches of 16 commands, as the server does. Rows: GET/SET 90/10,
// SET only, one hot key. Threads run the same number of commands each; the figure is million
// commands a second of wall time, best of several rounds.
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "commands/native/families.h"
#include "commands/redis/families.h"
#include "commands/registry.h"
#include "engine/engine.h"
#include "journal/journal.h"

extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";
}

namespace {

using sava::engine::Client;
using sava::engine::Engine;
using sava::engine::Lane;
using sava::engine::Request;

constexpr size_t kBatch = 16;

// Takes records and lets them go: merging is on, writing is not.
class CountingConsumer final : public sava::journal::Consumer {
 public:
  void Receive(const sava::journal::Record& record) override {
    last_ = record.ticket();
    bytes_ += record.bytes().size() + record.size();
  }

 private:
  uint64_t last_ = 0;
  uint64_t bytes_ = 0;
};

enum class Work : uint8_t { kMixed, kSet, kHot, kScores, kHotScores };

struct Row {
  const char* name;
  Work work;
};
constexpr Row kRows[] = {{"get_set_90_10", Work::kMixed},
                         {"set_only", Work::kSet},
                         {"hot_key", Work::kHot},
                         {"zincrby_many", Work::kScores},
                         {"zincrby_one", Work::kHotScores}};
// Sorted sets, and members in each.
constexpr uint64_t kSortedSets = 1000;
constexpr uint64_t kMembers = 1000;

struct Settings {
  double seconds = 1.0;
  size_t keys = 1000000;
  bool json = false;
  std::string only;  // empty: all rows
};

std::string KeyName(uint64_t n) { return fmt::format("key:{:012}", n); }

class Worker {
 public:
  Worker(Engine* engine, size_t lane, const Settings& settings)
      : engine_(*engine), lane_(*engine->lanes()[lane]), keys_(settings.keys), rng_(lane + 1) {
    client_.id = lane + 1;
    engine_.AddClient(lane_, client_);
    value_.assign(64, 'x');
  }
  ~Worker() { engine_.RemoveClient(lane_, client_); }

  void Fill(size_t first, size_t last) {
    for (size_t i = first; i < last;) {
      Clear();
      for (; i < last && requests_.size() < kBatch; ++i) AddSet(KeyName(i));
      Run();
    }
  }

  void Batches(Work work, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      Clear();
      while (requests_.size() < kBatch) {
        if (work == Work::kScores || work == Work::kHotScores) {
          AddScore(work == Work::kScores ? rng_.Below(kSortedSets) : 0, rng_.Below(kMembers));
        } else if (work == Work::kHot) {
          rng_.Below(10) == 0 ? AddSet("hot") : AddGet("hot");
        } else {
          const uint64_t n = rng_.Below(keys_);
          work == Work::kMixed&& rng_.Below(10) != 0 ? AddGet(KeyName(n)) : AddSet(KeyName(n));
        }
      }
      Run();
    }
  }

 private:
  void Clear() {
    requests_.clear();
    names_.clear();
    names_.reserve(kBatch * 2);
    words_.clear();
    words_.reserve(kBatch * 4);
  }
  void Add(size_t words) {
    Request request;
    request.client = &client_;
    request.args = {words_.data() + words_.size() - words, words};
    requests_.push_back(request);
  }
  void AddGet(std::string key) {
    names_.push_back(std::move(key));
    words_.insert(words_.end(), {"GET", names_.back()});
    Add(2);
  }
  void AddSet(std::string key) {
    names_.push_back(std::move(key));
    words_.insert(words_.end(), {"SET", names_.back(), value_});
    Add(3);
  }
  void AddScore(uint64_t key, uint64_t member) {
    names_.push_back(fmt::format("scores:{}", key));
    names_.push_back(KeyName(member));
    words_.insert(words_.end(), {"ZINCRBY", names_[names_.size() - 2], "1", names_.back()});
    Add(4);
  }
  void Run() {
    engine_.BeginBatch(lane_);
    engine_.Prepare(lane_, requests_);
    engine_.RunBatch(lane_, requests_);
    engine_.EndBatch(lane_);
    client_.out.Consume(client_.out.pending());
    // A command whose stripe was held too long waits in the server; here it is dropped.
    engine_.ResumeWaiting(lane_);
    lane_.waits.TakeResumed();
  }

  Engine& engine_;
  Lane& lane_;
  Client client_;
  const uint64_t keys_;
  sava::base::Rng rng_;
  std::string value_;
  std::vector<std::string> names_;
  std::vector<std::string_view> words_;
  std::vector<Request> requests_;
};

double Mops(std::vector<std::unique_ptr<Worker>>& workers, size_t threads, Work work,
            size_t batches) {
  std::barrier start(static_cast<std::ptrdiff_t>(threads + 1));
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      start.arrive_and_wait();
      workers[i]->Batches(work, batches);
    });
  }
  start.arrive_and_wait();
  const auto begin = std::chrono::steady_clock::now();
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(threads * batches * kBatch) / elapsed.count() / 1e6;
}

void Measure(const Settings& settings) {
  sava::commands::CommandTable table;
  for (const auto family : sava::commands::RedisFamilies()) table.Add(family);
  for (const auto family : sava::commands::NativeFamilies()) table.Add(family);
  sava::config::Settings engine_settings;
  engine_settings.slowlog_log_slower_than = -1;
  Engine::Options options;
  options.lanes = 2;
  Engine engine(options, &engine_settings, &table);
  CountingConsumer consumer;
  engine.journal().Attach(consumer);
  std::vector<std::unique_ptr<Worker>> workers;
  for (size_t i = 0; i < 2; ++i) workers.push_back(std::make_unique<Worker>(&engine, i, settings));
  workers[0]->Fill(0, settings.keys);
  std::string rows;
  for (const Row& row : kRows) {
    if (!settings.only.empty() && settings.only != row.name) continue;
    // Sized so that one measurement takes about the wanted time, then interleaved.
    const double probe = Mops(workers, 1, row.work, 20000);
    const auto batches = static_cast<size_t>(probe * 1e6 * settings.seconds / 12 / kBatch) + 1;
    double one = 0;
    double two = 0;
    for (int round = 0; round < 12; ++round) {
      one = std::max(one, Mops(workers, 1, row.work, batches));
      two = std::max(two, Mops(workers, 2, row.work, batches));
    }
    if (settings.json) {
      rows += fmt::format(
          "{}{{\"name\":\"{}\",\"one_thread_mops\":{:.3f},\"two_threads_mops\":{:.3f},"
          "\"ratio\":{:.3f}}}",
          rows.empty() ? "" : ",", row.name, one, two, two / one);
    } else {
      fmt::print("{:16} one thread {:7.3f} M/s   two threads {:7.3f} M/s   ratio {:.2f}\n",
                 row.name, one, two, two / one);
    }
  }
  if (settings.json) fmt::print("[{}]\n", rows);
  workers.clear();
  engine.journal().Detach(consumer);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      settings.json = true;
    } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      settings.seconds = atof(argv[++i]);
    } else if (strcmp(argv[i], "--keys") == 0 && i + 1 < argc) {
      settings.keys = strtoull(argv[++i], nullptr, 10);
    } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      settings.only = argv[++i];
    } else {
      fmt::print(stderr,
                 "usage: sava_bench_engine [--json] [--seconds S] [--keys N] [--only ROW]\n");
      return 2;
    }
  }
  Measure(settings);
  return 0;
}
