#include "engine/wait_queue.h"

#include <algorithm>

namespace sava::engine {

void WaitQueue::AwaitAnswer(Client& client, int64_t until,
                            std::function<void(Client&)> on_timeout) {
  client.set(kClientBlocked);
  client.wait.deadline_ms = until;
  client.wait.on_timeout = std::move(on_timeout);
  ++client.wait.token;
  waiting_.push_back(&client);
}

void WaitQueue::YieldFirst(std::span<Client* const> clients) {
  if (clients.empty()) return;
  for (Client* client : clients) client->set(kClientParked);
  waiting_.insert(waiting_.begin(), clients.begin(), clients.end());
  yielded_ = true;
}

void WaitQueue::SetAlarm(Client& client, int64_t at) {
  if (at == client.wait.alarm_ms) return;
  // The place of the old alarm is the new one's: only the first takes memory.
  auto node = alarms_.extract({client.wait.alarm_ms, client.id});
  if (at == INT64_MAX) {
    client.wait.alarm_ms = at;
  } else if (node.empty()) {
    alarms_.emplace(std::pair{at, client.id}, &client);
    client.wait.alarm_ms = at;
  } else {
    client.wait.alarm_ms = at;
    node.key().first = at;
    alarms_.insert(std::move(node));
  }
}

void WaitQueue::Forget(Client& client) {
  SetAlarm(client, INT64_MAX);
  std::erase(waiting_, &client);
  std::erase(resumed_, &client);
}

void WaitQueue::Resume(int64_t now_ms, int64_t pause_end_ms) {
  yielded_ = false;
  std::erase_if(waiting_, [&](Client* client) {
    if (client->wait.waiter != nullptr) return true;  // alarms and mail see to it
    bool go = false;
    if (client->has(kClientPaused)) {
      go = pause_end_ms <= now_ms;
    } else if (client->has(kClientParked)) {
      go = true;
    } else if (client->has(kClientBlocked)) {
      if (client->wait.deadline_ms != 0 && client->wait.deadline_ms <= now_ms) {
        if (client->wait.on_timeout != nullptr) client->wait.on_timeout(*client);
        go = true;
      }
    } else {
      go = true;  // another client unblocked it
    }
    if (client->has(kClientCloseNow)) go = true;
    if (go) {
      client->set(kClientPaused | kClientParked | kClientBlocked, false);
      GoOn(*client);
    }
    return go;
  });
}

bool WaitQueue::NeedsResume(int64_t now_ms) const {
  return !waiting_.empty() || !resumed_.empty() || !leaving_.empty() || due(now_ms);
}

int64_t WaitQueue::NextResume(int64_t batch_ms, int64_t pause_end_ms) const {
  if (own_mail_ || !resumed_.empty() || !leaving_.empty()) return 0;
  if (yielded_ && !waiting_.empty()) return 0;
  int64_t next = alarms_.empty() ? INT64_MAX : alarms_.begin()->first.first;
  for (const Client* client : waiting_) {
    if (!client->waiting()) return 0;
    // The thread that held its stripe has probably lost its core: a millisecond, unless others are
    // ready.
    if (client->has(kClientParked)) next = std::min(next, batch_ms + 1);
    if (client->has(kClientPaused)) {
      next = std::min(next, pause_end_ms);
    } else if (client->wait.deadline_ms != 0) {
      next = std::min(next, client->wait.deadline_ms);
    }
  }
  return next;
}

}  // namespace sava::engine
