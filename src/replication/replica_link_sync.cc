// ReplicaLink from the master's answer on: a data set that is received and loaded, and the stream.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "replication/replica_link.h"
#include "storage/file_system.h"

namespace sava::replication {

namespace {

constexpr int64_t kAckMs = 1000;
constexpr int64_t kDiskAckMs = 50;
constexpr int64_t kHeldMs = 2;
constexpr size_t kReceiveRoom = 256 << 10;
constexpr uint64_t kWriteBehind = 8 << 20;
constexpr size_t kMostKept = 1024;

int64_t ThreadMicros() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1000000 + time.tv_nsec / 1000;
}

}  // namespace

ReplicaLink::End ReplicaLink::Resume(const Target& target, ReplicaWire& wire,
                                     const Answer& answer) {
  if (!answer.id.empty() && !base::EqualsNoCase(answer.id, stream_.history().id)) {
    engine_.Exclusively(engine_.apply_lane(), [&] {
      if (Current(target.number)) stream_.Rename(answer.id);
    });
    spdlog::info("Master replication ID changed to {}", answer.id);
  }
  {
    const std::lock_guard lock(mutex_);
    ++figures_.partial_syncs;
  }
  return Steady(target, wire, true);
}

ReplicaLink::End ReplicaLink::Sync(const Target& target, ReplicaWire& wire, const Answer& answer) {
  {
    const std::lock_guard lock(mutex_);
    figures_.sync_total = -1;
    figures_.sync_read = 0;
    figures_.last_io_ms = NowMs();
    ++figures_.full_syncs;
  }
  SetState(State::kSync);
  storage::FileSystem& files = storage::FileSystem::Real();
  const std::string path = storage::PathIn(
      wishes_.dir, fmt::format("temp-{}.{}.rdb", NowMs() / 1000, static_cast<int64_t>(getpid())));
  auto file = files.Open(path, storage::FileSystem::Mode::kNew);
  if (!file) {
    Fail("Opening the temp file needed for MASTER <-> REPLICA synchronization: " + file.error());
    return End::kFailed;
  }
  uint64_t behind = 0;
  ReplicaPayload payload([&](std::string_view bytes) -> base::Status {
    if (base::Status status = (*file)->Append(bytes); !status) {
      return base::Error{
          "Write error or short write writing to the DB dump file needed for MASTER <-> REPLICA "
          "synchronization: " +
          status.error()};
    }
    if ((*file)->size() - behind >= kWriteBehind) {
      (*file)->WriteBehind(behind, (*file)->size());
      behind = (*file)->size();
    }
    return {};
  });
  bool good = Receive(target, wire, path, payload);
  if (good) {
    if (const base::Status synced = (*file)->Sync(); !synced) {
      Fail("Failed trying to sync the temp DB to disk: " + synced.error());
      good = false;
    }
  }
  file->reset();
  if (!good) {
    static_cast<void>(files.Remove(path));
    return payload.refused() ? End::kRefused : End::kFailed;
  }
  if (!Load(target, wire, path, answer)) return End::kRefused;
  return Steady(target, wire, answer.kind != Answer::Kind::kOld);
}

