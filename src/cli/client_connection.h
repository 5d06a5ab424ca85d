// One connection to a server: commands out, replies in, one after another.
//
// Every wait also watches the Signals given at construction (if any), so Ctrl-C ends a wait for a
// blocking command or a silent server. After any failure the connection is closed; what it was
// doing may or may not have happened on the server. Not thread safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client_options.h"
#include "cli/client_reply.h"
#include "cli/client_signals.h"
#include "net/tls_context.h"
#include "net/transport.h"

namespace sava::cli {

class Connection {
 public:
  enum class ReadStatus : uint8_t { kReply, kClosed, kInterrupted };

  // `signals` may be null. `timeout_ms` bounds each wait of a read or write; -1: none.
  explicit Connection(Signals* signals, int timeout_ms = -1)
      : signals_(signals), timeout_ms_(timeout_ms) {}
  ~Connection() { Close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Closes what was open and connects anew.
  base::Status Open(const Endpoint& endpoint);
  void Close();
  bool is_open() const { return fd_ >= 0; }

  // -1 if not open. Readable: ReadAvailable() has something to do.
  int fd() const { return fd_; }

  base::Status Send(const std::vector<std::string>& args);

  // Waits for the next reply or push. kClosed: error() says why.
  ReadStatus Read(Reply* reply);

  // Whole replies that have already come, without waiting. Closes if the server has gone.
  std::vector<Reply> ReadAvailable();

  // What comes next, whatever it is: at least a byte of it, appended. REQUIRES: no reply is due.
  // kClosed: error() says why.
  ReadStatus ReadRaw(std::string* bytes);

  const std::string& error() const { return error_; }

 private:
  enum class WaitStatus : uint8_t { kReady, kInterrupted, kTimeout };

  base::Status OpenUnix(const std::string& path);
  base::Status OpenTcp(const std::string& host, int port);
  // The socket is connected: from now on the transport has it.
  base::Status Carry(const Endpoint& endpoint);
  base::Status Shake();
  base::Status Connect(int family, const void* address, size_t length);
  // For POLLIN or POLLOUT, or what the transport needs for that.
  WaitStatus Wait(short events);
  void Fail(std::string message);
  // Of the transport's last failure.
  std::string Reason() const;
  // Bytes into the parser: false at the end of the stream, with error_ set.
  bool Receive();

  Signals* signals_;
  int timeout_ms_;
  int fd_ = -1;
  std::unique_ptr<net::Transport> transport_;
  std::shared_ptr<const net::TlsContext> tls_;
  ReplyParser parser_;
  std::string error_;
};

}  // namespace sava::cli
