// Loading: random data sets come back whole with any number of threads, damaged files are refused
// without a crash, and a log does to the keys what it did when it was written.
#include "persistence/loader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../../fuzz/afc_load_property.h"
#include "afc_members.h"
#include "base/text.h"
#include "engine/aging.h"
#include "engine_fixture.h"
#include "storage/rdb_writer.h"
#include "types/value/save.h"

namespace sava::engine {
namespace {

constexpr int64_t kNow = 1700000000000;

class TempFile {
 public:
  explicit TempFile(std::string_view bytes = {}) {
    std::string name = (std::filesystem::temp_directory_path() / "sava-loader-XXXXXX").string();
    close(mkstemp(name.data()));
    path = name;
    Write(bytes);
  }
  ~TempFile() { std::filesystem::remove(path); }
  void Write(std::string_view bytes) const {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string path;
};

// A key as it is kept.
struct Kept {
  std::string form;   // of a string; else the type's name
  std::string value;  // text, or what Save writes
  int64_t expire_at = -1;
  uint32_t age = 0;
  bool operator==(const Kept&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Kept& kept) {
  return out << kept.form << ' ' << kept.value.substr(0, 60) << " (" << kept.value.size() << ") "
             << kept.expire_at << ' ' << kept.age;
}
using Content = std::map<std::pair<int, std::string>, Kept>;

Kept KeptString(const std::string& text, int64_t expire_at, uint32_t age) {
  int64_t number;
  const bool is_number = text.size() <= 20 && base::ParseInt(text, &number);
  return {is_number ? "int" : (text.size() <= 44 ? "embstr" : "raw"), text, expire_at, age};
}

// Everything in the engine, invariants checked on the way.
Content ContentOf(Engine& engine) {
  Content content;
  keyspace::Keyspace& keyspace = engine.keyspace();
  for (int db = 0; db < keyspace.databases(); ++db) {
    for (size_t stripe = 0; stripe < keyspace::Keyspace::kStripes; ++stripe) {
      const keyspace::Table* table = keyspace.table(db, stripe);
      if (table == nullptr) continue;
      table->CheckInvariants();
      table->ForEach([&](keyspace::Entry* entry) {
        EXPECT_EQ(keyspace::Keyspace::StripeOf(keyspace.Hash(entry->key())), stripe);
        Kept kept;
        kept.expire_at = entry->expire_at();
        kept.age = entry->age();
        if (entry->kind() == keyspace::Kind::kObject) {
          kept.form = entry->object()->type().name;
          types::Writer out(&kept.value);
          entry->object()->Save(out);
        } else if (entry->form() == keyspace::Form::kInt) {
          kept.form = "int";
          kept.value = std::to_string(entry->integer());
        } else {
          kept.form = entry->form() == keyspace::Form::kEmbstr ? "embstr" : "raw";
          kept.value =
              entry->has(keyspace::kExternal) ? entry->blob()->view() : entry->inline_bytes();
        }
        EXPECT_TRUE(content.emplace(std::pair(db, entry->key()), std::move(kept)).second);
      });
    }
  }
  return content;
}

std::string Text(std::mt19937& random) {
  switch (random() % 8) {
    case 0:
      return std::to_string(static_cast<int64_t>(random() % 100000) - 50000);
    case 1:
      return std::to_string(static_cast<int64_t>(random() << 32 | random()));
    case 2:
      return std::string(random() % 600, 'z');  // compressible
    case 3:
      return types::BinaryName(static_cast<int>(random()));
    case 4:
      return std::string(300 + random() % 300, 'q') + types::BinaryName(static_cast<int>(random()));
    case 5:
      return random() % 50 == 0 ? std::string(100000, 'b') + std::to_string(random()) : "";
    default: {
      std::string text(random() % 80, '\0');
      for (char& c : text) c = static_cast<char>(random());
      return text;
    }
  }
}

struct DataSet {
  std::string file;
  Content content;  // as it is to be loaded
  uint64_t expired = 0;
};

DataSet MakeDataSet(uint32_t seed, int keys, bool compress, bool dictionary, bool keep_expired) {
  std::mt19937 random(seed);
  DataSet set;
  storage::RdbWriter out([&set](std::string_view bytes) { set.file += bytes; },
                         {.compress = compress});
  out.Begin({.redis_version = "7.2.4"});
  std::vector<std::unique_ptr<types::Afc>> counters;
  for (int i = 0; i < keys / 20; ++i) {
    counters.push_back(std::make_unique<types::Afc>());
    const int members = static_cast<int>(random() % 60);
    for (int m = 0; m < members; ++m) {
      counters.back()->Add(types::MixedName(static_cast<int>(random() % 100)), 1 + random() % 5,
                           kNow);
    }
  }
  if (dictionary) out.AuxData();
  for (const int db : {0, 3}) {
    // A size that is wrong by far is no problem either.
    const uint64_t hint = seed % 3 == 0 ? 0 : (seed % 3 == 1 ? UINT32_MAX : keys / 2);
    out.SelectDb(static_cast<uint64_t>(db), hint, 0);
    for (int i = 0; i < keys / 2; ++i) {
      std::string name = std::to_string(i);  // written as a number
      if (i % 3 == 0) name = fmt::format("a-long-key-that-compresses-well-aaaaaaaaaaa:{}", i);
      if (i % 7 == 1) name += std::string(random() % 400, 'k') + types::BinaryName(i);
      snapshot::CutKey key{name};
      bool expired = false;
      if (random() % 3 == 0) {
        expired = random() % 4 == 0;
        key.expire_at_ms = kNow + (expired ? -1 : 1) * static_cast<int64_t>(1 + random() % 100000);
      }
      uint32_t age = LruClock(kNow);
      if (random() % 3 == 0) {
        key.idle_seconds = static_cast<int64_t>(random() % 5000);
        age = (age - static_cast<uint32_t>(key.idle_seconds)) & kAgeMask;
      }
      Kept kept;
      if (!counters.empty() && random() % 10 == 0) {
        const types::Afc& afc = *counters[random() % counters.size()];
        out.Object(key, afc);
        kept = {"afc", "", key.expire_at_ms, age};
        types::Writer saved(&kept.value);
        afc.Save(saved);
      } else {
        const std::string text = Text(random);
        int64_t number;
        if (random() % 2 == 0 && base::ParseInt(text, &number)) {
          out.Number(key, number);
        } else {
          out.String(key, text);
        }
        kept = KeptString(text, key.expire_at_ms, age);
      }
      if (expired) ++set.expired;
      if (!expired || keep_expired) set.content.emplace(std::pair(db, name), std::move(kept));
    }
  }
  out.End();
  return set;
}

TEST(LoadRdb, WholeWithAnyNumberOfThreads) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const bool keep_expired = seed % 4 == 3;
    const DataSet set = MakeDataSet(seed, 4000, seed % 2 == 0, seed % 5 == 0, keep_expired);
    const TempFile file(set.file);
    for (size_t threads = 1; threads <= 4; ++threads) {
      TestEngine test(2);
      persistence::LoadProgress progress;
      persistence::LoadOptions options;
      options.threads = threads;
      options.progress = &progress;
      options.keep_expired = keep_expired;
      options.exclusive = (seed + threads) % 3 == 0;
      base::Status status;
      const auto load = [&] {
        status = persistence::Loader(&test.engine, options).LoadRdb(file.path);
      };
      if (options.exclusive) {
        test.engine.Exclusively(test.engine.house_lane(), load);
      } else {
        load();
      }
      ASSERT_TRUE(status.ok()) << status.error();
      const Content content = ContentOf(test.engine);
      ASSERT_EQ(content.size(), set.content.size());
      for (const auto& [key, kept] : set.content) {
        ASSERT_EQ(content.at(key), kept) << key.first << ' ' << key.second;
      }
      EXPECT_EQ(progress.keys_loaded.load(), set.content.size());
      EXPECT_EQ(progress.keys_expired.load(), keep_expired ? 0 : set.expired);
      EXPECT_EQ(progress.loaded_bytes.load(), set.file.size());
      EXPECT_EQ(progress.total_bytes.load(), set.file.size());
    }
  }
}

TEST(LoadRdb, FrequenciesWithAnLfuPolicy) {
  std::string bytes;
  {
    storage::RdbWriter out([&bytes](std::string_view more) { bytes += more; }, {});
    out.Begin({});
    out.SelectDb(0, 2, 0);
    out.String({"a", -1, -1, 77}, "x");
    out.String({"b"}, "y");
    out.End();
  }
  const TempFile file(bytes);
  TestEngine test(1);
  test.settings.maxmemory_policy = config::MaxmemoryPolicy::kAllkeysLfu;
  ASSERT_TRUE(persistence::Loader(&test.engine, {}).LoadRdb(file.path).ok());
  const Content content = ContentOf(test.engine);
  EXPECT_EQ(content.at({0, "a"}).age, LfuPack(kNow, 77));
  EXPECT_EQ(content.at({0, "b"}).age, LfuPack(kNow, kLfuInitial));
}

// The index is made once, for as many keys as the file says, instead of growing step by step; but
// what the file says is not believed beyond what the file itself takes.
TEST(LoadRdb, TablesAreMadeForAsManyKeysAsTheFileSays) {
  static constexpr int kKeys = 6400;
  const auto used = [](uint64_t hint, int db) {
    std::string bytes;
    storage::RdbWriter out([&bytes](std::string_view more) { bytes += more; }, {});
    out.Begin({});
    out.SelectDb(static_cast<uint64_t>(db), hint, 0);
    for (int i = 0; i < kKeys; ++i) {
      out.String({fmt::format("key:{:012}", i)}, fmt::format("a value of some length {}", i));
    }
    out.End();
    const TempFile file(bytes);
    TestEngine test(1);
    EXPECT_TRUE(persistence::Loader(&test.engine, {}).LoadRdb(file.path).ok());
    EXPECT_EQ(ContentOf(test.engine).size(), kKeys);
    return std::pair(test.engine.keyspace().UsedBytes(), bytes.size());
  };
  for (const int db : {0, 3}) {
    const auto [plain, file_size] = used(0, db);
    EXPECT_GT(used(kKeys * 3, db).first, plain + static_cast<size_t>(kKeys * 8));
    EXPECT_LT(used(uint64_t{1} << 40, db).first, plain + 2 * file_size);
  }
}

// A gate that is closed again and again, and commands that run, do not disturb.
TEST(LoadRdb, WhileOthersAreServed) {
  const DataSet set = MakeDataSet(77, 40000, true, true, true);
  const TempFile file(set.file);
  TestEngine test(2);
  test.engine.admission().set_loading(true);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    TestClient client(test, 0);
    while (!stop) {
      EXPECT_TRUE(client.RunPatiently({"GET", "k"}).starts_with("-LOADING"));
      test.engine.Exclusively(client.lane, [] {});
    }
  });
  persistence::LoadOptions options;
  options.threads = 3;
  options.keep_expired = true;
  const base::Status status = persistence::Loader(&test.engine, options).LoadRdb(file.path);
  stop = true;
  other.join();
  ASSERT_TRUE(status.ok()) << status.error();
  EXPECT_EQ(ContentOf(test.engine), set.content);
}

