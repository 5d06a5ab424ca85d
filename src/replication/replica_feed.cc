#include "replication/replica_feed.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "config/settings.h"
#include "engine/engine.h"
#include "replication/master.h"

namespace sava::replication {

namespace {

// Stands for what a stock server does not know.
const std::string& Filler() {
  static const std::string filler(64 << 10, 'x');
  return filler;
}

iovec Vector(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

constexpr size_t kMostVectors = 16;

}  // namespace

ReplicaFeed::ReplicaFeed(Master* master, std::shared_ptr<Replica> replica)
    : master_(*master), replica_(std::move(replica)), phase_(Phase::kWaits) {}

ReplicaFeed::ReplicaFeed(Master* master, std::shared_ptr<Replica> replica, ChangeStream::Mark mark)
    : master_(*master),
      replica_(std::move(replica)),
      phase_(Phase::kStream),
      told_(true),
      backlog_(std::move(mark.backlog)),
      place_(std::move(mark.place)) {
  text_ = replica_->identity.announced.psync2 ? fmt::format("+CONTINUE {}\r\n", mark.id)
                                              : "+CONTINUE\r\n";
}

// ---- what comes next ----

size_t ReplicaFeed::Gather(iovec* vectors, size_t most) {
  if (replica_->signals.drop.load(std::memory_order_relaxed)) return 0;
  if (replica_->signals.late.load(std::memory_order_relaxed) &&
      replica_->signals.late.exchange(false) &&
      TooMuchWaits(master_.engine().clock().WallMillis())) {
    phase_ = Phase::kOver;
    return 0;
  }
  while (true) {
    if (text_sent_ < text_.size()) {
      source_ = Source::kText;
      vectors[0] = Vector(std::string_view(text_).substr(text_sent_));
      return 1;
    }
    text_.clear();
    text_sent_ = 0;
    switch (phase_) {
      case Phase::kWaits:
        replica_->signals.idle.store(true);
        if (!TakeCopy()) return 0;
        continue;
      case Phase::kSize: {
        const auto size = transfer_->size();
        if (!size) {
          if (transfer_->error()) phase_ = Phase::kOver;
          return 0;
        }
        text_ = fmt::format("${}\r\n", *size);
        phase_ = Phase::kCopy;
        continue;
      }
      case Phase::kCopy:
        if (const size_t count = GatherCopy(vectors); count > 0) return count;
        if (phase_ == Phase::kCopy) return 0;
        continue;
      case Phase::kStream:
        return GatherStream(vectors, std::min(most, kMostVectors));
      case Phase::kAwaitAck:
      case Phase::kOver:
        return 0;
    }
  }
}

void ReplicaFeed::Sent(size_t bytes) {
  replica_->sent.fetch_add(bytes, std::memory_order_relaxed);
  switch (source_) {
    case Source::kText:
      text_sent_ += bytes;
      break;
    case Source::kCopy:
      transfer_->Advance(*reader_, bytes);
      break;
    case Source::kStream:
      place_.at += static_cast<int64_t>(bytes);
      replica_->position.store(place_.at, std::memory_order_relaxed);
      break;
  }
}

bool ReplicaFeed::over() const { return phase_ == Phase::kOver || replica_->signals.drop.load(); }

size_t ReplicaFeed::pending() const {
  return backlog_ == nullptr ? 0 : static_cast<size_t>(backlog_->end() - place_.at);
}

// ---- the copy ----

bool ReplicaFeed::TakeCopy() {
  const std::lock_guard lock(replica_->mutex);
  if (replica_->failed) phase_ = Phase::kOver;
  if (!replica_->copy) return false;
  Replica::Copy& copy = *replica_->copy;
  transfer_ = std::move(copy.transfer);
  reader_ = std::move(copy.reader);
  backlog_ = std::move(copy.mark.backlog);
  place_ = std::move(copy.mark.place);
  end_mark_ = std::move(copy.end_mark);
  if (replica_->identity.psync)
    text_ = fmt::format("+FULLRESYNC {} {}\r\n", copy.mark.id, place_.at);
  told_ = true;
  if (replica_->identity.announced.eof) {
    text_ += fmt::format("$EOF:{}\r\n", end_mark_);
    phase_ = Phase::kCopy;
  } else {
    phase_ = Phase::kSize;
  }
  replica_->copy.reset();
  return true;
}

size_t ReplicaFeed::GatherCopy(iovec* vectors) {
  const std::string_view bytes = transfer_->Read(*reader_);
  if (!bytes.empty()) {
    source_ = Source::kCopy;
    vectors[0] = Vector(bytes);
    return 1;
  }
  if (transfer_->error()) {
    phase_ = Phase::kOver;
  } else if (const auto size = transfer_->size(); size && reader_->at() == *size) {
    EndCopy();
  }
  return 0;
}

void ReplicaFeed::EndCopy() {
  transfer_->Leave(*reader_);
  transfer_.reset();
  const engine::Announcement& announced = replica_->identity.announced;
  if (announced.eof) text_ = end_mark_;
  if (announced.rdb_only) {
    spdlog::info("RDB transfer completed, rdb only replica ({}) should be disconnected asap",
                 replica_->name());
    phase_ = Phase::kOver;
    backlog_.reset();
    place_ = {};
  } else if (announced.eof) {
    // The other side cannot tell the stream from what follows a data set it has not read yet.
    phase_ = Phase::kAwaitAck;
    replica_->state.store(Replica::State::kOnline);
    master_.Changed();
  } else {
    BeginStream();
  }
}

void ReplicaFeed::BeginStream() {
  phase_ = Phase::kStream;
  replica_->state.store(Replica::State::kOnline);
  spdlog::info("Synchronization with replica {} succeeded", replica_->name());
  master_.Changed();
}

// ---- the stream ----

size_t ReplicaFeed::GatherStream(iovec* vectors, size_t most) {
  source_ = Source::kStream;
  if (backlog_->Read(&place_, backlog_->end()).empty()) {
    replica_->signals.idle.store(true);
    if (backlog_->Read(&place_, backlog_->end()).empty()) return 0;
  }
  int64_t limit = backlog_->end();
  if (replica_->identity.reader != commands::Reader::kSava) {
    if (place_.at >= foreign_.end) {
      foreign_ = backlog_->ForeignFrom(place_.at, replica_->identity.reader)
                     .value_or(Backlog::Span{limit, limit});
      // A part that comes later is looked for later.
      padding_ = foreign_.begin == foreign_.end
                     ? Padding{}
                     : PaddingOf(static_cast<size_t>(foreign_.end - foreign_.begin));
    }
    if (place_.at >= foreign_.begin && place_.at < foreign_.end) {
      return GatherPadding(vectors, foreign_);
    }
    limit = std::min(limit, foreign_.begin);
  }
  BacklogPlace ahead = place_;
  size_t count = 0;
  while (count < most) {
    const std::string_view bytes = backlog_->Read(&ahead, limit);
    if (bytes.empty()) break;
    vectors[count++] = Vector(bytes);
    ahead.at += static_cast<int64_t>(bytes.size());
  }
  return count;
}

size_t ReplicaFeed::GatherPadding(iovec* vectors, const Backlog::Span& span) {
  auto skip = static_cast<size_t>(place_.at - span.begin);
  if (skip < padding_.head.size()) {
    vectors[0] = Vector(std::string_view(padding_.head).substr(skip));
    return 1;
  }
  skip -= padding_.head.size();
  if (skip < padding_.fill) {
    vectors[0] = Vector(std::string_view(Filler()).substr(0, padding_.fill - skip));
    return 1;
  }
  vectors[0] = Vector(std::string_view("\r\n").substr(skip - padding_.fill));
  return 1;
}

void ReplicaFeed::Acknowledged(int64_t bytes, int64_t on_disk, int64_t now_ms) {
  if (bytes > replica_->acks.bytes.load(std::memory_order_relaxed))
    replica_->acks.bytes.store(bytes);
  if (on_disk > replica_->acks.disk_bytes.load(std::memory_order_relaxed)) {
    replica_->acks.disk_bytes.store(on_disk);
  }
  replica_->acks.at_ms.store(now_ms, std::memory_order_relaxed);
  if (phase_ == Phase::kAwaitAck && text_sent_ == text_.size()) BeginStream();
}

// ---- now and then ----

// As Redis counts: what waits for it in memory; the copy itself does not count.
bool ReplicaFeed::TooMuchWaits(int64_t now_ms) {
  if (backlog_ == nullptr) return false;
  const config::Settings& settings = master_.engine().settings();
  const config::OutputBufferLimit& limit = settings.output_limit_replica;
  const size_t waiting = pending();
  const uint64_t hard =
      std::max(limit.hard, static_cast<uint64_t>(std::max<int64_t>(settings.repl_backlog_size, 0)));
  bool over = limit.hard > 0 && waiting > hard;
  if (limit.soft == 0 || waiting <= limit.soft) {
    soft_since_ms_ = 0;
  } else if (soft_since_ms_ == 0) {
    soft_since_ms_ = now_ms;
  } else {
    over = over || now_ms - soft_since_ms_ > limit.soft_seconds * 1000;
  }
  if (!over) return false;
  spdlog::warn(
      "Replica {} closed for overcoming of output buffer limits: {} bytes wait for it (hard limit "
      "{}, soft limit {} for {} s). While it takes a copy of the data set all writes count.",
      replica_->name(), waiting, hard, limit.soft, limit.soft_seconds);
  master_.engine().lanes()[replica_->lane]->stats.clients.over_output_limit.Add();
  return true;
}

bool ReplicaFeed::Tick(const engine::Client& client, int64_t now_ms) {
  if (replica_->signals.drop.load()) return false;
  const int64_t timeout = master_.engine().settings().repl_timeout * 1000;
  if (client.activity.net_input != heard_) {
    heard_ = client.activity.net_input;
    replica_->acks.at_ms.store(now_ms, std::memory_order_relaxed);
  }
  if (TooMuchWaits(now_ms)) return false;
  // So that the replica does not think that its master is gone.
  const bool waits = phase_ == Phase::kWaits || phase_ == Phase::kSize;
  if (waits && text_.empty()) text_ = "\n";
  if (phase_ == Phase::kCopy) {
    const int64_t at = reader_->at();
    if (at != copy_at_ || moved_ms_ == 0) {
      copy_at_ = at;
      moved_ms_ = now_ms;
    } else if (now_ms - moved_ms_ > timeout) {
      spdlog::warn("Disconnecting timedout replica (full sync): {}", replica_->name());
      return false;
    }
  }
  const bool acks = phase_ == Phase::kStream || phase_ == Phase::kAwaitAck;
  if (acks && replica_->identity.psync && now_ms - replica_->acks.at_ms.load() > timeout) {
    spdlog::warn("Disconnecting timedout replica (streaming sync): {}", replica_->name());
    return false;
  }
  return true;
}

void ReplicaFeed::Closing() {
  if (transfer_ != nullptr) transfer_->Leave(*reader_);
  {
    const std::lock_guard lock(replica_->mutex);
    if (replica_->copy) replica_->copy->transfer->Leave(*replica_->copy->reader);
    replica_->copy.reset();
    replica_->failed = true;
  }
  phase_ = Phase::kOver;
  place_ = {};
  backlog_.reset();
  spdlog::info("Connection with replica {} lost.", replica_->name());
  master_.Gone(*replica_);
}

}  // namespace sava::replication
