// LoadClient: many connections to one server, driven by a few threads with epoll, each sending a
// batch of `pipeline` requests and the next batch when all its replies are there. The time of an
// operation runs from the sending of its batch to the reading of its reply.
//
// A phase is a stream of requests per thread; the connections stay open from phase to phase.
// The methods are called from one thread; NextRequest runs on the client's threads, one each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_histogram.h"
#include "cli/bench_wire.h"
#include "cli/client_options.h"

namespace sava::cli {

struct LoadSettings {
  Endpoint endpoint;
  Wire wire = Wire::kResp;
  std::string user;
  std::string password;  // of RESP's AUTH; HTTP requests carry theirs themselves
  uint32_t clients = 50;
  uint32_t pipeline = 1;
  uint32_t threads = 1;
};

struct PhaseResult {
  uint64_t operations = 0;  // replies that came, errors included
  uint64_t errors = 0;
  double seconds = 0;
  LatencyHistogram latency;
  std::string first_error;
  std::string failure;  // not empty: the server could not be used any further
};

class LoadClient {
 public:
  // Appends the next request; false: there are no more.
  using NextRequest = std::function<bool(std::string* out)>;
  // Called every 100 ms or so with the operations done; false: end the phase early.
  using Watch = std::function<bool(uint64_t done)>;

  explicit LoadClient(const LoadSettings& settings);
  ~LoadClient();
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  base::Status Connect();

  // One request; the bytes of its reply, or the error it was. REQUIRES: Connect succeeded.
  base::Result<std::string> Ask(const std::string& request);

  // One stream per thread. REQUIRES: Connect succeeded, streams.size() == settings.threads.
  PhaseResult Run(const std::vector<NextRequest>& streams, const Watch& watch);

 private:
  class Worker;

  LoadSettings settings_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace sava::cli
