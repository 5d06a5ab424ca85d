// ModuleContext: a KeyContext over the module API of a Redis or Valkey server. One lives for one
// run of a command, on the host's main thread; it keeps at most one open handle per key and closes
// them when it ends.
//
// Main thread only. A notification may let another module run a command of ours meanwhile: what a
// run keeps between its calls is therefore its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/key_context.h"
#include "module/host_api.h"
#include "protocol/out_buffer.h"

namespace sava::module {

// What Block asked for, with words of its own.
struct Waiting {
  std::vector<std::string> keys;
  int64_t deadline_ms = 0;
  int64_t wake_at_ms = 0;
  commands::KeyContext::BlockRequest::TimeoutReply reply{};
  const types::TypeInfo* type = nullptr;
};

class ModuleContext final : public commands::KeyContext {
 public:
  ModuleContext(host::Ctx* ctx, host::String** argv, int argc, std::string_view command);
  ~ModuleContext();

  // After the handler: hands the host the reply and what is to be logged. Not when it blocked.
  void Finish();
  // Set by a handler that found nothing to answer with.
  const Waiting* waiting() const { return waiting_.get(); }

  // How many clients wait: while there are any, the host is told of keys changed in place.
  static void CountWaiter(int change) { waiters += change; }

  bool RoomFor(uint64_t bytes) const override;
  commands::Value Find(std::string_view key, commands::Access access) override;
  void SetString(std::string_view key, std::string_view value, int64_t expire_at,
                 bool as_number) override;
  void SetInteger(std::string_view key, int64_t value, int64_t expire_at) override;
  void Touched(std::string_view key) override;
  bool Delete(std::string_view key) override;
  void SetExpiry(std::string_view key, int64_t expire_at) override;
  void SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                 int64_t expire_at) override;
  int64_t MemoryOf(std::string_view key, size_t samples) override;
  void Changed(int64_t changes) override { changed_ = changed_ || changes != 0; }
  using KeyContext::Effect;
  void Effect(commands::Args words) override;
  void NoEffect() override { verbatim_ = false; }
  bool can_block() const override;
  void Block(const BlockRequest& request) override;
  uint64_t Random() override;

 protected:
  void NotifyIn(int db, commands::NotifyClass cls, std::string_view event,
                std::string_view key) override;

 private:
  // What a run needs memory for; kept for the next one, since a host runs millions of them.
  struct Frame;
  static std::unique_ptr<Frame> TakeFrame();

  struct OpenedKey {
    std::string_view name;
    host::String* text;
    host::Key* key;  // nullptr: read, and nothing is there
    bool writable;
    bool own_text;
  };

  // The host's string for a key: an argument's when it is one.
  host::String* TextOf(std::string_view key, bool* own);
  OpenedKey& Open(std::string_view key, int mode);
  void Close(OpenedKey* opened);

  static int waiters;

  static std::vector<std::unique_ptr<Frame>> spare_frames;

  host::Ctx* const ctx_;
  host::String** const argv_;
  const int flags_;
  std::unique_ptr<Frame> frame_;
  std::unique_ptr<Waiting> waiting_;
  bool changed_ = false;
  bool verbatim_ = true;
};

}  // namespace sava::module
