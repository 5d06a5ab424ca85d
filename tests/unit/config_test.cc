// The configuration: files, command line, CONFIG GET, SET and REWRITE.

#include "config/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "../../fuzz/config_property.h"
#include "config/config_file.h"

namespace sava::config {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sava-config-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path_); }

  std::string Path(const std::string& name) const { return (path_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return Path(name);
  }
  std::string Read(const std::string& name) const { return *ReadWholeFile(Path(name)); }

 private:
  std::filesystem::path path_;
};

std::string Value(const Config& config, std::string_view name) {
  const std::string_view names[] = {name};
  const Pairs found = config.Get(names);
  return found.size() == 1 ? found[0].second : "(not one value)";
}

// The error text, empty on success.
std::string Parse(Config& config, std::string_view text) {
  const base::Status status = config.ParseText(text, "the configuration file 'x'");
  return status ? "" : status.error();
}

std::string Args(Config& config, const std::vector<std::string>& args,
                 std::istream* standard_input = nullptr) {
  const base::Status status = config.ParseArgs(args, standard_input);
  return status ? "" : status.error();
}

std::string Set(Config& config, const std::vector<std::string_view>& args, bool local = false) {
  const base::Status status = config.Set(args, local);
  return status ? "" : status.error();
}

std::string Failed(std::string_view name, std::string_view reason) {
  return "ERR CONFIG SET failed (possibly related to argument '" + std::string(name) + "') - " +
         std::string(reason);
}

// Every name of CONFIG GET * in Redis 7.2.
constexpr std::string_view kRedisNames[] = {
    "acl-pubsub-default",
    "aclfile",
    "acllog-max-len",
    "active-defrag-cycle-max",
    "active-defrag-cycle-min",
    "active-defrag-ignore-bytes",
    "active-defrag-max-scan-fields",
    "active-defrag-threshold-lower",
    "active-defrag-threshold-upper",
    "active-expire-effort",
    "activedefrag",
    "activerehashing",
    "always-show-logo",
    "aof-disable-auto-gc",
    "aof-load-truncated",
    "aof-rewrite-cpulist",
    "aof-rewrite-incremental-fsync",
    "aof-timestamp-enabled",
    "aof-use-rdb-preamble",
    "aof_rewrite_cpulist",
    "appenddirname",
    "appendfilename",
    "appendfsync",
    "appendonly",
    "auto-aof-rewrite-min-size",
    "auto-aof-rewrite-percentage",
    "bgsave-cpulist",
    "bgsave_cpulist",
    "bind",
    "bind-source-addr",
    "bio-cpulist",
    "bio_cpulist",
    "busy-reply-threshold",
    "client-output-buffer-limit",
    "client-query-buffer-limit",
    "cluster-allow-pubsubshard-when-down",
    "cluster-allow-reads-when-down",
    "cluster-allow-replica-migration",
    "cluster-announce-bus-port",
    "cluster-announce-hostname",
    "cluster-announce-human-nodename",
    "cluster-announce-ip",
    "cluster-announce-port",
    "cluster-announce-tls-port",
    "cluster-config-file",
    "cluster-enabled",
    "cluster-link-sendbuf-limit",
    "cluster-migration-barrier",
    "cluster-node-timeout",
    "cluster-port",
    "cluster-preferred-endpoint-type",
    "cluster-replica-no-failover",
    "cluster-replica-validity-factor",
    "cluster-require-full-coverage",
    "cluster-slave-no-failover",
    "cluster-slave-validity-factor",
    "crash-log-enabled",
    "crash-memcheck-enabled",
    "daemonize",
    "databases",
    "dbfilename",
    "dir",
    "disable-thp",
    "dynamic-hz",
    "enable-debug-command",
    "enable-module-command",
    "enable-protected-configs",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "hash-max-ziplist-entries",
    "hash-max-ziplist-value",
    "hll-sparse-max-bytes",
    "hz",
    "ignore-warnings",
    "io-threads",
    "io-threads-do-reads",
    "jemalloc-bg-thread",
    "latency-monitor-threshold",
    "latency-tracking",
    "latency-tracking-info-percentiles",
    "lazyfree-lazy-eviction",
    "lazyfree-lazy-expire",
    "lazyfree-lazy-server-del",
    "lazyfree-lazy-user-del",
    "lazyfree-lazy-user-flush",
    "lfu-decay-time",
    "lfu-log-factor",
    "list-compress-depth",
    "list-max-listpack-size",
    "list-max-ziplist-size",
    "locale-collate",
    "logfile",
    "loglevel",
    "lua-time-limit",
    "masterauth",
    "masteruser",
    "maxclients",
    "maxmemory",
    "maxmemory-clients",
    "maxmemory-eviction-tenacity",
    "maxmemory-policy",
    "maxmemory-samples",
    "min-replicas-max-lag",
    "min-replicas-to-write",
    "min-slaves-max-lag",
    "min-slaves-to-write",
    "no-appendfsync-on-rewrite",
    "notify-keyspace-events",
    "oom-score-adj",
    "oom-score-adj-values",
    "pidfile",
    "port",
    "proc-title-template",
    "propagation-error-behavior",
    "protected-mode",
    "proto-max-bulk-len",
    "rdb-del-sync-files",
    "rdb-save-incremental-fsync",
    "rdbchecksum",
    "rdbcompression",
    "repl-backlog-size",
    "repl-backlog-ttl",
    "repl-disable-tcp-nodelay",
    "repl-diskless-load",
    "repl-diskless-sync",
    "repl-diskless-sync-delay",
    "repl-diskless-sync-max-replicas",
    "repl-ping-replica-period",
    "repl-ping-slave-period",
    "repl-timeout",
    "replica-announce-ip",
    "replica-announce-port",
    "replica-announced",
    "replica-ignore-disk-write-errors",
    "replica-ignore-maxmemory",
    "replica-lazy-flush",
    "replica-priority",
    "replica-read-only",
    "replica-serve-stale-data",
    "replicaof",
    "requirepass",
    "sanitize-dump-payload",
    "save",
    "server-cpulist",
    "server_cpulist",
    "set-max-intset-entries",
    "set-max-listpack-entries",
    "set-max-listpack-value",
    "set-proc-title",
    "shutdown-on-sigint",
    "shutdown-on-sigterm",
    "shutdown-timeout",
    "slave-announce-ip",
    "slave-announce-port",
    "slave-ignore-maxmemory",
    "slave-lazy-flush",
    "slave-priority",
    "slave-read-only",
    "slave-serve-stale-data",
    "slaveof",
    "slowlog-log-slower-than",
    "slowlog-max-len",
    "socket-mark-id",
    "stop-writes-on-bgsave-error",
    "stream-node-max-bytes",
    "stream-node-max-entries",
    "supervised",
    "syslog-enabled",
    "syslog-facility",
    "syslog-ident",
    "tcp-backlog",
    "tcp-keepalive",
    "timeout",
    "tls-auth-clients",
    "tls-ca-cert-dir",
    "tls-ca-cert-file",
    "tls-cert-file",
    "tls-ciphers",
    "tls-ciphersuites",
    "tls-client-cert-file",
    "tls-client-key-file",
    "tls-client-key-file-pass",
    "tls-cluster",
    "tls-dh-params-file",
    "tls-key-file",
    "tls-key-file-pass",
    "tls-port",
    "tls-prefer-server-ciphers",
    "tls-protocols",
    "tls-replication",
    "tls-session-cache-size",
    "tls-session-cache-timeout",
    "tls-session-caching",
    "tracking-table-max-keys",
    "unixsocket",
    "unixsocketperm",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
    "zset-max-ziplist-entries",
    "zset-max-ziplist-value",
};

