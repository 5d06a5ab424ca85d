#include "replication/replica_link.h"

#include <fmt/format.h>
#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/alternate_stack.h"
#include "base/text.h"
#include "base/version.h"
#include "net/connect.h"

namespace sava::replication {

namespace {

constexpr int64_t kRetryMs = 1000;
constexpr int64_t kQuickRetryMs = 100;
constexpr int64_t kLongestBackOffMs = 60000;
// A thread that has nothing to do looks around so often.
constexpr int64_t kIdleMs = 500;

}  // namespace

std::string ReplicaLink::CommandOf(std::span<const std::string_view> words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words) {
    fmt::format_to(std::back_inserter(text), "${}\r\n", word.size());
    text.append(word).append("\r\n");
  }
  return text;
}

std::string_view ReplicaLink::Name(State state) {
  static constexpr std::string_view kNames[] = {"none",      "connect", "connecting",
                                                "handshake", "sync",    "connected"};
  return kNames[static_cast<size_t>(state)];
}

ReplicaLink::ReplicaLink(engine::Engine* engine, persistence::Persistence* persistence,
                         Stream* stream)
    : engine_(*engine), persistence_(*persistence), stream_(*stream) {
  engine_.apply_lane().mailbox.set_wake([this] { waker_.Wake(); });
}

ReplicaLink::~ReplicaLink() {
  Stop();
  engine_.apply_lane().mailbox.set_wake(nullptr);
}

// ---- what others ask for ----

void ReplicaLink::Start() {
  if (thread_.joinable()) return;
  stopping_.store(false);
  thread_ = std::thread([this] {
    const base::AlternateStack stack;
    pthread_setname_np(pthread_self(), "sava-replica");
    Run();
  });
}

void ReplicaLink::Stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  waker_.Wake();
  thread_.join();
  engine_.role().set_linked(false);
}

void ReplicaLink::Follow(const std::string& host, int port, std::function<void(bool)> taken) {
  {
    const std::lock_guard lock(mutex_);
    target_ = {host, port, number_.fetch_add(1) + 1, std::move(taken)};
    figures_.state = host.empty() ? State::kNone : State::kConnect;
    figures_.down_since_ms = host.empty() ? 0 : NowMs();
    figures_.last_error.clear();
  }
  engine_.role().set_linked(false);
  waker_.Wake();
}

void ReplicaLink::FollowNobody() { Follow({}, 0); }

void ReplicaLink::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  waker_.Wake();
}

void ReplicaLink::DoPosted() {
  std::vector<std::function<void()>> works;
  {
    const std::lock_guard lock(mutex_);
    works.swap(posted_);
  }
  for (const auto& work : works) engine_.Exclusively(engine_.apply_lane(), work);
}

void ReplicaLink::SetResumable(bool on, int db) {
  resumable_.store(on);
  db_.store(db);
}

void ReplicaLink::UseTls(std::shared_ptr<const net::TlsContext> tls) {
  const std::lock_guard lock(mutex_);
  tls_ = std::move(tls);
}

void ReplicaLink::ComeFrom(std::string address) {
  const std::lock_guard lock(mutex_);
  source_ = std::move(address);
}

ReplicaLink::Figures ReplicaLink::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

// ---- the thread ----

ReplicaLink::Target ReplicaLink::Wanted() const {
  const std::lock_guard lock(mutex_);
  return target_;
}

void ReplicaLink::SetState(State state) {
  const std::lock_guard lock(mutex_);
  if (figures_.state == State::kConnected && state != State::kConnected) {
    figures_.down_since_ms = NowMs();
  }
  figures_.state = state;
}

void ReplicaLink::Fail(std::string text) {
  spdlog::warn("{}", text);
  const std::lock_guard lock(mutex_);
  figures_.last_error = std::move(text);
}

