#include "engine/pubsub.h"

#include <algorithm>

#include "base/glob.h"
#include "engine/client_list.h"
#include "protocol/reply.h"

namespace sava::engine {

namespace {

std::string Encode(int resp, std::initializer_list<std::string_view> words) {
  protocol::OutBuffer out;
  protocol::Reply reply(&out, resp);
  reply.Push(static_cast<int64_t>(words.size()));
  for (const std::string_view word : words) reply.Bulk(word);
  return std::string(out.Since(0));
}

std::shared_ptr<const Message> MakeMessage(Message::Via via,
                                           std::initializer_list<std::string_view> words) {
  auto message = std::make_shared<Message>();
  message->via = via;
  message->subscription = std::string(*(words.begin() + 1));
  message->resp2 = Encode(2, words);
  message->resp3 = Encode(3, words);
  return message;
}

}  // namespace

bool PubSub::Subscribe(Client& client, std::string_view channel, bool shard) {
  auto& mine = shard ? client.subscriptions.shard_channels : client.subscriptions.channels;
  if (!mine.emplace(channel).second) return false;
  CountName(client, channel);
  Shard& home = ShardOf(channel);
  std::lock_guard lock(home.mutex);
  (shard ? home.shard_channels : home.channels)[std::string(channel)].push_back(
      {client.id, client.lane});
  subscriptions_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool PubSub::Unsubscribe(Client& client, std::string_view channel, bool shard) {
  auto& mine = shard ? client.subscriptions.shard_channels : client.subscriptions.channels;
  const auto it = mine.find(channel);
  if (it == mine.end()) return false;
  mine.erase(it);
  UncountName(client, channel);
  Shard& home = ShardOf(channel);
  std::lock_guard lock(home.mutex);
  ChannelMap& channels = shard ? home.shard_channels : home.channels;
  const auto list = channels.find(channel);
  if (list != channels.end()) {
    std::erase(list->second, Subscriber{client.id, client.lane});
    if (list->second.empty()) channels.erase(list);
  }
  subscriptions_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool PubSub::SubscribePattern(Client& client, std::string_view pattern) {
  if (!client.subscriptions.patterns.emplace(pattern).second) return false;
  CountName(client, pattern);
  std::lock_guard lock(pattern_mutex_);
  patterns_[std::string(pattern)].push_back({client.id, client.lane});
  subscriptions_.fetch_add(1, std::memory_order_relaxed);
  pattern_subscriptions_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool PubSub::UnsubscribePattern(Client& client, std::string_view pattern) {
  const auto it = client.subscriptions.patterns.find(pattern);
  if (it == client.subscriptions.patterns.end()) return false;
  client.subscriptions.patterns.erase(it);
  UncountName(client, pattern);
  std::lock_guard lock(pattern_mutex_);
  const auto list = patterns_.find(pattern);
  if (list != patterns_.end()) {
    std::erase(list->second, Subscriber{client.id, client.lane});
    if (list->second.empty()) patterns_.erase(list);
  }
  subscriptions_.fetch_sub(1, std::memory_order_relaxed);
  pattern_subscriptions_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void PubSub::UnsubscribeAll(Client& client) {
  while (!client.subscriptions.channels.empty())
    Unsubscribe(client, std::string(*client.subscriptions.channels.begin()), false);
  while (!client.subscriptions.shard_channels.empty()) {
    Unsubscribe(client, std::string(*client.subscriptions.shard_channels.begin()), true);
  }
  while (!client.subscriptions.patterns.empty())
    UnsubscribePattern(client, std::string(*client.subscriptions.patterns.begin()));
}

int64_t PubSub::Publish(
    std::string_view channel, std::string_view payload, bool shard, uint64_t ticket, Client* self,
    const std::function<void(const std::shared_ptr<const Message>&)>& deliver_self) {
  if (!anyone()) return 0;
  int64_t receivers = 0;
  std::vector<std::vector<Mail>> by_lane(mailboxes_.size());
  const auto send = [&](const std::vector<Subscriber>& list,
                        const std::shared_ptr<const Message>& message) {
    for (const Subscriber& subscriber : list) {
      ++receivers;
      if (self != nullptr && subscriber.client == self->id && deliver_self) {
        deliver_self(message);
      } else {
        by_lane[subscriber.lane].push_back(
            {Mail::Kind::kMessage, subscriber.client, message, 0, ticket});
      }
    }
  };
  Shard& home = ShardOf(channel);
  std::lock_guard lock(home.mutex);
  ChannelMap& channels = shard ? home.shard_channels : home.channels;
  if (const auto list = channels.find(channel); list != channels.end()) {
    send(list->second, MakeMessage(shard ? Message::Via::kShardChannel : Message::Via::kChannel,
                                   {shard ? "smessage" : "message", channel, payload}));
  }
  if (!shard && pattern_subscriptions_.load(std::memory_order_relaxed) > 0) {
    std::lock_guard pattern_lock(pattern_mutex_);
    for (const auto& [pattern, list] : patterns_) {
      if (base::GlobMatch(pattern, channel)) {
        send(list, MakeMessage(Message::Via::kPattern, {"pmessage", pattern, channel, payload}));
      }
    }
  }
  for (size_t i = 0; i < by_lane.size(); ++i) mailboxes_[i]->Post(std::move(by_lane[i]));
  return receivers;
}

int64_t PubSub::Receivers(std::string_view channel, bool shard) const {
  int64_t receivers = Subscribers(channel, shard);
  if (shard || pattern_subscriptions_.load(std::memory_order_relaxed) == 0) return receivers;
  std::lock_guard lock(pattern_mutex_);
  for (const auto& [pattern, list] : patterns_) {
    if (base::GlobMatch(pattern, channel)) receivers += static_cast<int64_t>(list.size());
  }
  return receivers;
}

std::vector<std::string> PubSub::Channels(std::string_view pattern, bool shard) const {
  std::vector<std::string> names;
  for (const Shard& part : shards_) {
    std::lock_guard lock(part.mutex);
    for (const auto& [name, list] : shard ? part.shard_channels : part.channels) {
      if (pattern.empty() || base::GlobMatch(pattern, name)) names.push_back(name);
    }
  }
  return names;
}

int64_t PubSub::Subscribers(std::string_view channel, bool shard) const {
  const Shard& home = ShardOf(channel);
  std::lock_guard lock(home.mutex);
  const ChannelMap& channels = shard ? home.shard_channels : home.channels;
  const auto list = channels.find(channel);
  return list == channels.end() ? 0 : static_cast<int64_t>(list->second.size());
}

int64_t PubSub::ChannelCount(bool shard) const {
  int64_t count = 0;
  for (const Shard& part : shards_) {
    std::lock_guard lock(part.mutex);
    count += static_cast<int64_t>((shard ? part.shard_channels : part.channels).size());
  }
  return count;
}

int64_t PubSub::PatternCount() const {
  std::lock_guard lock(pattern_mutex_);
  return static_cast<int64_t>(patterns_.size());
}

}  // namespace sava::engine
