// The client's session against a scripted server: what is sent, printed, remembered and repeated.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/client_session.h"

namespace sava::cli {
namespace {

using Args = std::vector<std::string>;

// Answers every command with what `answer` returns; "CLOSE" ends the connection instead. One
// connection at a time, in a thread that ends with the object.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<std::string(const Args&)> answer)
      : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  int port() const { return port_; }
  // The commands so far, words joined with blanks.
  std::vector<std::string> seen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }

 private:
  void Serve() {
    while (true) {
      const int peer = accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      Talk(peer);
      close(peer);
    }
  }
  void Talk(int peer) {
    ReplyParser parser;
    char bytes[4096];
    while (true) {
      Reply request;
      while (parser.Next(&request) != ReplyParser::Status::kReply) {
        const ssize_t count = recv(peer, bytes, sizeof bytes, 0);
        if (count <= 0) return;
        parser.Feed({bytes, static_cast<size_t>(count)});
      }
      Args args;
      std::string joined;
      for (const Reply& word : request.elements) {
        args.push_back(word.text);
        joined += (joined.empty() ? "" : " ") + word.text;
      }
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        seen_.push_back(joined);
      }
      const std::string reply = answer_(args);
      if (reply == "CLOSE") return;
      send(peer, reply.data(), reply.size(), MSG_NOSIGNAL);
    }
  }

  std::function<std::string(const Args&)> answer_;
  int listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<std::string> seen_;
  std::thread thread_;
};

