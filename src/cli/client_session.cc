// Running commands and following what they do to the connection's state.
#include "cli/client_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace sava::cli {
namespace {

constexpr int kDocsTimeoutMs = 2000;
constexpr size_t kPrintBytes = size_t{64} << 10;

using Args = std::vector<std::string>;

bool Is(const Args& args, size_t i, std::string_view word) {
  return i < args.size() && base::EqualsNoCase(args[i], word);
}

bool IsOneOf(const Args& args, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return Is(args, 0, name); });
}

bool IsStreaming(const Args& args) {
  return IsOneOf(args, {"subscribe", "psubscribe", "ssubscribe", "monitor"});
}

bool IsUnsubscribing(const Args& args) {
  return IsOneOf(args, {"unsubscribe", "punsubscribe", "sunsubscribe"});
}

bool SetsState(const Args& args) { return IsOneOf(args, {"select", "auth", "hello", "reset"}); }

// Replies that are pages for people to read, so that quoting would only spoil them.
bool AnswersWithText(const Args& args) {
  struct Page {
    std::string_view command;
    std::string_view subcommand;  // empty: whatever follows
  };
  constexpr Page kPages[] = {
      {"info", ""},         {"lolwut", ""},
      {"client", "list"},   {"client", "info"},
      {"cluster", "nodes"}, {"cluster", "info"},
      {"latency", "graph"}, {"latency", "doctor"},
      {"memory", "doctor"}, {"memory", "malloc-stats"},
      {"debug", "htstats"}, {"debug", "htstats-key"},
  };
  return std::any_of(std::begin(kPages), std::end(kPages), [&](const Page& page) {
    return Is(args, 0, page.command) && (page.subcommand.empty() || Is(args, 1, page.subcommand));
  });
}

bool LacksAuth(const Reply& reply) { return reply.is_error() && reply.text.starts_with("NOAUTH"); }

}  // namespace

Session::Session(const Options& options, OutputMode mode, Signals* signals, std::FILE* out,
                 std::FILE* errors)
    : endpoint_(options.endpoint),
      user_(options.user),
      password_(options.password),
      protocol_(options.protocol != 0       ? options.protocol
                : mode == OutputMode::kJson ? 3
                                            : 2),
      protocol_chosen_(options.protocol != 0),
      wanted_database_(options.database),
      mode_(mode),
      signals_(signals),
      out_(out),
      errors_(errors),
      connection_(signals) {}

void Session::Tell(const std::string& message) {
  std::fflush(out_);
  fmt::print(errors_, "{}\n", message);
  std::fflush(errors_);
}

// In pieces, so that Ctrl-C stops a reply too long to watch.
void Session::Print(std::string_view text) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, kPrintBytes);
    std::fwrite(piece.data(), 1, piece.size(), out_);
    text.remove_prefix(piece.size());
    if (!text.empty() && signals_ != nullptr && signals_->TakeInterrupt()) {
      std::fputs("...\n", out_);
      break;
    }
  }
  std::fflush(out_);
}

void Session::Forget() {
  database_ = 0;
  settled_ = false;
  in_transaction_ = false;
  queued_.clear();
  replies_off_ = false;
  replies_skipped_ = 0;
}

base::Status Session::Ask(Connection* connection, const Args& args, Reply* reply) {
  if (base::Status sent = connection->Send(args); !sent.ok()) return sent;
  do {
    if (connection->Read(reply) != Connection::ReadStatus::kReply) {
      return base::Error{connection->error()};
    }
  } while (reply->type == ReplyType::kPush);
  return {};
}

base::Status Session::Authenticate(Connection* connection) {
  if (!password_) return {};
  Args auth = {"AUTH"};
  if (!user_.empty()) auth.push_back(user_);
  auth.push_back(*password_);
  Reply reply;
  if (base::Status asked = Ask(connection, auth, &reply); !asked.ok()) return asked;
  if (reply.is_error() && connection == &connection_) Tell("AUTH failed: " + reply.text);
  return {};
}