std::string RdbErrorOf(const std::string& bytes) {
  const TempFile file(bytes);
  TestEngine test(1);
  const base::Status status = persistence::Loader(&test.engine, {}).LoadRdb(file.path);
  if (status.ok()) return "";
  EXPECT_TRUE(status.error().starts_with(file.path + ": ")) << status.error();
  return status.error().substr(file.path.size() + 2);
}

// A file without a checksum around `records`.
std::string FileOf(std::string_view records) {
  return "REDIS0010" + std::string(records) + "\xff" + std::string(8, '\0');
}

TEST(LoadRdb, Refuses) {
  using namespace std::string_literals;
  EXPECT_EQ(RdbErrorOf(FileOf("\0\1a\1x\0\1b\1y\0\1a\1z"s)),
            "at offset 22: RDB has duplicated key \"a\" in DB 0");
  EXPECT_EQ(RdbErrorOf(FileOf("\xfe\x10"s)),
            "at offset 9: FATAL: Data file was created with a Redis server configured to handle "
            "more than 16 databases. Exiting");
  std::string module = "\7\1k\x81"s;
  const uint64_t id = __builtin_bswap64(types::ModuleId("somebody1", 1));
  module.append(reinterpret_cast<const char*>(&id), 8);
  EXPECT_EQ(RdbErrorOf(FileOf(module + "\0"s)),
            "at offset 12: The RDB file contains module data I can't load: no matching module type "
            "'somebody1'");
  EXPECT_EQ(
      RdbErrorOf(FileOf("\0\1a\xc3\3\5abc"s)),
      "at offset 12: key \"a\": its string is damaged or cut off: integrity check failed 6 bytes "
      "into it: a compressed string");
  EXPECT_EQ(RdbErrorOf("no such thing"), "at offset 0: this is not an RDB file");
  EXPECT_EQ(RdbErrorOf(""), "at offset 0: this is not an RDB file");
  TestEngine test(1);
  EXPECT_FALSE(persistence::Loader(&test.engine, {}).LoadRdb("/no/such/file").ok());
}

