#include "cli/export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/check_rdb.h"
#include "cli/data_files.h"
#include "cli/portable.h"
#include "cli/progress.h"
#include "cli/suggest.h"
#include "engine/engine.h"
#include "persistence/loader.h"
#include "server/families.h"
#include "storage/file_system.h"
#include "storage/rdb_writer.h"
#include "storage/recovery_plan.h"

namespace sava::cli {

namespace {

using keyspace::Entry;
using keyspace::Keyspace;
using storage::FileSystem;

constexpr std::string_view kHelp = R"(Usage: sava export [--portable] [--force] [--from PATH] FILE

Reads a data set from its files, without a server, and writes it as one RDB file, which Sava loads
as dump.rdb and, with --portable, so does a stock Redis 7.0.

  --from PATH   what to read: an RDB file, a file of an append-only log, a manifest, an append-only
                directory, or a data directory as 'sava serve --dir' uses it. Default: ./data
                Of a data directory the log is read if there is one, else the RDB file.
  --portable    convert what Redis does not have: association counters become sorted sets with the
                counts as scores; what cannot be converted is left out, and listed key by key
  --force       replace FILE if it exists

Files that a running server is writing are read as they are at this moment: what it has not written
yet is missing, and a command written by half at the end is left out. To be sure of everything let
it SAVE, or shut it down, first.

Exit code: 0 the file is written; 1 it is not, and FILE is as it was; 2 it is written, but with
           --portable something was left out.

Examples:
  sava export backup.rdb
  sava export --portable --from ./data redis.rdb
)";

constexpr uint64_t kManyKeys = 1000000;
// As many as a file may reasonably have.
constexpr int64_t kDatabases = 1024;

int Complain(std::string_view text) {
  std::fflush(stdout);
  fmt::print(stderr, "sava export: {}\n", text);
  return 1;
}

struct Options {
  bool portable = false;
  bool force = false;
  std::string from = "./data";
  std::string file;
};

// An engine nobody talks to.
class Dataset final : public storage::PartReader {
 public:
  Dataset() {
    for (const auto family : server::AllFamilies()) table_.Add(family);
    settings_.databases = kDatabases;
    engine_ = std::make_unique<engine::Engine>(engine::Engine::Options{}, &settings_, &table_);
    aux_.push_back(&engine_->libraries());
  }

  base::Status Load(storage::RecoveryPlan* plan, bool log) {
    base::Status status = storage::ReadParts(FileSystem::Real(), plan, *this, {.cut_tails = log});
    if (!status) return status;
    for (const storage::RecoveryPlan::Finding& finding : plan->findings) {
      Complain(fmt::format(
          "warning: {}: {}; what follows offset {} is left out", plan->parts[finding.part].path,
          finding.lost ? "it has lost its end" : finding.end.text, finding.end.good));
    }
    return {};
  }

  storage::AofEnd Read(const storage::RecoveryPlan::Part& part,
                       const base::MappedFile& file) override {
    persistence::LoadProgress progress;
    persistence::LoadOptions options;
    options.progress = &progress;
    options.aux = aux_;
    options.warn = [](const std::string& text) { Complain("warning: " + text); };
    const std::jthread shower(
        [&](const std::stop_token& stop) { Show(part.path, progress, stop); });
    // This reads an RDB file too, and the commands that may follow one.
    return persistence::Loader(engine_.get(), options).LoadAof(part.path, file);
  }

  Keyspace& keyspace() { return engine_->keyspace(); }
  snapshot::RdbAuxes aux() const { return aux_; }
  uint64_t libraries() const { return engine_->libraries().count(); }
  int64_t now_ms() const { return engine_->clock().WallMillis(); }
  size_t used_memory() const { return engine_->memory().Used(); }

 private:
  static void Show(const std::string& path, const persistence::LoadProgress& progress,
                   const std::stop_token& stop) {
    std::optional<ProgressLine> line;
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const uint64_t total = progress.total_bytes.load();
      if (total == 0) continue;
      if (!line)
        line.emplace(fmt::format("{} ({})", path, base::HumanBytes(total)), total, kLargeFile);
      line->Update(progress.loaded_bytes.load());
    }
  }

