// EngineContext: Context over the striped keyspace. One per lane, reused for every command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/if_memory.h"
#include "commands/context.h"
#include "engine/engine.h"
#include "types/type_registry.h"

namespace sava::engine {

class EngineContext final : public commands::Context {
 public:
  explicit EngineContext(Lane* lane);

  // The engine's view of a handler's Context; for families that need more than Context.
  static EngineContext& Of(commands::Context& context) {
    return static_cast<EngineContext&>(context);
  }
  Engine& engine() { return engine_; }
  Lane& lane() { return lane_; }
  Client& client() { return *client_; }
  const Client& client() const { return *client_; }

  // The context whose handler this thread runs now, or nullptr. For a crash report.
  static const EngineContext* Running() { return running_; }
  // Runs a handler, as its command. REQUIRES: Begin.
  void Run(const commands::CommandSpec& spec) {
    struct Scope {
      ~Scope() { running_ = before; }  // also when there is no memory
      const EngineContext* const before;
    } const scope{std::exchange(running_, this)};
    spec.handler(*this);
  }

  // Prepares for one command; End returns whether anything changed.
  void Begin(Client& client, const commands::Command& command, commands::Args args,
             std::span<const uint64_t> hashes);
  // Journals the effects. REQUIRES: locks still held.
  void End();
  // Instead of End, when there was no memory to come to an end: journals what there is, if it can.
  void Abandon();
  // Copies arguments too large to be copied under a lock. REQUIRES: no lock held, before Begin.
  void PrebuildLarge(commands::Args args);
  void DropPrebuilt();
  // Takes the memory for a record of so many bytes.
  void ExpectRecord(size_t bytes);
  // After Begin: the command of a client that waits, tried again because of `key`, or with all its
  // locks.
  void BeginServing(Waiter* waiter, std::optional<std::string_view> key) {
    waiter_ = waiter;
    ready_key_ = key;
  }
  // Whether the command since Begin has made its client wait.
  bool blocked() const { return blocked_; }
  // Keeps an argument out of MONITOR and the slow log.
  void Redact(size_t index) {
    if (shown_.empty()) shown_.assign(args_.begin(), args_.end());
    shown_[index] = "(redacted)";
  }
  // The arguments as they may be shown, until the next Begin.
  commands::Args shown_args() const { return shown_.empty() ? args_ : commands::Args(shown_); }
  // EXEC: several commands make one record.
  void BeginGroup() { in_group_ = true; }
  void EndGroup();
  bool in_group() const { return in_group_; }
  // What others are to be told of this command or group: posted by its End or EndGroup, when the
  // record has its ticket, so that nobody is told of a write that cannot be waited for yet.
  void Tell(std::string channel, std::string_view text, bool shard) {
    notices_.push_back({std::move(channel), std::string(text), shard, nullptr, {}});
  }
  // The same for what the client itself publishes: it hears it only by what it listens to now.
  void TellFrom(const Client& publisher, std::string channel, std::string_view text, bool shard);
  void TellMonitors(std::shared_ptr<const Message> line) {
    notices_.push_back({{}, {}, false, std::move(line), {}});
  }

  commands::Value Find(std::string_view key, commands::Access access) override;
  void SetString(std::string_view key, std::string_view value, int64_t expire_at,
                 bool as_number) override;
  void SetInteger(std::string_view key, int64_t value, int64_t expire_at) override;
  char* EditString(std::string_view key, size_t size) override;
  char* OpenString(std::string_view key, size_t size) override;
  void Touched(std::string_view key) override;
  void DeadlineMoved(std::string_view key) override;
  void ExpireFields(std::string_view key, commands::Args fields) override;
  bool Delete(std::string_view key) override;
  void SetExpiry(std::string_view key, int64_t expire_at) override;
  void SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                 int64_t expire_at) override;
  int database_count() const override;
  commands::Value FindIn(int db, std::string_view key, commands::Access access) override;
  void Rename(std::string_view src, std::string_view dst) override;
  bool CopyKey(std::string_view src, int dst_db, std::string_view dst, bool replace) override;
  bool MoveKey(std::string_view key, int dst_db) override;
  int64_t DbSize() override;
  bool RandomKey(std::string* key) override;
  uint64_t Scan(uint64_t cursor, int64_t count,
                const std::function<void(std::string_view, std::string_view)>& visit) override;
  void ForEachKey(const std::function<void(std::string_view)>& visit) override;
  int64_t Flush(int db, bool async) override;
  void SwapDb(int a, int b) override;
  bool RoomFor(uint64_t bytes) const override;
  bool SelectDb(int db) override;
  commands::KeyAge Age(std::string_view key) override;
  void SetAge(std::string_view key, int64_t idle_seconds, int frequency) override;
  void CountAsNew(std::string_view key) override { CountAsNewIn(db_, key); }
  int64_t MemoryOf(std::string_view key, size_t samples) override;
  void Changed(int64_t changes) override { dirty_ += changes; }
  void Notify(commands::NotifyClass cls, std::string_view event, std::string_view key) override {
    NotifyIn(db_, cls, event, key);
  }
  void NotifyIn(int db, commands::NotifyClass cls, std::string_view event,
                std::string_view key) override;
  using Context::Effect;
  void Effect(commands::Args words) override;
  bool wants_effects() const override { return engine_.journal_.enabled(); }
  void NoEffect() override { verbatim_ = false; }
  bool can_block() const override {
    return client_ != nullptr && !client_->has(kClientInExec | kClientReplay | kClientNeverBlocks);
  }
  void Block(const BlockRequest& request) override;
  std::optional<std::string_view> ready_key() const override { return ready_key_; }
  bool runs_again() const override { return waiter_ != nullptr; }
  int64_t max_string_size() const override;
  const types::CollectionLimits& collection_limits() const override;
  bool shares_numbers() const override;
  void Warn(const std::string& text) override;
  bool skips_checksums() const override;
  bool lazy_user_del() const override;
  bool lazy_user_flush() const override;
  uint64_t Random() override { return lane_.rng.Next(); }
  const commands::CommandTable& command_table() const override;
  const types::TypeRegistry* type_registry() const override { return &types::AllTypes(); }