TEST(LoadRdb, FunctionsAreKept) {
  std::string bytes;
  {
    storage::RdbWriter out([&bytes](std::string_view more) { bytes += more; }, {});
    out.Begin({});
    out.Function("#!lua name=lib\nwhatever");
    out.SelectDb(0, 1, 0);
    out.String({"a"}, "x");
    out.End();
  }
  const TempFile file(bytes);
  TestEngine test(1);
  std::vector<std::string> warnings;
  persistence::LoadOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  snapshot::RdbAux* const aux[] = {&test.engine.libraries()};
  options.aux = aux;
  ASSERT_TRUE(persistence::Loader(&test.engine, options).LoadRdb(file.path).ok());
  EXPECT_EQ(warnings.size(), 0U);
  EXPECT_EQ(test.engine.libraries().sources(),
            std::vector<std::string>{"#!lua name=lib\nwhatever"});
  EXPECT_EQ(test.engine.keyspace().Size(0), 1U);
}

TEST(LoadRdb, DamagedFilesNeverCrash) {
  const DataSet set = MakeDataSet(5, 300, true, true, true);
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = set.file;
    if (i % 4 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    EXPECT_NE(RdbErrorOf(bytes), "") << i;
    // Without the checksum some damage goes unnoticed, yet nothing else happens.
    const TempFile file(bytes);
    TestEngine test(1);
    persistence::LoadOptions options;
    options.verify_checksum = false;
    options.threads = 1 + random() % 3;
    static_cast<void>(persistence::Loader(&test.engine, options).LoadRdb(file.path));
    ContentOf(test.engine);
  }
}