// All of the data set into the file.
bool ReplicaLink::Receive(const Target& target, ReplicaWire& wire, const std::string& path,
                          ReplicaPayload& payload) {
  std::string bytes(kReceiveRoom, '\0');
  bool told = false;
  int64_t last_ms = NowMs();
  while (Current(target.number)) {
    size_t got = 0;
    const ReplicaWire::Outcome outcome =
        wire.Read(bytes.data(), bytes.size(), &got, last_ms + wishes_.timeout_ms - NowMs());
    if (outcome == ReplicaWire::Outcome::kWoken) continue;
    if (outcome == ReplicaWire::Outcome::kTimeout) {
      Fail(
          "Timeout receiving bulk data from MASTER... If the problem persists try to set the "
          "'repl-timeout' parameter in redis.conf to a larger value.");
      return false;
    }
    if (outcome == ReplicaWire::Outcome::kClosed) {
      Fail("I/O error trying to sync with MASTER: " + wire.error());
      return false;
    }
    last_ms = NowMs();
    size_t used = 0;
    const ReplicaPayload::Outcome taken =
        payload.Take(std::string_view(bytes).substr(0, got), &used);
    {
      const std::lock_guard lock(mutex_);
      figures_.sync_total = payload.total();
      figures_.sync_read = payload.received();
      figures_.last_io_ms = last_ms;
    }
    if (payload.begun() && !std::exchange(told, true)) {
      spdlog::info("MASTER <-> REPLICA sync: receiving {} to disk",
                   payload.total() < 0 ? std::string("streamed RDB from master with EOF")
                                       : fmt::format("{} bytes from master", payload.total()));
    }
    if (taken == ReplicaPayload::Outcome::kFailed) {
      Fail(payload.error());
      return false;
    }
    if (taken == ReplicaPayload::Outcome::kDone) {
      wire.GiveBack(std::string_view(bytes).substr(used, got - used));
      spdlog::debug("{} has {} bytes", path, payload.received());
      return true;
    }
  }
  return false;
}

// The file takes the place of the data set. The master is kept patient meanwhile.
bool ReplicaLink::Load(const Target& target, ReplicaWire& wire, const std::string& path,
                       const Answer& answer) {
  struct Shared {
    std::atomic<bool> over{false};
    base::Status status;  // set before `over`
    bool emptied = false;
  };
  const auto shared = std::make_shared<Shared>();
  persistence::Persistence::Replacement replacement;
  replacement.path = path;
  replacement.wanted = [this, number = target.number] {
    if (!Current(number)) return false;
    spdlog::info("MASTER <-> REPLICA sync: Flushing old data");
    // Whatever becomes of this, the data is not that of the history any more.
    SetResumable(false, 0);
    loaded_db_ = 0;
    return true;
  };
  replacement.loaded = [this, answer] {
    stream_.Adopt(answer.id, answer.offset);
    SetResumable(answer.kind != Answer::Kind::kOld, loaded_db_);
  };
  replacement.done = [this, shared](const base::Status& status, bool emptied) {
    shared->status = status;
    shared->emptied = emptied;
    shared->over.store(true);
    waker_.Wake();
  };
  persistence_.Replace(std::move(replacement));
  int64_t next_ms = NowMs();
  while (!shared->over.load()) {
    if (stopping_.load()) return false;
    if (NowMs() >= next_ms) {
      next_ms = NowMs() + kAckMs;
      // What becomes of the connection is seen when there is something to read.
      static_cast<void>(wire.Write("\n", 0));
    }
    waker_.Wait(next_ms - NowMs());
  }
  if (shared->status) {
    spdlog::info("MASTER <-> REPLICA sync: Finished with success");
    return true;
  }
  Fail((shared->emptied ? "Failed trying to load the MASTER synchronization DB: "
                        : "The MASTER synchronization DB is not loaded: ") +
       shared->status.error());
  return false;
}

// ---- the stream ----

