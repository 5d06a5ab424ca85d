// InvocationContext: the part of a handler's Context that is not about keys: its effects,
// whether it may wait, its client, and settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "commands/context.h"
#include "engine/invocation.h"
#include "types/value/type_registry.h"

namespace sava::engine {

class InvocationContext : public commands::Context {
 public:
  Invocation& invocation() { return invocation_; }
  Engine& engine() { return engine_; }
  Lane& lane() { return lane_; }
  Client& client() { return invocation_.client(); }

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

  // ---- its client ----
  bool SelectDb(int db) override;
  commands::Session& session() override { return client(); }
  bool has_session() const override { return invocation_.work().client != nullptr; }
  bool is_local() const override { return invocation_.client().has(kClientLocal); }
  bool in_transaction() const override { return invocation_.client().has(kClientInExec); }
  void UserChanged() override;
  bool MayReadEveryKey() override;
  bool in_script() const override {
    return has_session() && invocation_.client().has(kClientInScript);
  }
  std::string DescribeSession() override;
  void Redact(size_t index) override { invocation_.Redact(index); }

 protected:
  explicit InvocationContext(Invocation& invocation);
  ~InvocationContext() = default;

  Invocation& invocation_;
  Engine& engine_;
  Lane& lane_;

 private:
  const commands::Parts& parts() const override;
};

}  // namespace sava::engine
