#include "replication/replica_apply.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/if_memory.h"
#include "base/text.h"

namespace sava::replication {

namespace {

using engine::Request;

constexpr size_t kBatchCommands = 64;
constexpr size_t kBatchWords = 4096;
constexpr size_t kLeastRoom = 64 << 10;
constexpr size_t kMostRoom = 1 << 20;
// A buffer that has grown beyond it is given back when it is empty.
constexpr size_t kKeptBuffer = 4 << 20;
constexpr std::string_view kOutOfMemory = "-OOM not enough memory";

const protocol::ParseLimits kLimits{.max_bulk = INT64_MAX / 4, .authenticated = true};

}  // namespace

ReplicaApply::ReplicaApply(Options options)
    : options_(std::move(options)), engine_(*options_.engine), lane_(engine_.apply_lane()) {
  client_.id = engine_.NewClientId();
  client_.origin = engine::kFromMaster;
  client_.rate.exempt = true;
  client_.authenticated = true;
  client_.peer.fd = options_.fd;
  client_.peer.addr = options_.addr;
  client_.peer.laddr = options_.laddr;
  client_.db = options_.db->load();
  client_.activity.created_ms = client_.activity.last_active_ms = engine_.clock().WallMillis();
  client_.set(engine::kClientMaster);
  engine_.BeginBatch(lane_);
  engine_.AddClient(lane_, client_);
  engine_.EndBatch(lane_);
}

ReplicaApply::~ReplicaApply() {
  engine_.BeginBatch(lane_);
  engine_.RemoveClient(lane_, client_);
  engine_.EndBatch(lane_);
}

// ---- what has come ----

std::span<char> ReplicaApply::Room() {
  if (begin_ == end_) {
    begin_ = end_ = applied_ = parsed_ = 0;
    if (buffer_.size() > kKeptBuffer) buffer_ = {};
  }
  if (buffer_.size() - end_ >= kLeastRoom) return {buffer_.data() + end_, buffer_.size() - end_};
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    applied_ -= begin_;
    parsed_ -= begin_;
    begin_ = 0;
  }
  // As much again as there is: what a length announces is reserved only as it comes.
  const size_t more = std::clamp(end_, kLeastRoom, kMostRoom);
  if (buffer_.size() - end_ < kLeastRoom) buffer_.resize(end_ + std::max(more, end_ / 2));
  return {buffer_.data() + end_, buffer_.size() - end_};
}

void ReplicaApply::Came(size_t bytes) { end_ += bytes; }

void ReplicaApply::Came(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::span<char> room = Room();
    const size_t part = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), part);
    Came(part);
    bytes.remove_prefix(part);
  }
}

// ---- running it ----

// Finds the commands of the next batch. False when the bytes there are no command.
bool ReplicaApply::Parse() {
  words_.clear();
  pending_.clear();
  while (pending_.size() < kBatchCommands && words_.size() < kBatchWords && parsed_ < end_) {
    const std::string_view rest(buffer_.data() + parsed_, end_ - parsed_);
    if (rest[0] != '*' && rest[0] != '\n' && rest[0] != '\r') {
      error_ = "Receiving inline protocol from master, master stream corruption?";
      return false;
    }
    const size_t first = words_.size();
    size_t consumed = 0;
    switch (parser_.Next(rest, kLimits, &words_, &consumed)) {
      case protocol::RequestParser::Outcome::kError:
        error_ = parser_.error();
        return false;
      case protocol::RequestParser::Outcome::kMore:
        return true;
      case protocol::RequestParser::Outcome::kEmpty:
        parsed_ += consumed;
        SkipEmpty();
        continue;
      case protocol::RequestParser::Outcome::kCommand:
        break;
    }
    parsed_ += consumed;
    pending_.push_back({first, words_.size() - first, parsed_});
    // The keys of a batch are looked for in one database.
    if (words_.size() > first && base::EqualsNoCase(words_[first], "select")) return true;
  }
  return true;
}

// Bytes that say nothing count with the command before them.
void ReplicaApply::SkipEmpty() {
  if (!pending_.empty()) {
    pending_.back().end = parsed_;
  } else if (!client_.has(engine::kClientMulti)) {
    applied_ = parsed_;
  }
}

