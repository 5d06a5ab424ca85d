#include "front/http_service.h"

#include <sys/epoll.h>

#include <algorithm>
#include <new>

#include "engine/access_check.h"
#include "front/event_loop.h"
#include "http/guard.h"
#include "http/problem.h"

namespace sava::front {

using protocol::HttpParser;

namespace {

constexpr size_t kReadSize = 16 << 10;
constexpr size_t kMaxRead = 1 << 20;
// With more bytes of answers not taken yet, no further request is parsed.
constexpr size_t kBacklog = 256 << 10;
// How long input is read and thrown away before the connection is closed.
constexpr int64_t kLingerMs = 2000;
// A large body has a second more for each of these.
constexpr size_t kBytesPerSecond = 64 << 10;
// Bytes of a key: three times as many, percent-encoded, fit into a request line and leave room for
// the header fields.
constexpr size_t kMaxKey = 2048;
constexpr size_t kHeaderForKey = 4;

}  // namespace

void HttpConnection::OnEvents(uint32_t events) {
  if (closed || (service->loop_.serving_busy() && (service->working_ || busy()))) return;
  events = transport->Ready(events);
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    service->loop_.Close(*this);
    return;
  }
  if ((events & EPOLLOUT) != 0) service->Send(*this);
  if (!closed && (events & EPOLLIN) != 0) service->Read(*this);
}

void HttpConnection::Resume() { service->RunInput(*this); }

void HttpConnection::Release() { service->Send(*this); }

void HttpConnection::GoOn() {
  if (std::exchange(continuing, false)) return service->RunInput(*this);
  if (wants_read) service->Read(*this);
}

void HttpConnection::Closing() { service->connections_.erase(this); }

HttpService::HttpService(EventLoop* loop)
    : loop_(*loop),
      engine_(loop->engine()),
      lane_(loop->lane()),
      executor_(&loop->engine(), &loop->lane()),
      bytes_(new char[kReadSize]) {}

std::unique_ptr<Connection> HttpService::NewConnection() {
  auto connection = std::make_unique<HttpConnection>(this);
  connection->client.peer.lib_name = "http";
  connections_.insert(connection.get());
  return connection;
}

http::Site HttpService::Site() const {
  const config::Settings& settings = engine_.settings();
  http::Site site{&engine_.users(), settings.http_hosts, settings.associations_prefix,
                  settings.associations_top, settings.associations_guid_keys};
  site.max_key = std::min<size_t>(kMaxKey, settings.http_max_header / kHeaderForKey);
  const int64_t up_ms = lane_.now_ms - loop_.host().start_unix_ms();
  site.uptime_s = std::max<int64_t>(0, up_ms / 1000);
  site.refuses_writes = engine_.admission().refuses_writes();
  return site;
}

protocol::HttpLimits HttpService::Limits() const {
  const config::Settings& settings = engine_.settings();
  return {settings.http_max_header, settings.http_max_body};
}

// ---- reading ----

void HttpService::Read(HttpConnection& connection) {
  if (connection.discarding) return Discard(connection);
  if (connection.busy() || connection.backlogged || connection.ending) {
    loop_.SetReading(connection, false);
    return;
  }
  const bool kept = !connection.input.empty();
  const size_t room =
      kept ? std::clamp<size_t>(connection.parser.missing(), kReadSize, kMaxRead) : kReadSize;
  char* target = bytes_.get();
  try {
    if (kept) target = connection.input.Reserve(room);
  } catch (const std::bad_alloc&) {
    return loop_.Close(connection);
  }
  const net::Transfer read = loop_.Receive(connection, target, room);
  switch (read.outcome) {
    case net::Transfer::Outcome::kAgain:
      return;
    case net::Transfer::Outcome::kEnd:
      return EndOfInput(connection);
    case net::Transfer::Outcome::kFailed:
      return loop_.Close(connection);
    case net::Transfer::Outcome::kDone:
      break;
  }
  if (!kept) return Run(connection, target, read.bytes);
  connection.input.Grow(read.bytes);
  RunInput(connection);
}