TEST(ConfigTable, KnowsEveryNameOfRedisAndItsOwn) {
  Config config;
  std::map<std::string, std::string> values;
  for (auto& [name, value] : AllValues(config)) values.emplace(name, value);
  for (const std::string_view name : kRedisNames) {
    EXPECT_EQ(values.erase(std::string(name)), 1U) << name;
  }
  EXPECT_EQ(values.erase("threads"), 1U);
  EXPECT_EQ(values.erase("http-port"), 1U);
  EXPECT_EQ(values.erase("http-bind"), 1U);
  for (const char* name :
       {"http-tls-port",          "http-hosts",        "http-max-header",      "http-max-body",
        "http-timeout",           "http-idle-timeout", "associations-prefix",  "associations-top",
        "associations-guid-keys", "aof-ring",          "save-max-rate",        "save-keep",
        "dictionary-encoding",    "ratelimit-enabled", "ratelimit-default",    "ratelimit-user",
        "ratelimit-ip",           "ratelimit-exempt",  "ratelimit-key-prefix", "script-keys",
        "script-max-memory",      "repl-native-types"}) {
    EXPECT_EQ(values.erase(name), 1U) << name;
  }
  for (const auto& [name, value] : values) ADD_FAILURE() << "a name nobody asked for: " << name;
}

TEST(ConfigTable, NamesAndAliasesAreUnique) {
  std::map<std::string_view, int> seen;
  for (const Setting& setting : AllSettings()) {
    EXPECT_EQ(seen[setting.name]++, 0) << setting.name;
    if (!setting.alias.empty()) {
      EXPECT_EQ(seen[setting.alias]++, 0) << setting.alias;
    }
  }
}

TEST(ConfigTable, EveryDefaultPassesItsOwnCheck) {
  const ConfigState defaults = DefaultState();
  for (const Setting& setting : AllSettings()) {
    if (setting.name == "replicaof") continue;  // prints nothing while there is no master
    ConfigState state = DefaultState();
    const std::string value = PrintValue(setting, defaults);
    const base::Status status = ReadValue(setting, {&value, 1}, Origin::kFirstLine, state);
    EXPECT_TRUE(status) << setting.name << ": " << status.error();
    EXPECT_TRUE(SameValue(setting, defaults, state)) << setting.name;
  }
}

