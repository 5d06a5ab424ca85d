#include "cli/sync_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace sava::cli {

namespace {

// No line of the conversation is longer.
constexpr size_t kLongestLine = 1024;
constexpr size_t kMark = 40;

}  // namespace

// ---- what comes ----

base::Status SyncParser::Line(std::string_view line) {
  if (line.empty()) return {};  // it is still getting ready
  if (state_ == State::kAnswer) {
    if (line.starts_with("+FULLRESYNC ")) {
      state_ = State::kLength;
      return {};
    }
    if (line.front() == '-')
      return base::Error{fmt::format("the server refuses: {}", line.substr(1))};
    return base::Error{fmt::format("the server does not send its data, but: {}", line)};
  }
  if (line.starts_with("$EOF:") && line.size() == 5 + kMark) {
    mark_ = line.substr(5);
    state_ = State::kBytes;
    return {};
  }
  int64_t size = 0;
  if (line.front() != '$' || !base::ParseInt(line.substr(1), &size) || size < 0) {
    return base::Error{fmt::format("the server does not send its data, but: {}", line)};
  }
  total_ = static_cast<uint64_t>(size);
  state_ = size == 0 ? State::kDone : State::kBytes;
  return {};
}

base::Status SyncParser::HandOn(std::string_view bytes) {
  received_ += bytes.size();
  return bytes.empty() ? base::Status() : sink_(bytes);
}

base::Status SyncParser::Bytes(std::string_view bytes) {
  if (total_) {
    bytes = bytes.substr(0, std::min<uint64_t>(bytes.size(), *total_ - received_));
    if (base::Status status = HandOn(bytes); !status) return status;
    if (received_ == *total_) state_ = State::kDone;
    return {};
  }
  // The last bytes are kept back until it is known that they are not the mark.
  tail_ += bytes;
  if (tail_.size() < kMark) return {};
  const bool end = std::string_view(tail_).ends_with(mark_);
  const size_t ready = tail_.size() - kMark;
  if (base::Status status = HandOn(std::string_view(tail_).substr(0, ready)); !status)
    return status;
  tail_.erase(0, ready);
  if (end) state_ = State::kDone;
  return {};
}

base::Status SyncParser::Feed(std::string_view bytes) {
  while (!bytes.empty() && !done()) {
    if (state_ == State::kBytes) return Bytes(bytes);
    const size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kLongestLine) return base::Error{"the server's answer has no end"};
    if (end == std::string_view::npos) return {};
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    const std::string line = std::exchange(line_, {});
    if (base::Status status = Line(line); !status) return status;
  }
  return {};
}

// ---- the conversation ----

base::Status SyncClient::Ask(const std::vector<std::string>& words, Reply* reply) {
  if (base::Status sent = connection_.Send(words); !sent) return sent;
  if (connection_.Read(reply) == Connection::ReadStatus::kReply) return {};
  return base::Error{connection_.error()};
}

base::Status SyncClient::Fetch(
    const Options& options, const SyncParser::Sink& sink,
    const std::function<void(uint64_t, std::optional<uint64_t>)>& progress) {
  if (base::Status open = connection_.Open(options.endpoint); !open) return open;
  Reply reply;
  if (options.password) {
    std::vector<std::string> words = {"AUTH"};
    if (!options.user.empty()) words.push_back(options.user);
    words.push_back(*options.password);
    if (base::Status asked = Ask(words, &reply); !asked) return asked;
    if (reply.is_error()) return base::Error{reply.text};
  }
  // A server that does not know one of these goes on without.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "sava"},
        std::vector<std::string>{"REPLCONF", "rdb-only", "1"}}) {
    if (base::Status asked = Ask(words, &reply); !asked) return asked;
    if (reply.is_error() && reply.text.starts_with("NO")) return base::Error{reply.text};
  }
  if (base::Status sent = connection_.Send({"PSYNC", "?", "-1"}); !sent) return sent;
  SyncParser parser(sink);
  std::string bytes;
  while (!parser.done()) {
    bytes.clear();
    if (connection_.ReadRaw(&bytes) != Connection::ReadStatus::kReply) {
      return base::Error{connection_.error()};
    }
    if (base::Status status = parser.Feed(bytes); !status) return status;
    progress(parser.received(), parser.total());
  }
  connection_.Close();
  return {};
}

}  // namespace sava::cli
