#include "module/blocked_clients.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "commands/errors.h"
#include "module/module_context.h"
#include "module/module_types.h"

namespace sava::module {

namespace {

using commands::CommandSpec;
using TimeoutReply = commands::KeyContext::BlockRequest::TimeoutReply;

// A client that waits. The host owns it from BlockClientOnKeys to Forget.
struct Waiter {
  const CommandSpec* spec = nullptr;
  Waiting waiting;
  uint64_t timer = 0;  // 0: none
};

bool ArityOk(const CommandSpec& spec, int argc) {
  return spec.arity >= 0 ? argc == spec.arity : argc >= -spec.arity;
}

int NoMemory(host::Ctx* ctx) {
  return host::ReplyWithError(ctx, std::string(commands::errors::kNoMemory).c_str());
}

// ---- what becomes due ----

void OnTimer(host::Ctx* ctx, void* data) {
  auto* const waiter = static_cast<Waiter*>(data);
  waiter->timer = 0;
  for (const std::string& key : waiter->waiting.keys) {
    host::String* const name = host::CreateString(ctx, key.data(), key.size());
    host::SignalKeyAsReady(ctx, name);
    host::FreeString(ctx, name);
  }
}

void StopTimer(host::Ctx* ctx, Waiter* waiter) {
  if (waiter->timer != 0) host::StopTimer(ctx, waiter->timer, nullptr);
  waiter->timer = 0;
}

void SetTimer(host::Ctx* ctx, Waiter* waiter) {
  StopTimer(ctx, waiter);
  const int64_t at = waiter->waiting.wake_at_ms;
  if (at == 0) return;
  const int64_t left = std::max<int64_t>(at - host::Milliseconds(), 1);
  waiter->timer = host::CreateTimer(ctx, left, OnTimer, waiter);
}

// ---- what the host calls ----

// Whether a value of the wanted type is at one of the keys.
bool HasType(host::Ctx* ctx, const Waiting& waiting) {
  if (waiting.type == nullptr) return true;
  const host::Type* const wanted = HostTypeOf(*waiting.type);
  bool has = false;
  for (const std::string& key : waiting.keys) {
    host::String* const name = host::CreateString(ctx, key.data(), key.size());
    host::Key* const opened = host::OpenKey(ctx, name, host::kRead | host::kNoTouch);
    if (opened != nullptr) {
      has = has || (host::KeyType(opened) == host::kModuleKey &&
                    host::ModuleTypeGetType(opened) == wanted);
      host::CloseKey(opened);
    }
    host::FreeString(ctx, name);
  }
  return has;
}

// The command of a client that waits is run again; an error means that it waits on.
int OnReady(host::Ctx* ctx, host::String** argv, int argc) {
  auto* const waiter = static_cast<Waiter*>(host::GetBlockedClientPrivateData(ctx));
  if (!HasType(ctx, waiter->waiting)) return host::kError;
  try {
    ModuleContext context(ctx, argv, argc, waiter->spec->name);
    waiter->spec->handler.on_keys()(context);
    if (context.waiting() == nullptr) {
      context.Finish();
      return host::kOk;
    }
    waiter->waiting.wake_at_ms = context.waiting()->wake_at_ms;
  } catch (const std::bad_alloc&) {
    return NoMemory(ctx);
  }
  SetTimer(ctx, waiter);
  return host::kError;
}

int OnTimeout(host::Ctx* ctx, host::String** /*argv*/, int /*argc*/) {
  const auto* const waiter = static_cast<Waiter*>(host::GetBlockedClientPrivateData(ctx));
  switch (waiter->waiting.reply) {
    case TimeoutReply::kNull:
      return host::ReplyWithNull(ctx);
    case TimeoutReply::kNullArray:
      return host::ReplyWithNullArray(ctx);
    case TimeoutReply::kEmptyArray:
      return host::ReplyWithArray(ctx, 0);
  }
  return host::kOk;
}

void Forget(host::Ctx* ctx, void* data) {
  const std::unique_ptr<Waiter> waiter(static_cast<Waiter*>(data));
  StopTimer(ctx, waiter.get());
  ModuleContext::CountWaiter(-1);
}

void Wait(host::Ctx* ctx, const CommandSpec& spec, const Waiting& waiting) {
  auto waiter = std::make_unique<Waiter>(Waiter{&spec, waiting, 0});
  std::vector<host::String*> names;
  for (const std::string& key : waiting.keys) {
    names.push_back(host::CreateString(ctx, key.data(), key.size()));
  }
  const int64_t left = waiting.deadline_ms == 0
                           ? 0
                           : std::max<int64_t>(waiting.deadline_ms - host::Milliseconds(), 1);
  ModuleContext::CountWaiter(1);
  Waiter* const owned = waiter.release();
  host::BlockClientOnKeys(ctx, OnReady, OnTimeout, Forget, left, names.data(),
                          static_cast<int>(names.size()), owned);
  SetTimer(ctx, owned);
  for (host::String* const name : names) host::FreeString(ctx, name);
}

}  // namespace

int RunCommand(host::Ctx* ctx, host::String** argv, int argc, const CommandSpec& spec) {
  try {
    ModuleContext context(ctx, argv, argc, spec.name);
    if (!ArityOk(spec, argc)) {
      context.ArityError();
    } else {
      spec.handler.on_keys()(context);
    }
    if (context.waiting() == nullptr) {
      context.Finish();
    } else {
      Wait(ctx, spec, *context.waiting());
    }
  } catch (const std::bad_alloc&) {
    return NoMemory(ctx);
  }
  return host::kOk;
}

}  // namespace sava::module