TEST(ConfigTable, DefaultsUsersSee) {
  Config config;
  const std::map<std::string, std::string> expected = {
      {"port", "6379"},
      {"bind", "127.0.0.1"},
      {"threads", "0"},
      {"http-port", "7379"},
      {"http-bind", "127.0.0.1"},
      {"http-hosts", ""},
      {"http-max-header", "16384"},
      {"http-max-body", "16777216"},
      {"http-timeout", "30"},
      {"http-idle-timeout", "60"},
      {"associations-prefix", "assoc:"},
      {"associations-top", "20"},
      {"save", "300 1 60 10000"},
      {"protected-mode", "yes"},
      {"appendonly", "yes"},
      {"databases", "16"},
      {"maxclients", "10000"},
      {"maxmemory-policy", "noeviction"},
      {"client-output-buffer-limit",
       "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"},
      {"latency-tracking-info-percentiles", "50 99 99.9"},
      {"oom-score-adj-values", "0 200 800"},
      {"shutdown-on-sigterm", "default"},
      {"unixsocketperm", "0"},
      {"dir", (std::filesystem::current_path() / "data").string()},
  };
  for (const auto& [name, value] : expected) EXPECT_EQ(Value(config, name), value) << name;
  EXPECT_EQ(config.settings().dir, "./data");
}

TEST(ConfigParse, ReadsWordsQuotesCommentsAndBlanks) {
  Config config;
  EXPECT_EQ(Parse(config,
                  "# comment\r\n"
                  "   # indented comment\n"
                  "\n"
                  "PORT\t7000 \r\n"
                  "logfile \"a b\\n\\x41\\\"\"\n"
                  "pidfile 'it\\'s \\n'\n"
                  "syslog-ident \"\"\n"
                  "\"timeout\" 9"),
            "");
  EXPECT_EQ(config.settings().port, 7000);
  EXPECT_EQ(config.settings().logfile, "a b\nA\"");
  EXPECT_EQ(config.settings().pidfile, "it's \\n");
  EXPECT_EQ(config.settings().syslog_ident, "");
  EXPECT_EQ(config.settings().timeout, 9);
}

TEST(ConfigParse, LaterLinesOverrideAndSaveRulesAddUp) {
  Config config;
  EXPECT_EQ(Parse(config,
                  "timeout 5\ntimeout 6\n"
                  "save 900 1\nsave \"60 1000\"\nsave 10 1 20 2\n"
                  "client-output-buffer-limit normal 1kb 2 3\n"
                  "client-output-buffer-limit REPLICA 4 5 6\n"),
            "");
  EXPECT_EQ(config.settings().timeout, 6);
  EXPECT_EQ(Value(config, "save"), "900 1 60 1000 10 1 20 2");
  EXPECT_EQ(Value(config, "client-output-buffer-limit"),
            "normal 1024 2 3 slave 4 5 6 pubsub 33554432 8388608 60");
  EXPECT_EQ(Parse(config, "save \"\"\n"), "");
  EXPECT_EQ(Value(config, "save"), "");
}

TEST(ConfigParse, ErrorsNameFileLineAndReason) {
  const std::map<std::string, std::string> reasons = {
      {"foo bar", "Bad directive or wrong number of arguments: there is no setting 'foo'"},
      {"maxmemry 5",
       "Bad directive or wrong number of arguments: there is no setting 'maxmemry', did you mean "
       "'maxmemory'?"},
      {"include", "Bad directive or wrong number of arguments"},
      {"user", "Bad directive or wrong number of arguments"},
      {"port", "wrong number of arguments"},
      {"port 1 2", "wrong number of arguments"},
      {"port abc", "argument couldn't be parsed into an integer"},
      {"databases 0", "argument must be between 1 and 2147483647 inclusive"},
      {"bind \"127.0.0.1", "Unbalanced quotes in configuration line"},
      {"bind \"127.0.0.1\"x", "Unbalanced quotes in configuration line"},
      {"unixsocketperm 999", "argument couldn't be parsed as an octal number"},
      {"unixsocketperm 1000", "argument must be between 0 and 777 inclusive"},
      {"save 900", "Invalid save parameters"},
      {"maxmemory 1.5gb", "argument must be a memory value"},
      {"activerehashing maybe", "argument must be 'yes' or 'no'"},
      {"appenddirname \"\"", "appenddirname can't be empty"},
      {"appendfilename a/b", "appendfilename can't be a path, just a filename"},
      {"replicaof somewhere", "wrong number of arguments"},
      {"replicaof somewhere 99999", "Invalid master port"},
      {"sentinel monitor x", "sentinel directive while not in sentinel mode"},
  };
  for (const auto& [line, reason] : reasons) {
    Config config;
    EXPECT_EQ(Parse(config, "# one\n\n" + line + "\nport 1\n"),
              "*** FATAL CONFIG FILE ERROR (Sava) ***\n"
              "Reading the configuration file 'x', at line 3\n"
              ">>> '" +
                  line + "'\n" + reason);
  }
}

TEST(ConfigParse, ErrorsDoNotShowSecrets) {
  for (const std::string line : {"requirepass hunter2 extra", "\"requirepass\" hunter2 extra",
                                 "masterauth hunter2 extra", "REQUIREPASS \"hunter2"}) {
    Config config;
    const std::string error = Parse(config, line);
    EXPECT_NE(error, "");
    EXPECT_EQ(error.find("hunter2"), std::string::npos) << error;
  }
}

TEST(ConfigParse, FeaturesThatPromiseSafetyAreRefused) {
  for (const std::string line : {"tls-cluster yes", "loadmodule x.so", "cluster-enabled yes"}) {
    Config config;
    EXPECT_NE(Parse(config, line).find("\nnot built yet: "), std::string::npos) << line;
  }
  // The same names with the value they have anyway promise nothing.
  Config config;
  EXPECT_EQ(Parse(config,
                  "tls-cluster no\naclfile \"\"\ncluster-enabled no\nreplicaof no one\n"
                  "appendfsync always\nlist-max-ziplist-entries 5\n"),
            "");
}

