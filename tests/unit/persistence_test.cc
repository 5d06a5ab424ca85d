// The keeper without a server around it: loading, saving, the log on and off, who is answered when.
#include "persistence/persistence.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "all_families.h"
#include "commands/stock.h"

namespace sava::persistence {
namespace {

using Activity = Persistence::Activity;
using Started = Persistence::Started;
using Words = std::vector<std::string>;

struct Directory {
  Directory() {
    char name[] = "/tmp/sava-persistence-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    path = name;
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

bool Until(const std::function<bool()>& condition) {
  for (int i = 0; i < 60000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// An engine with its keeper, and one client.
struct Kept {
  explicit Kept(const Directory& directory, bool log = false) {
    for (const auto family : commands::DataFamilies()) table.Add(family);
    table.Add(engine::TransactionCommands());
    settings.dir = directory.path;
    settings.appendonly = log;
    settings.save_rules.clear();
    engine = std::make_unique<engine::Engine>(engine::Engine::Options(), &settings, &table);
    persistence = std::make_unique<Persistence>(engine.get());
    persistence->Register(&engine->libraries());
    client.id = engine->NewClientId();
    engine->AddClient(lane(), client);
  }
  ~Kept() {
    persistence.reset();
    engine->RemoveClient(lane(), client);
  }

  std::string Load() {
    std::promise<void> loaded;
    persistence->Start([&] { loaded.set_value(); });
    loaded.get_future().wait();
    return persistence->load_error();
  }
  std::string Run(const Words& words) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    engine->Execute(lane(), client, args);
    return Output();
  }
  std::string Output() {
    std::string text(client.out.Since(0));
    client.out.Consume(client.out.pending());
    return text;
  }
  // As a command does that waits for the keeper.
  Persistence::Waiter Block() {
    lane().waits.AwaitAnswer(client, 0, nullptr);
    return {lane().index, client.id, client.wait.token};
  }
  std::string Answer() {
    EXPECT_TRUE(Until([this] {
      engine->ReceiveMail(lane());
      return !client.has(engine::kClientBlocked);
    }));
    engine->ResumeWaiting(lane());
    return Output();
  }
  bool Idle() { return persistence->figures().activity == Activity::kNone; }
  void Set(const std::function<void(config::Settings&)>& change) {
    engine->Exclusively(lane(), [&] {
      change(settings);
      EXPECT_TRUE(persistence->SettingsChanged(settings).ok());
    });
  }
  engine::Lane& lane() { return *engine->lanes()[0]; }

  config::Settings settings;
  commands::CommandTable table;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<Persistence> persistence;
  engine::Client client;
};

TEST(Persistence, KeepsWhatWasSaved) {
  const Directory directory;
  {
    Kept kept(directory);
    EXPECT_EQ(kept.Load(), "");
    EXPECT_EQ(kept.Run({"SET", "a", "1"}), "+OK\r\n");
    EXPECT_EQ(kept.persistence->Changes(), 1U);
    EXPECT_EQ(kept.persistence->StartSave(false, false), Started::kStarted);
    EXPECT_TRUE(Until([&] { return kept.Idle(); }));
    const Persistence::Figures figures = kept.persistence->figures();
    EXPECT_TRUE(figures.save.last_ok);
    EXPECT_EQ(figures.save.count, 1U);
    EXPECT_EQ(kept.persistence->Changes(), 0U);
    EXPECT_EQ(kept.Run({"SET", "a", "unsaved"}), "+OK\r\n");
  }
  Kept again(directory);
  EXPECT_EQ(again.Load(), "");
  EXPECT_EQ(again.Run({"GET", "a"}), "$1\r\n1\r\n");
  EXPECT_EQ(again.persistence->load_figures().keys_loaded, 1U);
}

// Something that belongs to the data set and is no key.
class History final : public snapshot::RdbAux {
 public:
  explicit History(const Kept& kept) : kept_(kept) {}
  void AtCut() override { offset_ = kept_.persistence->Changes(); }
  void Save(snapshot::CutWriter& out) const override {
    out.Aux("test-offset", std::to_string(offset_));
    out.Function("#!test name=of-" + std::to_string(offset_));
  }
  bool LoadField(std::string_view name, std::string_view value) override {
    if (name != "test-offset") return false;
    loaded.emplace_back(value);
    return true;
  }
  bool LoadFunction(std::string_view code) override {
    if (!code.starts_with("#!test")) return false;
    loaded.emplace_back(code);
    return true;
  }
  void Clear() override { ++cleared; }

  std::vector<std::string> loaded;
  int cleared = 0;

 private:
  const Kept& kept_;
  uint64_t offset_ = 0;
};

TEST(Persistence, WhatBelongsToTheDataSetIsSavedAsOfTheCutAndGoesBackToItsOwner) {
  const Directory directory;
  const std::string other = "#!lua name=other\n";
  {
    Kept kept(directory);
    History history(kept);
    kept.persistence->Register(&history);
    kept.engine->libraries().Add(other);
    EXPECT_EQ(kept.Load(), "");
    EXPECT_TRUE(history.loaded.empty());
    kept.Run({"SET", "a", "1"});
    kept.Run({"SET", "b", "1"});
    EXPECT_EQ(kept.persistence->StartSave(false, false), Started::kStarted);
    EXPECT_TRUE(Until([&] { return kept.Idle(); }));
  }
  Kept again(directory);
  History history(again);
  // Whoever comes first is asked first.
  again.persistence = std::make_unique<Persistence>(again.engine.get());
  again.persistence->Register(&history);
  again.persistence->Register(&again.engine->libraries());
  EXPECT_EQ(again.Load(), "");
  EXPECT_EQ(history.loaded, (std::vector<std::string>{"2", "#!test name=of-2"}));
  EXPECT_EQ(again.engine->libraries().sources(), std::vector<std::string>{other});
  again.persistence->Reload(again.Block(), 0);
  EXPECT_EQ(again.Answer(), "+OK\r\n");
  EXPECT_EQ(history.cleared, 1);
  EXPECT_EQ(history.loaded.size(), 4U);
}

TEST(Persistence, KeepsWhatWasLogged) {
  const Directory directory;
  {
    Kept kept(directory, true);
    EXPECT_EQ(kept.Load(), "");
    EXPECT_EQ(kept.Run({"SET", "a", "1"}), "+OK\r\n");
    EXPECT_TRUE(Until([&] {
      kept.persistence->log()->RequestSync();
      kept.engine->journal().Nudge();
      return kept.persistence->active_log()->durable() >= kept.engine->journal().next_ticket();
    }));
    EXPECT_EQ(kept.persistence->StartRewrite(false), Started::kStarted);
    EXPECT_EQ(kept.Run({"INCR", "a"}), ":2\r\n");
    EXPECT_TRUE(Until([&] { return kept.Idle(); }));
    EXPECT_EQ(kept.persistence->figures().rewrite.count, 1U);
    EXPECT_TRUE(kept.persistence->Prepare({}).ok());
  }
  Kept again(directory, true);
  EXPECT_EQ(again.Load(), "");
  EXPECT_EQ(again.Run({"GET", "a"}), "$1\r\n2\r\n");
}

TEST(Persistence, MakesCopiesForOthers) {
  const Directory directory;
  Kept kept(directory);
  EXPECT_EQ(kept.Load(), "");
  kept.Run({"SET", "a", "1"});
  kept.Run({"AFC.ADD", "native", "x"});
  kept.Run({"HSET", "h", "f", "1"});
  kept.Run({"HPEXPIRE", "h", "1000000", "FIELDS", "1", "f"});
  using commands::Reader;
  for (const Reader reader : {Reader::kSava, Reader::kStockWithModule, Reader::kStock}) {
    for (const bool keys : {true, false}) {
      std::string bytes;
      std::vector<std::string> steps;
      std::promise<bool> done;
      const auto copy = std::make_shared<Persistence::Copy>();
      copy->sink = [&bytes](std::string_view some) {
        bytes += some;
        return base::Status();
      };
      copy->reader = reader;
      copy->keys = keys;
      copy->at_cut = [&] { steps.emplace_back("cut"); };
      copy->after_cut = [&] { steps.emplace_back("after"); };
      copy->done = [&](const base::Result<uint64_t>& written) { done.set_value(written.ok()); };
      kept.persistence->MakeCopy(copy);
      EXPECT_TRUE(done.get_future().get());
      EXPECT_EQ(steps, (std::vector<std::string>{"cut", "after"}));
      EXPECT_EQ(bytes.substr(0, 9), reader == Reader::kSava ? bytes.substr(0, 9) : "REDIS0010");
      EXPECT_EQ(copy->left_out, reader == Reader::kStock && keys ? 1U : 0U);
      EXPECT_EQ(bytes.find("native") != std::string::npos, keys && reader != Reader::kStock);
    }
  }
  // One that nobody takes ends, and the next job begins.
  std::promise<bool> done;
  const auto copy = std::make_shared<Persistence::Copy>();
  copy->sink = [](std::string_view) { return base::Status(base::Error{"nobody"}); };
  copy->at_cut = copy->after_cut = [] {};
  copy->done = [&](const base::Result<uint64_t>& written) { done.set_value(written.ok()); };
  kept.persistence->MakeCopy(copy);
  EXPECT_FALSE(done.get_future().get());
  EXPECT_TRUE(Until([&] { return kept.Idle(); }));
}

TEST(Persistence, SwitchesTheLogWhileRunning) {
  const Directory directory;
  {
    Kept kept(directory);
    EXPECT_EQ(kept.Load(), "");
    kept.Run({"SET", "a", "1"});
    kept.Set([](config::Settings& now) { now.appendonly = true; });
    EXPECT_EQ(kept.persistence->figures().activity, Activity::kRewrite);
    EXPECT_TRUE(Until([&] { return kept.Idle(); }));
    kept.Run({"SET", "b", "2"});
    kept.Set([](config::Settings& now) { now.appendonly = false; });
    kept.Set([](config::Settings& now) { now.appendonly = true; });
    EXPECT_TRUE(Until([&] { return kept.Idle(); }));
    kept.Run({"SET", "c", "3"});
    kept.Set([](config::Settings& now) { now.appendfsync = config::AppendFsync::kAlways; });
    EXPECT_NE(kept.persistence->barrier(), nullptr);
    kept.Set([](config::Settings& now) { now.appendonly = false; });
    EXPECT_TRUE(Until([&] { return kept.persistence->barrier() == nullptr && kept.Idle(); }));
    EXPECT_EQ(kept.persistence->log(), nullptr);
    kept.Run({"SET", "d", "4"});
  }
  Kept again(directory, true);
  EXPECT_EQ(again.Load(), "");
  EXPECT_EQ(again.Run({"MGET", "a", "b", "c", "d"}),
            "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$-1\r\n");
}

TEST(Persistence, ReloadsAndAnswers) {
  const Directory directory;
  Kept kept(directory, true);
  EXPECT_EQ(kept.Load(), "");
  kept.Run({"SET", "a", "1"});
  kept.persistence->Save(kept.Block());
  EXPECT_EQ(kept.Answer(), "+OK\r\n");
  EXPECT_TRUE(kept.Idle());
  kept.Run({"SET", "a", "2"});
  kept.persistence->LoadAof(kept.Block());
  EXPECT_EQ(kept.Answer(), "+OK\r\n");
  EXPECT_EQ(kept.Run({"GET", "a"}), "$1\r\n2\r\n");
  kept.persistence->Reload(kept.Block(), Persistence::kNoSave);
  EXPECT_EQ(kept.Answer(), "+OK\r\n");
  EXPECT_EQ(kept.Run({"GET", "a"}), "$1\r\n1\r\n");
  kept.Run({"SET", "a", "3"});
  kept.persistence->Reload(kept.Block(),
                           Persistence::kNoSave | Persistence::kNoFlush | Persistence::kMerge);
  EXPECT_EQ(kept.Answer(), "+OK\r\n");
  EXPECT_EQ(kept.Run({"GET", "a"}), "$1\r\n1\r\n");
}

// The answer to somebody who has stopped waiting is dropped.
TEST(Persistence, AnswersOnlyWhoStillWaits) {
  const Directory directory;
  Kept kept(directory);
  EXPECT_EQ(kept.Load(), "");
  kept.persistence->Save(kept.Block());
  kept.client.set(engine::kClientBlocked, false);
  kept.engine->ResumeWaiting(kept.lane());
  const Persistence::Waiter second = kept.Block();
  EXPECT_TRUE(Until([&] { return kept.persistence->figures().save.count == 1 && kept.Idle(); }));
  kept.engine->ReceiveMail(kept.lane());
  EXPECT_TRUE(kept.client.has(engine::kClientBlocked));
  kept.persistence->Save(second);
  EXPECT_EQ(kept.Answer(), "+OK\r\n");
}

TEST(Persistence, DoesOneThingAtATime) {
  const Directory directory;
  Kept kept(directory, true);
  EXPECT_EQ(kept.Load(), "");
  kept.Run({"SET", "a", std::string(100000, 'x')});
  kept.Set([](config::Settings& now) {
    now.save_max_rate = 1;  // for ever
    now.rdbcompression = false;
  });
  EXPECT_EQ(kept.persistence->StartSave(false, false), Started::kStarted);
  EXPECT_EQ(kept.persistence->StartSave(true, false), Started::kBusySame);
  EXPECT_EQ(kept.persistence->StartRewrite(false), Started::kScheduled);
  EXPECT_TRUE(kept.persistence->figures().rewrite.scheduled);
  EXPECT_EQ(kept.Run({"SET", "b", "1"}), "+OK\r\n");
  EXPECT_TRUE(kept.persistence->Prepare({.nosave = true}).ok());
  EXPECT_EQ(kept.persistence->figures().save.count, 0U);
  EXPECT_TRUE(kept.persistence->figures().save.last_ok);
  EXPECT_FALSE(std::filesystem::exists(directory.path + "/dump.rdb"));
}

TEST(Persistence, RefusesWritesAfterAFailedSave) {
  const Directory directory;
  std::filesystem::create_directories(directory.path + "/dump.rdb/full");
  Kept kept(directory);
  kept.settings.dbfilename = "other.rdb";
  EXPECT_EQ(kept.Load(), "");
  kept.Set([](config::Settings& now) {
    now.dbfilename = "dump.rdb";
    now.save_rules = {{3600, 1000000}};
  });
  EXPECT_EQ(kept.persistence->StartSave(false, false), Started::kStarted);
  EXPECT_TRUE(Until([&] { return kept.Idle(); }));
  EXPECT_FALSE(kept.persistence->figures().save.last_ok);
  EXPECT_TRUE(kept.Run({"SET", "a", "1"}).starts_with("-MISCONF Redis is configured to save"));
  EXPECT_FALSE(kept.persistence->Prepare({}).ok());
  EXPECT_TRUE(Until([&] { return kept.Idle(); }));
  kept.Set([](config::Settings& now) { now.stop_writes_on_bgsave_error = false; });
  EXPECT_EQ(kept.Run({"SET", "a", "1"}), "+OK\r\n");
  kept.Set([](config::Settings& now) { now.stop_writes_on_bgsave_error = true; });
  std::filesystem::remove_all(directory.path + "/dump.rdb");
  EXPECT_EQ(kept.persistence->StartSave(false, false), Started::kStarted);
  EXPECT_TRUE(Until([&] { return kept.Idle(); }));
  EXPECT_EQ(kept.Run({"SET", "a", "2"}), "+OK\r\n");
  EXPECT_TRUE(kept.persistence->Prepare({}).ok());
}

TEST(Persistence, SavesByRuleAndAfterFlushall) {
  const Directory directory;
  Kept kept(directory);
  EXPECT_EQ(kept.Load(), "");
  kept.Set([](config::Settings& now) { now.save_rules = {{1, 2}}; });
  kept.Run({"SET", "a", "1"});
  kept.persistence->Tick();
  EXPECT_TRUE(kept.Idle());
  kept.Run({"SET", "a", "2"});
  EXPECT_TRUE(Until([&] {
    kept.persistence->Tick();
    return kept.persistence->figures().save.count == 1;
  }));
  EXPECT_TRUE(Until([&] { return kept.Idle(); }));
  kept.engine->Exclusively(kept.lane(), [&] { kept.persistence->FlushedAll(0); });
  EXPECT_TRUE(Until([&] {
    kept.persistence->Tick();
    return kept.persistence->figures().save.count == 2;
  }));
}

TEST(Persistence, LeavesFilesItCannotLoad) {
  const Directory directory;
  const std::string path = directory.path + "/dump.rdb";
  std::ofstream(path) << "REDIS0010 and then nonsense";
  for (const bool log : {false, true}) {
    Kept kept(directory, log);
    const std::string error = kept.Load();
    EXPECT_NE(error.find(path), std::string::npos) << error;
    EXPECT_TRUE(kept.engine->admission().loading());
    std::ifstream file(path);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(text, "REDIS0010 and then nonsense");
    EXPECT_FALSE(std::filesystem::exists(directory.path + "/appendonlydir"));
  }
}

}  // namespace
}  // namespace sava::persistence
