// ReplicaApply: the commands of a master's stream, run one after another as they come. The offset
// moves with whole commands only, and over a transaction in one step: after a break within one the
// master is asked for it again from its MULTI. The bytes go to this server's own replicas once they
// were applied.
//
// On the thread that follows the master, which owns the engine's apply_lane(). The client may be
// looked at, and told to go, by others that hold the gate closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "protocol/request_parser.h"
#include "replication/stream.h"

namespace sava::replication {

class ReplicaApply {
 public:
  struct Options {
    engine::Engine* engine = nullptr;
    Stream* stream = nullptr;
    int fd = -1;
    std::string addr;
    std::string laddr;
    std::atomic<int>* db = nullptr;  // that the stream has selected; set with the gate passed
    // Whether the link is still the one that is wanted. Inside the gate.
    std::function<bool()> wanted;
    // Whether it is to wait: the disk cannot be written.
    std::function<bool()> held;
  };
  explicit ReplicaApply(Options options);
  ~ReplicaApply();
  ReplicaApply(const ReplicaApply&) = delete;
  ReplicaApply& operator=(const ReplicaApply&) = delete;

  // Where to put the next bytes of the stream; then how many there were.
  std::span<char> Room();
  void Came(size_t bytes);
  void Came(std::string_view bytes);

  enum class Outcome : uint8_t {
    kDone,    // what is left is not a whole command
    kMore,    // there is more to run
    kHeld,    // it cannot go on now: another try is due in a moment
    kOver,    // the link is not wanted any more, or was killed
    kBroken,  // the stream cannot be followed: error() says why; only a new data set helps
  };
  // Runs some of what has come.
  Outcome Run();
  const std::string& error() const { return error_; }

  // Bytes that have come and are not applied.
  uint64_t behind() const { return end_ - begin_; }
  // The master has asked how far this server is.
  bool TakeAsked() { return std::exchange(asked_, false); }
  engine::Client& client() { return client_; }

 private:
  struct Pending {
    size_t first_word;
    size_t words;
    size_t end;  // in the buffer
  };

  bool Parse();
  void SkipEmpty();
  void RunPending();
  bool RunOne(engine::Request& request, const Pending& pending);
  bool RunInEngine(engine::Request& request);
  bool Own(commands::Args words);
  void Judge(const engine::Request& request);
  void Settle();
  bool over() const { return client_.has(engine::kClientCloseNow) || !options_.wanted(); }

  const Options options_;
  engine::Engine& engine_;
  engine::Lane& lane_;
  engine::Client client_;
  protocol::RequestParser parser_;
  // [begin_, end_) has come; up to applied_ everything was run; up to parsed_ it was looked at.
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t applied_ = 0;
  size_t parsed_ = 0;
  std::vector<std::string_view> words_;
  std::vector<Pending> pending_;
  std::vector<engine::Request> requests_;
  bool asked_ = false;
  std::string error_;
};

}  // namespace sava::replication
