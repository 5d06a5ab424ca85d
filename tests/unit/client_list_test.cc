// CLIENT LIST's lines and CLIENT KILL's filters.
#include "engine/client_list.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace sava::engine {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

void Fill(engine::Client& client) {
  client.id = 7;
  client.peer.fd = 12;
  client.peer.addr = "127.0.0.1:5000";
  client.peer.laddr = "127.0.0.1:6379";
  client.activity.created_ms = kNow - 12'345;
  client.activity.last_active_ms = kNow - 2'999;
}

std::map<std::string, std::string> Fields(const engine::Client& client) {
  std::map<std::string, std::string> fields;
  std::istringstream words(ClientLine(client, kNow));
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    fields[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return fields;
}

TEST(ClientLine, HasTheFieldsOfRedisInTheirOrder) {
  engine::Client client;
  Fill(client);
  std::istringstream words(ClientLine(client, kNow));
  std::vector<std::string> names;
  for (std::string word; words >> word;) names.push_back(word.substr(0, word.find('=')));
  const std::vector<std::string> expected = {
      "id",        "addr", "laddr", "fd",   "name",     "age",    "idle",      "flags",
      "db",        "sub",  "psub",  "ssub", "multi",    "qbuf",   "qbuf-free", "argv-mem",
      "multi-mem", "rbs",  "rbp",   "obl",  "oll",      "omem",   "tot-mem",   "events",
      "cmd",       "user", "redir", "resp", "lib-name", "lib-ver"};
  EXPECT_EQ(names, expected);
}

TEST(ClientLine, ShowsAnIdleClient) {
  engine::Client client;
  Fill(client);
  EXPECT_TRUE(ClientLine(client, kNow)
                  .starts_with("id=7 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=12 name= age=12 "
                               "idle=2 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0 "
                               "qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 "
                               "tot-mem="))
      << ClientLine(client, kNow);
  EXPECT_TRUE(ClientLine(client, kNow)
                  .ends_with(" events=r cmd=NULL user=default redir=-1 resp=2 lib-name= lib-ver="))
      << ClientLine(client, kNow);
}

TEST(ClientLine, ShowsWhatTheClientIsDoing) {
  engine::Client client;
  Fill(client);
  client.name = "worker";
  client.peer.lib_name = "lib";
  client.peer.lib_ver = "1.2";
  client.db = 3;
  client.resp = 3;
  client.set(engine::kClientMulti | engine::kClientNoEvict | engine::kClientNoTouch);
  client.transaction.queue.resize(2);
  client.transaction.queue_bytes = 17;
  client.subscriptions.channels = {"a", "b"};
  client.subscriptions.patterns = {"p*"};
  client.subscriptions.shard_channels = {"s"};
  client.memory.query_bytes = 10;
  client.memory.query_capacity = 100;
  client.transaction.watcher.dirty.store(true);
  commands::Command command;
  command.full_name = "client|list";
  client.activity.last_command = &command;
  const auto fields = Fields(client);
  EXPECT_EQ(fields.at("flags"), "PxdeT");
  EXPECT_EQ(fields.at("multi"), "2");
  EXPECT_EQ(fields.at("multi-mem"), "17");
  EXPECT_EQ(fields.at("sub"), "2");
  EXPECT_EQ(fields.at("psub"), "1");
  EXPECT_EQ(fields.at("ssub"), "1");
  EXPECT_EQ(fields.at("qbuf"), "10");
  EXPECT_EQ(fields.at("qbuf-free"), "90");
  EXPECT_EQ(fields.at("cmd"), "client|list");
  EXPECT_EQ(fields.at("name"), "worker");
  EXPECT_EQ(fields.at("lib-name"), "lib");
  EXPECT_EQ(fields.at("lib-ver"), "1.2");
  EXPECT_EQ(fields.at("db"), "3");
  EXPECT_EQ(fields.at("resp"), "3");
}

TEST(ClientLine, ShowsPendingOutput) {
  engine::Client client;
  Fill(client);
  client.out.Append("+OK\r\n");
  auto fields = Fields(client);
  EXPECT_EQ(fields.at("events"), "rw");
  EXPECT_EQ(fields.at("obl"), "5");
  EXPECT_EQ(fields.at("omem"), "0");
  client.out.Append(std::string(100'000, 'x'));
  fields = Fields(client);
  EXPECT_EQ(fields.at("obl"), "0");
  EXPECT_EQ(fields.at("oll"), "1");
  EXPECT_GE(std::stoll(fields.at("omem")), 100'000);
  EXPECT_GE(std::stoll(fields.at("tot-mem")), std::stoll(fields.at("omem")));
}

TEST(ClientLine, KnowsEveryFlag) {
  const std::pair<engine::ClientFlag, std::string> flags[] = {
      {engine::kClientMonitor, "O"},         {engine::kClientBlocked, "b"},
      {engine::kClientCloseAfterReply, "c"}, {engine::kClientCloseNow, "A"},
      {engine::kClientUnixSocket, "U"},      {engine::kClientNoEvict, "e"},
      {engine::kClientNoTouch, "T"},         {engine::kClientMulti, "x"}};
  for (const auto& [flag, letter] : flags) {
    engine::Client client;
    client.set(flag);
    EXPECT_EQ(Fields(client).at("flags"), letter);
  }
}

TEST(ClientType, IsKnownByNameAndState) {
  EXPECT_EQ(ClientTypeByName("Normal"), ClientType::kNormal);
  EXPECT_EQ(ClientTypeByName("pubsub"), ClientType::kPubsub);
  EXPECT_EQ(ClientTypeByName("slave"), ClientType::kReplica);
  EXPECT_EQ(ClientTypeByName("REPLICA"), ClientType::kReplica);
  EXPECT_EQ(ClientTypeByName("master"), ClientType::kMaster);
  EXPECT_FALSE(ClientTypeByName("bogus").has_value());
  engine::Client client;
  EXPECT_EQ(TypeOf(client), ClientType::kNormal);
  client.subscriptions.shard_channels = {"s"};
  EXPECT_EQ(TypeOf(client), ClientType::kPubsub);
}

TEST(ClientFilter, NeedsEveryConditionToHold) {
  engine::Client client;
  Fill(client);
  EXPECT_TRUE(ClientFilter().Matches(client, kNow));
  ClientFilter filter;
  filter.id = 7;
  filter.addr = "127.0.0.1:5000";
  filter.laddr = "127.0.0.1:6379";
  filter.user = "default";
  filter.type = ClientType::kNormal;
  filter.max_age = 12;
  EXPECT_TRUE(filter.Matches(client, kNow));
  for (const int broken : {0, 1, 2, 3, 4, 5}) {
    ClientFilter other = filter;
    if (broken == 0) other.id = 8;
    if (broken == 1) other.addr = "127.0.0.1:5001";
    if (broken == 2) other.laddr = "";
    if (broken == 3) other.user = "alice";
    if (broken == 4) other.type = ClientType::kPubsub;
    if (broken == 5) other.max_age = 13;
    EXPECT_FALSE(other.Matches(client, kNow)) << broken;
  }
}

}  // namespace
}  // namespace sava::engine
