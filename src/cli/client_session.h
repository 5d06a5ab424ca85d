// A conversation with one server: runs commands, prints their replies, and remembers what the
// connection's state is (database, user, transaction) so that the prompt tells it and a new
// connection gets it back.
//
// A command is sent at most once: after a loss nobody knows whether it ran, so it is reported and
// not repeated. A loss inside a transaction is reported before anything else is sent. Not thread
// safe.
#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/client_connection.h"
#include "cli/client_docs.h"
#include "cli/client_format.h"
#include "cli/client_options.h"

namespace sava::cli {

class Session {
 public:
  enum class Outcome : uint8_t {
    kOk,
    kErrorReply,  // the server refused; printed as the reply
    kFailed,      // no connection, or lost; told on `errors`
    kInterrupted,
  };

  // Replies go to `out`, the client's own messages to `errors`; both outlive the session.
  // `signals` is null outside a terminal session.
  Session(const Options& options, OutputMode mode, Signals* signals, std::FILE* out,
          std::FILE* errors);

  // Connects and sets user, protocol and database. Fails without a connection, and outside a
  // terminal session if the database cannot be had; other refusals are told and left to the
  // commands to come.
  base::Status Connect();

  // Connects if necessary, sends, prints. Subscriptions and MONITOR print until the connection ends
  // or the user interrupts.
  Outcome Run(const std::vector<std::string>& args);

  const Endpoint& endpoint() const { return endpoint_; }
  // Follow another server from now on.
  void Redirect(const Endpoint& endpoint);

  // "127.0.0.1:6379[2](TX)> "
  std::string Prompt() const;

  // Readable when OnIdle() has something to do; -1 if never.
  int idle_fd() const { return connection_.fd(); }

  // Prints what the server sent by itself; notices a lost connection.
  void OnIdle();

  // The docs, asked for once, on a connection of their own so that the session's state is not
  // disturbed. Empty, and asked for again next time, if the server cannot be reached or refuses.
  const CommandDocs& Docs();

  // How long the last command's reply took to come.
  std::chrono::nanoseconds elapsed() const { return elapsed_; }

 private:
  using Args = std::vector<std::string>;

  // AUTH if a password is known; a refusal is told.
  base::Status Authenticate(Connection* connection);
  // HELLO and SELECT as wanted. Without the right to (NOAUTH) they wait for AUTH.
  base::Status Settle();
  base::Status Ask(Connection* connection, const Args& args, Reply* reply);
  bool TakeReplyMode(const Args& args);
  Outcome ReadReplies(const Args& args);
  Outcome Stream(const Args& args);
  Outcome Lost(Connection::ReadStatus status, const Args& args);
  base::Status Observe(const Args& args, const Reply& reply);
  base::Status ObserveQueued(const Reply& reply);
  base::Status ObserveAuth(const std::string& user, const std::string& password);
  void Forget();
  void Print(std::string_view text);
  void Tell(const std::string& message);

  Endpoint endpoint_;
  std::string user_;
  std::optional<std::string> password_;
  int protocol_;          // wanted: 2 or 3
  bool protocol_chosen_;  // by the user, so that a refusal is worth telling
  int64_t wanted_database_;
  OutputMode mode_;
  Signals* signals_;
  std::FILE* out_;
  std::FILE* errors_;

  Connection connection_;
  int64_t database_ = 0;
  bool settled_ = false;  // HELLO and SELECT were sent on this connection
  bool in_transaction_ = false;
  std::vector<Args> queued_;  // the transaction's commands; empty ones do not touch our state
  bool replies_off_ = false;
  int replies_skipped_ = 0;
  std::chrono::nanoseconds elapsed_{0};
  CommandDocs docs_;
};

}  // namespace sava::cli
