// The server's own families in one process, without sockets: rows, connection, administration.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "admin/digest.h"
#include "admin/info.h"
#include "commands/grammar.h"
#include "commands/registry.h"
#include "server/families.h"
#include "server/server.h"

namespace sava::server {
namespace {

using Words = std::vector<std::string>;

// A server that was never started, and clients that talk to its engine directly.
struct Admin {
  explicit Admin(const Words& options = {}) : server(MakeConfig(options)) {}

  static std::unique_ptr<config::Config> MakeConfig(const Words& options) {
    auto config = std::make_unique<config::Config>();
    Words all = {"--threads", "2", "--enable-debug-command", "yes"};
    all.insert(all.end(), options.begin(), options.end());
    const base::Status status = config->ParseArgs(all);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error());
    return config;
  }

  Server server;
};

struct Caller {
  explicit Caller(Admin& admin, size_t lane_index = 0)
      : engine(admin.server.engine()), lane(*engine.lanes()[lane_index]) {
    client.id = engine.NewClientId();
    client.peer.addr = "127.0.0.1:" + std::to_string(1000 + client.id);
    client.peer.laddr = "127.0.0.1:6379";
    client.authenticated = engine.settings().requirepass.empty();
    client.set(engine::kClientLocal);
    engine.AddClient(lane, client);
  }
  ~Caller() { engine.RemoveClient(lane, client); }

  std::string Run(const Words& words) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    engine.Execute(lane, client, args);
    return TakeOutput();
  }
  std::string TakeOutput() {
    std::string text;
    while (!client.out.empty()) {
      iovec vectors[16];
      const size_t count = client.out.Gather(vectors, 16);
      size_t total = 0;
      for (size_t i = 0; i < count; ++i) {
        text.append(static_cast<char*>(vectors[i].iov_base), vectors[i].iov_len);
        total += vectors[i].iov_len;
      }
      client.out.Consume(total);
    }
    return text;
  }

  engine::Engine& engine;
  engine::Lane& lane;
  engine::Client client;
};

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(AdminRows, AreComplete) {
  commands::CommandTable table;
  for (const auto family : ServerFamilies()) table.Add(family);
  for (const auto& command : table.by_id()) {
    const commands::CommandSpec& spec = *command->spec;
    const std::string& name = command->full_name;
    EXPECT_FALSE(spec.summary.empty()) << name;
    EXPECT_FALSE(spec.complexity.empty()) << name;
    EXPECT_NE(spec.arity, 0) << name;
    EXPECT_TRUE(commands::ParseGrammar(spec.arguments, spec.keys.count).ok()) << name;
    if (!command->subcommands.empty()) {
      EXPECT_EQ(spec.handler, nullptr) << name;
      const auto by_name = [](const auto* a, const auto* b) {
        return a->spec->name < b->spec->name;
      };
      EXPECT_TRUE(std::ranges::is_sorted(command->subcommands, by_name)) << name;
      continue;
    }
    ASSERT_NE(spec.handler, nullptr) << name;
    EXPECT_FALSE(spec.reply.empty()) << name;
    std::vector<std::string_view> example;
    for (size_t at = 0; at < spec.example.size();) {
      const size_t end = std::min(spec.example.find(' ', at), spec.example.size());
      example.push_back(spec.example.substr(at, end - at));
      at = end + 1;
    }
    ASSERT_FALSE(example.empty()) << name;
    EXPECT_EQ(table.Resolve(example), command.get()) << spec.example;
    EXPECT_TRUE(command->ArityOk(example.size())) << spec.example;
  }
}

