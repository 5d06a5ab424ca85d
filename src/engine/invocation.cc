#include "engine/invocation.h"

#include <new>
#include <string>

#include "base/if_memory.h"
#include "base/text.h"

namespace sava::engine {

namespace {

// Arguments at least this long are copied before the lock is taken.
constexpr size_t kLarge = 32 * 1024;

}  // namespace

constinit thread_local const Invocation* Invocation::running_ = nullptr;

LargeArguments::~LargeArguments() {
  for (auto& [data, blob] : copies_) {
    if (blob != nullptr) blob->Unref();
  }
}

void LargeArguments::Copy(commands::Args args) {
  for (const std::string_view arg : args) {
    if (arg.size() < kLarge) continue;
    try {
      copies_.emplace_back(arg.data(), nullptr);
      copies_.back().second = base::Blob::Copy(arg);
    } catch (const std::bad_alloc&) {
      return;  // the command itself will find no memory
    }
  }
}

base::Blob* LargeArguments::Take(std::string_view argument) {
  for (auto& [data, blob] : copies_) {
    if (data == argument.data() && blob != nullptr && blob->size() == argument.size()) {
      return std::exchange(blob, nullptr);
    }
  }
  return nullptr;
}

void Invocation::Notify(int db, commands::NotifyClass cls, std::string_view event,
                        std::string_view key) {
  const uint32_t wanted = engine_.settings().notify_keyspace_events;
  if ((wanted & cls) == 0 || !engine_.pubsub().anyone()) return;
  // Without memory for the message it is not sent.
  base::IfMemory([&] {
    const std::string number = base::IntText(db);
    if ((wanted & commands::kNotifyKeyspace) != 0) {
      std::string channel = "__keyspace@" + number + "__:";
      channel += key;
      effects_.Tell(std::move(channel), event, false);
    }
    if ((wanted & commands::kNotifyKeyevent) != 0) {
      std::string channel = "__keyevent@" + number + "__:";
      channel += event;
      effects_.Tell(std::move(channel), key, false);
    }
  });
}

void Invocation::End() {
  if (dirty_ > 0) {
    lane_.stats.keys.dirty.Add(static_cast<uint64_t>(dirty_));
    effects_.NoteChange();
    if (verbatim_) Propagate(work_.args, db_);
  }
  if (outermost()) Commit();
}

void Invocation::Abandon() {
  lane_.stats.keys.dirty.Add(static_cast<uint64_t>(dirty_));
  if (!outermost()) return;
  try {
    Commit();
  } catch (const std::bad_alloc&) {
    effects_.Drop(engine_.journal(), lane_.index);
  }
}

void Invocation::Block(const commands::Context::BlockRequest& request) {
  if (work_.waiter == nullptr) {
    engine_.waiting().Block(lane_, client(), *work_.command, work_.args, request);
    blocked_ = true;
    return;
  }
  blocked_ = true;
  // It keeps its place and its deadline.
  Waiter& waiter = *work_.waiter;
  const int64_t before = waiter.wake_at_ms.exchange(request.wake_at_ms);
  if (request.wake_at_ms != 0 && (before == 0 || request.wake_at_ms < before)) {
    engine_.waiting().Rewind(lane_, waiter);
  }
}

}  // namespace sava::engine