// ---- logs ----

std::string Command(const std::vector<std::string>& words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return text;
}
std::string Commands(const std::vector<std::vector<std::string>>& commands) {
  std::string text;
  for (const auto& words : commands) text += Command(words);
  return text;
}

using Ended = storage::AofEnd::Kind;

struct Replayed {
  storage::AofEnd end;
  Content content;
  std::vector<std::string> warnings;
  persistence::LoadProgress progress;

  std::string At(int db, const std::string& key) const {
    const auto found = content.find({db, key});
    return found == content.end() ? "(nothing)" : found->second.value;
  }
};

void Load(const std::string& bytes, bool exclusive, Replayed* into) {
  const TempFile file(bytes);
  TestEngine test(1);
  persistence::LoadOptions options;
  options.exclusive = exclusive;
  options.warn = [&](const std::string& text) { into->warnings.push_back(text); };
  options.progress = &into->progress;
  persistence::Loader loader(&test.engine, options);
  const auto mapped = base::MappedFile::Open(file.path);
  ASSERT_TRUE(mapped);
  const auto load = [&] { into->end = loader.LoadAof(file.path, mapped.value()); };
  if (exclusive) {
    test.engine.Exclusively(test.engine.house_lane(), load);
  } else {
    load();
  }
  into->content = ContentOf(test.engine);
}