  // Removes a key that is past its time, with its notification and log record.
  void ExpireKey(int db, keyspace::Table& table, keyspace::Entry* entry, uint64_t hash);
  // Removes parts of an object that are past their time (fields of a hash), at most `budget`, with
  // notification and log record, and the key with the last of them.
  void ExpireParts(int db, keyspace::Table& table, keyspace::Entry* entry, uint64_t hash,
                   size_t budget);
  // After `names` were removed from the object at the entry.
  void NotePartsExpired(int db, keyspace::Table& table, keyspace::Entry* entry,
                        const std::string& key, uint64_t hash,
                        const std::vector<std::string>& names);
  // Removes a key to make room.
  void EvictKey(int db, keyspace::Table& table, keyspace::Entry* entry, uint64_t hash);
  // For work outside a command (upkeep, eviction): effects are recorded by EndUpkeep.
  void BeginUpkeep();
  void EndUpkeep();
  // Both, around the work. False when there was no memory: what was done of it is done.
  template <typename Work>
  bool DoUpkeep(const Work& work) {
    const auto all = [&] {
      BeginUpkeep();
      work();
      EndUpkeep();
    };
    if (base::IfMemory(all)) return true;
    Abandon();
    engine_.NoteOutOfMemory();
    return false;
  }
  // Sets a key of database 0 outside a command, or before one, and logs it. REQUIRES: the key's
  // lock.
  void WriteBack(std::string_view key, std::string_view text, bool number, int64_t expire_at);
  // What stands at a key; nothing is counted, touched or removed. REQUIRES: the key's lock.
  commands::Value Glance(int db, std::string_view key);
  // Marks watchers of all keys of a database whose content is about to be replaced by other_db's
  // (-1: by nothing). REQUIRES: gate closed.
  void TouchAllWatched(int db, int other_db);
  // WATCH: whether the key is there but past its time. REQUIRES: the key's lock.
  bool IsExpired(int db, std::string_view key);

 private:
  struct Located {
    uint64_t hash;
    size_t stripe;
    keyspace::Table* table;       // nullptr when the database has nothing in the stripe
    keyspace::Table::Slot* slot;  // nullptr when missing
    keyspace::Entry* entry;       // nullptr when missing
  };

  uint64_t HashOf(std::string_view key);
  Located Locate(int db, std::string_view key);
  keyspace::Table& TableOf(int db, const Located& at);
  void Touch(keyspace::Entry* entry);
  commands::Value Describe(keyspace::Entry* entry) const;
  // The entry is about to change or to go: a snapshot may still need it as it is.
  void BeforeChange(keyspace::Table& table, keyspace::Entry* entry) {
    if (engine_.snapshot_.active()) [[unlikely]]
      engine_.snapshot_.Preserve(table, entry);
  }
  void NoteChange(int db, size_t stripe, std::string_view key);
  // The key is ready for those who wait for it; gone: because it is there no longer.
  void NoteReady(int db, size_t stripe, std::string_view key, bool gone);
  void ExpectDiscard();
  void Discard(const keyspace::Displaced& displaced);
  void PutValue(int db, std::string_view key, keyspace::NewValue& value, int64_t expire_at);
  void CountAsNewIn(int db, std::string_view key);
  void MoveValue(int db, std::string_view key, int dst_db, std::string_view dst);
  void Remove(int db, keyspace::Table& table, std::string_view key, uint64_t hash, bool expired);
  void Propagate(std::span<const std::string_view> words, int db);
  // Appends the effects to the journal. REQUIRES: there are some.
  class Visit;
  void Record();
  void PostNotices();

  static constinit thread_local const EngineContext* running_;

  Engine& engine_;
  Lane& lane_;
  Client* client_ = nullptr;
  const commands::Command* command_ = nullptr;
  std::span<const uint64_t> hashes_;
  size_t next_hash_ = 0;
  // The key located last: handlers look at a key and then change it.
  const char* last_key_ = nullptr;
  int last_db_ = 0;
  Located last_{};
  int64_t dirty_ = 0;
  bool verbatim_ = true;
  bool in_group_ = false;
  bool blocked_ = false;
  Waiter* waiter_ = nullptr;  // whose command is tried again
  std::optional<std::string_view> ready_key_;
  std::vector<std::string_view> shown_;  // empty: nothing was redacted
  std::vector<std::pair<const char*, base::Blob*>> prebuilt_;
  base::Buffer record_;  // effects of this command or group, encoded for the journal
  uint32_t record_count_ = 0;
  bool changes_ = false;  // what a client wanted, not only what time has done
  struct Notice {
    std::string channel;
    std::string text;
    bool shard;
    std::shared_ptr<const Message> line;  // for monitors, instead
    // With a publisher: its channel and patterns by which it hears its own message.
    std::optional<std::vector<std::string>> heard_by;
  };
  std::vector<Notice> notices_;
};

}  // namespace sava::engine