// The client has closed its side; its requests are still answered.
void HttpService::EndOfInput(HttpConnection& connection) {
  if (connection.client.out.empty()) return loop_.Close(connection);
  connection.ending = true;
  loop_.SetReading(connection, false);
}

void HttpService::Discard(HttpConnection& connection) {
  const net::Transfer read = loop_.Receive(connection, bytes_.get(), kReadSize);
  if (!read.done() && read.outcome != net::Transfer::Outcome::kAgain) loop_.Close(connection);
}

// ---- working ----

void HttpService::RunInput(HttpConnection& connection) {
  Run(connection, connection.input.data(), connection.input.size());
}

void HttpService::Run(HttpConnection& connection, char* bytes, size_t size) {
  if (connection.ending) return Send(connection);
  working_ = true;
  RunAll(connection, bytes, size);
  working_ = false;
  if (connection.closed) return;
  if (connection.ending) return Send(connection);
  if (!connection.busy() && !connection.backlogged) loop_.SetReading(connection, true);
}

void HttpService::RunAll(HttpConnection& connection, char* bytes, size_t size) {
  while (true) {
    connection.backlogged = false;
    const size_t used = Work(connection, bytes, &size);
    Keep(connection, bytes, size, used);
    loop_.Flush(connection);
    if (connection.closed || !connection.backlogged || !connection.client.out.empty()) break;
    bytes = connection.input.data();
    size = connection.input.size();
  }
}

size_t HttpService::Work(HttpConnection& connection, char* bytes, size_t* size) {
  size_t used = 0;
  while (used < *size && !connection.ending) {
    if (connection.client.out.pending() > kBacklog) {
      connection.backlogged = true;
      break;
    }
    HttpParser& parser = connection.parser;
    const HttpParser::Outcome outcome = parser.Next(bytes + used, *size - used, Limits());
    *size -= parser.dropped();
    if (!WorkOne(connection, outcome)) break;
    used += parser.consumed();
    parser.Reset();
    connection.since_ms = 0;
  }
  return used;
}

bool HttpService::WorkOne(HttpConnection& connection, HttpParser::Outcome outcome) {
  HttpParser& parser = connection.parser;
  if (outcome == HttpParser::Outcome::kError) {
    Refuse(connection, parser.status(), parser.detail());
    return false;
  }
  if (parser.head_complete() && !connection.admitted) {
    if (!Admit(connection)) {
      const bool whole = outcome == HttpParser::Outcome::kRequest;
      connection.linger = !whole;
      Respond(connection, !whole);
      return whole;
    }
    connection.admitted = true;
  }
  if (outcome == HttpParser::Outcome::kMore) {
    if (connection.admitted && parser.request().expects_continue && !connection.told_continue) {
      connection.told_continue = true;
      connection.client.out.Append("HTTP/1.1 100 Continue\r\n\r\n");
    }
    return false;
  }
  response_.Clear();
  if (loop_.serving_busy()) {
    http::Problem(&response_, 503, "the server is busy running a script");
    Respond(connection, false);
    return true;
  }
  executor_.set_client(&connection.client);
  const http::Site site = Site();
  http::Call call{parser.request(), site, executor_, &response_};
  switch (routes_.Handle(call, &connection.job)) {
    case http::Step::kDone:
      Respond(connection, false);
      return true;
    case http::Step::kWait:
      return false;
    case http::Step::kMore:
      connection.continuing = true;
      loop_.GoOnLater(connection);
      return false;
  }
  return false;
}

bool HttpService::Admit(HttpConnection& connection) {
  response_.Clear();
  const protocol::HttpRequest& request = connection.parser.request();
  if (http::Routes::Admit(request, Site(), &response_)) {
    const bool proved = http::Routes::Guarded(request);
    UseUser(connection.client, proved ? http::UserOf(request.authorization) : "default");
    return true;
  }
  if (response_.status == 401 && !request.authorization.empty()) NoteRefused(connection);
  return false;
}

// The request runs as its user.
void HttpService::UseUser(engine::Client& client, std::string user) {
  if (engine_.users().Find(user) == nullptr) user = "default";
  if (client.user == user) return;
  client.user = std::move(user);
  engine::UseRulesOfUser(engine_, client);
}