base::Status Session::Settle() {
  Reply reply;
  if (protocol_ == 3) {
    if (base::Status asked = Ask(&connection_, {"HELLO", "3"}, &reply); !asked.ok()) return asked;
    if (LacksAuth(reply)) return {};
    if (reply.is_error() && protocol_chosen_) Tell("HELLO 3 failed: " + reply.text);
  }
  if (wanted_database_ != 0) {
    const std::string number = std::to_string(wanted_database_);
    if (base::Status asked = Ask(&connection_, {"SELECT", number}, &reply); !asked.ok()) {
      return asked;
    }
    if (LacksAuth(reply)) return {};
    if (reply.is_error()) {
      const std::string message = fmt::format("SELECT {} failed: {}", number, reply.text);
      if (signals_ == nullptr) return base::Error{message};
      Tell(message);
      wanted_database_ = 0;
    }
  }
  database_ = wanted_database_;
  settled_ = true;
  return {};
}

base::Status Session::Connect() {
  Forget();
  base::Status status = connection_.Open(endpoint_);
  if (!status.ok()) {
    return base::Error{
        fmt::format("Could not connect to {}: {}", endpoint_.Text(), status.error())};
  }
  status = Authenticate(&connection_);
  if (status.ok()) status = Settle();
  if (!status.ok()) connection_.Close();
  return status;
}

void Session::Redirect(const Endpoint& endpoint) {
  endpoint_ = endpoint;
  connection_.Close();
  docs_ = CommandDocs();
  Forget();
}

std::string Session::Prompt() const {
  if (!connection_.is_open()) return "not connected> ";
  std::string prompt = endpoint_.Text();
  if (database_ != 0) prompt += fmt::format("[{}]", database_);
  if (in_transaction_) prompt += "(TX)";
  return prompt + "> ";
}

void Session::OnIdle() {
  const bool was_open = connection_.is_open();
  for (const Reply& reply : connection_.ReadAvailable()) Print(FormatPush(reply, mode_));
  if (was_open && !connection_.is_open() && in_transaction_) {
    Tell("Connection lost, and the transaction with it: " + connection_.error());
    Forget();
  }
}

// Keeps count of CLIENT REPLY; false if the server will not answer this command.
bool Session::TakeReplyMode(const Args& args) {
  const bool skipped = replies_skipped_ > 0;
  if (skipped) --replies_skipped_;
  if (Is(args, 0, "client") && Is(args, 1, "reply") && !in_transaction_) {
    if (Is(args, 2, "on")) replies_off_ = false;
    if (Is(args, 2, "off")) replies_off_ = true;
    if (Is(args, 2, "skip") && !replies_off_) {
      replies_skipped_ = 1;
      return false;
    }
  }
  return !replies_off_ && !skipped;
}

Session::Outcome Session::Run(const Args& args) {
  const bool in_transaction = in_transaction_;
  OnIdle();
  if (!connection_.is_open()) {
    if (in_transaction) return Outcome::kFailed;
    if (base::Status status = Connect(); !status.ok()) {
      Tell(status.error());
      return Outcome::kFailed;
    }
  }
  elapsed_ = {};
  if (base::Status sent = connection_.Send(args); !sent.ok()) {
    return Lost(Connection::ReadStatus::kClosed, args);
  }
  if (!TakeReplyMode(args)) return Outcome::kOk;
  return IsStreaming(args) ? Stream(args) : ReadReplies(args);
}

Session::Outcome Session::ReadReplies(const Args& args) {
  // With RESP3 the answer to UNSUBSCRIBE is a push, and there is one for each channel.
  const bool pushes_answer = IsUnsubscribing(args);
  size_t missing = pushes_answer ? std::max<size_t>(args.size() - 1, 1) : 1;
  Outcome outcome = Outcome::kOk;
  const auto start = std::chrono::steady_clock::now();
  while (missing > 0) {
    Reply reply;
    const Connection::ReadStatus status = connection_.Read(&reply);
    elapsed_ = std::chrono::steady_clock::now() - start;
    if (status != Connection::ReadStatus::kReply) return Lost(status, args);
    if (reply.type == ReplyType::kPush && !pushes_answer) {
      // A script that reads our output did not ask for these.
      if (mode_ == OutputMode::kTerminal || signals_ != nullptr) Print(FormatPush(reply, mode_));
      continue;
    }
    --missing;
    if (reply.is_error() || reply.is_status("QUEUED")) missing = 0;
    if (reply.is_error()) outcome = Outcome::kErrorReply;
    const base::Status observed = Observe(args, reply);
    const bool is_page = mode_ != OutputMode::kJson && AnswersWithText(args) &&
                         (reply.type == ReplyType::kString || reply.type == ReplyType::kVerbatim);
    Print(is_page ? FormatPage(reply) : FormatReply(reply, mode_));
    if (!observed.ok()) {
      Tell(observed.error());
      return Outcome::kFailed;
    }
  }
  return outcome;
}

