// A client of the server through hiredis: synchronous, pipelined, asynchronous pub/sub, and RESP3
// where the library knows it (from 1.0 on; Debian 12 has 0.14).
// Usage: hiredis_client HOST PORT. Prints "all good" and exits with 0, or says what failed.

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, FreeContext>;
using Reply = std::unique_ptr<redisReply, FreeReply>;

[[noreturn]] void Fail(const std::string& what) {
  std::printf("failed: %s\n", what.c_str());
  std::exit(1);
}

void Check(bool condition, const std::string& what) {
  if (!condition) Fail(what);
}

Context Connect(const char* host, int port) {
  const timeval timeout = {10, 0};
  Context context(redisConnectWithTimeout(host, port, timeout));
  Check(context && context->err == 0, "connect");
  redisSetTimeout(context.get(), timeout);
  return context;
}

Reply Call(redisContext* context, const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  std::vector<size_t> lengths;
  for (const std::string& word : words) {
    pointers.push_back(word.data());
    lengths.push_back(word.size());
  }
  void* reply =
      redisCommandArgv(context, static_cast<int>(words.size()), pointers.data(), lengths.data());
  Check(reply != nullptr, words[0] + ": " + context->errstr);
  return Reply(static_cast<redisReply*>(reply));
}

void Synchronous(const char* host, int port) {
  const Context context = Connect(host, port);
  Reply reply = Call(context.get(), {"SET", "hiredis", std::string("a\0b", 3)});
  Check(reply->type == REDIS_REPLY_STATUS && std::string(reply->str) == "OK", "SET");
  reply = Call(context.get(), {"GET", "hiredis"});
  Check(reply->type == REDIS_REPLY_STRING && reply->len == 3, "GET");
  reply = Call(context.get(), {"GET", "nope"});
  Check(reply->type == REDIS_REPLY_NIL, "GET of a missing key");
  reply = Call(context.get(), {"INCR", "counter"});
  Check(reply->type == REDIS_REPLY_INTEGER && reply->integer == 1, "INCR");
  reply = Call(context.get(), {"INCR", "hiredis"});
  Check(reply->type == REDIS_REPLY_ERROR && !std::strncmp(reply->str, "ERR ", 4), "error reply");
  reply.reset(static_cast<redisReply*>(
      redisCommand(context.get(), "MGET %s %b", "counter", "hiredis", static_cast<size_t>(7))));
  Check(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2, "MGET");
}

void Pipelined(const char* host, int port) {
  const Context context = Connect(host, port);
  constexpr int kCount = 5000;
  for (int i = 0; i < kCount; ++i) {
    Check(redisAppendCommand(context.get(), "INCRBY pipe %d", i) == REDIS_OK, "append");
  }
  long long sum = 0;
  for (int i = 0; i < kCount; ++i) {
    void* raw = nullptr;
    Check(redisGetReply(context.get(), &raw) == REDIS_OK, "pipeline reply");
    const Reply reply(static_cast<redisReply*>(raw));
    sum += i;
    Check(reply->type == REDIS_REPLY_INTEGER && reply->integer == sum, "pipeline order");
  }
  const std::vector<std::vector<std::string>> transaction = {
      {"MULTI"}, {"SET", "t", "1"}, {"INCR", "t"}, {"EXEC"}};
  Reply last;
  for (const auto& words : transaction) last = Call(context.get(), words);
  Check(last->type == REDIS_REPLY_ARRAY && last->elements == 2, "EXEC");
  Check(last->element[1]->integer == 2, "EXEC's second reply");
}

#ifdef REDIS_REPLY_MAP
void Resp3(const char* host, int port) {
  const Context context = Connect(host, port);
  Reply reply = Call(context.get(), {"HELLO", "3"});
  Check(reply->type == REDIS_REPLY_MAP, "HELLO 3 gives a map");
  reply = Call(context.get(), {"CONFIG", "GET", "timeout"});
  Check(reply->type == REDIS_REPLY_MAP && reply->elements == 2, "CONFIG GET gives a map");
  reply = Call(context.get(), {"GET", "nope"});
  Check(reply->type == REDIS_REPLY_NIL, "null");
  reply = Call(context.get(), {"INFO", "server"});
  Check(reply->type == REDIS_REPLY_VERB && !std::strcmp(reply->vtype, "txt"), "verbatim string");
}
#endif

// The asynchronous part: a poll loop of our own, one subscriber, one publisher.
struct Loop {
  int received = 0;
  bool subscribed = false;
  bool failed = false;
  bool want_write[2] = {false, false};
};

struct Hook {
  Loop* loop;
  int index;
};

void AddWrite(void* data) {
  const Hook* hook = static_cast<Hook*>(data);
  hook->loop->want_write[hook->index] = true;
}

void DelWrite(void* data) {
  const Hook* hook = static_cast<Hook*>(data);
  hook->loop->want_write[hook->index] = false;
}

void OnMessage(redisAsyncContext* context, void* raw, void*) {
  Loop* loop = static_cast<Hook*>(context->ev.data)->loop;
  const redisReply* reply = static_cast<redisReply*>(raw);
  if (reply == nullptr) return;
  if (reply->elements != 3) {
    loop->failed = true;
    return;
  }
  const std::string kind = reply->element[0]->str;
  if (kind == "subscribe") loop->subscribed = true;
  if (kind == "message") {
    const std::string expected = "m" + std::to_string(loop->received);
    if (expected != reply->element[2]->str) loop->failed = true;
    ++loop->received;
  }
}

void Asynchronous(const char* host, int port) {
  Loop loop;
  Hook hooks[2] = {{&loop, 0}, {&loop, 1}};
  redisAsyncContext* contexts[2];
  for (int i = 0; i < 2; ++i) {
    contexts[i] = redisAsyncConnect(host, port);
    Check(contexts[i] != nullptr && contexts[i]->err == 0, "asynchronous connect");
    contexts[i]->ev.data = &hooks[i];
    contexts[i]->ev.addWrite = AddWrite;
    contexts[i]->ev.delWrite = DelWrite;
    loop.want_write[i] = true;
  }
  redisAsyncCommand(contexts[0], OnMessage, nullptr, "SUBSCRIBE hiredis-news");
  constexpr int kMessages = 500;
  bool published = false;
  for (int round = 0; round < 20000 && loop.received < kMessages && !loop.failed; ++round) {
    if (loop.subscribed && !published) {
      published = true;
      for (int i = 0; i < kMessages; ++i) {
        redisAsyncCommand(contexts[1], nullptr, nullptr, "PUBLISH hiredis-news m%d", i);
      }
    }
    pollfd descriptors[2];
    for (int i = 0; i < 2; ++i) {
      const short events = POLLIN | (loop.want_write[i] ? POLLOUT : 0);
      descriptors[i] = {contexts[i]->c.fd, events, 0};
    }
    if (poll(descriptors, 2, 10) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (descriptors[i].revents & POLLOUT) redisAsyncHandleWrite(contexts[i]);
      if (descriptors[i].revents & POLLIN) redisAsyncHandleRead(contexts[i]);
    }
  }
  Check(!loop.failed, "a message out of order");
  Check(loop.received == kMessages, "messages received: " + std::to_string(loop.received));
  for (redisAsyncContext* context : contexts) redisAsyncFree(context);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Fail("usage: hiredis_client HOST PORT");
  const int port = std::atoi(argv[2]);
  Synchronous(argv[1], port);
  Pipelined(argv[1], port);
#ifdef REDIS_REPLY_MAP
  Resp3(argv[1], port);
#endif
  Asynchronous(argv[1], port);
  std::printf("all good\n");
  return 0;
}