void ReplicaLink::Run() {
  while (!stopping_.load()) {
    DoPosted();
    waker_.Drain();
    static_cast<void>(engine_.apply_lane().mailbox.Take());
    const Target target = Wanted();
    if (target.host.empty() || persistence_.loading()) {
      waker_.Wait(target.host.empty() ? kIdleMs : 20);
      continue;
    }
    End end = End::kFailed;
    try {
      end = Attempt(target);
    } catch (const std::bad_alloc&) {
      SetResumable(false, 0);  // what was applied and not noted would be applied again
      Fail("Out of memory on the link to the master");
    }
    if (target.taken) HandoverFailed(target);
    if (!Current(target.number)) {
      back_off_ms_ = 0;
      continue;
    }
    engine_.role().set_linked(false);
    SetState(State::kConnect);
    Pause(end);
  }
}

// Before the next attempt. A link that broke is made again at once, unless that was done just now.
void ReplicaLink::Pause(End end) {
  switch (end) {
    case End::kBroke:
      back_off_ms_ = NowMs() - attempt_ms_ < kRetryMs ? kQuickRetryMs : 0;
      break;
    case End::kFailed:
      back_off_ms_ = kRetryMs;
      break;
    case End::kRefused:
      back_off_ms_ = std::clamp(2 * back_off_ms_, kRetryMs, kLongestBackOffMs);
      break;
  }
  const int64_t until = NowMs() + back_off_ms_;
  const uint64_t number = number_.load();
  while (NowMs() < until && Current(number)) waker_.Wait(until - NowMs());
}

void ReplicaLink::ReadWishes() {
  engine::Lane& lane = engine_.apply_lane();
  engine_.BeginBatch(lane);
  const config::Settings& settings = engine_.settings();
  wishes_.masterauth = settings.masterauth;
  wishes_.masteruser = settings.masteruser;
  wishes_.announce_ip = settings.replica_announce_ip;
  wishes_.dir = settings.dir;
  wishes_.tls = settings.tls_replication;
  wishes_.own_port = settings.replica_announce_port != 0 ? settings.replica_announce_port
                     : settings.tls_replication && settings.tls_port != 0 ? settings.tls_port
                                                                          : settings.port;
  wishes_.timeout_ms = settings.repl_timeout * 1000;
  wishes_.nodelay = !settings.repl_disable_tcp_nodelay;
  ignores_disk_ = settings.replica_ignore_disk_write_errors;
  const storage::AofLog* const log = persistence_.log();
  has_log_ = log != nullptr;
  durable_ = has_log_ ? log->durable() : 0;
  disk_fails_ = has_log_ && log->state() == storage::AofLog::State::kWriteFailed;
  engine_.EndBatch(lane);
}

ReplicaLink::End ReplicaLink::Attempt(const Target& target) {
  attempt_ms_ = NowMs();
  ReadWishes();
  SetState(State::kConnecting);
  ReplicaWire wire(&waker_, &received_);
  if (!Connect(target, wire)) return End::kFailed;
  SetState(State::kHandshake);
  Answer answer;
  if (!Greet(wire) || !Ask(target, wire, &answer) || !Current(target.number)) return End::kFailed;
  const bool may_continue = answer.kind == Answer::Kind::kContinue;
  if (target.taken) {
    // From here on it is followed as any master is.
    const std::function<void(bool)> taken = target.taken;
    {
      const std::lock_guard lock(mutex_);
      if (target_.number == target.number) target_.taken = nullptr;
    }
    taken(true);
  }
  return may_continue ? Resume(target, wire, answer) : Sync(target, wire, answer);
}