class Sink {
 public:
  Sink() : file_(open_memstream(&text_, &size_)) {}
  ~Sink() {
    std::fclose(file_);
    std::free(text_);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

class CliSession : public testing::Test {
 protected:
  void Start(std::function<std::string(const Args&)> answer, Options options = {},
             OutputMode mode = OutputMode::kTerminal) {
    server_ = std::make_unique<ScriptedServer>(std::move(answer));
    options.endpoint.port = server_->port();
    address_ = options.endpoint.Text();
    session_ = std::make_unique<Session>(options, mode, nullptr, out_.file(), errors_.file());
  }
  ~CliSession() override { session_.reset(); }

  Sink out_;
  Sink errors_;
  std::string address_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Session> session_;
};

using Outcome = Session::Outcome;

TEST_F(CliSession, ConnectsByItselfAndPrints) {
  Start([](const Args& args) { return args[0] == "bad" ? "-ERR no\r\n" : "$1\r\nv\r\n"; });
  EXPECT_EQ(session_->Prompt(), "not connected> ");
  EXPECT_EQ(session_->Run({"GET", "k"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"bad"}), Outcome::kErrorReply);
  EXPECT_EQ(out_.text(), "\"v\"\n(error) ERR no\n");
  EXPECT_EQ(session_->Prompt(), address_ + "> ");
}

TEST_F(CliSession, SetsUserProtocolAndDatabaseOnEveryConnection) {
  Options options;
  options.user = "u";
  options.password = "p";
  options.protocol = 3;
  options.database = 4;
  Start([](const Args& args) { return args[0] == "die" ? "CLOSE" : "+OK\r\n"; }, options);
  EXPECT_EQ(session_->Run({"PING"}), Outcome::kOk);
  EXPECT_EQ(session_->Prompt(), address_ + "[4]> ");
  EXPECT_EQ(session_->Run({"SELECT", "7"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"die"}), Outcome::kFailed);
  EXPECT_EQ(session_->Run({"PING"}), Outcome::kOk);
  EXPECT_EQ(server_->seen(), (Args{"AUTH u p", "HELLO 3", "SELECT 4", "PING", "SELECT 7", "die",
                                   "AUTH u p", "HELLO 3", "SELECT 7", "PING"}));
}

TEST_F(CliSession, NeverSendsACommandTwice) {
  Start([](const Args& args) { return args[0] == "INCR" ? "CLOSE" : "+OK\r\n"; });
  EXPECT_EQ(session_->Run({"INCR", "k"}), Outcome::kFailed);
  EXPECT_EQ(server_->seen(), (Args{"INCR k"}));
  EXPECT_NE(errors_.text().find("whether the command ran is not known"), std::string::npos);
}

TEST_F(CliSession, FollowsTransactions) {
  Start([](const Args& args) -> std::string {
    if (args[0] == "MULTI" || args[0] == "DISCARD") return "+OK\r\n";
    if (args[0] == "EXEC") return args.size() > 1 ? "-ERR wrong number\r\n" : "*2\r\n+OK\r\n:1\r\n";
    return "+QUEUED\r\n";
  });
  session_->Run({"MULTI"});
  EXPECT_EQ(session_->Prompt(), address_ + "(TX)> ");
  session_->Run({"SELECT", "3"});
  session_->Run({"INCR", "k"});
  EXPECT_EQ(session_->Run({"EXEC", "odd"}), Outcome::kErrorReply);
  EXPECT_EQ(session_->Prompt(), address_ + "(TX)> ");
  session_->Run({"EXEC"});
  EXPECT_EQ(session_->Prompt(), address_ + "[3]> ");
  session_->Run({"MULTI"});
  session_->Run({"SELECT", "5"});
  session_->Run({"DISCARD"});
  EXPECT_EQ(session_->Prompt(), address_ + "[3]> ");
}

TEST_F(CliSession, ALostTransactionIsNotContinued) {
  Start([](const Args& args) -> std::string {
    if (args[0] == "SET") return "CLOSE";
    return args[0] == "MULTI" ? "+OK\r\n" : "+QUEUED\r\n";
  });
  session_->Run({"MULTI"});
  EXPECT_EQ(session_->Run({"SET", "k", "v"}), Outcome::kFailed);
  EXPECT_NE(errors_.text().find("the transaction is gone"), std::string::npos);
  EXPECT_EQ(session_->Prompt(), "not connected> ");
}

TEST_F(CliSession, WaitsForAuthBeforeItSelects) {
  Options options;
  options.database = 2;
  std::atomic<bool> known = false;
  Start(
      [&](const Args& args) {
        if (args[0] == "AUTH") known = true;
        return known ? "+OK\r\n" : "-NOAUTH Authentication required.\r\n";
      },
      options);
  EXPECT_EQ(session_->Run({"GET", "k"}), Outcome::kErrorReply);
  EXPECT_EQ(session_->Run({"AUTH", "pw"}), Outcome::kOk);
  EXPECT_EQ(server_->seen(), (Args{"SELECT 2", "GET k", "AUTH pw", "SELECT 2"}));
  EXPECT_EQ(session_->Prompt(), address_ + "[2]> ");
}

TEST_F(CliSession, AWrongDatabaseIsFatalForScripts) {
  Options options;
  options.database = 99;
  Start([](const Args& args) { return args[0] == "SELECT" ? "-ERR range\r\n" : "+OK\r\n"; },
        options);
  EXPECT_EQ(session_->Run({"FLUSHDB"}), Outcome::kFailed);
  EXPECT_EQ(server_->seen(), (Args{"SELECT 99"}));
}

TEST_F(CliSession, PushesDoNotCountAsReplies) {
  const auto answer = [](const Args&) { return ">2\r\n+invalidate\r\n*1\r\n+k\r\n:1\r\n"; };
  Start(answer);
  EXPECT_EQ(session_->Run({"SET"}), Outcome::kOk);
  EXPECT_EQ(out_.text(), "-> invalidate: \"k\"\n(integer) 1\n");
}

TEST_F(CliSession, ScriptsAreNotShownPushes) {
  Start([](const Args&) { return ">2\r\n+invalidate\r\n*1\r\n+k\r\n:1\r\n"; }, {},
        OutputMode::kRaw);
  EXPECT_EQ(session_->Run({"SET"}), Outcome::kOk);
  EXPECT_EQ(out_.text(), "1\n");
}

TEST_F(CliSession, JsonSpeaksResp3WhereTheServerCan) {
  Start([](const Args& args) { return args[0] == "HELLO" ? "-ERR unknown\r\n" : ":1\r\n"; }, {},
        OutputMode::kJson);
  EXPECT_EQ(session_->Run({"DBSIZE"}), Outcome::kOk);
  EXPECT_EQ(server_->seen(), (Args{"HELLO 3", "DBSIZE"}));
  EXPECT_EQ(out_.text(), "1\n");
  EXPECT_EQ(errors_.text(), "");
}

TEST_F(CliSession, UnsubscribeAnswersOncePerChannel) {
  Start([](const Args& args) {
    std::string out;
    if (args[0] == "PING") return std::string("+PONG\r\n");
    for (size_t i = 1; i < args.size(); ++i) out += ">3\r\n+unsubscribe\r\n+c\r\n:0\r\n";
    return out;
  });
  EXPECT_EQ(session_->Run({"UNSUBSCRIBE", "a", "b"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"PING"}), Outcome::kOk);
  EXPECT_TRUE(out_.text().ends_with("(integer) 0\nPONG\n")) << out_.text();
}

TEST_F(CliSession, SubscriptionPrintsUntilTheEnd) {
  Start([](const Args& args) -> std::string {
    if (args[0] != "SUBSCRIBE") return "CLOSE";
    return "*3\r\n+subscribe\r\n+c\r\n:1\r\n*3\r\n+message\r\n+c\r\n+hi\r\n?\r\n";
  });
  EXPECT_EQ(session_->Run({"SUBSCRIBE", "c"}), Outcome::kFailed);
  EXPECT_EQ(out_.text(), "1) subscribe\n2) c\n3) (integer) 1\n1) message\n2) c\n3) hi\n");
  EXPECT_NE(errors_.text().find("Protocol error"), std::string::npos);
}

TEST_F(CliSession, ClientReplyModes) {
  Start([](const Args& args) -> std::string {
    if (args[0] == "GET" || (args[0] == "CLIENT" && args[2] == "ON")) return "+OK\r\n";
    return "";
  });
  EXPECT_EQ(session_->Run({"CLIENT", "REPLY", "SKIP"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"SET", "a", "1"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"GET", "a"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"CLIENT", "REPLY", "OFF"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"SET", "a", "2"}), Outcome::kOk);
  EXPECT_EQ(session_->Run({"CLIENT", "REPLY", "ON"}), Outcome::kOk);
  EXPECT_EQ(out_.text(), "OK\nOK\n");
}

TEST_F(CliSession, ShutdownMayCloseTheConnection) {
  Start([](const Args&) { return "CLOSE"; });
  EXPECT_EQ(session_->Run({"SHUTDOWN"}), Outcome::kOk);
  EXPECT_EQ(errors_.text(), "");
}

TEST_F(CliSession, PagesAreNotQuoted) {
  Start([](const Args&) { return "$11\r\n# Server\r\nx\r\n"; });
  session_->Run({"info"});
  session_->Run({"get", "k"});
  EXPECT_EQ(out_.text(), "# Server\r\nx\n\"# Server\\r\\nx\"\n");
}

TEST_F(CliSession, TellsWhereItCouldNotConnect) {
  Start([](const Args&) { return "CLOSE"; });
  session_.reset();
  const int port = server_->port();
  server_.reset();
  Options options;
  options.endpoint.port = port;
  Session lonely(options, OutputMode::kRaw, nullptr, out_.file(), errors_.file());
  EXPECT_EQ(lonely.Run({"PING"}), Outcome::kFailed);
  EXPECT_EQ(errors_.text(), "Could not connect to " + address_ + ": Connection refused\n");
}

}  // namespace
}  // namespace sava::cli
