// Every command without memory: the n-th allocation of a command fails, for n = 1, 2, 3, … until it
// needs no more than n. Whatever n is, the engine goes on, the client gets the right answer or the
// error that there is no memory, and all data can be read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/if_memory.h"
#include "base/text.h"
#include "engine/cut_options.h"
#include "engine/engine_context.h"
#include "engine_fixture.h"
#include "journal_text.h"
#include "persistence/persistence.h"
#include "replication/change_stream.h"
#include "replication/wire.h"
#include "storage/snapshot_file.h"

// ---- allocations that fail ----

namespace {

// Of this thread: the allocations that are still granted, and whether all behind them fail or only
// the next one. Others are not touched.
thread_local bool armed = false;
thread_local bool failing_on = false;
thread_local size_t granted = 0;
thread_local size_t refused = 0;

bool Refuse() {
  if (!armed) return false;
  if (granted > 0) {
    --granted;
    return false;
  }
  if (refused > 0 && !failing_on) return false;
  ++refused;
  return true;
}

}  // namespace

extern "C" {
void* __real_malloc(size_t size);
void* __real_calloc(size_t count, size_t size);
void* __real_realloc(void* memory, size_t size);
void* __real_aligned_alloc(size_t alignment, size_t size);
void* __wrap_malloc(size_t size) { return Refuse() ? nullptr : __real_malloc(size); }
void* __wrap_calloc(size_t count, size_t size) {
  return Refuse() ? nullptr : __real_calloc(count, size);
}
void* __wrap_realloc(void* memory, size_t size) {
  return Refuse() ? nullptr : __real_realloc(memory, size);
}
void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  return Refuse() ? nullptr : __real_aligned_alloc(alignment, size);
}
}

[[gnu::noinline]] void* operator new(size_t size) {
  void* const memory = malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return malloc(size);
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  void* const memory = aligned_alloc(to, (size + to - 1) / to * to);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  free(memory);
}

namespace sava::engine {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kNoMemory = "-OOM not enough memory to run the command\r\n";
constexpr size_t kMost = 3000;  // no command here takes as many allocations

// While it lives, `grant` allocations of this thread succeed.
class Scarcity {
 public:
  Scarcity(size_t grant, bool on) {
    granted = grant;
    refused = 0;
    failing_on = on;
    armed = true;
  }
  Scarcity(const Scarcity&) = delete;
  Scarcity& operator=(const Scarcity&) = delete;
  ~Scarcity() { armed = false; }
  bool felt() const { return refused > 0; }
};

class Log : public journal::Consumer {
 public:
  void Receive(const journal::Record& record) override { static_cast<void>(record); }
};

class LosingHost : public Host {
 public:
  void OutOfMemory() override { ++times; }
  int times = 0;
};

struct Server {
  Server() : test(1) {
    test.engine.set_host(&host);
    test.engine.journal().Attach(log);
    client = std::make_unique<TestClient>(test, 0);
  }
  ~Server() {
    client = nullptr;
    test.engine.journal().Detach(log);
  }

  std::string Run(const Words& words) { return client->Run(words); }
  std::string Run(std::string_view line) { return Run(Split(line)); }
  static Words Split(std::string_view line) {
    Words words(1);
    for (const char c : line) {
      if (c == ' ') {
        words.emplace_back();
      } else {
        words.back() += c;
      }
    }
    return words;
  }

