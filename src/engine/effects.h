// EffectGroup: what one unit of work leaves behind for others, a command alone or several that
// count as one (EXEC): its record for the journal, and what subscribers and monitors are told.
//
// A group belongs to the outermost invocation (see EngineContext). What runs inside adds to it;
// the outermost commits it once, while the locks are held: first the record, which gets a ticket,
// then the notices, so that no client is told of a write that cannot be waited for yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/spec.h"
#include "journal/journal.h"

namespace sava::engine {

class Engine;
struct Client;
struct Lane;
struct Message;

class EffectGroup {
 public:
  // An effect in database `db`, in the words of a command. The journal encodes it into the buffer
  // of the lane. REQUIRES: the journal is enabled; no other group of the lane has effects.
  void Add(journal::Journal& journal, size_t lane, commands::Args words, int db,
           journal::Destinations to = journal::kToAll) {
    journal.Add(lane, words, static_cast<uint32_t>(db), to);
    ++count_;
  }
  // A client wanted the changes; they are not only effects of time.
  void NoteChange() { changes_ = true; }

  // A message to the subscribers of a channel.
  void Tell(std::string channel, std::string_view text, bool shard) {
    notices_.push_back({std::move(channel), std::string(text), shard, nullptr, {}});
  }
  // The same for messages that the client itself publishes: it hears them only by its subscriptions
  // now.
  void TellFrom(const Client& publisher, std::string channel, std::string_view text, bool shard);
  void TellMonitors(std::shared_ptr<const Message> line) {
    notices_.push_back({{}, {}, false, std::move(line), {}});
  }

  // Takes back the lines for monitors that were added since; nothing else that was told.
  size_t notices() const { return notices_.size(); }
  void DropLines(size_t since);
  // What counts as a unit of its own comes first: until Return, what is added is another group's.
  EffectGroup SetAside() { return std::exchange(*this, EffectGroup()); }
  void Return(EffectGroup&& group) { *this = std::move(group); }

  bool empty() const { return count_ == 0 && notices_.empty(); }
  // Appends the record to the journal, then posts the notices; the group is empty afterwards.
  // client: the one that did it; nullptr: none. REQUIRES: the locks under which it was done.
  void Commit(Engine& engine, Lane& lane, Client* client) {
    if (!empty()) CommitAll(engine, lane, client);
    changes_ = false;
  }
  // Forgets everything.
  void Drop(journal::Journal& journal, size_t lane);

 private:
  struct Notice {
    std::string channel;
    std::string text;
    bool shard;
    std::shared_ptr<const Message> line;  // for monitors, instead
    // With a publisher: its channel and patterns by which it hears its own message.
    std::optional<std::vector<std::string>> heard_by;
  };

  void CommitAll(Engine& engine, Lane& lane, Client* client);
  void Record(Engine& engine, Lane& lane, Client* client);
  void Post(Engine& engine, Lane& lane, Client* client);

  size_t count_ = 0;  // of effects, which the journal has
  bool changes_ = false;
  std::vector<Notice> notices_;
};

}  // namespace sava::engine