class LoadAof : public testing::TestWithParam<bool> {};  // exclusive

TEST_P(LoadAof, DoesWhatWasLogged) {
  const std::string past = std::to_string(kNow - 1000);
  const std::string future = std::to_string(kNow + 1000);
  std::string log = Commands({
      {"SELECT", "0"},
      {"SET", "plain", "text"},
      {"SET", "k", "1", "PXAT", past},
      {"INCR", "k"},
      {"SET", "later", "1", "PXAT", future},
      {"APPEND", "later", "2"},
      {"MULTI"},
      {"SET", "a", "1"},
      {"INCRBY", "a", "5"},
      {"SELECT", "3"},
      {"SET", "in3", "x"},
      {"EXEC"},
      {"SET", "also3", "y"},
      {"MSET", "m1", "1", "m2", "2"},
      {"SELECT", "5"},
      {"SET", "gone", "y"},
      {"FLUSHDB"},
      {"SELECT", "0"},
      {"RENAME", "plain", "renamed"},
      {"AFC.ADD", "counter", "member", "3"},
      {"SET", "big", std::string(100000, 'x')},
      {"DEL", "a"},
      {"SWAPDB", "3", "4"},
  });
  log += "#TS:1700000000\r\n";
  for (int i = 0; i < 1000; ++i)
    log += Command({"SET", "n" + std::to_string(i % 300), std::to_string(i)});
  Replayed replayed;
  Load(log, GetParam(), &replayed);
  ASSERT_EQ(replayed.end.kind, Ended::kWhole) << replayed.end.text;
  EXPECT_EQ(replayed.end.good, log.size());
  EXPECT_EQ(replayed.progress.loaded_bytes.load(), log.size());
  EXPECT_TRUE(replayed.warnings.empty()) << replayed.warnings[0];
  EXPECT_EQ(replayed.content.size(), 300U + 5 + 4);
  EXPECT_EQ(replayed.At(0, "renamed"), "text");
  EXPECT_EQ(replayed.content.at({0, "k"}).value, "2");
  EXPECT_EQ(replayed.content.at({0, "k"}).expire_at, kNow - 1000);
  EXPECT_EQ(replayed.content.at({0, "later"}).value, "12");
  EXPECT_EQ(replayed.content.at({0, "later"}).expire_at, kNow + 1000);
  EXPECT_EQ(replayed.content.at({0, "counter"}).form, "afc");
  EXPECT_EQ(replayed.At(0, "big"), std::string(100000, 'x'));
  EXPECT_EQ(replayed.At(4, "in3"), "x");
  EXPECT_EQ(replayed.At(4, "also3"), "y");
  EXPECT_EQ(replayed.At(4, "m2"), "2");
  EXPECT_EQ(replayed.At(0, "n299"), "899");
  EXPECT_EQ(replayed.At(0, "n99"), "999");
}

