// ReplicaFeed: what a replica is sent, in order: the answer to PSYNC, a copy of the data set in the
// form it reads, the stream of changes. For a stock server commands that it does not know are
// replaced by others of the same length.
//
// Thread safety: its client's loop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/output_feed.h"
#include "replication/replica.h"
#include "replication/wire.h"

namespace sava::replication {

class Master;

class ReplicaFeed final : public engine::OutputFeed {
 public:
  // Waits for a copy of the data set.
  ReplicaFeed(Master* master, std::shared_ptr<Replica> replica);
  // Goes on with the stream.
  ReplicaFeed(Master* master, std::shared_ptr<Replica> replica, ChangeStream::Mark mark);

  size_t Gather(iovec* vectors, size_t most) override;
  void Sent(size_t bytes) override;
  bool Tick(const engine::Client& client, int64_t now_ms) override;
  void Drop() override { replica_->signals.drop.store(true); }
  void Closing() override;
  bool over() const override;
  size_t pending() const override;

  // It has everything up to there, as it says; on_disk: -1 when it does not say.
  void Acknowledged(int64_t bytes, int64_t on_disk, int64_t now_ms);
  const std::shared_ptr<Replica>& replica() const { return replica_; }

 private:
  enum class Phase : uint8_t { kWaits, kSize, kCopy, kAwaitAck, kStream, kOver };
  enum class Source : uint8_t { kText, kCopy, kStream };

  bool TakeCopy();
  size_t GatherCopy(iovec* vectors);
  void EndCopy();
  void BeginStream();
  size_t GatherStream(iovec* vectors, size_t most);
  size_t GatherPadding(iovec* vectors, const Backlog::Span& span);
  bool TooMuchWaits(int64_t now_ms);

  Master& master_;
  const std::shared_ptr<Replica> replica_;
  Phase phase_;
  Source source_ = Source::kText;
  std::string text_;  // goes out first
  size_t text_sent_ = 0;
  bool told_ = false;  // the answer to PSYNC
  std::shared_ptr<Transfer> transfer_;
  std::shared_ptr<Transfer::Reader> reader_;
  std::string end_mark_;
  std::shared_ptr<Backlog> backlog_;
  BacklogPlace place_;
  // The next foreign part, as it was looked up, and what replaces it.
  int64_t looked_to_ = 0;  // no other ends before this byte
  Backlog::Span foreign_{-1, -1};
  Padding padding_;
  uint64_t heard_ = 0;    // bytes that it has sent
  int64_t moved_ms_ = 0;  // when something of the copy was taken last
  int64_t copy_at_ = -1;  // and how far it was
  int64_t soft_since_ms_ = 0;
};

}  // namespace sava::replication
