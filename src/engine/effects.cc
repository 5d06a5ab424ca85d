#include "engine/effects.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/glob.h"
#include "base/text.h"
#include "base/trim.h"
#include "engine/engine.h"

namespace sava::engine {

namespace {

constexpr size_t kKeepRecord = 256 * 1024;
constexpr size_t kKeepNotices = 1024;

}  // namespace

// As the log has it: *N, then $length and bytes of each word.
void EffectGroup::Add(commands::Args words, int db) {
  size_t size = 24;
  for (const std::string_view word : words) size += word.size() + 28;
  char* const begin = record_.Reserve(size);
  char* p = begin + 8;
  const auto number = [&p](char mark, size_t value) {
    *p++ = mark;
    p += base::FormatInt(static_cast<int64_t>(value), p);
    *p++ = '\r';
    *p++ = '\n';
  };
  number('*', words.size());
  for (const std::string_view word : words) {
    number('$', word.size());
    memcpy(p, word.data(), word.size());
    p += word.size();
    *p++ = '\r';
    *p++ = '\n';
  }
  const auto database = static_cast<uint32_t>(db);
  const auto bytes = static_cast<uint32_t>(p - begin - 8);
  memcpy(begin, &database, 4);
  memcpy(begin + 4, &bytes, 4);
  record_.Grow(8 + bytes);
  ++count_;
}

void EffectGroup::TellFrom(const Client& publisher, std::string channel, std::string_view text,
                           bool shard) {
  std::vector<std::string> heard_by;
  if ((shard ? publisher.shard_channels : publisher.channels).contains(channel)) {
    heard_by.push_back(channel);
  }
  for (const std::string& pattern : publisher.patterns) {
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

void EffectGroup::Drop() {
  record_.Clear(kKeepRecord);
  count_ = 0;
  changes_ = false;
  notices_.clear();
}

void EffectGroup::Record(Engine& engine, Lane& lane, Client* client) {
  journal::Journal& journal = engine.journal();
  lane.seen = journal.Append(lane.index, count_, record_.view(), lane.seen);
  if (changes_ && client != nullptr) client->wrote = std::max(client->wrote, lane.seen + 1);
  if (lane.exclusive) journal.Cut();  // no stripe hands it on
  record_.Clear(kKeepRecord);
  count_ = 0;
}

void EffectGroup::Post(Engine& engine, Lane& lane, Client* client) {
  // That something has expired is told by the clock.
  const uint64_t ticket = client == nullptr ? 0 : std::max(client->wrote, client->saw);
  for (const Notice& notice : notices_) {
    if (notice.line != nullptr) {
      engine.PostToMonitors(notice.line, ticket);
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