TEST(ConfigParse, UsersAndRenamedCommandsAreKept) {
  Config config;
  EXPECT_EQ(Parse(config,
                  "user ann on >pw \"~a b\"\nUSER default off\nrename-command get \"\"\n"
                  "rename-command set PUT\n"),
            "");
  using Lines = std::vector<std::vector<std::string>>;
  EXPECT_EQ(config.settings().user_lines,
            (Lines{{"ann", "on", ">pw", "~a b"}, {"default", "off"}}));
  using Names = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(config.settings().renamed_commands, (Names{{"get", ""}, {"set", "PUT"}}));
  EXPECT_NE(Parse(config, "rename-command get"), "");
  EXPECT_NE(Parse(config, "user"), "");
  const std::string_view name[] = {"user", "rename-command"};
  EXPECT_TRUE(config.Get(name).empty());
}

TEST(ConfigRewrite, UsersStandWhereTheyStood) {
  Config config;
  const std::string old = "# a\nuser ann on\n# b\nuser bob off\nrename-command get x\nport 1\n";
  ASSERT_EQ(Parse(config, old), "");
  EXPECT_EQ(config.RewrittenText(old), old) << "nobody tells the users";
  std::vector<std::string> users = {"ann off", "tom on"};
  config.OnRewriteUsers([&users] { return users; });
  const std::string once = config.RewrittenText(old);
  EXPECT_EQ(once, "# a\nuser ann off\nuser tom on\n# b\nrename-command get x\nport 1\n");
  EXPECT_EQ(config.RewrittenText(once), once);
  EXPECT_EQ(config.RewrittenText("port 1\n"),
            "port 1\n\n# Generated by CONFIG REWRITE\nuser ann off\nuser tom on\n");
  users.clear();
  EXPECT_EQ(config.RewrittenText("user ann on\nport 1\n"), "port 1\n");
}

TEST(ConfigParse, IncludesFilesAndGlobs) {
  Directory dir;
  dir.Write("a.conf", "timeout 1\nhz 20\n");
  dir.Write("b.conf", "timeout 2\n");
  dir.Write("bad.txt", "\nfoo\n");
  const std::string main =
      dir.Write("main.conf", "include \"" + dir.Path("*.conf-none") + "\"\ninclude " +
                                 dir.Path("[ab].conf") + "\nport 7001\n");
  Config config;
  const base::Status status = config.ParseFile(main);
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(config.settings().timeout, 2);
  EXPECT_EQ(config.settings().hz, 20);
  EXPECT_EQ(config.settings().port, 7001);
  EXPECT_EQ(config.config_file(), main);

  Config missing;
  EXPECT_EQ(Parse(missing, "include " + dir.Path("nothing") + "\n"),
            "Fatal error, can't open config file '" + dir.Path("nothing") +
                "': No such file or directory");
  Config nested;
  EXPECT_EQ(Parse(nested, "include " + dir.Path("bad.txt") + "\n"),
            "*** FATAL CONFIG FILE ERROR (Sava) ***\nReading the configuration file '" +
                dir.Path("bad.txt") +
                "', at line 2\n>>> 'foo'\nBad directive or wrong number of arguments: there is no "
                "setting 'foo'");
  Config endless;
  const std::string self = dir.Path("self");
  dir.Write("self", "include " + self + "\n");
  EXPECT_NE(Parse(endless, "include " + self + "\n").find("include one another"),
            std::string::npos);
  Config directory;
  EXPECT_NE(Parse(directory, "include /\n").find("Is a directory"), std::string::npos);
}

TEST(ConfigArgs, TakesOptionsAsRedisServerDoes) {
  Config config;
  EXPECT_EQ(Args(config, {"--port", "7000", "--bind", "127.0.0.1", "::1", "--save", "900", "1",
                          "300", "10", "--requirepass", "--odd", "--logfile", "", "--hz 50"}),
            "");
  EXPECT_EQ(config.settings().port, 7000);
  EXPECT_EQ(Value(config, "bind"), "127.0.0.1 ::1");
  EXPECT_EQ(Value(config, "save"), "900 1 300 10");
  EXPECT_EQ(config.settings().requirepass, "--odd");
  EXPECT_EQ(config.settings().hz, 50);
  EXPECT_EQ(config.config_file(), "");
}

TEST(ConfigArgs, SaveMayStandAlone) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"--save", ""},
                                               {"--save"},
                                               {"--save", "--port", "7000"},
                                               {"--save", "", "--port", "7000"},
                                               {"--SAVE", "--port", "7000"}}) {
    Config config;
    EXPECT_EQ(Args(config, args), "");
    EXPECT_EQ(Value(config, "save"), "");
    EXPECT_EQ(config.settings().port, args.size() > 2 ? 7000 : 6379);
  }
}