bool ReplicaLink::Connect(const Target& target, ReplicaWire& wire) {
  spdlog::info("Connecting to MASTER {}:{}", target.host, target.port);
  const auto addresses = net::Resolve(target.host, target.port);
  if (!addresses) {
    Fail("Unable to connect to MASTER: " + addresses.error());
    return false;
  }
  std::shared_ptr<const net::TlsContext> tls;
  std::string source;
  {
    const std::lock_guard lock(mutex_);
    source = source_;
    if (wishes_.tls) tls = tls_;
  }
  if (wishes_.tls && tls == nullptr) {
    Fail("Unable to connect to MASTER: tls-replication has no certificates");
    return false;
  }
  if (const base::Status status = wire.ComeFrom(source); !status) {
    Fail("Unable to connect to MASTER: bind-source-addr: " + status.error());
    return false;
  }
  const std::vector<net::Address>& found = addresses.value();
  spdlog::info("MASTER <-> REPLICA sync started");
  ReplicaWire::Outcome outcome = ReplicaWire::Outcome::kWoken;
  while (outcome == ReplicaWire::Outcome::kWoken && Current(target.number)) {
    outcome = wire.Connect(found, target.host, tls, wishes_.timeout_ms);
  }
  if (outcome == ReplicaWire::Outcome::kDone) {
    wire.SetNoDelay(wishes_.nodelay);
    return true;
  }
  if (outcome == ReplicaWire::Outcome::kTimeout) Fail("Timeout connecting to the MASTER...");
  if (outcome == ReplicaWire::Outcome::kClosed) {
    Fail("Error condition on socket for SYNC: " + wire.error());
  }
  return false;
}

// The next line the master says; woken meanwhile, the thread waits on as long as the link is
// wanted. A master that has to wait itself sends empty lines: they count as a sign of life.
bool ReplicaLink::AwaitLine(ReplicaWire& wire, std::string* reply) {
  const uint64_t number = number_.load();
  uint64_t heard = received_.load();
  int64_t until = NowMs() + wishes_.timeout_ms;
  while (Current(number)) {
    const ReplicaWire::Outcome outcome = wire.ReadLine(reply, until - NowMs());
    if (outcome == ReplicaWire::Outcome::kDone) return true;
    if (outcome == ReplicaWire::Outcome::kWoken) continue;
    if (outcome == ReplicaWire::Outcome::kTimeout && received_.load() != heard) {
      heard = received_.load();
      until = NowMs() + wishes_.timeout_ms;
      continue;
    }
    Fail(outcome == ReplicaWire::Outcome::kTimeout
             ? "Timeout connecting to the MASTER..."
             : "I/O error reading from the MASTER: " + wire.error());
    return false;
  }
  return false;
}

bool ReplicaLink::Exchange(ReplicaWire& wire, std::span<const std::string_view> words,
                           std::string* reply) {
  return Send(wire, CommandOf(words)) && AwaitLine(wire, reply);
}

bool ReplicaLink::Send(ReplicaWire& wire, std::string_view text) {
  if (wire.Write(text, wishes_.timeout_ms) == ReplicaWire::Outcome::kDone) return true;
  Fail("Sending command to master in replication handshake: " + wire.error());
  return false;
}

bool ReplicaLink::Greet(ReplicaWire& wire) {
  std::string reply;
  const std::string_view ping[] = {"PING"};
  if (!Exchange(wire, ping, &reply)) return false;
  if (!reply.starts_with('+') && !reply.starts_with("-NOAUTH") && !reply.starts_with("-NOPERM") &&
      !reply.starts_with("-ERR operation not permitted")) {
    Fail(fmt::format("Error reply to PING from master: '{}'", reply));
    return false;
  }
  spdlog::info("Master replied to PING, replication can continue...");
  // The rest at once: each answer takes as long as the way there and back.
  std::string text;
  const std::string_view with_user[] = {"AUTH", wishes_.masteruser, wishes_.masterauth};
  const std::string_view plain[] = {"AUTH", wishes_.masterauth};
  const bool authenticates = !wishes_.masterauth.empty();
  if (authenticates) {
    text = wishes_.masteruser.empty() ? CommandOf(plain) : CommandOf(with_user);
  }
  const std::string port = base::IntText(wishes_.own_port);
  const std::string_view listening[] = {"REPLCONF", "listening-port", port};
  const std::string_view address[] = {"REPLCONF", "ip-address", wishes_.announce_ip};
  const std::string_view abilities[] = {"REPLCONF", "capa", "eof", "capa",
                                        "psync2",   "capa", "sava"};
  const std::string_view version[] = {"REPLCONF", "version", base::kRedisVersion};
  std::vector<std::span<const std::string_view>> lines = {listening};
  if (!wishes_.announce_ip.empty()) lines.emplace_back(address);
  lines.emplace_back(abilities);
  lines.emplace_back(version);
  for (const auto& line : lines) text += CommandOf(line);
  if (!Send(wire, text)) return false;
  if (authenticates) {
    if (!AwaitLine(wire, &reply)) return false;
    if (reply.starts_with('-')) {
      Fail(fmt::format("Unable to AUTH to MASTER: {}", reply));
      return false;
    }
  }
  for (const auto& line : lines) {
    if (!AwaitLine(wire, &reply)) return false;
    if (reply.starts_with('-')) {
      spdlog::info("(Non critical) Master does not understand REPLCONF {}: {}", line[1], reply);
    }
  }
  return true;
}