TEST_P(LoadAof, AnRdbFileAtItsBeginning) {
  const DataSet set = MakeDataSet(8, 2000, true, true, true);
  const std::string log = set.file + Commands({{"SELECT", "7"}, {"SET", "after", "1"}});
  Replayed replayed;
  Load(log, GetParam(), &replayed);
  ASSERT_EQ(replayed.end.kind, Ended::kWhole) << replayed.end.text;
  EXPECT_EQ(replayed.end.good, log.size());
  EXPECT_EQ(replayed.content.size(), set.content.size() + 1);
  EXPECT_EQ(replayed.At(7, "after"), "1");
}

TEST_P(LoadAof, CutOffTails) {
  const std::string whole = Commands({{"SET", "a", "1"}, {"MULTI"}, {"INCR", "a"}, {"EXEC"}});
  const std::string more = Commands({{"MULTI"}, {"INCR", "a"}, {"INCR", "b"}, {"EXEC"}});
  for (size_t size = 0; size < more.size(); ++size) {
    Replayed replayed;
    Load(whole + more.substr(0, size), GetParam(), &replayed);
    EXPECT_EQ(replayed.end.kind, size == 0 ? Ended::kWhole : Ended::kTruncated);
    EXPECT_EQ(replayed.end.good, whole.size());
    EXPECT_EQ(replayed.At(0, "a"), "2");
    EXPECT_EQ(replayed.At(0, "b"), "(nothing)");
  }
}

TEST_P(LoadAof, WrongCommands) {
  const std::string begin = Command({"SET", "a", "1"});
  Replayed unknown;
  Load(begin + Commands({{"NOSUCH", "x"}, {"SET", "b", "1"}}), GetParam(), &unknown);
  ASSERT_EQ(unknown.end.kind, Ended::kRefused);
  EXPECT_NE(
      unknown.end.text.find(fmt::format(
          "at offset {}: Unknown command 'NOSUCH' reading the append only file", begin.size())),
      std::string::npos)
      << unknown.end.text;

  Replayed failing;
  Load(begin + Commands({{"SET", "t", "text"}, {"INCR", "t"}, {"SET", "b", "1"}}), GetParam(),
       &failing);
  EXPECT_EQ(failing.end.kind, Ended::kWhole);
  ASSERT_EQ(failing.warnings.size(), 1U);
  EXPECT_NE(failing.warnings[0].find("ERR value is not an integer"), std::string::npos)
      << failing.warnings[0];
  EXPECT_EQ(failing.At(0, "b"), "1");

  // Such would not be found in any log; here they would have somebody else's client.
  Replayed odd;
  Load(begin + Commands({{"SUBSCRIBE", "x"}, {"SET", "b", "1"}}), GetParam(), &odd);
  EXPECT_EQ(odd.end.kind, Ended::kWhole);
  EXPECT_EQ(odd.warnings.size(), 1U);
  EXPECT_EQ(odd.At(0, "b"), "1");

  Replayed corrupt;
  Load(begin + "*1\r\nx" + begin, GetParam(), &corrupt);
  ASSERT_EQ(corrupt.end.kind, Ended::kCorrupt);
  EXPECT_EQ(corrupt.end.good, begin.size());
}

TEST_P(LoadAof, DamagedFilesNeverCrash) {
  std::string log = MakeDataSet(9, 60, true, false, true).file;
  for (int i = 0; i < 100; ++i) {
    log += Commands({{"SET", std::to_string(i % 9), std::to_string(i)},
                     {"AFC.ADD", "c" + std::to_string(i % 5), types::MixedName(i)},
                     {"MULTI"},
                     {"INCR", std::to_string(i % 9)},
                     {"PEXPIREAT", std::to_string(i % 7), std::to_string(kNow + i - 50)},
                     {"EXEC"}});
  }
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = log;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    Replayed replayed;
    Load(bytes, GetParam(), &replayed);
    EXPECT_LE(replayed.end.good, bytes.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Gate, LoadAof, testing::Bool(),
                         [](const auto& param) { return param.param ? "Exclusive" : "Shared"; });

}  // namespace
}  // namespace sava::engine
