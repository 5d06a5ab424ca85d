// The part of Engine that delivers what other lanes have posted to a lane's clients.
#include <algorithm>

#include "engine/engine.h"

namespace sava::engine {

namespace {

// Mail may be on its way while its receiver unsubscribes.
bool StillWanted(const Client& client, const Message& message) {
  switch (message.via) {
    case Message::Via::kDirect:
      return true;
    case Message::Via::kChannel:
      return client.subscriptions.channels.contains(message.subscription);
    case Message::Via::kShardChannel:
      return client.subscriptions.shard_channels.contains(message.subscription);
    case Message::Via::kPattern:
      return client.subscriptions.patterns.contains(message.subscription);
    case Message::Via::kTable:
    case Message::Via::kBroadcast:
    case Message::Via::kForget:
      break;
  }
  return true;
}

}  // namespace

bool Engine::ReceiveMail(Lane& lane) {
  bool woken = false;
  waiting_.MailTaken(lane);
  const std::list<Mail> mails = lane.mailbox.Take();
  // What clients do next, knowing of what other lanes have done, comes after that.
  if (!mails.empty()) lane.locks.SeeAll();
  for (const Mail& mail : mails) {
    if (mail.kind == Mail::Kind::kWake && mail.client == 0) {
      woken = true;
      continue;
    }
    if (mail.client == 0) {  // a line for every monitor of this lane
      for (auto& [id, client] : lane.clients) {
        if (client->has(kClientMonitor) && !client->has(kClientReplyOff))
          Deliver(lane, *client, mail);
      }
    } else if (const auto it = lane.clients.find(mail.client); it != lane.clients.end()) {
      Deliver(lane, *it->second, mail);
    } else {
      tracking_.NoteMissing(mail);
    }
  }
  return woken;
}

void Engine::Deliver(Lane& lane, Client& client, const Mail& mail) {
  admission_.LimitOutput(client);
  client.sending.wrote = std::max(client.sending.wrote, mail.ticket);
  switch (mail.kind) {
    case Mail::Kind::kReply:
      // It may have given up waiting.
      if (!client.has(kClientBlocked) || client.wait.token != mail.token) return;
      if (client.wait.waiter != nullptr) {  // it is flushed when it goes on
        const Waiter& waiter = *client.wait.waiter;
        if (waiter.nanos != 0 && observer_.MayBeSlow(waiter.nanos)) {
          observer_.NoteSlow(client, *waiter.command, waiter.args, waiter.nanos);
        }
        return waiting_.Answer(lane, client, *mail.message);
      }
      client.set(kClientBlocked, false);
      if (!client.has(kClientReplyOff)) client.out.Append(mail.message->resp2);
      break;
    case Mail::Kind::kAlarm:
      if (client.wait.waiter != nullptr && client.wait.token == mail.token)
        waiting_.Arm(lane, client);
      return;
    case Mail::Kind::kMessage:
      if (!StillWanted(client, *mail.message)) return;
      client.out.Append(client.resp == 3 && !mail.message->resp3.empty() ? mail.message->resp3
                                                                         : mail.message->resp2);
      break;
    case Mail::Kind::kInvalidate:
    case Mail::Kind::kRedirected:
    case Mail::Kind::kRedirectLost:
      if (!tracking_.Deliver(client, mail)) return;
      break;
    case Mail::Kind::kWake:
      break;
  }
  if (client.has(kClientFlushQueued)) return;
  client.set(kClientFlushQueued);
  lane.to_flush.push_back(&client);
}

}  // namespace sava::engine
