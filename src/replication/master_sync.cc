// Copies of the data set for replicas: which replica gets one when, and how it is made.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/rng.h"
#include "base/text.h"
#include "replication/ids.h"
#include "replication/master.h"
#include "replication/wire.h"

namespace sava::replication {

namespace {

// The fields by which the copy names its place in the stream.
class StreamFields final : public snapshot::RdbAux {
 public:
  void Set(const ChangeStream::Mark& mark) {
    id_ = mark.id;
    offset_ = mark.place.at;
  }
  void Save(snapshot::CutWriter& out) const override {
    out.Aux("repl-stream-db", "0");
    out.Aux("repl-id", id_);
    out.Aux("repl-offset", base::IntText(offset_));
  }

 private:
  std::string id_;
  int64_t offset_ = 0;
};

// One copy serves all replicas with the same needs.
bool SameNeeds(const Replica& a, const Replica& b) {
  const engine::Announcement& x = a.identity.announced;
  const engine::Announcement& y = b.identity.announced;
  return a.identity.reader == b.identity.reader && x.eof == y.eof && x.filtered == y.filtered &&
         x.keys == y.keys && x.functions == y.functions;
}

}  // namespace

struct Master::Sync {
  std::shared_ptr<Transfer> transfer;  // made before other threads can see the sync
  std::vector<std::shared_ptr<Replica>> group;
  std::vector<std::shared_ptr<Transfer::Reader>> readers;
  std::shared_ptr<persistence::Persistence::Copy> copy;
  std::promise<ChangeStream::Mark> mark;
  StreamFields fields;
  bool cut_made = false;  // guarded by the master's mutex_: the snapshot under way is its own
};

// ---- when ----

void Master::StartSyncs(int64_t now_ms) {
  const config::Settings& settings = engine_.settings();
  std::vector<std::shared_ptr<Replica>> group;
  std::shared_ptr<Sync> sync;
  {
    const std::lock_guard lock(mutex_);
    if (sync_ != nullptr) return;
    const Replica* oldest = nullptr;
    for (const auto& replica : replicas_) {
      if (!replica->queued) continue;
      if (oldest == nullptr) oldest = replica.get();
      if (SameNeeds(*oldest, *replica)) group.push_back(replica);
    }
    if (group.empty()) return;
    const int64_t most = settings.repl_diskless_sync_max_replicas;
    const bool full = most > 0 && std::cmp_greater_equal(group.size(), most);
    const bool due = now_ms - oldest->since_ms >= settings.repl_diskless_sync_delay * 1000;
    // A replica that is sent a file of known length waits for its end anyway.
    if (settings.repl_diskless_sync && oldest->identity.announced.eof && !full && !due) return;
    sync = std::make_shared<Sync>();
    sync->transfer = std::make_shared<Transfer>(settings.dir);
    for (const auto& replica : group) replica->queued = false;
    sync_ = sync;
  }
  sync->group = std::move(group);
  StartSync(sync);
}

void Master::StartSync(const std::shared_ptr<Sync>& sync) {
  const Replica& first = *sync->group.front();
  for (const auto& replica : sync->group) {
    sync->readers.push_back(sync->transfer->AddReader(replica->wake));
  }
  sync->copy = std::make_shared<persistence::Persistence::Copy>();
  persistence::Persistence::Copy& copy = *sync->copy;
  copy.keys = first.identity.announced.keys;
  copy.functions = first.identity.announced.functions;
  copy.reader = first.identity.reader;
  copy.aux = {&sync->fields};
  // The copy holds itself up to `done`.
  copy.sink = [transfer = sync->transfer](std::string_view bytes) {
    return transfer->Append(bytes);
  };
  copy.at_cut = [this, sync] { CutMade(*sync); };
  copy.after_cut = [this, sync] { AfterCut(sync); };
  copy.done = [this, sync](const base::Result<uint64_t>& written) { SyncEnded(*sync, written); };
  spdlog::info("Starting BGSAVE for SYNC with target: {}",
               first.identity.announced.eof ? "replicas sockets" : "disk");
  persistence_.MakeCopy(sync->copy);
}

size_t Master::TransferMemory() const {
  return sync_ == nullptr || sync_->transfer == nullptr ? 0 : sync_->transfer->in_memory();
}

// ---- on the keeper's thread ----

void Master::Attach() {
  if (std::exchange(attached_, true)) return;
  engine_.journal().Attach(stream_);
  engine_.pubsub().set_replicated(true);
}

// With the gate closed.
void Master::CutMade(Sync& sync) {
  stream_.Begin(engine_.settings().repl_backlog_size);
  Attach();
  stream_.MarkAt(engine_.journal().Cut(), true,
                 [&sync](const ChangeStream::Mark& mark) { sync.mark.set_value(mark); });
}

// From here on each replica's feed sends the copy.
void Master::AfterCut(const std::shared_ptr<Sync>& sync) {
  engine_.journal().Nudge();
  const ChangeStream::Mark mark = sync->mark.get_future().get();
  {
    const std::lock_guard lock(mutex_);
    sync->cut_made = true;
    AbandonCopy();
  }
  sync->fields.Set(mark);
  spdlog::info("Background RDB transfer started by pid {}", getpid());
  const std::string end_mark = NewId();
  for (size_t i = 0; i < sync->group.size(); ++i) {
    Replica& replica = *sync->group[i];
    {
      const std::lock_guard lock(replica.mutex);
      if (replica.failed) {
        sync->transfer->Leave(*sync->readers[i]);
        continue;
      }
      replica.position.store(mark.place.at);
      replica.copy = Replica::Copy{sync->transfer, sync->readers[i], mark, end_mark};
      replica.state.store(Replica::State::kTransfer);
    }
    replica.wake();
  }
}

// Ends the walk when no replica waits for the copy any more.
void Master::AbandonCopy() {
  if (sync_ == nullptr || !sync_->cut_made) return;
  const auto& group = sync_->group;
  if (!std::ranges::all_of(group, [](const auto& one) { return one->signals.gone.load(); })) return;
  spdlog::info("Diskless rdb transfer, last replica dropped, killing fork child.");
  engine_.snapshot().Abort();
}

void Master::SyncEnded(Sync& sync, const base::Result<uint64_t>& written) {
  if (written) {
    sync.transfer->Finish();
    const auto left = std::ranges::count_if(
        sync.group, [](const auto& replica) { return !replica->signals.drop.load(); });
    spdlog::info("Diskless rdb transfer, done reading from pipe, {} replicas still up, {} bytes",
                 left, sync.transfer->written());
  } else {
    sync.transfer->Fail(written.error());
    spdlog::warn("The data set could not be sent to replicas: {}", written.error());
  }
  const uint64_t left_out = sync.copy->left_out;
  if (left_out > 0 && !told_left_out_.exchange(true)) {
    spdlog::warn(
        "{} keys of native types were left out of the data set for a stock replica, which cannot "
        "read them; see repl-native-types. INFO counts them from here on.",
        left_out);
  }
  for (const auto& replica : sync.group) {
    const std::lock_guard lock(replica->mutex);
    if (!written && replica->state.load() == Replica::State::kWaits) replica->failed = true;
    replica->wake();
  }
  {
    const std::lock_guard lock(mutex_);
    figures_.keys_left_out += left_out;
    figures_.transfer_file = sync.transfer->in_file();
    sync_.reset();
  }
}

}  // namespace sava::replication
