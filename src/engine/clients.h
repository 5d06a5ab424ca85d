// Clients that wait for an answer by mail, and CONFIG RESETSTAT.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/client_list.h"
#include "engine/engine.h"

namespace sava::engine {

// The caller's client waits for an answer by mail (Mail::Kind::kReply with its block_token).
// `until`: Unix ms, 0: for ever; then on_timeout answers. REQUIRES: not inside EXEC.
Client& BlockForReply(commands::Context& ctx, int64_t until = 0,
                      std::function<void(Client&)> on_timeout = nullptr);
// CONFIG RESETSTAT. REQUIRES: the gate is closed.
void ResetStats(Engine& engine);

}  // namespace sava::engine