// A wrong password is noted in ACL LOG, as one of AUTH is.
void HttpService::NoteRefused(const HttpConnection& connection) {
  loop_.host().NoteRefused(connection.client,
                           http::UserOf(connection.parser.request().authorization), lane_.now_ms);
}

// Requests without an answer stay with the connection.
void HttpService::Keep(HttpConnection& connection, const char* bytes, size_t size, size_t used) {
  base::Buffer& input = connection.input;
  if (input.empty()) {
    if (used < size) input.Append({bytes + used, size - used});
  } else {
    input.Shrink(input.size() - size);
    input.Consume(used);
  }
  if (!input.empty() && connection.since_ms == 0) connection.since_ms = lane_.now_ms;
  connection.client.memory.query_bytes = input.size();
  connection.client.memory.query_capacity = input.capacity();
}

// ---- answering ----

void HttpService::Respond(HttpConnection& connection, bool close) {
  const protocol::HttpRequest& request = connection.parser.request();
  protocol::HttpFraming framing;
  framing.head_only = request.method == protocol::HttpMethod::kHead;
  framing.close = close || !request.keep_alive || draining_;
  framing.keep_alive = request.http10;
  framing.date = date_.At(lane_.now_ms / 1000);
  protocol::WriteResponse(&connection.client.out, response_, framing);
  connection.ending = framing.close;
  connection.job.reset();
  connection.admitted = connection.told_continue = false;
}

// The bytes behind a broken request cannot be told from it: the connection ends.
void HttpService::Refuse(HttpConnection& connection, int status, std::string_view detail) {
  http::Problem(&response_, status, detail);
  connection.linger = true;
  Respond(connection, true);
}

void HttpService::Send(HttpConnection& connection) {
  loop_.Flush(connection);
  if (connection.closed || !connection.client.out.empty()) return;
  if (!connection.ending) {
    if (connection.backlogged) RunInput(connection);
    return;
  }
  if (!connection.linger) return loop_.Close(connection);
  // Closing now would make the kernel throw the answer away if the client is still sending.
  connection.transport->Shutdown();
  connection.discarding = true;
  connection.ending = false;
  connection.deadline_ms = lane_.now_ms + kLingerMs;
  connection.input.Consume(connection.input.size());
  loop_.SetReading(connection, true);
}

// ---- time ----

bool HttpService::TookTooLong(const HttpConnection& connection, int64_t now_ms) const {
  if (connection.discarding) return now_ms > connection.deadline_ms;
  if (connection.busy()) return false;
  const config::Settings& settings = engine_.settings();
  const int64_t quiet = now_ms - connection.client.activity.last_active_ms;
  const int64_t patience = settings.http_timeout * 1000;
  if (!connection.client.out.empty()) return patience > 0 && quiet > patience;
  if (connection.input.empty()) {
    return settings.http_idle_timeout > 0 && quiet > settings.http_idle_timeout * 1000;
  }
  const auto more = static_cast<int64_t>(connection.input.size() / kBytesPerSecond) * 1000;
  return patience > 0 && now_ms - connection.since_ms > patience + more;
}

void HttpService::CheckTimes(int64_t now_ms) {
  std::vector<HttpConnection*> late;
  for (HttpConnection* connection : connections_) {
    if (TookTooLong(*connection, now_ms)) late.push_back(connection);
  }
  for (HttpConnection* connection : late) {
    const bool arriving =
        !connection->discarding && !connection->input.empty() && connection->client.out.empty();
    if (!arriving) {
      loop_.Close(*connection);
      continue;
    }
    Refuse(*connection, 408, "The request did not arrive in time.");
    Send(*connection);
  }
}

size_t HttpService::Drain() {
  std::vector<HttpConnection*> idle;
  size_t in_flight = 0;
  for (HttpConnection* connection : connections_) {
    const bool begun = connection->busy() || !connection->client.out.empty() ||
                       (!connection->input.empty() && connection->parser.head_complete());
    if (begun && !connection->discarding) {
      ++in_flight;
    } else {
      idle.push_back(connection);
    }
  }
  for (HttpConnection* connection : idle) loop_.Close(*connection);
  return in_flight;
}

}  // namespace sava::front
