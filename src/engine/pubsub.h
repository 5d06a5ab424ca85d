// PubSub: the subscribers of each channel. Channels are spread over shards with a lock each;
// patterns have one lock, taken after the shard's. A message is posted to all subscribers'
// mailboxes while the shard is locked, so every subscriber sees the messages of a channel in the
// same order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/client.h"
#include "engine/mailbox.h"

namespace sava::engine {

class PubSub {
 public:
  explicit PubSub(std::vector<Mailbox*> mailboxes) : mailboxes_(std::move(mailboxes)) {}

  // Each returns false when it was (not) subscribed already. They change the client's sets too.
  bool Subscribe(Client& client, std::string_view channel, bool shard);
  bool Unsubscribe(Client& client, std::string_view channel, bool shard);
  bool SubscribePattern(Client& client, std::string_view pattern);
  bool UnsubscribePattern(Client& client, std::string_view pattern);
  void UnsubscribeAll(Client& client);

  // Returns how many clients were sent the message. `self`, when a subscriber itself, gets it at
  // once: `deliver_self` is called with the message while the shard is locked.
  // ticket: the change it tells of is logged below it.
  int64_t Publish(
      std::string_view channel, std::string_view payload, bool shard, uint64_t ticket,
      Client* self = nullptr,
      const std::function<void(const std::shared_ptr<const Message>&)>& deliver_self = nullptr);
  // How many Publish would send a message to.
  int64_t Receivers(std::string_view channel, bool shard) const;
  // Messages must reach replicas, too.
  void set_replicated(bool on) { replicated_.store(on, std::memory_order_relaxed); }
  bool replicated() const { return replicated_.load(std::memory_order_relaxed); }
  // Cheap test for the notification path.
  bool anyone() const { return subscriptions_.load(std::memory_order_relaxed) > 0; }

  std::vector<std::string> Channels(std::string_view pattern, bool shard) const;
  int64_t Subscribers(std::string_view channel, bool shard) const;
  int64_t ChannelCount(bool shard) const;
  int64_t PatternCount() const;

 private:
  struct Subscriber {
    uint64_t client;
    size_t lane;
    bool operator==(const Subscriber& other) const { return client == other.client; }
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using ChannelMap =
      std::unordered_map<std::string, std::vector<Subscriber>, TextHash, std::equal_to<>>;
  struct Shard {
    mutable std::mutex mutex;
    ChannelMap channels;        // guarded by mutex
    ChannelMap shard_channels;  // guarded by mutex
  };

  Shard& ShardOf(std::string_view channel) { return shards_[TextHash{}(channel) % shards_.size()]; }
  const Shard& ShardOf(std::string_view channel) const {
    return shards_[TextHash{}(channel) % shards_.size()];
  }

  std::vector<Mailbox*> mailboxes_;
  std::array<Shard, 16> shards_;
  mutable std::mutex pattern_mutex_;  // after a shard's mutex
  ChannelMap patterns_;               // guarded by pattern_mutex_
  std::atomic<int64_t> subscriptions_{0};
  std::atomic<int64_t> pattern_subscriptions_{0};
  std::atomic<bool> replicated_{false};
};

}  // namespace sava::engine
