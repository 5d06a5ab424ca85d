// HttpService: the HTTP connections of one event loop. A ready connection's requests are read, run
// and answered at once, all that arrived together with one read and one write.
//
// A request is kept whole until it is answered: one that has to wait (a lock, CLIENT PAUSE), or
// takes several steps, stays in its connection's input and goes on from there; meanwhile nothing
// more is read from that connection. No requests are read from a client that does not take answers.
// On the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "engine/client_executor.h"
#include "engine/engine.h"
#include "front/connection.h"
#include "http/routes.h"
#include "protocol/http_parser.h"
#include "protocol/http_response.h"

namespace sava::front {

class EventLoop;
class HttpService;

struct HttpConnection final : Connection {
  explicit HttpConnection(HttpService* owner) : service(owner) {}
  void OnEvents(uint32_t events) override;
  void Resume() override;
  void Release() override;
  void GoOn() override;
  void Closing() override;

  // A request is being worked on.
  bool busy() const { return client.waiting() || continuing; }

  HttpService* const service;
  protocol::HttpParser parser;
  std::unique_ptr<http::Job> job;
  int64_t since_ms = 0;     // when the request that is arriving began; 0: none
  int64_t deadline_ms = 0;  // of discarding
  bool admitted = false;    // the request's head was judged
  bool told_continue = false;
  bool continuing = false;  // it has another step to do
  bool backlogged = false;  // there are requests, but the client must take its answers first
  bool ending = false;      // closes when everything is sent
  bool linger = false;      // …but the client may still be sending
  bool discarding = false;  // everything is sent, input is thrown away
};

class HttpService {
 public:
  explicit HttpService(EventLoop* loop);

  std::unique_ptr<Connection> NewConnection();
  // Answers or closes connections that have taken too long.
  void CheckTimes(int64_t now_ms);
  // From now on every answer is its connection's last.
  void BeginDrain() { draining_ = true; }
  void EndDrain() { draining_ = false; }
  // Closes idle connections; returns how many have a request under way.
  size_t Drain();

 private:
  friend struct HttpConnection;

  void Read(HttpConnection& connection);
  void Discard(HttpConnection& connection);
  void EndOfInput(HttpConnection& connection);
  // Works on the input and answers. Bytes: those just read, or the connection's input.
  void Run(HttpConnection& connection, char* bytes, size_t size);
  void RunAll(HttpConnection& connection, char* bytes, size_t size);
  void RunInput(HttpConnection& connection);
  // How many bytes of the requests it answered; *size shrinks by what the parser has taken out.
  size_t Work(HttpConnection& connection, char* bytes, size_t* size);
  // False when there is nothing more to do for now.
  bool WorkOne(HttpConnection& connection, protocol::HttpParser::Outcome outcome);
  bool Admit(HttpConnection& connection);
  void UseUser(engine::Client& client, std::string user);
  void NoteRefused(const HttpConnection& connection);
  void Keep(HttpConnection& connection, const char* bytes, size_t size, size_t used);
  void Respond(HttpConnection& connection, bool close);
  void Refuse(HttpConnection& connection, int status, std::string_view detail);
  void Send(HttpConnection& connection);
  http::Site Site() const;
  protocol::HttpLimits Limits() const;
  bool TookTooLong(const HttpConnection& connection, int64_t now_ms) const;

  EventLoop& loop_;
  engine::Engine& engine_;
  engine::Lane& lane_;
  engine::ClientExecutor executor_;
  http::Routes routes_;
  protocol::HttpResponse response_;
  protocol::HttpDate date_;
  std::unordered_set<HttpConnection*> connections_;
  std::unique_ptr<char[]> bytes_;
  bool draining_ = false;
  bool working_ = false;  // in the middle of a request
};

}  // namespace sava::front
