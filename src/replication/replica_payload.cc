#include "replication/replica_payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace sava::replication {

namespace {

constexpr size_t kLongestHeader = 256;
constexpr std::string_view kMagic = "REDIS";
constexpr size_t kHead = 9;  // the magic and four digits
constexpr int64_t kLastVersion = 12;

// Four digits, with zeros in front; -1: they are none.
int64_t VersionOf(std::string_view digits) {
  int64_t version = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return -1;
    version = version * 10 + (digit - '0');
  }
  return version;
}

}  // namespace

ReplicaPayload::Outcome ReplicaPayload::Fail(std::string text) {
  if (error_.empty()) error_ = std::move(text);
  return Outcome::kFailed;
}

ReplicaPayload::Outcome ReplicaPayload::Take(std::string_view bytes, size_t* used) {
  *used = 0;
  if (!error_.empty()) return Outcome::kFailed;
  if (done_) return Outcome::kDone;
  if (form_ == Form::kNone && !TakeHeader(bytes, used)) {
    return error_.empty() ? Outcome::kMore : Outcome::kFailed;
  }
  bytes.remove_prefix(*used);
  if (form_ == Form::kMarked) return TakeMarked(bytes, used);
  const auto part = static_cast<size_t>(
      std::min<uint64_t>(bytes.size(), static_cast<uint64_t>(total_ - received_)));
  *used += part;
  if (!Emit(bytes.substr(0, part))) return Outcome::kFailed;
  return received_ == total_ ? Finish() : Outcome::kMore;
}

// True when the header is complete.
bool ReplicaPayload::TakeHeader(std::string_view bytes, size_t* used) {
  while (*used < bytes.size()) {
    const char next = bytes[(*used)++];
    if (next != '\n') {
      line_.push_back(next);
      if (line_.size() <= kLongestHeader) continue;
      Fail("the master's answer has no end");
      return false;
    }
    if (line_.ends_with('\r')) line_.pop_back();
    if (!line_.empty()) return ReadHeader();
  }
  return false;
}

bool ReplicaPayload::ReadHeader() {
  const std::string line = std::exchange(line_, {});
  if (line[0] == '-') {
    Fail("MASTER aborted replication with an error: " + line.substr(1));
    return false;
  }
  if (line.starts_with("$EOF:") && line.size() == 5 + kMark) {
    form_ = Form::kMarked;
    mark_ = line.substr(5);
    return true;
  }
  int64_t length = 0;
  if (line[0] != '$' || !base::ParseInt(std::string_view(line).substr(1), &length) || length < 0) {
    Fail(
        fmt::format("Bad protocol from MASTER, the first byte is not '$' (we received '{}'), are "
                    "you sure the host and port are right?",
                    line.substr(0, 64)));
    return false;
  }
  form_ = Form::kLength;
  total_ = length;
  return true;
}

ReplicaPayload::Outcome ReplicaPayload::TakeMarked(std::string_view bytes, size_t* used) {
  const size_t before = tail_.size();
  std::string all = std::exchange(tail_, {});
  all.append(bytes);
  if (const size_t at = all.find(mark_); at != std::string::npos) {
    *used += at + kMark - before;
    return Emit(std::string_view(all).substr(0, at)) ? Finish() : Outcome::kFailed;
  }
  const size_t kept = std::min(all.size(), kMark - 1);
  *used += bytes.size();
  if (!Emit(std::string_view(all).substr(0, all.size() - kept))) return Outcome::kFailed;
  tail_ = all.substr(all.size() - kept);
  return Outcome::kMore;
}

bool ReplicaPayload::Emit(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (head_.size() < kHead && !JudgeHead(bytes)) return false;
  received_ += static_cast<int64_t>(bytes.size());
  const base::Status status = sink_(bytes);
  if (!status) Fail(status.error());
  return status.ok();
}

bool ReplicaPayload::JudgeHead(std::string_view bytes) {
  head_.append(bytes.substr(0, kHead - head_.size()));
  const size_t compared = std::min(head_.size(), kMagic.size());
  const int64_t version =
      head_.size() < kHead ? 0 : VersionOf(std::string_view(head_).substr(5, 4));
  const bool ours = std::string_view(head_).substr(0, compared) == kMagic.substr(0, compared);
  const bool readable = head_.size() < kHead || (version >= 1 && version <= kLastVersion);
  if (ours && readable) return true;
  refused_ = true;
  Fail(ours ? fmt::format("the master sends RDB version {}, and this server reads up to {}",
                          head_.substr(5), kLastVersion)
            : "the master sends no RDB file that this server reads");
  return false;
}

ReplicaPayload::Outcome ReplicaPayload::Finish() {
  if (head_.size() < kHead) return Fail("the master's RDB file has no beginning");
  done_ = true;
  total_ = received_;
  return Outcome::kDone;
}

}  // namespace sava::replication
