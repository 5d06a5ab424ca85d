#include "replication/failover.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "replication/master.h"

namespace sava::replication {

namespace {

using Replicas = std::vector<std::shared_ptr<Replica>>;

const Replica* Find(const Replicas& replicas, const std::string& host, int64_t port) {
  const auto found = std::ranges::find_if(replicas, [&](const auto& one) {
    return one->identity.ip == host && one->identity.port == port;
  });
  return found == replicas.end() ? nullptr : found->get();
}

}  // namespace

std::string_view Failover::state_name() const {
  switch (state()) {
    case State::kNone:
      return "no-failover";
    case State::kWaitingForSync:
      return "waiting-for-sync";
    case State::kInProgress:
      break;
  }
  return "failover-in-progress";
}

base::Status Failover::Start(const Wish& wish) {
  if (under_way()) return base::Error{"ERR FAILOVER already in progress."};
  if (master_.following().is_replica()) {
    return base::Error{"ERR FAILOVER is not valid when server is a replica."};
  }
  const Replicas replicas = master_.replicas();
  if (replicas.empty()) return base::Error{"ERR FAILOVER requires connected replicas."};
  if (wish.force && (wish.timeout_ms == 0 || wish.host.empty())) {
    return base::Error{
        "ERR FAILOVER with force option requires both a timeout and target HOST and IP."};
  }
  if (!wish.host.empty()) {
    const Replica* const target = Find(replicas, wish.host, wish.port);
    if (target == nullptr) {
      return base::Error{"ERR FAILOVER target HOST and PORT is not a replica."};
    }
    if (!target->online()) return base::Error{"ERR FAILOVER target replica is not online."};
  }
  engine::Engine& engine = master_.engine();
  const std::lock_guard lock(mutex_);
  wish_ = wish;
  deadline_ms_ = wish.timeout_ms == 0 ? 0 : engine.clock().WallMillis() + wish.timeout_ms;
  ticket_ = engine.journal().Cut();
  ++number_;
  state_.store(State::kWaitingForSync);
  engine.admission().Pause(INT64_MAX, true);
  spdlog::info("FAILOVER requested to {}.",
               wish.host.empty() ? "any replica" : wish.host + ":" + std::to_string(wish.port));
  return {};
}

bool Failover::Abort(std::string_view why) {
  const State before = state();
  if (before == State::kNone) return false;
  End(why);
  // The other may have taken over: then there are two masters until somebody says who follows whom.
  if (before == State::kInProgress) master_.following().TakeOver();
  return true;
}

void Failover::End(std::string_view why) {
  {
    const std::lock_guard lock(mutex_);
    ++number_;
    state_.store(State::kNone);
  }
  if (!why.empty()) spdlog::info("Aborting failover: {}", why);
  master_.engine().admission().Unpause();
}

void Failover::HandOver(std::string host, int64_t port) {
  uint64_t number;
  {
    const std::lock_guard lock(mutex_);
    state_.store(State::kInProgress);
    number = number_;
  }
  spdlog::info("Failover target is {}:{}: this server becomes its replica.", host, port);
  // Until it is aborted.
  const auto wanted = [this, number] {
    const std::lock_guard lock(mutex_);
    return number == number_;
  };
  master_.following().HandOver(host, static_cast<int>(port), wanted, [this, wanted](bool taken) {
    if (wanted()) End(taken ? "" : "Failover target rejected psync request");
  });
}

void Failover::Tick(int64_t now_ms) {
  if (state() != State::kWaitingForSync) return;
  Wish wish;
  int64_t deadline_ms = 0;
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    wish = wish_;
    deadline_ms = deadline_ms_;
    ticket = ticket_;
  }
  if (deadline_ms != 0 && now_ms >= deadline_ms) {
    if (wish.force) {
      spdlog::info("Failover to {}:{} time out exceeded, failing over.", wish.host, wish.port);
      return HandOver(wish.host, wish.port);
    }
    return End("Replica never caught up before timeout");
  }
  if (master_.stream().merged() < ticket) return master_.engine().journal().Nudge();
  const int64_t end = master_.stream().offset();
  for (const auto& replica : master_.replicas()) {
    const bool wanted = wish.host.empty() ||
                        (replica->identity.ip == wish.host && replica->identity.port == wish.port);
    if (wanted && replica->online() && replica->acks.bytes.load() == end) {
      return HandOver(replica->identity.ip, replica->identity.port);
    }
  }
}

}  // namespace sava::replication
