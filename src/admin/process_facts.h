// ProcessFacts: facts about the process that only INFO needs. Filled by the composition
// root; the functions are called inside the gate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/info.h"

namespace sava::admin {

struct ProcessFacts {
  int64_t start_unix_ms = 0;
  std::string run_id;
  std::string executable;
  size_t threads = 1;
  std::function<int64_t()> http_port;  // 0: none
  std::function<size_t()> client_count;
  std::function<std::string()> loop_clients;  // the connections of each loop, separated by commas
  // Until the end of the server, which has begun; -1: it has not.
  std::function<int64_t()> ms_to_end;
  std::function<engine::ReplicationFigures()> replication;
  std::function<void()> change_history;  // DEBUG CHANGE-REPL-ID. REQUIRES: the gate is closed.
};

}  // namespace sava::admin