  config::Settings settings_;
  commands::CommandTable table_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<snapshot::RdbAux*> aux_;
};

// Writes the data set to a temporary file, which then takes its place.
class Exporter {
 public:
  Exporter(const Options& options, Dataset* dataset)
      : options_(options), dataset_(*dataset), now_ms_(dataset->now_ms()) {}

  base::Status Run() {
    FileSystem& files = FileSystem::Real();
    const std::string temporary = fmt::format("{}.temp-{}", options_.file, getpid());
    auto opened = files.Open(temporary, FileSystem::Mode::kNew);
    if (!opened) return base::Error{opened.error()};
    base::Status status;
    {
      storage::RdbWriter out(
          [&](std::string_view bytes) {
            if (status) status = (*opened)->Append(bytes);
          },
          {.version_10 = options_.portable});
      Write(out, status);
      size_ = out.written();
    }
    if (status) status = (*opened)->Sync();
    if (status && !options_.force && files.Exists(options_.file)) {
      status = base::Error{fmt::format("{}: it has come to exist meanwhile", options_.file)};
    }
    if (status) status = files.Rename(temporary, options_.file);
    if (!status) {
      static_cast<void>(files.Remove(temporary));
      return status;
    }
    return files.SyncDirectory(storage::DirectoryOf(options_.file));
  }

  void Tell(const DataFiles& data) const {
    fmt::print("{}: {}, {}\n", options_.file, Counted(size_, "byte", "bytes"),
               Counted(keys_, "key", "keys"));
    fmt::print("  read from    {}\n", !data.has_log()         ? data.dump
                                      : data.manifest.empty() ? data.log[0]
                                                              : data.manifest);
    if (data.has_log() && !data.dump.empty()) fmt::print("  not read     {}\n", data.dump);
    if (libraries_ != 0) {
      fmt::print("  functions    {}\n", Counted(libraries_, "library", "libraries"));
    }
    for (const auto& [what, count] : converted_) fmt::print("  converted    {} {}\n", count, what);
    for (const auto& [what, count] : left_out_) fmt::print("  left out     {} {}\n", count, what);
    for (const std::string& key : left_out_keys_) fmt::print("    {}\n", key);
  }

  bool left_something_out() const { return !left_out_.empty(); }

 private:
  struct Counts {
    uint64_t keys = 0;
    uint64_t expiring = 0;
  };

  template <typename Visit>
  void ForEach(int db, const Visit& visit) {
    for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
      const keyspace::Table* table = dataset_.keyspace().table(db, stripe);
      if (table == nullptr) continue;
      table->ForEach([&](Entry* entry) {
        // Loading keeps them, since commands of the log may have meant them.
        if (entry->expire_at() != -1 && entry->expire_at() < now_ms_) return;
        visit(*entry);
      });
    }
  }

  void Write(storage::RdbWriter& out, const base::Status& status) {
    const int databases = dataset_.keyspace().databases();
    std::map<int, Counts> counts;
    uint64_t total = 0;
    for (int db = 0; db < databases; ++db) {
      ForEach(db, [&](const Entry& entry) {
        ++counts[db].keys;
        if (entry.expire_at() != -1) ++counts[db].expiring;
        ++total;
      });
    }
    ProgressLine line(fmt::format("{} keys written", total), total, kManyKeys);
    storage::RdbWriter::Origin origin;
    origin.redis_version = base::kRedisVersion;
    origin.ctime_s = now_ms_ / 1000;
    origin.used_memory = dataset_.used_memory();
    out.Begin(origin);
    if (!options_.portable) out.AuxData();
    for (const snapshot::RdbAux* aux : dataset_.aux()) aux->Save(out);
    libraries_ = dataset_.libraries();
    uint64_t done = 0;
    for (const auto& [db, count] : counts) {
      out.SelectDb(static_cast<uint64_t>(db), count.keys, count.expiring);
      db_ = db;
      ForEach(db, [&](const Entry& entry) {
        if (!status) return;  // it cannot be written any more
        WriteEntry(out, entry);
        if (++done % 1024 == 0) line.Update(done);
      });
    }
    out.End();
  }

  void WriteEntry(storage::RdbWriter& out, const Entry& entry) {
    snapshot::CutKey key;
    key.key = entry.key();
    key.expire_at_ms = entry.expire_at();
    if (entry.kind() == keyspace::Kind::kObject) {
      if (!WriteObject(out, key, *entry.object())) return;
    } else if (entry.form() == keyspace::Form::kInt) {
      out.Number(key, entry.integer());
    } else {
      out.String(key, entry.has(keyspace::kExternal) ? entry.blob()->view() : entry.inline_bytes());
    }
    ++keys_;
  }

  // False when it was left out.
  bool WriteObject(storage::RdbWriter& out, const snapshot::CutKey& key,
                   const types::Object& value) {
    const types::TypeInfo& type = value.type();
    if (!options_.portable || IsPortable(value)) {
      out.Object(key, value);
      return true;
    }
    const Conversion conversion = WriteConverted(out, key, value, now_ms_);
    if (conversion.into.empty() || conversion.empty) {
      ++left_out_[fmt::format("{}{}", conversion.empty ? "empty " : "", type.name)];
      left_out_keys_.push_back(
          fmt::format("database {} {} {}", db_, base::Quoted(key.key), type.name));
      return false;
    }
    ++converted_[fmt::format("{} to {}", type.name, conversion.into)];
    return true;
  }

  const Options& options_;
  Dataset& dataset_;
  const int64_t now_ms_;
  uint64_t size_ = 0;
  uint64_t keys_ = 0;
  uint64_t libraries_ = 0;
  std::map<std::string, uint64_t> converted_;
  std::map<std::string, uint64_t> left_out_;
  std::vector<std::string> left_out_keys_;
  int db_ = 0;  // that is being written
};

