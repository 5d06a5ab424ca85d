// An engine with a clock that stands still, and clients that talk to it without sockets.
#pragma once

#include <atomic>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "all_families.h"
#include "base/clock.h"
#include "commands/registry.h"
#include "engine/engine.h"

namespace sava::engine {

struct TestEngine {
  // `more`: a family besides those of the server.
  explicit TestEngine(size_t lanes, std::span<const commands::CommandSpec> more = {})
      : engine(Prepare(lanes, more), &settings, &table) {}

  Engine::Options Prepare(size_t lanes, std::span<const commands::CommandSpec> more) {
    for (const auto family : commands::DataFamilies()) table.Add(family);
    table.Add(TransactionCommands());
    table.Add(PubSubCommands());
    if (!more.empty()) table.Add(more);
    Engine::Options options;
    options.lanes = lanes;
    options.clock = &clock;
    return options;
  }

  base::ManualClock clock{1700000000000000};
  config::Settings settings;
  commands::CommandTable table;
  Engine engine;
};

struct TestClient {
  TestClient(TestEngine& owner, size_t lane_index)
      : test(owner), lane(*owner.engine.lanes()[lane_index]) {
    client.id = owner.engine.NewClientId();
    owner.engine.AddClient(lane, client);
  }
  ~TestClient() { test.engine.RemoveClient(lane, client); }

  // The reply's bytes; empty when the client has to wait.
  std::string Run(const std::vector<std::string>& words) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    test.engine.Execute(lane, client, args);
    return TakeOutput();
  }
  // Runs again and again while the command is parked for a lock.
  std::string RunPatiently(const std::vector<std::string>& words) {
    while (true) {
      std::string reply = Run(words);
      if (!client.waiting()) return reply;
      test.engine.ResumeWaiting(lane);
      lane.waits.TakeResumed();
    }
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

  TestEngine& test;
  Lane& lane;
  Client client;
};

}  // namespace sava::engine
