#include "engine/effects.h"

#include <algorithm>
#include <utility>

#include "base/glob.h"
#include "base/trim.h"
#include "engine/engine.h"

namespace sava::engine {

namespace {

constexpr size_t kKeepNotices = 1024;

}  // namespace

void EffectGroup::TellFrom(const Client& publisher, std::string channel, std::string_view text,
                           bool shard) {
  std::vector<std::string> heard_by;
  if ((shard ? publisher.subscriptions.shard_channels : publisher.subscriptions.channels)
          .contains(channel)) {
    heard_by.push_back(channel);
  }
  for (const std::string& pattern : publisher.subscriptions.patterns) {
    if (!shard && base::GlobMatch(pattern, channel)) heard_by.push_back(pattern);
  }
  Tell(std::move(channel), text, shard);
  notices_.back().heard_by = std::move(heard_by);
}

void EffectGroup::CommitAll(Engine& engine, Lane& lane, Client* client) {
  if (count_ > 0) Record(engine, lane, client);
  if (!notices_.empty()) [[unlikely]]
    Post(engine, lane, client);
}

void EffectGroup::DropLines(size_t since) {
  const auto first = notices_.begin() + static_cast<std::ptrdiff_t>(std::min(since, notices()));
  notices_.erase(std::remove_if(first, notices_.end(),
                                [](const Notice& notice) { return notice.line != nullptr; }),
                 notices_.end());
}

void EffectGroup::Drop(journal::Journal& journal, size_t lane) {
  journal.Discard(lane);
  count_ = 0;
  changes_ = false;
  notices_.clear();
}

void EffectGroup::Record(Engine& engine, Lane& lane, Client* client) {
  journal::Journal& journal = engine.journal();
  const uint64_t ticket = journal.Append(lane.index, lane.locks.seen());
  count_ = 0;
  lane.locks.set_seen(ticket);
  if (changes_ && client != nullptr)
    client->sending.wrote = std::max(client->sending.wrote, ticket + 1);
  if (lane.exclusive()) journal.Cut();  // no stripe hands it on
}

void EffectGroup::Post(Engine& engine, Lane& lane, Client* client) {
  // That something has expired is told by the clock.
  const uint64_t ticket =
      client == nullptr ? 0 : std::max(client->sending.wrote, client->sending.saw);
  for (const Notice& notice : notices_) {
    if (notice.line != nullptr) {
      engine.observer().PostToMonitors(notice.line, ticket);
    } else if (!notice.heard_by) {
      engine.pubsub().Publish(notice.channel, notice.text, notice.shard, ticket);
    } else {
      const auto deliver = [&](const std::shared_ptr<const Message>& message) {
        if (std::ranges::find(*notice.heard_by, message->subscription) == notice.heard_by->end()) {
          return;
        }
        lane.mailbox.Post({Mail::Kind::kMessage, client->id, message, 0, ticket});
      };
      engine.pubsub().Publish(notice.channel, notice.text, notice.shard, ticket, client, deliver);
    }
  }
  base::ClearAndTrim(&notices_, kKeepNotices);
}

}  // namespace sava::engine