bool ReplicaLink::Ask(const Target& target, ReplicaWire& wire, Answer* answer) {
  const History history = stream_.history();
  const bool resumes = resumable_.load();
  const std::string id = resumes ? history.id : "?";
  const std::string offset = resumes ? base::IntText(history.offset + 1) : "-1";
  std::vector<std::string_view> words = {"PSYNC", id, offset};
  if (target.taken) words.emplace_back("FAILOVER");
  if (resumes) {
    spdlog::info("Trying a partial resynchronization (request {}:{}).", id, offset);
  } else {
    spdlog::info("Partial resynchronization not possible (no cached master)");
  }
  std::string reply;
  if (!Exchange(wire, words, &reply)) return false;
  const std::vector<std::string> parts =
      base::SplitArgs(reply).value_or(std::vector<std::string>());
  const std::string_view first = parts.empty() ? std::string_view() : std::string_view(parts[0]);
  if (first == "+FULLRESYNC") {
    answer->kind = Answer::Kind::kFull;
    if (parts.size() < 3 || !IsId(parts[1]) || !base::ParseInt(parts[2], &answer->offset) ||
        answer->offset < 0 || answer->offset > kMostOffset) {
      Fail("Master replied with wrong +FULLRESYNC syntax.");
      return false;
    }
    answer->id = parts[1];
    spdlog::info("Full resync from master: {}:{}", answer->id, answer->offset);
    return true;
  }
  if (first == "+CONTINUE") {
    if (!resumes) {
      Fail("The master goes on with a stream that this server does not have.");
      return false;
    }
    answer->kind = Answer::Kind::kContinue;
    if (parts.size() > 1 && IsId(parts[1])) answer->id = parts[1];
    spdlog::info("Successful partial resynchronization with master.");
    return true;
  }
  if (reply.starts_with("-NOMASTERLINK") || reply.starts_with("-LOADING")) {
    Fail(fmt::format("Master is currently unable to PSYNC but should be in the future: {}", reply));
    return false;
  }
  if (target.taken) {
    Fail(fmt::format("The target of the failover answers PSYNC with: {}", reply));
    return false;
  }
  if (!reply.starts_with("-ERR")) {
    Fail(fmt::format("Unexpected reply to PSYNC from master: {}", reply));
    return false;
  }
  spdlog::info("Master does not support PSYNC or is in error state (reply: {})", reply);
  spdlog::info("Retrying with SYNC...");
  const std::string_view sync[] = {"SYNC"};
  answer->kind = Answer::Kind::kOld;
  answer->id = NewId();
  if (wire.Write(CommandOf(sync), wishes_.timeout_ms) == ReplicaWire::Outcome::kDone) return true;
  Fail("I/O error writing to MASTER: " + wire.error());
  return false;
}

// The other did not become a master: this server is one again.
void ReplicaLink::HandoverFailed(const Target& target) {
  std::function<void(bool)> taken;
  {
    const std::lock_guard lock(mutex_);
    if (target_.number == target.number) taken = std::exchange(target_.taken, nullptr);
  }
  if (taken) taken(false);
}

}  // namespace sava::replication