Session::Outcome Session::Stream(const Args& args) {
  if (signals_ != nullptr && !in_transaction_) {
    Print("Reading messages... (press Ctrl-C to stop)\n");
  }
  while (true) {
    Reply reply;
    const Connection::ReadStatus status = connection_.Read(&reply);
    if (status != Connection::ReadStatus::kReply) return Lost(status, args);
    Print(FormatPush(reply, mode_));
    if (reply.is_error()) return Outcome::kErrorReply;
    if (reply.is_status("QUEUED")) {
      queued_.emplace_back();
      return Outcome::kOk;
    }
  }
}

Session::Outcome Session::Lost(Connection::ReadStatus status, const Args& args) {
  if (status == Connection::ReadStatus::kInterrupted) {
    // Whatever the server was to send belongs to no one now: begin anew on a clean connection.
    Print("\n");
    if (!signals_->terminated()) {
      if (base::Status connected = Connect(); !connected.ok()) Tell(connected.error());
    }
    return Outcome::kInterrupted;
  }
  const bool in_transaction = in_transaction_;
  Forget();
  if (Is(args, 0, "shutdown")) return Outcome::kOk;
  const char* effect = in_transaction && !Is(args, 0, "exec")
                           ? "the transaction is gone"
                           : "whether the command ran is not known";
  Tell(fmt::format("Error: {} ({})", connection_.error(), effect));
  return Outcome::kFailed;
}

base::Status Session::Observe(const Args& args, const Reply& reply) {
  if (in_transaction_ && reply.is_status("QUEUED")) {
    queued_.push_back(SetsState(args) ? args : Args());
    return {};
  }
  if (Is(args, 0, "exec") || Is(args, 0, "discard")) return ObserveQueued(reply);
  if (reply.is_error()) return {};
  if (Is(args, 0, "multi")) in_transaction_ = true;
  if (Is(args, 0, "select") && args.size() == 2 && base::ParseInt(args[1], &database_)) {
    wanted_database_ = database_;
  }
  if (Is(args, 0, "reset")) {
    Forget();
    wanted_database_ = 0;
    settled_ = true;
  }
  if (Is(args, 0, "auth") && args.size() == 2) return ObserveAuth("", args[1]);
  if (Is(args, 0, "auth") && args.size() == 3) return ObserveAuth(args[1], args[2]);
  if (Is(args, 0, "hello") && args.size() > 1) {
    protocol_ = args[1] == "3" ? 3 : 2;
    for (size_t i = 2; i + 2 < args.size(); ++i) {
      if (Is(args, i, "auth")) return ObserveAuth(args[i + 1], args[i + 2]);
    }
  }
  return {};
}

// The end of a transaction: by DISCARD, by EXEC, or by an EXEC that aborts. A malformed EXEC is
// not.
base::Status Session::ObserveQueued(const Reply& reply) {
  if (reply.is_error() && !reply.text.starts_with("EXECABORT")) return {};
  const std::vector<Args> commands = std::exchange(queued_, {});
  in_transaction_ = false;
  if (reply.type != ReplyType::kArray || reply.elements.size() != commands.size()) return {};
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].empty()) continue;
    if (base::Status status = Observe(commands[i], reply.elements[i]); !status.ok()) return status;
  }
  return {};
}

base::Status Session::ObserveAuth(const std::string& user, const std::string& password) {
  user_ = user;
  password_ = password;
  return settled_ ? base::Status() : Settle();
}

const CommandDocs& Session::Docs() {
  if (!docs_.empty()) return docs_;
  Connection side(nullptr, kDocsTimeoutMs);
  if (!side.Open(endpoint_).ok() || !Authenticate(&side).ok()) return docs_;
  Reply reply;
  if (!Ask(&side, {"COMMAND", "DOCS"}, &reply).ok()) return docs_;
  if (reply.is_error() && !Ask(&side, {"COMMAND"}, &reply).ok()) return docs_;
  if (!reply.is_error()) docs_ = CommandDocs::FromReply(reply);
  return docs_;
}

}  // namespace sava::cli