ReplicaApply::Outcome ReplicaApply::Run() {
  if (!options_.wanted()) return Outcome::kOver;
  if (options_.held()) return Outcome::kHeld;
  const size_t before = parsed_;
  const bool good = Parse();
  if (pending_.empty() && applied_ == begin_) {
    // Others set its flags with the gate closed.
    engine_.BeginBatch(lane_);
    const bool killed = over();
    engine_.EndBatch(lane_);
    if (killed) return Outcome::kOver;
    return good ? Outcome::kDone : Outcome::kBroken;
  }
  engine_.BeginBatch(lane_);
  if (lane_.batch.journal_full) {
    engine_.EndBatch(lane_);
    parsed_ = before;
    parser_.Reset();
    static_cast<void>(engine_.journal().MergeHere());
    return Outcome::kHeld;
  }
  const std::string stream_error = std::exchange(error_, {});  // what came before it counts
  RunPending();
  if (error_.empty()) error_ = stream_error;
  const bool gone = over();
  if (!gone) Settle();
  engine_.EndBatch(lane_);
  if (gone) return Outcome::kOver;
  if (!good || !error_.empty()) return Outcome::kBroken;
  return Outcome::kMore;
}

void ReplicaApply::RunPending() {
  requests_.clear();
  for (const Pending& pending : pending_) {
    Request request;
    request.client = &client_;
    request.args = {words_.data() + pending.first_word, pending.words};
    requests_.push_back(request);
  }
  client_.activity.last_active_ms = lane_.now_ms;
  client_.memory.query_bytes = end_ - begin_;
  client_.memory.query_capacity = buffer_.size();
  if (!requests_.empty() && !over()) engine_.Prepare(lane_, requests_);
  for (size_t i = 0; i < requests_.size() && !over() && error_.empty(); ++i) {
    if (!RunOne(requests_[i], pending_[i])) return;
  }
}

// False when the link is over.
bool ReplicaApply::RunOne(Request& request, const Pending& pending) {
  if (!Own(request.args)) {
    const uint64_t errors = lane_.stats.error_replies.get();
    if (!RunInEngine(request)) return false;
    if (lane_.stats.error_replies.get() != errors || !request.prepared) Judge(request);
    client_.out.TruncateTo(0);
    if (!error_.empty()) return false;
  }
  if (!client_.has(engine::kClientMulti)) applied_ = pending.end;
  return true;
}

// Others may close the gate while a lock is waited for.
bool ReplicaApply::RunInEngine(Request& request) {
  while (true) {
    engine_.RunBatch(lane_, {&request, 1});
    if (request.outcome == Request::Outcome::kDone) return true;
    // Whoever closes the gate meanwhile, for a copy or to change the role, finds an offset that
    // says what was applied.
    Settle();
    engine_.EndBatch(lane_);
    engine_.BeginBatch(lane_);
    if (over()) return false;
    engine_.ResumeWaiting(lane_);
    lane_.waits.TakeResumed();
    engine_.Prepare(lane_, requests_);
  }
}

// What the master asks of the link, not of the data.
bool ReplicaApply::Own(commands::Args words) {
  if (!base::EqualsNoCase(words[0], "replconf")) return false;
  if (words.size() > 1 && base::EqualsNoCase(words[1], "getack")) asked_ = true;
  return true;
}

// The master's command was answered with an error: the two differ.
void ReplicaApply::Judge(const Request& request) {
  std::string text(client_.out.Since(0));
  const size_t at = text.find('-');
  if (at != std::string::npos) text.erase(0, at);
  text.erase(std::min(text.find('\r'), text.size()));
  lane_.stats.unexpected_errors.Add();
  const std::string name(request.args[0].substr(0, 64));
  spdlog::critical(
      "== CRITICAL == This replica is sending an error to its master: '{}' after processing the "
      "command '{}'",
      text, name);
  const config::Settings& settings = engine_.settings();
  // Where clients write, too, the two differ anyway.
  if (settings.replica_read_only &&
      settings.propagation_error_behavior != config::PropagationError::kIgnore) {
    spdlog::critical("propagation-error-behavior says that this ends the server");
    spdlog::shutdown();
    std::abort();
  }
  if (!request.prepared || text.starts_with(kOutOfMemory)) {
    error_ = fmt::format("no memory for the master's command '{}'", name);
  }
}

// What was applied goes to this server's own replicas, and out of the buffer.
void ReplicaApply::Settle() {
  if (applied_ == begin_) return;
  const std::string_view applied(buffer_.data() + begin_, applied_ - begin_);
  if (!base::IfMemory([&] { options_.stream->AppendRaw(applied); }))
    error_ = "no memory for what the own replicas get";
  begin_ = applied_;
  options_.db->store(client_.db);
}

}  // namespace sava::replication
