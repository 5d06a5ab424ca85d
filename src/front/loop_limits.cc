#include "front/loop_limits.h"

#include <algorithm>
#include <thread>

namespace sava::front {

namespace {
constexpr unsigned kFewCores = 4;
constexpr uint64_t kLeastClientMemory = 128 * 1024;

// maxmemory-clients in bytes; 0: no limit.
uint64_t ClientMemory(const config::Settings& settings) {
  const int64_t wanted = settings.maxmemory_clients;
  if (wanted == 0 || (wanted < 0 && settings.maxmemory == 0)) return 0;
  const double percent = static_cast<double>(-wanted) / 100;
  const uint64_t bytes =
      wanted > 0 ? static_cast<uint64_t>(wanted)
                 : static_cast<uint64_t>(static_cast<double>(settings.maxmemory) * percent);
  return std::max(bytes, kLeastClientMemory);
}

}  // namespace

void LoopLimits::Load(const config::Settings& settings, bool open) {
  // Lengths of keys are kept in 32 bits.
  max_bulk.store(static_cast<int64_t>(std::min<uint64_t>(settings.proto_max_bulk_len, UINT32_MAX)));
  query_buffer.store(settings.client_query_buffer_limit);
  client_memory.store(ClientMemory(settings));
  timeout.store(settings.timeout);
  keepalive.store(settings.tcp_keepalive);
  hz.store(settings.hz > 0 ? settings.hz : 10);
  shutdown_timeout.store(settings.shutdown_timeout);
  on_sigint.store(settings.shutdown_on_sigint);
  on_sigterm.store(settings.shutdown_on_sigterm);
  maxclients.store(static_cast<size_t>(settings.maxclients));
  refuse_strangers.store(settings.protected_mode && open);
  one_loop.store(settings.appendonly && settings.appendfsync == config::AppendFsync::kAlways &&
                 settings.threads == 0 && std::thread::hardware_concurrency() <= kFewCores);
}

}  // namespace sava::front