TEST(ConfigArgs, OptionsOverrideTheFileWhereverItStands) {
  Directory dir;
  const std::string file = dir.Write("f.conf", "port 1\ntimeout 3\nsave 60 1\n");
  const std::string more = dir.Write("more.conf", "timeout 4\n");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{file, "--port", "7000", "--save", "900", "2"},
        {"--port", "7000", file, "--save", "900", "2"},
        {"--save", "900", "2", "--port", "7000", file}}) {
    Config config;
    EXPECT_EQ(Args(config, args), "");
    EXPECT_EQ(config.settings().port, 7000);
    EXPECT_EQ(config.settings().timeout, 3);
    EXPECT_EQ(Value(config, "save"), "60 1 900 2");
    EXPECT_EQ(config.config_file(), file);
  }
  Config config;
  EXPECT_EQ(Args(config, {file, "--include", more}), "");
  EXPECT_EQ(config.settings().timeout, 4);
}

TEST(ConfigArgs, ReadsStandardInput) {
  std::istringstream first("port 7002\ntimeout 1\n");
  Config config;
  EXPECT_EQ(Args(config, {"-", "--timeout", "2"}, &first), "");
  EXPECT_EQ(config.settings().port, 7002);
  EXPECT_EQ(config.settings().timeout, 2);
  std::istringstream second("port x\n");
  EXPECT_EQ(Args(config, {"--timeout", "2", "-"}, &second),
            "*** FATAL CONFIG FILE ERROR (Sava) ***\nReading standard input, at line 1\n"
            ">>> 'port x'\nargument couldn't be parsed into an integer");
}

TEST(ConfigArgs, ErrorsNameTheOption) {
  const auto fatal = [](const std::string& line, const std::string& reason) {
    return "*** FATAL CONFIG FILE ERROR (Sava) ***\nReading the command line\n>>> '" + line +
           "'\n" + reason;
  };
  const auto error = [](const std::vector<std::string>& args) {
    Config config;
    return Args(config, args);
  };
  EXPECT_EQ(error({"--port"}), fatal("port", "wrong number of arguments"));
  EXPECT_EQ(error({"--port", "abc"}),
            fatal("port \"abc\"", "argument couldn't be parsed into an integer"));
  EXPECT_EQ(error({"--timeout", "--hz", "1"}),
            fatal("timeout \"--hz\" \"1\"", "wrong number of arguments"));
  EXPECT_EQ(error({"--foo", "bar"}),
            fatal("foo \"bar\"",
                  "Bad directive or wrong number of arguments: there is no setting 'foo'"));
  EXPECT_EQ(error({"nonexistent-file"}),
            "Fatal error, can't open config file 'nonexistent-file': No such file or directory");
}

TEST(ConfigGet, MatchesPatternsWithoutCaseAndOnlyOnce) {
  Config config;
  const auto get = [&](std::vector<std::string_view> patterns) { return config.Get(patterns); };
  EXPECT_EQ(get({"Port", "PORT", "por?"}), (Pairs{{"Port", "6379"}}));
  EXPECT_EQ(get({"MAXMEMORY-S*", "maxmemory-samples"}), (Pairs{{"maxmemory-samples", "5"}}));
  EXPECT_EQ(get({"*-priority"}), (Pairs{{"replica-priority", "100"}, {"slave-priority", "100"}}));
  EXPECT_EQ(get({"nope", "user", "include", "[a"}), Pairs{});
  EXPECT_EQ(get({"watchdog*"}), Pairs{});
  EXPECT_EQ(get({"watchdog-period"}), (Pairs{{"watchdog-period", "0"}}));
  EXPECT_EQ(get({}), Pairs{});
}

TEST(ConfigSet, ReadsEveryKind) {
  struct Case {
    std::string_view name, given, shown;
  };
  const Case cases[] = {
      {"maxmemory", "1k", "1000"},
      {"maxmemory", "1kb", "1024"},
      {"maxmemory", "2M", "2000000"},
      {"maxmemory", "2mB", "2097152"},
      {"maxmemory", "1g", "1000000000"},
      {"maxmemory", "1gb", "1073741824"},
      {"maxmemory", "7b", "7"},
      {"maxmemory", "18446744073709551616", "18446744073709551615"},
      {"maxmemory", "99999999999999gb", "18446744073709551615"},
      {"maxmemory-clients", "10%", "10%"},
      {"maxmemory-clients", "1kb", "1024"},
      {"slowlog-log-slower-than", "-1", "-1"},
      {"activerehashing", "YES", "yes"},
      {"loglevel", "Debug", "debug"},
      {"oom-score-adj", "relative", "yes"},
      {"oom-score-adj-values", "-5 +10 020", "-5 10 20"},
      {"shutdown-on-sigint", "now now save", "save now"},
      {"shutdown-on-sigint", "default", "default"},
      {"save", "900 1 300 10", "900 1 300 10"},
      {"save", "60 0", "60 0"},
      {"save", "", ""},
      {"hz", "0", "1"},
      {"hz", "100000", "500"},
      {"repl-backlog-size", "1", "16384"},
      {"latency-tracking-info-percentiles", "99.123456789 1e1 -0", "99.123457 10 -0"},
      {"latency-tracking-info-percentiles", "", ""},
      {"client-output-buffer-limit", "slave 1kb 2 3 NORMAL 4 5 6",
       "normal 4 5 6 slave 1024 2 3 pubsub 33554432 8388608 60"},
      {"client-output-buffer-limit", "", "normal 4 5 6 slave 1024 2 3 pubsub 33554432 8388608 60"},
      {"bind", "127.0.0.1 -::1", "127.0.0.1 -::1"},
      {"slave-priority", "7", "7"},
      {"cluster-announce-hostname", "a-b.C1", "a-b.C1"},
      {"tls-port", "0", "0"},
      {"tls-port", "6380", "6380"},
      {"tls-auth-clients", "optional", "optional"},
  };
  Config config;
  for (const Case& one : cases) {
    EXPECT_EQ(Set(config, {one.name, one.given}), "") << one.name << ' ' << one.given;
    EXPECT_EQ(Value(config, one.name), one.shown) << one.name << ' ' << one.given;
  }
  EXPECT_EQ(Value(config, "replica-priority"), "7");
  EXPECT_EQ(config.settings().maxmemory_clients, 1024);
}

