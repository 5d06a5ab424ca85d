#include "replication/migration.h"

#include <fmt/format.h>
#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/if_memory.h"
#include "base/text.h"
#include "commands/errors.h"
#include "net/connect.h"

namespace sava::replication {

namespace {

// After waiting for this long a thread looks whether it is to end.
constexpr int64_t kSliceMs = 100;
constexpr size_t kChunk = 64 << 10;
// As much of a target's error as the client is told.
constexpr size_t kLongestError = 1000;

void AppendWord(std::string* out, std::string_view word) {
  *out += fmt::format("${}\r\n", word.size());
  *out += word;
  *out += "\r\n";
}

}  // namespace

Migration::~Migration() {
  if (thread_.joinable()) thread_.join();
}

void Migration::Start() {
  try {
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "sava-migrate");
      TravelHere();
      End();
    });
  } catch (const std::system_error&) {
    error = "ERR MIGRATE cannot start a thread";
    End();
  }
}

void Migration::TravelHere() {
  if (!base::IfMemory([this] { Travel(); })) error = commands::errors::kNoMemory;
}

void Migration::Stop() {
  stop_.store(true);
  waker_.Wake();
}

// Has the command run again, on its client's loop.
void Migration::End() noexcept {
  done_.store(true, std::memory_order_release);
  waiter->wake_at_ms.store(1, std::memory_order_release);
  std::list<engine::Mail> mail;
  while (!base::IfMemory([&] {
    mail.push_back(
        {engine::Mail::Kind::kAlarm, waiter->asker.client, nullptr, waiter->asker.token});
  })) {
    std::this_thread::yield();
  }
  engine_.lanes()[waiter->asker.lane]->mailbox.Post(std::move(mail));
}

// ---- the migration's own thread ----

bool Migration::Broken(std::string_view doing) {
  // What the target itself has said tells more.
  if (error.empty()) error = fmt::format("IOERR error or timeout {} to target instance", doing);
  return false;
}

bool Migration::Connect() {
  const auto unreachable = [this] {
    error = "IOERR error or timeout connecting to the client";
    return false;
  };
  if (target_.port < 0 || target_.port > 65535) return unreachable();
  auto addresses = net::Resolve(target_.host, static_cast<int>(target_.port));
  if (!addresses || stop_.load()) return unreachable();
  switch (wire_.Connect(*addresses, target_.host, tls_, target_.timeout_ms)) {
    case ReplicaWire::Outcome::kDone:
      return true;
    case ReplicaWire::Outcome::kClosed:  // refused: Redis finds out when it writes
      return Broken("writing");
    case ReplicaWire::Outcome::kWoken:
    case ReplicaWire::Outcome::kTimeout:
      break;
  }
  return unreachable();
}

// As long as bytes leave it goes on; the timeout counts from the last that did.
bool Migration::Send(std::string_view bytes) {
  int64_t waited = 0;
  while (!bytes.empty()) {
    const int64_t slice = std::min(kSliceMs, target_.timeout_ms - waited);
    const uint64_t before = wire_.sent();
    const auto outcome = wire_.Write(bytes.substr(0, kChunk), slice);
    const uint64_t sent = wire_.sent() - before;
    bytes.remove_prefix(sent);
    waited = sent > 0 ? 0 : waited + slice;
    if (outcome == ReplicaWire::Outcome::kClosed || stop_.load() || waited >= target_.timeout_ms) {
      return Broken("writing");
    }
  }
  return true;
}

bool Migration::Command(std::initializer_list<std::string_view> words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words) AppendWord(&text, word);
  return Send(text);
}

// False: the connection is of no use any more. An error of the target is noted, the first one.
bool Migration::ReadAnswer(bool* accepted) {
  std::string line;
  if (wire_.ReadLine(&line, target_.timeout_ms) != ReplicaWire::Outcome::kDone) {
    return Broken("reading");
  }
  *accepted = line.starts_with('+');
  if (*accepted || !error.empty()) return true;
  error = fmt::format("ERR Target instance replied with error: {}",
                      std::string_view(line).substr(0, kLongestError).substr(1));
  return true;
}

// Before keys are sent: large values are not for a server that refuses the password.
bool Migration::Prepare() {
  bool accepted = false;
  if (target_.authenticates) {
    const bool sent = target_.user.empty() ? Command({"AUTH", target_.password})
                                           : Command({"AUTH", target_.user, target_.password});
    if (!sent || !ReadAnswer(&accepted) || !accepted) return false;
  }
  return Command({"SELECT", base::IntText(target_.db)}) && ReadAnswer(&accepted) && accepted;
}

// Keys whose time is over by now are not sent.
bool Migration::SendKeys(std::vector<Key*>* sent) {
  for (Key& key : keys) {
    int64_t ttl = 0;
    if (key.expire_at != commands::kNoExpiry) {
      ttl = key.expire_at - engine_.clock().WallMillis();
      if (ttl < 0) continue;
      ttl = std::max<int64_t>(ttl, 1);
    }
    std::string head = target_.replace ? "*5\r\n" : "*4\r\n";
    AppendWord(&head, "RESTORE");
    AppendWord(&head, key.name);
    AppendWord(&head, base::IntText(ttl));
    head += fmt::format("${}\r\n", key.payload.size());
    if (!Send(head) || !Send(key.payload)) return false;
    if (!Send(target_.replace ? "\r\n$7\r\nREPLACE\r\n" : "\r\n")) return false;
    key.payload = {};
    sent->push_back(&key);
  }
  return true;
}

void Migration::Travel() {
  std::vector<Key*> sent;
  if (!Connect() || !Prepare() || !SendKeys(&sent)) return;
  for (Key* key : sent) {
    if (!ReadAnswer(&key->taken)) return;
  }
}

// ---- the list ----

Migrations::~Migrations() {
  for (const auto& one : under_way_) one->Stop();
  under_way_.clear();
}

void Migrations::UseTls(std::shared_ptr<const net::TlsContext> tls) {
  const std::lock_guard lock(mutex_);
  tls_ = std::move(tls);
}

std::shared_ptr<const net::TlsContext> Migrations::tls() const {
  const std::lock_guard lock(mutex_);
  return tls_;
}

bool Migrations::full() const {
  const std::lock_guard lock(mutex_);
  return under_way_.size() >= kMost;
}

void Migrations::Add(Place&& place) noexcept {
  const std::lock_guard lock(mutex_);
  under_way_.splice(under_way_.end(), place);
}

std::shared_ptr<Migration> Migrations::Take(uint64_t client) {
  const std::lock_guard lock(mutex_);
  for (auto at = under_way_.begin(); at != under_way_.end(); ++at) {
    if ((*at)->waiter->asker.client != client || !(*at)->done()) continue;
    taken_.splice(taken_.end(), under_way_, at);
    return taken_.back();
  }
  return nullptr;
}

void Migrations::Tick() {
  Place over;
  Place left;
  {
    const std::lock_guard lock(mutex_);
    over.swap(taken_);
    for (auto at = under_way_.begin(); at != under_way_.end();) {
      const auto one = at++;
      if ((*one)->waiter->state.load() != engine::Waiter::State::kClaimed) continue;
      (*one)->Stop();
      if ((*one)->done()) left.splice(left.end(), under_way_, one);
    }
  }
  for (const auto& one : left) {
    one->watched.End(*engine_.lanes()[0]);
    spdlog::warn(
        "MIGRATE: the client of {} keys did not wait for the end: they stay here, and may "
        "be at the target too.",
        one->keys.size());
  }
}

}  // namespace sava::replication