  TestEngine test;
  Log log;
  LosingHost host;
  std::unique_ptr<TestClient> client;
};

// Bulk strings of a flat reply.
std::vector<std::string> Bulks(std::string_view reply) {
  std::vector<std::string> all;
  while (!reply.empty()) {
    const size_t end = reply.find("\r\n");
    const char mark = reply[0];
    int64_t size = -1;
    if (mark == '$') {
      EXPECT_TRUE(base::ParseInt(reply.substr(1, end - 1), &size));
    }
    reply.remove_prefix(end + 2);
    if (size < 0) continue;
    all.emplace_back(reply.substr(0, static_cast<size_t>(size)));
    reply.remove_prefix(static_cast<size_t>(size) + 2);
  }
  return all;
}

// What reads a whole value.
Words Reading(const std::string& type, const std::string& key) {
  if (type == "string") return {"GET", key};
  if (type == "list") return {"LRANGE", key, "0", "-1"};
  if (type == "hash") return {"HGETALL", key};
  if (type == "set") return {"SMEMBERS", key};
  if (type == "zset") return {"ZRANGE", key, "0", "-1", "WITHSCORES"};
  if (type == "stream") return {"XINFO", "STREAM", key, "FULL"};
  if (type == "frontier") return {"FR.EXPORT", key, "0", "COUNT", "1000"};
  return {"DUMP", key};
}

// How many elements a value says that it has.
Words Counting(const std::string& type, const std::string& key) {
  if (type == "list") return {"LLEN", key};
  if (type == "hash") return {"HLEN", key};
  if (type == "set") return {"SCARD", key};
  if (type == "zset") return {"ZCARD", key};
  return {};
}

// Groups of so many, in order.
std::string Sorted(const std::vector<std::string>& bulks, size_t each) {
  std::vector<std::string> groups;
  for (size_t i = 0; i + each <= bulks.size(); i += each) {
    groups.push_back(bulks[i] + (each == 2 ? " " + bulks[i + 1] : ""));
  }
  std::sort(groups.begin(), groups.end());
  std::string text;
  for (const std::string& group : groups) text += group + "\n";
  return text;
}

// All data as text, after a look at all that can be looked at.
std::string Inspect(Server& server) {
  TestEngine& test = server.test;
  for (int db = 0; db < test.engine.keyspace().databases(); ++db) {
    for (size_t stripe = 0; stripe < keyspace::Keyspace::kStripes; ++stripe) {
      const keyspace::Table* table = test.engine.keyspace().table(db, stripe);
      if (table == nullptr) continue;
      table->CheckInvariants();
      EXPECT_LT(table->used_bytes(), size_t{1} << 40);
      EXPECT_LE(table->used_bytes(), table->held_bytes());
    }
  }
  std::map<std::string, std::string> values;
  for (const std::string db : {"0", "1"}) {
    server.Run({"SELECT", db});
    std::vector<std::string> keys;
    std::string cursor = "0";
    do {
      std::vector<std::string> found = Bulks(server.Run({"SCAN", cursor}));
      cursor = found.front();
      keys.insert(keys.end(), found.begin() + 1, found.end());
    } while (cursor != "0");
    EXPECT_EQ(server.Run("DBSIZE"), ":" + std::to_string(keys.size()) + "\r\n");
    for (const std::string& key : keys) {
      std::string type = server.Run({"TYPE", key});
      type = type.substr(1, type.size() - 3);
      std::string value = server.Run(Reading(type, key));
      EXPECT_FALSE(value.empty() || value[0] == '-' || value == "$-1\r\n")
          << key << " " << value.substr(0, 100);
      if (const Words count = Counting(type, key); !count.empty()) {
        const size_t elements = Bulks(value).size() / (type == "hash" || type == "zset" ? 2 : 1);
        EXPECT_EQ(server.Run(count), ":" + std::to_string(elements) + "\r\n") << key;
      }
      // In no order that would count.
      if (type == "hash" || type == "set") value = Sorted(Bulks(value), type == "hash" ? 2 : 1);
      // What is saved can be loaded.
      const std::vector<std::string> dump = Bulks(server.Run({"DUMP", key}));
      EXPECT_EQ(dump.size(), 1U) << key;
      if (dump.size() == 1) {
        EXPECT_EQ(server.Run({"RESTORE", "{inspected}", "0", dump[0]}), "+OK\r\n") << key;
        server.Run("DEL {inspected}");
      }
      values[db + " " + key] = type + " " + server.Run({"PTTL", key}) + value;
    }
  }
  server.Run("SELECT 0");
  std::string text;
  for (const auto& [key, value] : values) text += key + " = " + value + "\n";
  return text;
}

struct Case {
  std::string name;
  std::vector<Words> before;
  Words command;
  // Without memory it may have done a part of what it does: it has several elements or keys.
  bool in_parts = false;
};

// Some types have an error of their own for it, as in the modules that they are known from.
bool IsRefusal(std::string_view reply) {
  return reply.empty() || reply == kNoMemory ||
         (reply[0] == '-' && reply.find("nsufficient memory") != std::string_view::npos);
}

// Where two texts differ.
std::string Difference(std::string_view a, std::string_view b) {
  size_t at = 0;
  while (at < std::min(a.size(), b.size()) && a[at] == b[at]) ++at;
  const size_t from = at < 40 ? 0 : at - 40;
  return fmt::format("{} and {} bytes, at {}: {} / {}", a.size(), b.size(), at,
                     base::Quoted(a.substr(from, 100)), base::Quoted(b.substr(from, 100)));
}

// The reply of a command for which memory was scarce; "" when its connection is to be closed.
std::string RunScarcely(Server& server, const Words& command, size_t grant, bool on, bool* felt) {
  TestClient& client = *server.client;
  const std::vector<std::string_view> args(command.begin(), command.end());
  {
    const Scarcity scarcity(grant, on);
    server.test.engine.Execute(client.lane, client.client, args);
    *felt = scarcity.felt();
  }
  if (!client.client.out.over()) return client.TakeOutput();
  client.client.out = protocol::OutBuffer();
  client.client.set(kClientCloseNow, false);
  return "";
}

void TryAll(const Case& one, bool on) {
  SCOPED_TRACE(one.name + (on ? ", all from there on" : ""));
  std::string before;
  std::string after;
  std::string good;
  Server server;
  const auto prepare = [&] {
    server.Run("FLUSHALL");
    for (const Words& words : one.before) {
      const std::string reply = server.Run(words);
      ASSERT_FALSE(reply.empty() || reply[0] == '-') << words[0] << " " << reply;
    }
  };
  prepare();
  before = Inspect(server);
  prepare();
  good = server.Run(one.command);
  after = Inspect(server);
  for (size_t n = 0;; ++n) {
    ASSERT_LT(n, kMost);
    SCOPED_TRACE("after " + std::to_string(n) + " allocations");
    prepare();
    const int lost = server.host.times;
    bool felt = false;
    const std::string reply = RunScarcely(server, one.command, n, on, &felt);
    const bool refusal = IsRefusal(reply);
    const std::string now = Inspect(server);
    if (!refusal) {
      EXPECT_TRUE(reply == good) << Difference(reply, good);
      EXPECT_TRUE(now == after) << Difference(now, after);
    } else {
      EXPECT_TRUE(felt);
      if (!one.in_parts) {
        EXPECT_TRUE(now == before || now == after) << Difference(now, before);
      }
      // What is logged of it may not be what was done.
      EXPECT_TRUE(now == before || server.host.times > lost);
    }
    if (::testing::Test::HasFailure() || !felt) return;
  }
}

Words W(std::string_view line) { return Server::Split(line); }

// A value that RESTORE takes.
std::string DumpOf(const std::vector<Words>& made, const std::string& key) {
  Server server;
  for (const Words& words : made) server.Run(words);
  return Bulks(server.Run({"DUMP", key})).at(0);
}

const std::string kText(100, 't');
const std::string kLong(100000, 'l');

Words Many(std::string_view command, size_t count, bool pairs = false) {
  Words words = W(command);
  for (size_t i = 0; i < count; ++i) {
    words.push_back(fmt::format("element:{}", i));
    if (pairs) words.push_back(fmt::format("{}", i));
  }
  return words;
}

Words ManyScores(std::string_view command, size_t count) {
  Words words = W(command);
  for (size_t i = 0; i < count; ++i) {
    words.push_back(fmt::format("{}", i));
    words.push_back(fmt::format("element:{}", i));
  }
  return words;
}

std::vector<Case> StringCases() {
  return {
      {"SET", {}, {"SET", "key", kText}},
      {"SET of a long value", {}, {"SET", "key", kLong}},
      {"SET of a number", {}, W("SET key 12")},
      {"SET over a long value", {{"SET", "key", kLong}}, {"SET", "key", kText}},
      {"SET with an expiry", {W("SET key value")}, {"SET", "key", kText, "PX", "100000"}},
      {"SET over an object", {W("SADD key a b c")}, {"SET", "key", kText}},
      {"SET with GET", {{"SET", "key", kText}}, {"SET", "key", kLong, "GET"}},
      {"GETSET", {{"SET", "key", kText}}, {"GETSET", "key", "new"}},
      {"GET", {{"SET", "key", kLong}}, W("GET key")},
      {"APPEND", {{"SET", "key", kText}}, {"APPEND", "key", kLong}},
      {"APPEND to a long value", {{"SET", "key", kLong}}, {"APPEND", "key", kLong}},
      {"SETRANGE", {}, {"SETRANGE", "key", "3000", "x"}},
      {"SETBIT", {}, W("SETBIT key 80000 1")},
      {"INCR", {}, W("INCR key")},
      {"INCRBYFLOAT", {W("SET key 10.5")}, W("INCRBYFLOAT key 0.1")},
      {"MSET", {}, {"MSET", "a", kText, "b", kLong, "c", "3"}, true},
      {"MSETNX", {}, {"MSETNX", "a", kText, "b", kLong, "c", "3"}, true},
      {"DEL", {W("SET a 1"), {"SET", "b", kLong}, W("SADD c x y")}, W("DEL a b c"), true},
      {"GETDEL", {{"SET", "key", kText}}, W("GETDEL key")},
      {"EXPIRE", {W("SET key value")}, W("EXPIRE key 1000")},
      {"PERSIST", {W("SET key value EX 1000")}, W("PERSIST key")},
      {"PFADD", {}, Many("PFADD key", 20), true},
      {"BITOP", {{"SET", "a", kText}, {"SET", "b", kLong}}, W("BITOP OR c a b")},
  };
}

std::vector<Case> CollectionCases() {
  return {
      {"RPUSH", {}, {"RPUSH", "key", kText}},
      {"RPUSH to a long list", {Many("RPUSH key", 1000)}, {"RPUSH", "key", kText}},
      {"RPUSH of a large element", {Many("RPUSH key", 10)}, {"RPUSH", "key", kLong}},
      {"LPUSH of many", {}, Many("LPUSH key", 600), true},
      {"LPOP", {Many("RPUSH key", 1000)}, W("LPOP key")},
      {"LPOP of the last", {W("RPUSH key a")}, W("LPOP key")},
      {"LSET", {Many("RPUSH key", 500)}, {"LSET", "key", "250", kText}},
      {"LINSERT", {Many("RPUSH key", 500)}, {"LINSERT", "key", "AFTER", "element:200", kText}},
      {"LREM", {Many("RPUSH key", 500)}, W("LREM key 1 element:200")},
      {"LTRIM", {Many("RPUSH key", 500)}, W("LTRIM key 100 200"), true},
      {"LMOVE", {W("RPUSH key a b c")}, W("LMOVE key other LEFT RIGHT")},
      {"LMOVE of the last", {W("RPUSH key a")}, W("LMOVE key other LEFT RIGHT")},
      {"LMOVE in one list", {Many("RPUSH key", 500)}, W("LMOVE key key LEFT RIGHT")},
      {"HSET", {}, {"HSET", "key", "field", kText}},
      {"HSET in a large hash", {Many("HSET key", 1000, true)}, {"HSET", "key", "new", kText}},
      {"HSET that makes it large", {Many("HSET key", 128, true)}, {"HSET", "key", "new", kText}},
      {"HSET of a large value", {Many("HSET key", 10, true)}, {"HSET", "key", "new", kLong}},
      {"HSET over a value", {Many("HSET key", 1000, true)}, {"HSET", "key", "element:7", kText}},
      {"HSET of many", {}, Many("HSET key", 300, true), true},
      {"HDEL", {Many("HSET key", 1000, true)}, W("HDEL key element:7")},
      {"HINCRBY", {Many("HSET key", 1000, true)}, W("HINCRBY key element:7 5")},
      {"HPEXPIRE",
       {Many("HSET key", 300, true)},
       W("HPEXPIRE key 100000 FIELDS 2 element:1 element:2"),
       true},
      {"SADD", {}, {"SADD", "key", kText}},
      {"SADD of a number", {W("SADD key 1 2 3")}, W("SADD key 4")},
      {"SADD of a word to numbers", {W("SADD key 1 2 3")}, {"SADD", "key", "word"}},
      {"SADD that makes it large", {Many("SADD key", 128)}, {"SADD", "key", kText}},
      {"SADD to a large set", {Many("SADD key", 1000)}, {"SADD", "key", kText}},
      {"SADD of many", {}, Many("SADD key", 700), true},
      {"SREM", {Many("SADD key", 1000)}, W("SREM key element:7")},
      {"SMOVE", {W("SADD key a b c")}, W("SMOVE key other a")},
      {"SUNIONSTORE", {Many("SADD a", 300), W("SADD b x y z")}, W("SUNIONSTORE c a b")},
      {"SINTERSTORE", {Many("SADD a", 300), Many("SADD b", 200)}, W("SINTERSTORE a a b")},
      {"ZADD", {}, {"ZADD", "key", "1", kText}},
      {"ZADD that makes it large", {ManyScores("ZADD key", 128)}, {"ZADD", "key", "1", kText}},
      {"ZADD to a large one", {ManyScores("ZADD key", 2000)}, {"ZADD", "key", "1", kText}},
      {"ZADD of another score", {ManyScores("ZADD key", 2000)}, W("ZADD key 7000 element:7")},
      {"ZINCRBY", {ManyScores("ZADD key", 2000)}, W("ZINCRBY key 7000 element:7")},
      {"ZADD of many", {}, ManyScores("ZADD key", 500), true},
      {"ZREM", {ManyScores("ZADD key", 2000)}, W("ZREM key element:7")},
      {"ZPOPMIN", {ManyScores("ZADD key", 2000)}, W("ZPOPMIN key")},
      {"ZREMRANGEBYSCORE", {ManyScores("ZADD key", 2000)}, W("ZREMRANGEBYSCORE key 5 500"), true},
      {"ZUNIONSTORE", {ManyScores("ZADD a", 300), W("ZADD b 1 x 2 y")}, W("ZUNIONSTORE c 2 a b")},
      {"ZRANGESTORE", {ManyScores("ZADD a", 300)}, W("ZRANGESTORE c a 10 200")},
      {"GEOADD", {}, W("GEOADD key 20.4612 44.8125 belgrade")},
      {"XADD", {}, {"XADD", "key", "1-1", "field", kText}},
      {"XADD of a large entry", {W("XADD key 1-1 a b")}, {"XADD", "key", "1-2", "field", kLong}},
      {"XADD with MAXLEN",
       {W("XADD key 1-1 a b"), W("XADD key 1-2 a b"), W("XADD key 1-3 a b")},
       {"XADD", "key", "MAXLEN", "2", "1-4", "field", kText},
       true},
      {"XDEL", {W("XADD key 1-1 a b"), W("XADD key 1-2 a b")}, W("XDEL key 1-1")},
      {"XGROUP CREATE", {W("XADD key 1-1 a b")}, W("XGROUP CREATE key group 0")},
      {"XREADGROUP",
       {W("XADD key 1-1 a b"), W("XADD key 1-2 a b"), W("XGROUP CREATE key group 0")},
       W("XREADGROUP GROUP group ada COUNT 10 STREAMS key >"),
       true},
      {"XACK",
       {W("XADD key 1-1 a b"), W("XGROUP CREATE key group 0"),
        W("XREADGROUP GROUP group ada COUNT 10 STREAMS key >")},
       W("XACK key group 1-1")},
      {"XCLAIM",
       {W("XADD key 1-1 a b"), W("XGROUP CREATE key group 0"),
        W("XREADGROUP GROUP group ada COUNT 10 STREAMS key >")},
       W("XCLAIM key group bob 0 1-1"),
       true},
  };
}

std::vector<Case> NativeCases() {
  std::vector<Words> many_counts;
  std::vector<Words> many_items;
  for (int i = 0; i < 300; ++i) {
    many_counts.push_back({"AFC.ADD", "key", fmt::format("element:{}", i % 200)});
    many_items.push_back({"CF.ADD", "key", fmt::format("element:{}", i)});
  }
  return {
      {"AFC.ADD", {}, W("AFC.ADD key element")},
      {"AFC.ADD to many", many_counts, W("AFC.ADD key element:new")},
      {"AFC.ADD of a known one", many_counts, W("AFC.ADD key element:7")},
      {"AFC.INCRBY", many_counts, W("AFC.INCRBY key element:7 1000")},
      {"AFC.REM", many_counts, W("AFC.REM key element:7")},
      {"AFC.MERGE", many_counts, W("AFC.MERGE all key"), true},
      {"AFC.RESERVE", {}, W("AFC.RESERVE key MAXLEN 1000")},
      {"BF.RESERVE", {}, W("BF.RESERVE key 0.01 1000")},
      {"BF.ADD", {}, W("BF.ADD key element")},
      {"BF.ADD beyond the capacity",
       {W("BF.RESERVE key 0.01 10"), Many("BF.MADD key", 10)},
       W("BF.ADD key another"),
       true},
      {"BF.MADD", {}, Many("BF.MADD key", 50), true},
      {"CF.RESERVE", {}, W("CF.RESERVE key 1000")},
      {"CF.ADD", {}, W("CF.ADD key element")},
      {"CF.ADD to many", many_items, W("CF.ADD key element:new")},
      {"CF.DEL", many_items, W("CF.DEL key element:7")},
      {"CMS.INITBYDIM", {}, W("CMS.INITBYDIM key 2000 7")},
      {"CMS.INCRBY", {W("CMS.INITBYDIM key 2000 7")}, W("CMS.INCRBY key home 1 about 3"), true},
      {"TOPK.RESERVE", {}, W("TOPK.RESERVE key 10 50 3 0.9")},
      {"TOPK.ADD",
       {W("TOPK.RESERVE key 3 50 3 0.9"), W("TOPK.ADD key a b c")},
       Many("TOPK.ADD key", 5),
       true},
      {"RL.TAKE", {}, W("RL.TAKE key WINDOW 3 60000")},
      {"RL.TAKE of a token", {W("RL.TAKE key TOKEN 10 5")}, W("RL.TAKE key TOKEN 10 5")},
      {"FR.CREATE", {}, W("FR.CREATE key STRATEGY breadth LEASE 60000")},
      {"FR.ADD",
       {W("FR.CREATE key STRATEGY breadth LEASE 60000")},
       W("FR.ADD key http://example.com/a http://example.org/b"),
       true},
      {"FR.NEXT",
       {W("FR.CREATE key STRATEGY breadth LEASE 60000"),
        W("FR.ADD key http://example.com/a http://example.org/b")},
       W("FR.NEXT key 2"),
       true},
      {"FR.ACK",
       {W("FR.CREATE key STRATEGY breadth LEASE 60000"),
        W("FR.ADD key http://example.com/a http://example.org/b"), W("FR.NEXT key 2")},
       W("FR.ACK key 1")},
      {"FR.NACK",
       {W("FR.CREATE key STRATEGY breadth LEASE 60000"),
        W("FR.ADD key http://example.com/a http://example.org/b"), W("FR.NEXT key 2")},
       W("FR.NACK key 1 RETRY 5000")},
  };
}

std::vector<Case> KeyCases() {
  const std::string list = DumpOf({Many("RPUSH key", 300)}, "key");
  const std::string counts = DumpOf({W("AFC.ADD key a"), W("AFC.ADD key b")}, "key");
  const std::string hash = DumpOf({Many("HSET key", 300, true)}, "key");
  return {
      {"RENAME", {{"SET", "key", kText}}, W("RENAME key a-rather-long-name-of-a-key")},
      {"RENAME of a long value", {{"SET", "key", kLong}}, W("RENAME key other")},
      {"RENAME of an object", {W("SADD key a b c")}, W("RENAME key other")},
      {"RENAME over a key",
       {{"SET", "key", kText, "EX", "1000"}, W("SADD other a b c")},
       W("RENAME key other")},
      {"COPY", {{"SET", "key", kText}}, W("COPY key other")},
      {"COPY of a long value", {{"SET", "key", kLong}}, W("COPY key other")},
      {"COPY of an object over one",
       {ManyScores("ZADD key", 300), W("SADD other a")},
       W("COPY key other REPLACE")},
      {"COPY of a counter", {W("AFC.ADD key a"), W("AFC.ADD key b")}, W("COPY key other DB 1")},
      {"MOVE", {{"SET", "key", kText}}, W("MOVE key 1")},
      {"MOVE of an object", {W("SADD key a b c")}, W("MOVE key 1")},
      {"RESTORE of a list", {}, {"RESTORE", "key", "0", list}},
      {"RESTORE of a hash", {W("SADD key a")}, {"RESTORE", "key", "9000", hash, "REPLACE"}},
      {"RESTORE of a counter", {}, {"RESTORE", "key", "0", counts}},
      {"SORT with STORE", {Many("RPUSH key", 100)}, W("SORT key ALPHA STORE sorted")},
      {"SORT with STORE over a key",
       {W("RPUSH key 3 1 2"), {"SET", "sorted", kText}},
       W("SORT key STORE sorted")},
      {"SWAPDB", {W("SET a 1"), W("SET b 2")}, W("SWAPDB 0 1")},
      {"FLUSHDB", {W("SET a 1"), W("SADD b 2")}, W("FLUSHDB"), true},
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const auto& some : {StringCases(), CollectionCases(), NativeCases(), KeyCases()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = AllCases();
  return cases;
}

class EveryCommand : public ::testing::TestWithParam<size_t> {};

TEST_P(EveryCommand, IsRunOrRefused) {
  TryAll(Cases()[GetParam()], false);
  if (!HasFailure()) TryAll(Cases()[GetParam()], true);
}

INSTANTIATE_TEST_SUITE_P(OutOfMemory, EveryCommand, ::testing::Range<size_t>(0, Cases().size()),
                         [](const auto& test) {
                           std::string name;
                           for (const char c : Cases()[test.param].name) {
                             if (isalnum(static_cast<unsigned char>(c)) != 0) name += c;
                           }
                           return name + "_" + std::to_string(test.param);
                         });

// ---- several clients ----

TEST(OutOfMemory, WhoCannotBeEnteredEverywhereWaitsNowhere) {
  for (size_t n = 0;; ++n) {
    SCOPED_TRACE("after " + std::to_string(n) + " allocations");
    ASSERT_LT(n, kMost);
    Server server;
    TestClient other(server.test, 0);
    bool felt = false;
    const std::string reply =
        RunScarcely(server, {"BLPOP", "a", kText, "c", "30"}, n, false, &felt);
    Client& client = server.client->client;
    if (client.has(kClientBlocked)) {
      EXPECT_EQ(reply, "");
      EXPECT_EQ(server.test.engine.waiting().lines().keys(), 3);
      EXPECT_EQ(other.Run({"RPUSH", kText, "x"}), ":1\r\n");
      server.test.engine.ReceiveMail(server.client->lane);
      server.client->lane.waits.TakeResumed();
      EXPECT_EQ(server.client->TakeOutput(), "*2\r\n$100\r\n" + kText + "\r\n$1\r\nx\r\n");
      server.test.engine.ResumeWaiting(server.client->lane);
    } else {
      EXPECT_TRUE(reply.empty() || reply == kNoMemory) << reply;
      EXPECT_TRUE(felt);
    }
    EXPECT_EQ(server.test.engine.waiting().lines().keys(), 0);
    EXPECT_EQ(client.wait.waiter, nullptr);
    Inspect(server);
    if (HasFailure() || !felt) return;
  }
}

// An element is where it was pushed, or its client has it; or it was never pushed.
void PushToWaiting(const Words& waits, const std::string& answer, const std::string& list) {
  SCOPED_TRACE(waits[0]);
  for (size_t n = 0;; ++n) {
    SCOPED_TRACE("after " + std::to_string(n) + " allocations");
    ASSERT_LT(n, kMost);
    Server server;
    TestClient waiting(server.test, 0);
    waiting.Run(waits);
    ASSERT_TRUE(waiting.client.has(kClientBlocked));
    bool felt = false;
    const std::string reply = RunScarcely(server, {"RPUSH", "b", kText}, n, false, &felt);
    EXPECT_TRUE(reply == ":1\r\n" || reply == kNoMemory || reply.empty()) << reply;
    server.test.engine.ReceiveMail(waiting.lane);
    server.test.engine.ResumeWaiting(waiting.lane);
    waiting.lane.waits.TakeResumed();
    const std::string got = waiting.TakeOutput();
    EXPECT_TRUE(got.empty() || got == answer || got == kNoMemory) << got;
    const bool pushed = server.Run("LLEN b") == ":1\r\n";
    const bool moved = !list.empty() && server.Run({"LLEN", list}) == ":1\r\n";
    if (reply == ":1\r\n") {
      EXPECT_EQ((got == answer) + pushed, 1) << got;
      EXPECT_EQ(moved, !list.empty() && got == answer);
    }
    EXPECT_FALSE(pushed && moved);
    Inspect(server);
    // Who waits on is served by the next one, and nobody is left behind.
    if (got.empty() && waiting.client.has(kClientBlocked)) {
      server.Run({"RPUSH", "b", kText});
      server.test.engine.ReceiveMail(waiting.lane);
      waiting.lane.waits.TakeResumed();
      EXPECT_EQ(waiting.TakeOutput(), answer);
    }
    server.test.engine.ResumeWaiting(waiting.lane);
    EXPECT_EQ(server.test.engine.waiting().lines().keys(), 0);
    if (::testing::Test::HasFailure() || !felt) return;
  }
}

TEST(OutOfMemory, NoElementIsLostBetweenAPushAndWhoWaits) {
  const std::string bulk = "$100\r\n" + kText + "\r\n";
  PushToWaiting(W("BLPOP a b c 30"), "*2\r\n$1\r\nb\r\n" + bulk, "");
  PushToWaiting(W("BLMOVE b other LEFT RIGHT 30"), bulk, "other");
}

TEST(OutOfMemory, ATransactionRunsOrIsRefused) {
  for (const bool on : {false, true}) {
    for (size_t n = 0;; ++n) {
      SCOPED_TRACE("after " + std::to_string(n) + " allocations");
      ASSERT_LT(n, kMost);
      Server server;
      server.Run("MULTI");
      server.Run({"SET", "key", kText});
      server.Run({"RPUSH", "list", kText});
      bool felt = false;
      const std::string reply = RunScarcely(server, {"EXEC"}, n, on, &felt);
      EXPECT_TRUE(felt || reply == "*2\r\n+OK\r\n:1\r\n") << reply;
      EXPECT_TRUE(reply.empty() || reply == kNoMemory || reply.starts_with("*2\r\n")) << reply;
      // Run or not, it is over.
      EXPECT_TRUE(server.Run("DBSIZE").starts_with(":"));
      if (!HasFailure()) Inspect(server);
      if (HasFailure() || !felt) break;
    }
  }
}

TEST(OutOfMemory, WhatCannotBeQueuedAbortsTheTransaction) {
  for (size_t n = 0;; ++n) {
    SCOPED_TRACE("after " + std::to_string(n) + " allocations");
    ASSERT_LT(n, kMost);
    Server server;
    server.Run("MULTI");
    bool felt = false;
    const std::string reply = RunScarcely(server, {"SET", "key", kText}, n, false, &felt);
    const bool queued = reply == "+QUEUED\r\n";
    EXPECT_TRUE(queued || reply == kNoMemory || reply.empty()) << reply;
    const std::string done = server.Run("EXEC");
    EXPECT_EQ(done == "*1\r\n+OK\r\n", queued) << done;
    if (HasFailure() || !felt) return;
  }
}

TEST(OutOfMemory, EvictionGoesOn) {
  for (const config::MaxmemoryPolicy policy :
       {config::MaxmemoryPolicy::kAllkeysLru, config::MaxmemoryPolicy::kAllkeysRandom}) {
    Server server;
    const auto fill = [&] {
      for (int i = 0; i < 500; ++i) server.Run({"SET", fmt::format("{}{}", kText, i), kText});
    };
    fill();
    server.test.settings.maxmemory_policy = policy;
    for (size_t n = 0;; ++n) {
      SCOPED_TRACE("after " + std::to_string(n) + " allocations");
      ASSERT_LT(n, kMost);
      server.test.settings.maxmemory = server.test.engine.memory().Used() - 10000;
      bool felt = false;
      const std::string reply = RunScarcely(server, {"SET", "key", kText}, n, false, &felt);
      server.test.settings.maxmemory = 0;
      EXPECT_TRUE(reply.empty() || reply == "+OK\r\n" || reply.starts_with("-OOM")) << reply;
      Inspect(server);
      fill();
      if (HasFailure() || !felt) break;
    }
  }
}

TEST(OutOfMemory, ExpiryGoesOn) {
  for (size_t n = 0;; ++n) {
    SCOPED_TRACE("after " + std::to_string(n) + " allocations");
    ASSERT_LT(n, kMost);
    Server server;
    for (int i = 0; i < 200; ++i) {
      server.Run({"SET", fmt::format("{}{}", kText, i), kText, "PX", fmt::format("{}", 100 + i)});
    }
    server.Run(Many("HSET hash", 300, true));
    server.Run("HPEXPIRE hash 100 FIELDS 2 element:1 element:2");
    server.test.clock.AdvanceMillis(5000);
    bool felt = false;
    {
      const Scarcity scarcity(n, false);
      server.test.engine.Upkeep(server.client->lane);
      felt = scarcity.felt();
    }
    // What was not done then is done later.
    for (int i = 0; i < 20; ++i) server.test.engine.Upkeep(server.client->lane);
    Inspect(server);
    EXPECT_EQ(server.Run("HLEN hash"), ":298\r\n");
    EXPECT_EQ(server.Run("DBSIZE"), ":1\r\n");
    if (HasFailure() || !felt) return;
  }
}

// ---- saving ----

std::string MakeDirectory() {
  char name[] = "/tmp/sava-memory-XXXXXX";
  EXPECT_NE(mkdtemp(name), nullptr);
  return name;
}

// Takes no record while it is held: the lanes' buffers grow.
class HeldLog : public journal::Consumer {
 public:
  void Receive(const journal::Record& record) override {
    static_cast<void>(record);
    const std::lock_guard lock(held);
  }
  std::mutex held;
};

// Some of these pops need a new buffer for the log: an element is taken only when that can be
// logged.
TEST(OutOfMemory, APopThatCannotBeLoggedTakesNothing) {
  // With long names it is often a pop that needs a new buffer.
  const std::string list(400, 'l');
  const std::string set(400, 's');
  const std::string scores(400, 'z');
  const std::string text(400, 't');
  for (const Words& pop :
       {Words{"LPOP", list}, Words{"SPOP", set}, Words{"ZPOPMIN", scores}, Words{"GETDEL", text}}) {
    SCOPED_TRACE(pop[0]);
    Server server;
    HeldLog log;
    server.test.engine.journal().Attach(log);
    std::unique_lock held(log.held);
    size_t filled = 0;
    const auto fill = [&] {
      server.Run("FLUSHDB");
      server.Run({"SET", "other", std::string(++filled * 37 % 500, 'o')});
      server.Run({"RPUSH", list, kText + "1", kText + "2"});
      server.Run({"SADD", set, kText + "1", kText + "2"});
      server.Run({"ZADD", scores, "1", kText + "1", "2", kText + "2"});
      server.Run({"SET", text, kText});
    };
    const auto left = [&] {
      return server.Run({"LLEN", list}) + server.Run({"SCARD", set}) +
             server.Run({"ZCARD", scores}) + server.Run({"EXISTS", text});
    };
    // What it takes without the log, and when it is not the first of its kind.
    bool felt = true;
    size_t enough = kMost;
    for (int tries = 0; tries < 3; ++tries) {
      felt = true;
      size_t granted = 0;
      for (; felt && granted < enough; ++granted) {
        fill();
        RunScarcely(server, pop, granted, true, &felt);
      }
      enough = granted;
    }
    size_t scarce = 0;
    for (size_t n = 0; n < 3000; ++n) {
      fill();
      const std::string before = left();
      const std::string reply = RunScarcely(server, pop, enough - 1, true, &felt);
      if (!felt) continue;
      ++scarce;
      EXPECT_EQ(left() == before, IsRefusal(reply));
    }
    EXPECT_GT(scarce, 0U);
    held.unlock();
    server.test.engine.journal().Detach(log);
  }
}

TEST(OutOfMemory, AStreamOfChangesEndsWithWhatItCannotTell) {
  using replication::ChangeStream;
  const std::string effect = journal::RespText({"SET", "a", std::string(100000, 'x')});
  const journal::EffectHeader header{1, effect.size(), 0, journal::kToAll, 1};
  for (size_t n = 0;; ++n) {
    SCOPED_TRACE("after " + std::to_string(n) + " allocations");
    ASSERT_LT(n, kMost);
    bool lost = false;
    ChangeStream stream{{.kept = [] { return UINT64_MAX; },
                         .moved = [] {},
                         .drop = [](std::string_view) {},
                         .lost = [&] { lost = true; }}};
    stream.Begin(1 << 20);
    const auto deliver = [&] {
      stream.BeginRun();
      stream.Receive(journal::Record(&header, effect.data()));
      stream.EndRun(2);
      stream.Pause();
    };
    bool felt = false;
    {
      const Scarcity scarcity(n, false);
      deliver();
      felt = scarcity.felt();
    }
    EXPECT_EQ(lost, felt);
    const auto length = [&] {
      const auto mark = stream.Resume(stream.history().id, 0);
      return mark ? mark->backlog->end() : -1;
    };
    if (!felt) {
      EXPECT_GT(length(), static_cast<int64_t>(effect.size()));
      return;
    }
    EXPECT_EQ(length(), 0) << "nobody reads a part";
    deliver();
    EXPECT_EQ(length(), 0) << "nor what follows";
    stream.Renew();
    const int64_t from = stream.history().offset;
    deliver();
    const auto mark = stream.Resume(stream.history().id, from);
    ASSERT_TRUE(mark);
    EXPECT_GT(mark->backlog->end() - from, static_cast<int64_t>(effect.size()));
    if (HasFailure()) return;
  }
}

// A limited client stays limited, and the keys have what the buckets have.
TEST(OutOfMemory, NoClientRunsWithoutItsLimit) {
  const types::RateRule rule{types::RateAlgorithm::kWindow, 3, 60'000, 3};
  for (const bool on : {false, true}) {
    for (size_t n = 0;; ++n) {
      SCOPED_TRACE("after " + std::to_string(n) + " allocations");
      ASSERT_LT(n, kMost);
      Server server;
      server.test.settings.ratelimit_enabled = true;
      server.test.settings.ratelimit_default = rule;
      server.test.settings.ratelimit_exempt = {"DBSIZE"};
      server.test.engine.limiter().Configure(server.test.settings);
      const std::string key = server.test.settings.ratelimit_key_prefix + "default";
      bool felt = false;
      size_t granted_calls = 0;
      for (int i = 0; i < 4; ++i) {
        const std::string reply = RunScarcely(server, {"GET", key}, n, on, &felt);
        granted_calls += !IsRefusal(reply) && reply[0] == '$' ? 1 : 0;
      }
      EXPECT_LE(granted_calls, 3U);
      {
        const Scarcity scarcity(n, on);
        server.test.clock.AdvanceMillis(1000);
        server.test.engine.Upkeep(server.client->lane);
        felt = felt || scarcity.felt();
      }
      server.test.clock.AdvanceMillis(1000);
      server.test.engine.Upkeep(server.client->lane);
      server.test.engine.limiter().All();
      while (server.Run("GET absent") == "$-1\r\n") ++granted_calls;
      EXPECT_LE(granted_calls, 3U);
      server.test.clock.AdvanceMillis(1000);
      server.test.engine.Upkeep(server.client->lane);
      EXPECT_EQ(server.Run("DBSIZE"), ":1\r\n") << "the bucket is a key";
      if (HasFailure() || !felt) break;
    }
  }
}

TEST(OutOfMemory, ASnapshotFailsAndTheNextOneIsWritten) {
  const std::string directory = MakeDirectory();
  Server server;
  server.Run({"SET", "long", kLong});
  server.Run({"SET", "short", kText});
  server.Run(Many("HSET hash", 300, true));
  server.Run(ManyScores("ZADD scores", 3000));
  server.Run("AFC.ADD counter a");
  storage::SnapshotFile file;
  file.files = &storage::FileSystem::Real();
  file.temporary = directory + "/temporary";
  file.path = directory + "/dump";
  Engine& engine = server.test.engine;
  file.begin = [&] {
    engine.Exclusively(engine.house_lane(), [&] {
      engine.snapshot().Begin(CutOptions(engine.settings(), server.test.clock.WallMillis(), true));
    });
  };
  for (const bool on : {false, true}) {
    for (size_t n = 0;; ++n) {
      SCOPED_TRACE("after " + std::to_string(n) + " allocations");
      ASSERT_LT(n, kMost);
      bool felt = false;
      bool saved = false;
      {
        const Scarcity scarcity(n, on);
        base::IfMemory([&] { saved = WriteSnapshotFile(engine.snapshot(), file, false).ok(); });
        felt = scarcity.felt();
      }
      EXPECT_TRUE(saved || felt);
      EXPECT_FALSE(engine.snapshot().active());
      EXPECT_EQ(engine.snapshot().image_bytes(), 0);
      if (n % 16 == 0) {
        EXPECT_TRUE(WriteSnapshotFile(engine.snapshot(), file, false).ok());
      }
      if (HasFailure() || !felt) break;
    }
  }
  std::filesystem::remove_all(directory);
}

TEST(OutOfMemory, TheKeeperOutlivesASave) {
  const std::string directory = MakeDirectory();
  {
    Server server;
    server.test.settings.dir = directory;
    server.test.settings.save_rules.clear();
    server.Run({"SET", "long", kLong});
    server.Run(Many("HSET hash", 300, true));
    persistence::Persistence keeper(&server.test.engine);
    std::promise<void> loaded;
    keeper.Start([&] { loaded.set_value(); });
    loaded.get_future().wait();
    ASSERT_EQ(keeper.load_error(), "");
    const auto idle = [&] {
      while (keeper.figures().activity != persistence::Persistence::Activity::kNone) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    const auto save = [&] {
      idle();
      EXPECT_EQ(keeper.StartSave(false, false), persistence::Persistence::Started::kStarted);
      idle();
      return keeper.figures().save.last_ok;
    };
    for (size_t n = 0;; ++n) {
      SCOPED_TRACE("after " + std::to_string(n) + " allocations");
      ASSERT_LT(n, kMost);
      std::optional<Scarcity> scarcity;
      keeper.RunAlone([&] { scarcity.emplace(n, false); });
      const bool saved = save();
      bool felt = false;
      keeper.RunAlone([&] {
        felt = scarcity->felt();
        scarcity.reset();
      });
      EXPECT_TRUE(saved || felt);
      if (!saved) {
        EXPECT_TRUE(save());
      }
      if (HasFailure() || !felt) break;
    }
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace sava::engine