TEST(ConfigSet, RefusesWithRedisTexts) {
  struct Case {
    std::string_view name, given, reason;
  };
  const std::string_view integer = "argument couldn't be parsed into an integer";
  const std::string_view memory = "argument must be a memory value";
  const std::string_view percent = "argument must be a memory or percent value";
  const std::string_view shutdown =
      "argument(s) must be one of the following: default, save, nosave, now, force";
  const Case cases[] = {
      {"maxmemory", "abc", memory},
      {"maxmemory", "-1", memory},
      {"maxmemory", "1tb", memory},
      {"maxmemory", "1 kb", memory},
      {"maxmemory-clients", "101%", "percentage argument must be less or equal to 100"},
      {"maxmemory-clients", "-5%", percent},
      {"maxmemory-clients", "x", percent},
      {"timeout", "+1", integer},
      {"timeout", "01", integer},
      {"timeout", "1k", integer},
      {"timeout", "", integer},
      {"timeout", "-1", "argument must be between 0 and 2147483647 inclusive"},
      {"maxclients", "4294967296", "argument must be between 1 and 4294967295 inclusive"},
      {"proto-max-bulk-len", "5",
       "argument must be between 1048576 and 9223372036854775807 inclusive"},
      {"list-max-listpack-size", "-99999999999",
       "argument must be between -2147483648 and 2147483647 inclusive"},
      {"maxmemory-policy", "lru",
       "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, "
       "volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction"},
      {"oom-score-adj", "x",
       "argument(s) must be one of the following: no, yes, relative, absolute"},
      {"shutdown-on-sigterm", "save nosave",
       "shutdown options SAVE and NOSAVE can't be used simultaneously"},
      {"shutdown-on-sigterm", "", shutdown},
      {"shutdown-on-sigterm", "now later", shutdown},
      {"oom-score-adj-values", "1 2", "wrong number of arguments"},
      {"oom-score-adj-values", "1 2 3000",
       "Invalid oom-score-adj-values, elements must be between -2000 and 2000."},
      {"save", "900  1", "Invalid save parameters"},
      {"save", "0 1", "Invalid save parameters"},
      {"save", "1 -1", "Invalid save parameters"},
      {"notify-keyspace-events", "KEq", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."},
      {"client-output-buffer-limit", "normal 1 2",
       "Wrong number of arguments in buffer limit configuration."},
      {"client-output-buffer-limit", "normal 1 1 1 master 1 2 3",
       "Invalid client class specified in buffer limit configuration."},
      {"client-output-buffer-limit", "normal 5 5 5 pubsub x 1 1",
       "Error in hard, soft or soft_seconds setting in buffer limit configuration."},
      {"latency-tracking-info-percentiles", "abc",
       "Invalid latency-tracking-info-percentiles parameters"},
      {"latency-tracking-info-percentiles", "100.1",
       "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"},
      {"bind", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "Too many bind addresses specified."},
      {"proc-title-template", "{title} {server-mode}",
       "template format is invalid or contains unknown variables"},
      {"proc-title-template", "{title} {x}",
       "template format is invalid or contains unknown variables"},
      {"cluster-announce-hostname", "a_b",
       "Hostnames may only contain alphanumeric characters, hyphens or dots"},
      {"databases", "3", "can't set immutable config"},
      {"threads", "3", "can't set immutable config"},
      {"slaveof", "no one", "can't set immutable config"},
      {"dbfilename", "x", "can't set protected config"},
      {"tls-cluster", "yes", "not built yet: TLS between the nodes of a cluster"},
  };
  Config config;
  const Pairs before = AllValues(config);
  for (const Case& one : cases) {
    EXPECT_EQ(Set(config, {one.name, one.given}), Failed(one.name, one.reason)) << one.given;
  }
  EXPECT_EQ(AllValues(config), before);
  EXPECT_EQ(Set(config, {"MaxMemory", "x"}), Failed("maxmemory", memory));
}

TEST(ConfigSet, RefusesUnknownNamesAndBadCounts) {
  Config config;
  EXPECT_EQ(Set(config, {"foo", "1"}),
            "ERR Unknown option or number of arguments for CONFIG SET - 'foo'");
  EXPECT_EQ(Set(config, {"user", "bob"}),
            "ERR Unknown option or number of arguments for CONFIG SET - 'user'");
  EXPECT_EQ(Set(config, {"port", "1", "timeout"}), "ERR syntax error");
  EXPECT_EQ(Set(config, {"timeout", "x", "TIMEOUT", "1"}),
            Failed("TIMEOUT", "duplicate parameter"));
  EXPECT_EQ(Set(config, {"databases", "3", "foo", "2"}),
            Failed("databases", "can't set immutable config"));
  EXPECT_EQ(Set(config, {"maxmemory", "1", "foo", "2", "databases", "3"}),
            "ERR Unknown option or number of arguments for CONFIG SET - 'foo'");
}

TEST(ConfigSet, IsAllOrNothing) {
  Config config;
  const Pairs before = AllValues(config);
  EXPECT_EQ(Set(config, {"maxmemory", "1mb", "save", "1 1", "repl-timeout", "5", "hz", "x"}),
            Failed("hz", "argument couldn't be parsed into an integer"));
  EXPECT_EQ(AllValues(config), before);
  EXPECT_EQ(Set(config, {"maxmemory", "1mb", "save", "1 1", "repl-timeout", "5"}), "");
  EXPECT_EQ(config.settings().maxmemory, 1U << 20);
  EXPECT_EQ(Value(config, "save"), "1 1");
  EXPECT_EQ(Value(config, "repl-timeout"), "5");
}

TEST(ConfigSet, ProtectedSettingsDependOnTheCaller) {
  Directory dir;
  Config local;
  EXPECT_EQ(Parse(local, "enable-protected-configs local\n"), "");
  EXPECT_EQ(Set(local, {"dbfilename", "x.rdb"}, false),
            Failed("dbfilename", "can't set protected config"));
  EXPECT_EQ(Set(local, {"dbfilename", "x.rdb"}, true), "");
  EXPECT_EQ(Set(local, {"dbfilename", "a/b"}, true),
            Failed("dbfilename", "dbfilename can't be a path, just a filename"));
  EXPECT_EQ(Set(local, {"dir", dir.Path("missing")}, true),
            Failed("dir", "No such file or directory"));
  dir.Write("file", "");
  EXPECT_EQ(Set(local, {"dir", dir.Path("file")}, true), Failed("dir", "Not a directory"));
  EXPECT_EQ(Set(local, {"dir", dir.Path("./")}, true), "");
  EXPECT_EQ(Value(local, "dir") + "/", std::filesystem::canonical(dir.Path("")).string() + "/");
  Config open;
  EXPECT_EQ(Parse(open, "enable-protected-configs yes\n"), "");
  EXPECT_EQ(Set(open, {"dbfilename", "x.rdb"}, false), "");
}

TEST(ConfigSet, HooksRunOnceForWhatChanged) {
  Config config;
  std::vector<std::string> calls;
  config.OnChange({"bind", "port"}, [&](const Settings& now) -> base::Status {
    calls.push_back("listen " + std::to_string(now.port));
    return {};
  });
  config.OnChange({"maxmemory"}, [&](const Settings& now) -> base::Status {
    calls.push_back("maxmemory " + std::to_string(now.maxmemory));
    return {};
  });
  EXPECT_EQ(Set(config, {"port", "7000", "bind", "::1", "maxmemory", "0"}), "");
  EXPECT_EQ(calls, (std::vector<std::string>{"listen 7000"}));
  EXPECT_EQ(Set(config, {"port", "7000"}), "");
  EXPECT_EQ(calls.size(), 1U);
}

TEST(ConfigSet, AVetoPutsEverythingBack) {
  Config config;
  std::vector<std::string> calls;
  config.OnChange({"maxmemory"}, [&](const Settings& now) -> base::Status {
    calls.push_back("maxmemory " + std::to_string(now.maxmemory));
    return {};
  });
  config.OnChange({"port"}, [&](const Settings& now) -> base::Status {
    calls.push_back("port " + std::to_string(now.port));
    return base::Error{"Unable to listen on this port. Check server logs."};
  });
  const Pairs before = AllValues(config);
  EXPECT_EQ(Set(config, {"maxmemory", "5", "port", "7000", "repl-timeout", "9"}),
            Failed("port", "Unable to listen on this port. Check server logs."));
  EXPECT_EQ(AllValues(config), before);
  EXPECT_EQ(calls, (std::vector<std::string>{"maxmemory 5", "port 7000", "maxmemory 0"}));
}

TEST(ConfigNotify, LettersComeBackInRedisOrder) {
  const std::map<std::string, std::string> shown = {
      {"", ""},
      {"K", "K"},
      {"KEA", "AKE"},
      {"KEg$lshzxetd", "AKE"},
      {"Kmn", "nKm"},
      {"nm", "nm"},
      {"Eg", "gE"},
      {"Kd", "dK"},
      {"tdn", "tdn"},
      {"xe", "xe"},
      {"g$lshzxet", "g$lshzxet"},
      {"AKEmnd", "AKEm"},
      {"KKKgggA", "AK"},
  };
  Config config;
  for (const auto& [given, expected] : shown) {
    EXPECT_EQ(Set(config, {"notify-keyspace-events", given}), "");
    EXPECT_EQ(Value(config, "notify-keyspace-events"), expected) << given;
  }
}

TEST(ConfigNotify, EverySetOfFlagsSurvivesTheLosslessForm) {
  constexpr uint32_t kKnown =
      kNotifyAll | kNotifyKeyspace | kNotifyKeyevent | kNotifyKeyMiss | kNotifyNewKey;
  for (uint32_t flags = 0; flags <= kKnown; ++flags) {
    if ((flags & ~kKnown) != 0) continue;
    uint32_t back = 0;
    ASSERT_TRUE(ParseNotifyFlags(NotifyFlagsText(flags, true), &back));
    ASSERT_EQ(back, flags);
  }
}

TEST(ConfigRewrite, KeepsCommentsOrderAndUnchangedLines) {
  Config config;
  const std::string file =
      "# top comment\n"
      "port 7000\n"
      "   # indented \"comment\n"
      "\n"
      "maxmemory   100mb\n"
      "SLAVE-priority 50\n"
      "save 900 1\n"
      "# between\n"
      "save 300 10\n"
      "timeout 5\n"
      "timeout 6\n"
      "client-output-buffer-limit pubsub 1 1 1\n"
      "# last, without a line end";
  ASSERT_EQ(Parse(config, file), "");
  EXPECT_EQ(config.RewrittenText(file), file + "\n");

  ASSERT_EQ(Set(config, {"timeout", "7", "save", "60 5", "maxmemory", "150000000",
                         "slowlog-max-len", "9", "requirepass", "a \"b\"\n",
                         "client-output-buffer-limit", "normal 1 2 3", "repl-backlog-size", "2mb"}),
            "");
  const std::string expected =
      "# top comment\n"
      "port 7000\n"
      "   # indented \"comment\n"
      "\n"
      "maxmemory 150000000\n"
      "SLAVE-priority 50\n"
      "save 60 5\n"
      "# between\n"
      "timeout 7\n"
      "client-output-buffer-limit normal 1 2 3\n"
      "client-output-buffer-limit replica 268435456 67108864 60\n"
      "client-output-buffer-limit pubsub 1 1 1\n"
      "# last, without a line end\n"
      "\n"
      "# Generated by CONFIG REWRITE\n"
      "repl-backlog-size 2mb\n"
      "requirepass \"a \\\"b\\\"\\n\"\n"
      "slowlog-max-len 9\n";
  EXPECT_EQ(config.RewrittenText(file), expected);
  EXPECT_EQ(config.RewrittenText(expected), expected);

  ASSERT_EQ(Set(config, {"slowlog-max-len", "128", "hz", "20"}), "");
  const std::string third = config.RewrittenText(expected);
  EXPECT_NE(third.find("slowlog-max-len 128\nhz 20\n"), std::string::npos) << third;
  EXPECT_EQ(third.find("# Generated"), third.rfind("# Generated"));
}

TEST(ConfigRewrite, WritesListsAndEmptyTextsSoThatTheyComeBack) {
  Config config;
  ASSERT_EQ(Set(config, {"save", "", "latency-tracking-info-percentiles", "",
                         "notify-keyspace-events", "KEAn", "bind", "", "shutdown-on-sigint",
                         "now force", "ignore-warnings", std::string_view("\0#'\xff", 4)}),
            "");
  const std::string text = config.RewrittenText("");
  Config again;
  ASSERT_EQ(Parse(again, text), "") << text;
  EXPECT_EQ(AllValues(again), AllValues(config));
  EXPECT_EQ(again.settings().notify_keyspace_events, config.settings().notify_keyspace_events);
}

TEST(ConfigRewrite, SaveRulesDoNotMultiplyThroughIncludes) {
  Directory dir;
  dir.Write("more", "save 60 1\n");
  const std::string path = dir.Write("main", "include " + dir.Path("more") + "\n");
  for (int round = 0; round < 3; ++round) {
    Config config;
    ASSERT_TRUE(config.ParseFile(path));
    EXPECT_EQ(Value(config, "save"), "60 1");
    ASSERT_TRUE(config.Rewrite());
  }
}

TEST(ConfigRewrite, ReplacesTheFileInPlace) {
  Directory dir;
  const std::string path = dir.Write("real.conf", "# hello\nport 7000\n");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  std::filesystem::create_symlink(path, dir.Path("link.conf"));
  Config config;
  ASSERT_TRUE(config.ParseFile(dir.Path("link.conf")));
  ASSERT_EQ(Set(config, {"port", "7001"}), "");
  const base::Status status = config.Rewrite();
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(dir.Read("real.conf"), "# hello\nport 7001\n");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.Path("link.conf")));
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  // No temporary file stays behind.
  const std::filesystem::directory_iterator files(dir.Path(""));
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

TEST(ConfigRewrite, SaysWhyItCannot) {
  Config none;
  EXPECT_EQ(none.Rewrite().error(), "ERR The server is running without a config file");
  Directory dir;
  std::filesystem::create_directory(dir.Path("sub"));
  Config config;
  ASSERT_TRUE(config.ParseFile(dir.Write("sub/x.conf", "port 7000\n")));
  std::filesystem::remove_all(dir.Path("sub"));
  EXPECT_EQ(config.Rewrite().error(), "ERR Rewriting config file: No such file or directory");
}

TEST(ConfigFuzz, CorpusHolds) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/config";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    EXPECT_EQ(CheckConfigText(*ReadWholeFile(entry.path().string())), "") << entry.path();
    ++files;
  }
  EXPECT_GE(files, 10);
}

}  // namespace
}  // namespace sava::config
