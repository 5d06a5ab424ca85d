// The part of Runner that prepares a batch and takes its commands one by one.
#include <algorithm>
#include <new>
#include <utility>

#include "base/if_memory.h"
#include "base/prefetch.h"
#include "base/trim.h"
#include "engine/engine.h"
#include "engine/invocation.h"

namespace sava::engine {

using commands::Command;
using keyspace::Keyspace;

namespace {

// Requests whose locks and elements are fetched together.
constexpr size_t kLocksAhead = 1;
constexpr size_t kLookAhead = 16;
constexpr size_t kKeptHashes = 16 * 1024;

// What is noted of a batch while it runs; the log may be replayed in the middle of one.
class ProgressScope {
 public:
  ProgressScope(Lane& lane, std::span<const Request> batch)
      : lane_(lane), outer_(std::exchange(lane.batch.progress, {.requests = batch.data()})) {}
  ~ProgressScope() { lane_.batch.progress = outer_; }
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  Lane& lane_;
  const BatchProgress outer_;
};

// About how large the entry of a request's k-th key is when its value is the word after the key; 0
// when the command does not write.
size_t WrittenBytes(const Request& request, uint32_t k) {
  const Command& command = *request.command;
  if (!command.has(commands::kWrite)) return 0;
  constexpr size_t kHeader = 8;
  const size_t key = command.SimpleKey(k);
  const size_t value = key + 1 < request.args.size() ? request.args[key + 1].size() : 0;
  return kHeader + request.args[key].size() + std::max<size_t>(value, 8);
}

}  // namespace

void Runner::Prepare(Lane& lane, std::span<Request> batch) {
  base::ClearAndTrim(&lane.batch.hashes, kKeptHashes);
  lane.batch.renamed.clear();
  for (Request& request : batch) request.prepared = false;
  // Requests for which there is no memory stay unprepared.
  const auto resolve = [&] {
    for (Request& request : batch) {
      if (!request.withdrawn) Resolve(lane, request);
    }
  };
  if (!base::IfMemory(resolve)) {
    for (Request& request : batch) request.key_count = request.prepared ? request.key_count : 0;
  }
  lane.batch.last_command = nullptr;  // the name's bytes live only as long as the batch
  Prefetch(lane, batch);
}

// By the name that this client calls it by. Whatever comes after sees its own name.
const Command* Runner::FindCommand(Lane& lane, Request& request) {
  const commands::CommandTable& table = engine_.table();
  if (!request.client->origin.renames) return table.ResolveOwnName(request.args);
  const Command* const command = table.Resolve(request.args);
  if (command == nullptr) return nullptr;
  const Command& top = command->parent == nullptr ? *command : *command->parent;
  if (top.renamed) [[unlikely]] {
    auto& words = lane.batch.renamed.emplace_back(request.args.begin(), request.args.end());
    words[0] = top.spec->name;
    request.args = words;
  }
  return command;
}

// Finds the command and hashes its keys, when they are at fixed places.
void Runner::Resolve(Lane& lane, Request& request) {
  const std::string_view name = request.args[0];
  if (lane.batch.last_command != nullptr && name == lane.batch.last_name) {
    request.command = lane.batch.last_command;
  } else {
    request.command = FindCommand(lane, request);
    if (request.command != nullptr && !request.command->renamed &&
        request.command->parent == nullptr && request.command->subcommands.empty()) {
      lane.batch.last_command = request.command;
      lane.batch.last_name = name;
    }
  }
  request.first_hash = static_cast<uint32_t>(lane.batch.hashes.size());
  request.key_count = 0;
  const Command* command = request.command;
  if (command == nullptr || !command->simple_keys || !command->ArityOk(request.args.size())) {
    request.prepared = true;
    return;
  }
  const Keyspace& keyspace = engine_.keyspace();
  command->ForEachSimpleKey(request.args.size(), [&](size_t index) {
    const uint64_t hash = keyspace.Hash(request.args[index]);
    lane.batch.hashes.push_back(hash);
    ++request.key_count;
    const keyspace::Table* table = keyspace.table(request.client->db, Keyspace::StripeOf(hash));
    if (table != nullptr) table->PrefetchTable();
  });
  request.prepared = true;
}

// Each pass fetches what the next one reads, for all keys at once.
void Runner::Prefetch(const Lane& lane, std::span<const Request> batch) {
  const Keyspace& keyspace = engine_.keyspace();
  const auto for_each_key = [&](const auto& prefetch) {
    for (const Request& request : batch) {
      for (uint32_t k = 0; k < request.key_count; ++k) {
        const uint64_t hash = lane.batch.hashes[request.first_hash + k];
        const keyspace::Table* table = keyspace.table(request.client->db, Keyspace::StripeOf(hash));
        if (table != nullptr) prefetch(*table, hash, request, k);
      }
    }
  };
  using keyspace::Table;
  for_each_key([](const Table& table, uint64_t hash, const Request&, uint32_t) {
    table.PrefetchDirectory(hash);
  });
  for_each_key([](const Table& table, uint64_t hash, const Request&, uint32_t) {
    table.PrefetchBucket(hash);
  });
  for_each_key([](const Table& table, uint64_t hash, const Request& request, uint32_t k) {
    table.PrefetchEntry(hash, WrittenBytes(request, k));
  });
  for (const Request& request : batch.first(std::min(batch.size(), kLocksAhead))) {
    PrefetchLock(lane, request);
  }
}

// A lock's line is often with another thread, which takes it back when it comes much too early.
void Runner::PrefetchLock(const Lane& lane, const Request& request) {
  if (request.key_count == 0) return;
  base::PrefetchForWrite(
      &engine_.keyspace().stripe(Keyspace::StripeOf(lane.batch.hashes[request.first_hash])));
}

// What the next requests will look up in the collections of the stripe that is held already.
void Runner::LookAhead(const Lane& lane, std::span<const Request> next) const {
  const types::Object* objects[kLookAhead];
  const Request* last = nullptr;  // whose object it is
  const types::Object* object = nullptr;
  const auto stripe = static_cast<size_t>(lane.locks.held());
  for (size_t i = 0; i < next.size(); ++i) {
    const Request& request = next[i];
    objects[i] = nullptr;
    if (request.key_count != 1 || !request.command->looks_up || request.args.size() < 3) continue;
    const uint64_t hash = lane.batch.hashes[request.first_hash];
    if (Keyspace::StripeOf(hash) != stripe) continue;
    if (last == nullptr || lane.batch.hashes[last->first_hash] != hash ||
        last->client->db != request.client->db) {
      const keyspace::Table* const table = engine_.keyspace().table(request.client->db, stripe);
      const keyspace::Entry* const entry =
          table == nullptr ? nullptr : table->Find(hash, request.args[1]);
      object =
          entry != nullptr && entry->kind() == keyspace::Kind::kObject ? entry->object() : nullptr;
      last = &request;
    }
    objects[i] = object;
    if (object != nullptr) object->Prefetch(request.args[2], 0);
  }
  for (size_t i = 0; i < next.size(); ++i) {
    if (objects[i] != nullptr) objects[i]->Prefetch(next[i].args[2], 1);
  }
}

// Whether the request works on the stripe that is held, and on no other.
bool Runner::NeedsHeld(const Lane& lane, const Request& request) {
  return request.key_count == 1 &&
         lane.locks.holds(Keyspace::StripeOf(lane.batch.hashes[request.first_hash]));
}

void Runner::RunBatch(Lane& lane, std::span<Request> batch) {
  const base::Budget budget;
  const ProgressScope progress(lane, batch);
  const bool limits = engine_.limiter().enabled();
  size_t looked = 0;                // how far LookAhead has come
  const Client* limited = nullptr;  // whose output is
  for (size_t i = 0; i < batch.size(); ++i) {
    Request& request = batch[i];
    if (request.withdrawn) [[unlikely]]
      continue;
    // Kept only for a neighbour: a thread that loses its core between two commands should hold
    // nothing.
    if (lane.locks.held() >= 0 && !NeedsHeld(lane, request)) lane.locks.ReleaseHeld();
    if (i + kLocksAhead < batch.size()) PrefetchLock(lane, batch[i + kLocksAhead]);
    if (i >= looked && lane.locks.held() >= 0 && request.command->looks_up) {
      looked = std::min(batch.size(), i + kLookAhead);
      LookAhead(lane, batch.subspan(i, looked - i));
    }
    Client& client = *request.client;
    if (client.waiting() || client.has(kClientCloseAfterReply | kClientCloseNow)) {
      request.outcome = Request::Outcome::kRefused;
      continue;
    }
    if (i > 0 && budget.spent(lane.locks.timer().last())) [[unlikely]] {
      lane.waits.Yield(client);
      request.outcome = Request::Outcome::kRefused;
      continue;
    }
    if (lane.locks.gate_wanted()) [[unlikely]] {
      lane.locks.StepAside();
      lane.now_ms = engine_.clock().WallMillis();
      if (request.withdrawn) continue;
    }
    request.outcome = Request::Outcome::kDone;
    lane.batch.progress.begun = i + 1;
    lane.batch.progress.at_work = &client;
    if (&client != limited) {
      engine_.admission().LimitOutput(client);
      limited = &client;
    }
    const bool ran = base::IfMemory([&] {
      if (!request.prepared) throw std::bad_alloc();
      if (limits && !engine_.charging().Charge(lane, request)) return;
      if (RunOne(lane, request)) {
        if (client.tracking != nullptr) [[unlikely]]
          Tracking::EndCommand(client, request.command);
        return;
      }
      request.outcome = Request::Outcome::kRefused;
      client.rate.paid = limits;
    });
    if (!ran && client.origin.admitted && !client.origin.fails) throw std::bad_alloc();
    if (!ran) RefuseForMemory(lane, request);
    lane.batch.progress.at_work = nullptr;
    if (client.out.over() && !client.origin.admitted) [[unlikely]]
      client.set(kClientCloseNow);
  }
}

// There was no memory for the command before it came to its locks.
void Runner::RefuseForMemory(Lane& lane, const Request& request) {
  Client& client = *request.client;
  if (request.command != nullptr && request.command->is(commands::kRunsQueue)) {
    engine_.transactions().Discard(lane, client);
  } else if (client.has(kClientMulti)) {
    client.set(kClientDirtyExec);
  }
  protocol::Reply(&client.out, client.resp).Error(commands::errors::kNoMemory);
}

void Runner::RunBusy(Lane& lane, std::span<Request> batch) {
  // The command that takes long may be one of these.
  auto renamed = std::exchange(lane.batch.renamed, {});
  for (Request& request : batch) {
    Client& client = *request.client;
    request.outcome = Request::Outcome::kRefused;
    if (client.waiting() || client.has(kClientCloseAfterReply | kClientCloseNow)) continue;
    const keyspace::BusyPass pass(engine_.keyspace().gate());
    if (!pass) continue;  // it is run in the next round
    lane.now_ms = engine_.clock().WallMillis();
    lane.batch.busy = true;
    lane.batch.renamed.clear();
    request.command = nullptr;
    const size_t mark = client.out.Mark();
    const bool ran = base::IfMemory([&] {
      request.command = FindCommand(lane, request);
      if (engine_.admission().AdmitBusy(lane, client, request) == Admission::Answer::kRun) {
        CallHandler(lane, {.client = &client, .command = request.command, .args = request.args});
      }
    });
    if (!ran) RefuseForMemory(lane, request);
    FinishReply(client, mark);
    lane.batch.busy = false;
    request.outcome = Request::Outcome::kDone;
  }
  lane.batch.renamed = std::move(renamed);
}

}  // namespace sava::engine
