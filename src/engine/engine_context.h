// EngineContext: Context over the striped keyspace, for one invocation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "commands/context.h"
#include "engine/invocation_context.h"
#include "engine/keys.h"

namespace sava::engine {

class EngineContext final : public InvocationContext {
 public:
  explicit EngineContext(Invocation& invocation)
      : InvocationContext(invocation), keys_(invocation) {}

  // The engine's view of a handler's Context; for families that need more than Context.
  static EngineContext& Of(commands::Context& context) {
    return static_cast<EngineContext&>(context);
  }

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
  void CountAsNew(std::string_view key) override { keys_.CountAsNew(db_, key); }
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

 private:
  class Visit;
  // Marks watchers of all keys of a database whose content is about to be replaced by other_db's
  // (-1: by nothing). REQUIRES: gate closed.
  void TouchAllWatched(int db, int other_db);
  bool ScanStripe(size_t stripe, uint64_t* order, int64_t* left,
                  const std::function<void(std::string_view, std::string_view)>& visit);

  Keys keys_;
};

}  // namespace sava::engine
