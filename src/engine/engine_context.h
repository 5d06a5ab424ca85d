// EngineContext: Context over the striped keyspace, for one invocation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/context.h"
#include "engine/invocation.h"
#include "engine/keys.h"
#include "types/type_registry.h"

namespace sava::engine {

class EngineContext final : public commands::Context {
 public:
  explicit EngineContext(Invocation& invocation);

  // The engine's view of a handler's Context; for families that need more than Context.
  static EngineContext& Of(commands::Context& context) {
    return static_cast<EngineContext&>(context);
  }
  Invocation& invocation() { return invocation_; }
  Engine& engine() { return engine_; }
  Lane& lane() { return lane_; }
  Client& client() { return invocation_.client(); }

  // ---- keys ----
  commands::Value Find(std::string_view key, commands::Access access) override {
    return keys_.Find(db_, key, access);
  }
  void SetString(std::string_view key, std::string_view value, int64_t expire_at,
                 bool as_number) override {
    keys_.SetString(db_, key, value, expire_at, as_number);
  }
  void SetInteger(std::string_view key, int64_t value, int64_t expire_at) override {
    keys_.SetInteger(db_, key, value, expire_at);
  }
  char* EditString(std::string_view key, size_t size) override;
  char* OpenString(std::string_view key, size_t size) override {
    return keys_.OpenString(db_, key, size);
  }
  void Touched(std::string_view key) override { keys_.Touched(db_, key); }
  void DeadlineMoved(std::string_view key) override { keys_.DeadlineMoved(db_, key); }
  void ExpireFields(std::string_view key, commands::Args fields) override {
    keys_.ExpireFields(db_, key, fields);
  }
  bool Delete(std::string_view key) override { return keys_.Delete(db_, key); }
  void SetExpiry(std::string_view key, int64_t expire_at) override {
    keys_.SetExpiry(db_, key, expire_at);
  }
  void SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                 int64_t expire_at) override;
  commands::KeyAge Age(std::string_view key) override;
  void SetAge(std::string_view key, int64_t idle_seconds, int frequency) override;
  int64_t MemoryOf(std::string_view key, size_t samples) override;

  // ---- whole keys, other databases, the whole keyspace: whole_keys.cc ----
  int database_count() const override;
  commands::Value FindIn(int db, std::string_view key, commands::Access access) override {
    return keys_.Find(db, key, access);
  }
  void Rename(std::string_view src, std::string_view dst) override { keys_.Rename(db_, src, dst); }
  bool CopyKey(std::string_view src, int dst_db, std::string_view dst, bool replace) override {
    return keys_.Copy(db_, src, dst_db, dst, replace);
  }
  bool MoveKey(std::string_view key, int dst_db) override { return keys_.Move(db_, key, dst_db); }
  int64_t DbSize() override;
  bool RandomKey(std::string* key) override;
  uint64_t Scan(uint64_t cursor, int64_t count,
                const std::function<void(std::string_view, std::string_view)>& visit) override;
  void ForEachKey(const std::function<void(std::string_view)>& visit) override;
  int64_t Flush(int db, bool async) override;
  void SwapDb(int a, int b) override;
  bool SelectDb(int db) override;

  // ---- bookkeeping ----
  bool RoomFor(uint64_t bytes) const override;
  void Changed(int64_t changes) override { invocation_.Changed(changes); }
  void NotifyIn(int db, commands::NotifyClass cls, std::string_view event,
                std::string_view key) override {
    invocation_.Notify(db, cls, event, key);
  }
  using Context::Effect;
  void Effect(commands::Args words) override { invocation_.Effect(words); }
  bool wants_effects() const override { return engine_.journal().enabled(); }
  void NoEffect() override { invocation_.NotVerbatim(); }

  // ---- waiting ----
  bool can_block() const override { return invocation_.origin().blocks && invocation_.outermost(); }
  void Block(const BlockRequest& request) override { invocation_.Block(request); }
  std::optional<std::string_view> ready_key() const override {
    return invocation_.work().ready_key;
  }
  bool runs_again() const override { return invocation_.work().waiter != nullptr; }

  // ---- settings ----
  int64_t max_string_size() const override;
  const types::CollectionLimits& collection_limits() const override;
  bool shares_numbers() const override;
  void Warn(const std::string& text) override;
  bool skips_checksums() const override;
  bool lazy_user_flush() const override;
  uint64_t Random() override { return lane_.rng.Next(); }
  const commands::CommandTable& command_table() const override;
  const types::TypeRegistry* type_registry() const override { return &types::AllTypes(); }

 private:
  class Visit;
  // Marks watchers of all keys of a database whose content is about to be replaced by other_db's
  // (-1: by nothing). REQUIRES: gate closed.
  void TouchAllWatched(int db, int other_db);
  bool ScanStripe(size_t stripe, uint64_t* order, int64_t* left,
                  const std::function<void(std::string_view, std::string_view)>& visit);

  Invocation& invocation_;
  Engine& engine_;
  Lane& lane_;
  Keys keys_;
};

}  // namespace sava::engine
