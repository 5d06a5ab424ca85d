#include "front/loop_limits.h"

#include <algorithm>
#include <thread>

namespace sava::front {

namespace {
constexpr unsigned kFewCores = 4;
}

void LoopLimits::Load(const config::Settings& settings) {
  // Lengths of keys are kept in 32 bits.
  max_bulk.store(static_cast<int64_t>(std::min<uint64_t>(settings.proto_max_bulk_len, UINT32_MAX)));
  query_buffer.store(settings.client_query_buffer_limit);
  timeout.store(settings.timeout);
  keepalive.store(settings.tcp_keepalive);
  hz.store(settings.hz > 0 ? settings.hz : 10);
  shutdown_timeout.store(settings.shutdown_timeout);
  on_sigint.store(settings.shutdown_on_sigint);
  on_sigterm.store(settings.shutdown_on_sigterm);
  maxclients.store(static_cast<size_t>(settings.maxclients));
  refuse_strangers.store(settings.protected_mode && settings.requirepass.empty());
  one_loop.store(settings.appendonly && settings.appendfsync == config::AppendFsync::kAlways &&
                 settings.threads == 0 && std::thread::hardware_concurrency() <= kFewCores);
}

}  // namespace sava::front
