// ChangeStream: the journal as replicas get it: one stream of commands, whose bytes are counted.
//
// As a consumer of the journal it frames records (SELECT, MULTI and EXEC) and appends them to the
// backlog; PING and GETACK, which belong to no record, it puts between two. Replicas may read what
// the log keeps (no replica is ahead of the master's own disk). A server that is
// a replica itself appends its master's bytes instead.
//
// Without replicas, and repl-backlog-ttl after the last one, there is no backlog and the stream
// does not run: then the history's id is given up, since changes no longer move the offset.
//
// Locks: mutex_ comes after the journal's merging and before the backlog's own; what is told
// (`moved`, marks) is called without it.
//
// Thread safety: BeginRun to Pause on the thread that merges; the rest as they say.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "journal/journal.h"
#include "replication/backlog.h"
#include "replication/ids.h"
#include "replication/stream.h"

namespace sava::replication {

class ChangeStream final : public journal::Consumer, public Stream {
 public:
  struct Hooks {
    // Everything below this ticket is kept. On the thread that merges, or that writes the log.
    std::function<uint64_t()> kept;
    // Something was appended, or may be read now. On the same.
    std::function<void()> moved;
    // The journal must send its records. With the gate closed.
    std::function<void()> attach = [] {};
    // Replicas must be dropped. With the gate closed.
    std::function<void(std::string_view why)> drop;
    // There was no memory for a part of the stream: Renew is to come. On the thread that merges.
    std::function<void()> lost = [] {};
  };
  // Where a copy of the data set belongs in the stream.
  struct Mark {
    std::shared_ptr<Backlog> backlog;
    BacklogPlace place;
    std::string id;
    int db = 0;  // that is selected there
  };

  explicit ChangeStream(Hooks hooks) : hooks_(std::move(hooks)) {}

  // ---- the first replica, and repl-backlog-ttl after the last ----
  // REQUIRES of both: the gate is closed. The journal attaches and detaches it.
  void Begin(int64_t keep);
  void End();
  bool running() const { return running_.load(std::memory_order_acquire); }
  // The stream does not tell of all that was done. What follows is a history of its own, which
  // nobody has a part of: the caller drops the replicas. On any thread.
  void Renew();

  // ---- places in it ----
  // Tells where the stream is when all below the ticket is in it, and nothing else. `begins`: what
  // follows is read without what came before, and so begins with SELECT. On the thread that merges,
  // or at once. REQUIRES: running(), the gate is closed; the ticket is that of the journal's Cut.
  void MarkAt(uint64_t ticket, bool begins, std::function<void(const Mark&)> tell);
  // The database that is selected at the end of what records have brought.
  int db() const;
  // A replica that has followed `id` goes on with the byte `from`, counted from 0. Empty: what it
  // misses is not there. On any thread.
  std::optional<Mark> Resume(std::string_view id, int64_t from);

  // ---- any thread ----
  History history() const override;
  // What INFO shows of the backlog.
  struct Figures {
    bool active = false;
    int64_t first = 0;  // byte, counted from 0
    int64_t length = 0;
    int64_t memory = 0;
    uint64_t foreign = 0;  // commands that stock servers do not get
  };
  Figures figures() const;
  void Keep(int64_t bytes);
  void Trim();
  // Bytes so far, and what replicas may have of them.
  int64_t offset() const { return offset_.load(std::memory_order_acquire); }
  // Everything with a lower ticket is in the stream,
  uint64_t merged() const { return merged_.load(std::memory_order_acquire); }
  // and here is, or was a moment later, the end of what records have brought: a PING or GETACK
  // behind it tells of no change.
  int64_t data_end() const { return data_end_.load(std::memory_order_acquire); }
  // Takes effect at the next Pause: the caller nudges the journal.
  void WantPing() { wants_ping_.store(true); }
  void WantAcks() { wants_acks_.store(true); }
  // More is kept.
  void Kept();
  // The history has another id from here on, and none before it. REQUIRES: the gate is closed.
  void ChangeId();
  // The data set that was loaded is that of the history at its offset: replicas that have it, too,
  // may go on from there. REQUIRES: not running; nothing has changed since.
  void GoOn(const History& history);
  // The key was not loaded: its time is over. On the same thread, before anything else changes.
  void AppendGone(int db, std::string_view key);

  // ---- following a master ----
  void Adopt(std::string_view id, int64_t offset) override;
  void Rename(std::string_view id) override;
  void AppendRaw(std::string_view bytes) override;
  void Promote() override;
  void Demote() override;
  bool raw() const { return raw_.load(std::memory_order_relaxed); }

  // ---- the journal ----
  void BeginRun() override { mutex_.lock(); }
  void EndRun(uint64_t next) override;
  void Receive(const journal::Record& record) override;
  void Pause() override;

 private:
  struct Request {
    uint64_t ticket;
    bool begins;
    std::function<void(const Mark&)> tell;
  };
  // What was written up to `end` may be read when all below the ticket is kept.
  struct Held {
    uint64_t ticket;
    int64_t end;
  };
  // Gets what Framing makes.
  struct Out {
    ChangeStream& stream;
    void append(std::string_view bytes) { stream.AppendCommand(bytes); }
  };

  // ---- mutex_ is held ----
  bool open() const {
    return backlog_ != nullptr && !broken_ && !raw_.load(std::memory_order_relaxed);
  }
  template <typename Work>
  void OrBreak(const Work& work);
  void AppendCommand(std::string_view command);
  void TellMarks(uint64_t next);
  void TellAllMarks();
  bool Release();
  Mark MarkHere();
  void PublishAll();
  void Reset(int64_t offset);

  const Hooks hooks_;
  mutable std::mutex mutex_;
  std::shared_ptr<Backlog> backlog_;  // guarded by mutex_; none: it does not run
  History history_;  // guarded by mutex_; its offset only while there is no backlog
  journal::Framing framing_{journal::kToReplicas};  // guarded by mutex_
  std::vector<Request> requests_;                   // guarded by mutex_
  std::deque<Held> held_;                           // guarded by mutex_
  int64_t keep_ = 1 << 20;                          // guarded by mutex_
  int64_t seen_end_ = 0;                            // guarded by mutex_: at the last release
  uint64_t foreign_ = 0;                            // guarded by mutex_
  bool broken_ = false;     // guarded by mutex_: until Renew nothing is appended or read any more
  int64_t record_end_ = 0;  // guarded by mutex_
  std::atomic<bool> raw_{false};  // changed with the gate closed
  std::atomic<bool> running_{false};
  std::atomic<int64_t> offset_{0};
  std::atomic<int64_t> data_end_{0};
  std::atomic<uint64_t> merged_{0};
  std::atomic<bool> wants_ping_{false};
  std::atomic<bool> wants_acks_{false};
};

}  // namespace sava::replication