// False when the words are wrong, and that was said.
bool ParseOptions(const std::vector<std::string>& words, Options* out) {
  std::vector<std::string> files;
  bool options = true;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options && word == "--portable") {
      out->portable = true;
    } else if (options && word == "--force") {
      out->force = true;
    } else if (options && word == "--from") {
      if (i + 1 == words.size()) {
        Complain("--from wants a file or a directory. See 'sava export --help'.");
        return false;
      }
      out->from = words[++i];
    } else if (options && word == "--") {
      options = false;
    } else if (options && word.size() > 1 && word[0] == '-') {
      const std::string hint = DidYouMean(word, {"--from", "--portable", "--force", "--help"});
      Complain(fmt::format("there is no option '{}'{} See 'sava export --help'.", word,
                           hint.empty() ? "." : hint));
      return false;
    } else {
      files.push_back(word);
    }
  }
  if (files.size() != 1 || files[0].empty()) {
    Complain("one file to write is to be given. See 'sava export --help'.");
    return false;
  }
  out->file = files[0];
  return true;
}

}  // namespace

int RunExport(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
  }
  Options options;
  if (!ParseOptions(words, &options)) return 1;
  if (!options.force && FileSystem::Real().Exists(options.file)) {
    return Complain(fmt::format("{}: it exists; --force replaces it", options.file));
  }
  const auto data = FindData(options.from);
  if (!data) return Complain(data.error());
  const bool log = data.value().has_log();
  storage::RecoveryPlan plan =
      log ? PlanOf(data.value()) : storage::PlanFile(FileSystem::Real(), data.value().dump);
  if (!plan.refused.empty()) return Complain(plan.refused);
  if (plan.ring.lacking > 0) {
    return Complain(
        fmt::format("{} lacks {} bytes that its ring has; 'sava check --repair {}' writes them",
                    plan.ring.file, plan.ring.lacking, options.from));
  }
  if (const auto pid = ServerOn(data.value())) {
    Complain(fmt::format("warning: {}: {}: what it has not written yet is missing", options.from,
                         Running(*pid)));
  }
  Dataset dataset;
  if (base::Status status = dataset.Load(&plan, log); !status) return Complain(status.error());
  Exporter exporter(options, &dataset);
  if (base::Status status = exporter.Run(); !status) return Complain(status.error());
  exporter.Tell(data.value());
  return exporter.left_something_out() ? 2 : 0;
}

}  // namespace sava::cli