ReplicaLink::End ReplicaLink::Steady(const Target& target, ReplicaWire& wire, bool acks) {
  ReplicaApply::Options options;
  options.engine = &engine_;
  options.stream = &stream_;
  options.fd = wire.fd();
  options.addr = wire.peer();
  options.laddr = wire.self();
  options.db = &db_;
  options.wanted = [this, number = target.number] { return Current(number); };
  options.held = [this] {
    // CLIENT PAUSE holds the master's writes back as well.
    if (engine_.admission().Paused(true, NowMs())) return true;
    return !ignores_disk_ && engine_.admission().refuses_writes() && disk_fails_;
  };
  ReplicaApply apply(std::move(options));
  kept_.clear();
  kept_offset_ = 0;
  if (!Current(target.number)) return End::kFailed;
  SetState(State::kConnected);
  engine_.role().set_linked(true);
  const auto end = [&](End how) {
    engine_.role().set_linked(false);
    return how;
  };
  int64_t last_ms = NowMs();
  int64_t next_ack_ms = 0;
  bool idle = true;
  bool waited_for = false;
  while (true) {
    const int64_t now = NowMs();
    const bool asked = apply.TakeAsked();
    if (asked || now >= next_ack_ms) {
      NoteApply(apply);
      NoteKept(true);
      if (acks && !SendAck(wire)) return end(End::kBroke);
      // Somebody may wait for the disk.
      waited_for = asked || waited_for;
      waited_for = waited_for && kept_offset_ < stream_.history().offset;
      next_ack_ms = now + (waited_for && has_log_ ? kDiskAckMs : kAckMs);
    }
    if (now - last_ms > wishes_.timeout_ms) {
      Fail("MASTER timeout: no data nor PING received...");
      return end(End::kBroke);
    }
    if (idle) {
      const std::span<char> room = apply.Room();
      size_t got = 0;
      const ReplicaWire::Outcome outcome =
          wire.Read(room.data(), room.size(), &got, next_ack_ms - now);
      if (outcome == ReplicaWire::Outcome::kClosed) {
        Fail("Connection with master lost: " + wire.error());
        return end(End::kBroke);
      }
      if (outcome == ReplicaWire::Outcome::kDone) {
        apply.Came(got);
        last_ms = NowMs();
        const std::lock_guard lock(mutex_);
        figures_.last_io_ms = last_ms;
        figures_.behind = apply.behind();
      }
      if (outcome == ReplicaWire::Outcome::kWoken) {
        static_cast<void>(engine_.apply_lane().mailbox.Take());
      }
    }
    switch (apply.Run()) {
      case ReplicaApply::Outcome::kDone:
        idle = true;
        break;
      case ReplicaApply::Outcome::kMore:
        idle = false;
        if (acks) NoteKept(false);
        break;
      case ReplicaApply::Outcome::kHeld:
        idle = false;
        last_ms = NowMs();
        waker_.Wait(kHeldMs);
        break;
      case ReplicaApply::Outcome::kOver:
        spdlog::info("Connection with master lost.");
        return end(End::kBroke);
      case ReplicaApply::Outcome::kBroken:
        // What follows cannot be known: only a new data set helps.
        SetResumable(false, 0);
        Fail(fmt::format("Protocol error from the master: {}; a full resynchronization follows",
                         apply.error()));
        return end(End::kFailed);
    }
  }
}

// What is applied now is in the log below a ticket.
void ReplicaLink::NoteKept(bool always) {
  if (!has_log_ || (!always && NowMs() < next_kept_ms_) || kept_.size() >= kMostKept) return;
  if (!kept_.empty() && kept_.back().offset == stream_.history().offset) return;
  next_kept_ms_ = NowMs() + kAckMs / 10;
  engine::Lane& lane = engine_.apply_lane();
  engine_.BeginBatch(lane);
  kept_.push_back({engine_.journal().next_ticket(), stream_.history().offset});
  engine_.EndBatch(lane);
}

// How much of what is applied is on the disk; -1: there is no log.
int64_t ReplicaLink::KeptOffset() {
  if (!has_log_) return -1;
  while (kept_.size() > 1 && kept_[1].ticket <= durable_) kept_.erase(kept_.begin());
  if (!kept_.empty() && kept_[0].ticket <= durable_) kept_offset_ = kept_[0].offset;
  return kept_offset_;
}

bool ReplicaLink::SendAck(ReplicaWire& wire) {
  const std::string offset = base::IntText(stream_.history().offset);
  const int64_t kept = KeptOffset();
  const std::string fsynced = base::IntText(kept);
  std::vector<std::string_view> words = {"REPLCONF", "ACK", offset};
  if (kept >= 0) {
    words.emplace_back("FACK");
    words.emplace_back(fsynced);
  }
  if (wire.Write(CommandOf(words), wishes_.timeout_ms) == ReplicaWire::Outcome::kDone) return true;
  Fail("I/O error writing to MASTER: " + wire.error());
  return false;
}

// About once a second.
void ReplicaLink::NoteApply(const ReplicaApply& apply) {
  ReadWishes();
  const std::lock_guard lock(mutex_);
  figures_.behind = apply.behind();
  figures_.apply_cpu_us = ThreadMicros();
}

}  // namespace sava::replication