TEST(Connection, AuthenticatesAgainstRequirepass) {
  Admin admin({"--requirepass", "secret"});
  Caller caller(admin);
  EXPECT_EQ(caller.Run({"PING"}), "-NOAUTH Authentication required.\r\n");
  const std::string wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
  EXPECT_EQ(caller.Run({"AUTH", "secre"}), wrong);
  EXPECT_EQ(caller.Run({"AUTH", "secrett"}), wrong);
  EXPECT_EQ(caller.Run({"AUTH", "nosuch", "secret"}), wrong);
  EXPECT_TRUE(caller.Run({"HELLO", "3"}).starts_with("-NOAUTH HELLO must be called"));
  EXPECT_EQ(caller.client.resp, 2);
  EXPECT_TRUE(caller.Run({"HELLO", "3", "AUTH", "default", "secret"}).starts_with("%7\r\n"));
  EXPECT_EQ(caller.Run({"PING"}), "+PONG\r\n");
  EXPECT_TRUE(Has(caller.Run({"ACL", "LIST"}),
                  "user default on sanitize-payload "
                  "#2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~* &* +@all"));
  const std::string log = caller.Run({"ACL", "LOG"});
  EXPECT_TRUE(log.starts_with("*2\r\n%10\r\n$5\r\ncount\r\n:1\r\n")) << log;
  EXPECT_TRUE(Has(log, "$6\r\nnosuch\r\n"));
  EXPECT_TRUE(Has(log, "$5\r\ncount\r\n:2\r\n"));
  EXPECT_EQ(caller.Run({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(caller.Run({"PING"}), "-NOAUTH Authentication required.\r\n");
}

TEST(Connection, WaitsForReplicasThatDoNotExist) {
  Admin admin;
  Caller caller(admin);
  Caller other(admin, 1);
  EXPECT_EQ(caller.Run({"WAIT", "0", "0"}), ":0\r\n");
  EXPECT_EQ(caller.Run({"WAIT", "1", "-1"}), "-ERR timeout is negative\r\n");
  EXPECT_EQ(caller.Run({"WAIT", "1", "9223372036854775807"}), "-ERR timeout is out of range\r\n");
  caller.Run({"MULTI"});
  caller.Run({"WAIT", "1", "0"});
  EXPECT_EQ(caller.Run({"EXEC"}), "*1\r\n:0\r\n") << "nobody waits inside a transaction";
  const std::string id = std::to_string(caller.client.id);
  for (const bool error : {false, true}) {
    EXPECT_EQ(caller.Run({"WAIT", "1", "0"}), "");
    EXPECT_TRUE(caller.client.waiting());
    EXPECT_EQ(other.Run({"CLIENT", "UNBLOCK", id, error ? "ERROR" : "TIMEOUT"}), ":1\r\n");
    EXPECT_FALSE(caller.client.waiting());
    EXPECT_EQ(caller.TakeOutput(),
              error ? "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n" : ":0\r\n");
    admin.server.engine().ResumeWaiting(caller.lane);
    EXPECT_EQ(caller.TakeOutput(), "") << "answered once";
  }
  EXPECT_EQ(other.Run({"CLIENT", "UNBLOCK", id}), ":0\r\n");
}

TEST(Clients, AreListedAndKilledAcrossThreads) {
  Admin admin;
  Caller first(admin, 0);
  Caller second(admin, 1);
  Caller third(admin, 1);
  second.Run({"CLIENT", "SETNAME", "two"});
  const std::string list = first.Run({"CLIENT", "LIST"});
  EXPECT_TRUE(Has(list, "id=1 "));
  EXPECT_TRUE(Has(list, "cmd=client|list"));
  EXPECT_TRUE(Has(list, " name=two "));
  EXPECT_LT(list.find("id=2 "), list.find("id=3 "));
  EXPECT_EQ(first.Run({"CLIENT", "KILL", ""}), "-ERR No such client\r\n");
  EXPECT_EQ(first.Run({"CLIENT", "KILL", "ADDR", ""}), ":0\r\n");
  EXPECT_EQ(first.Run({"CLIENT", "KILL", second.client.peer.addr}), "+OK\r\n");
  EXPECT_TRUE(second.client.has(engine::kClientCloseNow));
  EXPECT_FALSE(third.client.has(engine::kClientCloseNow));
  EXPECT_EQ(first.Run({"CLIENT", "KILL", "ID", "1", "SKIPME", "no"}), ":1\r\n");
  EXPECT_TRUE(first.client.has(engine::kClientCloseAfterReply));
}

TEST(Debug, IsGuarded) {
  for (const auto& [setting, allowed_here, allowed_far] :
       {std::tuple{"no", false, false}, std::tuple{"local", true, false},
        std::tuple{"yes", true, true}}) {
    Admin admin({"--enable-debug-command", setting});
    Caller here(admin);
    Caller far(admin);
    far.client.set(engine::kClientLocal, false);
    EXPECT_EQ(here.Run({"DEBUG", "JMAP"}) == "+OK\r\n", allowed_here) << setting;
    EXPECT_EQ(far.Run({"DEBUG", "JMAP"}) == "+OK\r\n", allowed_far) << setting;
    if (!allowed_far) {
      EXPECT_TRUE(far.Run({"DEBUG", "JMAP"}).starts_with("-ERR DEBUG command not allowed. If "));
    }
  }
}

TEST(Debug, DigestDependsOnContentsAlone) {
  Admin admin;
  Caller caller(admin);
  const std::string empty = caller.Run({"DEBUG", "DIGEST"});
  EXPECT_EQ(empty, "+" + std::string(40, '0') + "\r\n");
  caller.Run({"MSET", "a", "1", "b", std::string(1000, 'x'), "c", "text"});
  const std::string one = caller.Run({"DEBUG", "DIGEST"});
  EXPECT_NE(one, empty);
  caller.Run({"FLUSHDB"});
  for (const Words& set : {Words{"SET", "c", "text"}, Words{"SET", "b", std::string(1000, 'x')},
                           Words{"APPEND", "a", "1"}}) {
    caller.Run(set);
  }
  EXPECT_EQ(caller.Run({"DEBUG", "DIGEST"}), one) << "order and form do not matter";
  caller.Run({"EXPIRE", "c", "1000"});
  EXPECT_NE(caller.Run({"DEBUG", "DIGEST"}), one);
  caller.Run({"PERSIST", "c"});
  EXPECT_EQ(caller.Run({"DEBUG", "DIGEST"}), one);
  caller.Run({"MOVE", "c", "1"});
  EXPECT_NE(caller.Run({"DEBUG", "DIGEST"}), one) << "the database matters";
}

TEST(Config, ReadsAndWritesSettings) {
  Admin admin;
  Caller caller(admin);
  EXPECT_EQ(caller.Run({"CONFIG", "SET", "maxmemory", "1mb", "timeout", "7"}), "+OK\r\n");
  EXPECT_EQ(caller.Run({"CONFIG", "GET", "timeout"}), "*2\r\n$7\r\ntimeout\r\n$1\r\n7\r\n");
  EXPECT_EQ(admin.server.engine().settings().maxmemory, 1U << 20);
  EXPECT_EQ(caller.Run({"CONFIG", "SET", "timeout", "1", "x"}), "-ERR syntax error\r\n");
}

TEST(Info, LocksOnlyWhenItLooksAtClients) {
  const auto lock = [](std::vector<std::string_view> words) {
    words.insert(words.begin(), "INFO");
    return admin::InfoLock(words);
  };
  EXPECT_EQ(lock({}), commands::LockClass::kAll);
  EXPECT_EQ(lock({"everything"}), commands::LockClass::kAll);
  EXPECT_EQ(lock({"Clients"}), commands::LockClass::kAll);
  EXPECT_EQ(lock({"memory"}), commands::LockClass::kAll);
  EXPECT_EQ(lock({"stats", "sava", "keyspace"}), commands::LockClass::kNone);
  EXPECT_EQ(lock({"nosuch"}), commands::LockClass::kNone);
}

TEST(Info, CountsCommandsKeysAndErrors) {
  Admin admin;
  Caller caller(admin);
  caller.Run({"SET", "a", "1", "PX", "100000"});
  caller.Run({"SELECT", "3"});
  caller.Run({"SET", "b", "x"});
  caller.Run({"INCR", "b"});
  caller.Run({"GET"});
  const std::string text = caller.Run({"INFO", "everything"});
  for (const char* part :
       {"redis_version:7.2.4\r\n",
        "db0:keys=1,expires=1,avg_ttl=", "db3:keys=1,expires=0,avg_ttl=0", "cmdstat_set:calls=2,",
        "cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,", "cmdstat_incr:calls=1,",
        ",failed_calls=1\r\n", "errorstat_ERR:count=2\r\n",
        "latency_percentiles_usec_set:p50=", "# Sava\r\nthreads:2\r\n", "role:master\r\n"}) {
    EXPECT_TRUE(Has(text, part)) << part;
  }
  const uint64_t changes = admin.server.engine().Dirty();
  EXPECT_GT(changes, 0U);
  caller.Run({"CONFIG", "RESETSTAT"});
  EXPECT_FALSE(Has(caller.Run({"INFO", "commandstats", "errorstats"}), "cmdstat_set"));
  EXPECT_EQ(admin.server.engine().Dirty(), changes) << "the save rules count on";
  EXPECT_EQ(caller.Run({"INFO", "cluster", "nosuch"}),
            "$30\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n");
}

TEST(Transactions, QueueSubcommandsWhateverTheyAreCalled) {
  Admin admin;
  Caller caller(admin);
  EXPECT_EQ(caller.Run({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(caller.Run({"LATENCY", "RESET"}), "+QUEUED\r\n");
  EXPECT_EQ(caller.Run({"SLOWLOG", "RESET"}), "+QUEUED\r\n");
  EXPECT_EQ(caller.Run({"EXEC"}), "*2\r\n:0\r\n+OK\r\n");
}

TEST(Memory, MeasuresKeys) {
  Admin admin;
  Caller caller(admin);
  EXPECT_EQ(caller.Run({"MEMORY", "USAGE", "missing"}), "$-1\r\n");
  caller.Run({"SET", "k", std::string(100'000, 'x')});
  const std::string usage = caller.Run({"MEMORY", "USAGE", "k", "SAMPLES", "0"});
  EXPECT_GE(std::stoll(usage.substr(1)), 100'000);
  EXPECT_TRUE(Has(caller.Run({"MEMORY", "STATS"}), "$10\r\nkeys.count\r\n:1\r\n"));
}

TEST(Monitor, CountsItselfOnce) {
  Admin admin;
  Caller caller(admin);
  EXPECT_EQ(caller.Run({"MONITOR"}), "+OK\r\n");
  EXPECT_EQ(caller.Run({"MONITOR"}), "");
  EXPECT_EQ(admin.server.engine().observer().monitors().load(), 1);
  caller.Run({"RESET"});
  EXPECT_EQ(admin.server.engine().observer().monitors().load(), 0);
}

}  // namespace
}  // namespace sava::server
