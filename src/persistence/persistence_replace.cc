// The data set of a master takes the place of this server's own.
//
// Until the new data set is kept, the files of the old one stay as they are: the log is told that
// it lacks something, so that its manifest changes only with a new base, and a dump takes the place
// of the old one only when it was loaded. The end of the process at any instant leaves one or the
// other.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/if_memory.h"
#include "base/mapped_file.h"
#include "persistence/persistence.h"
#include "storage/data_set.h"
#include "storage/rdb_reader.h"
#include "types/value/type_registry.h"

namespace sava::persistence {

using storage::AofLog;
using storage::PathIn;

namespace {

// Checks all of a file before any data is given up for it.
class CheckingSink final : public storage::RdbSink {
 public:
  explicit CheckingSink(const config::Settings& settings) : settings_(settings) {}

  base::Status Version(int /*version*/) override { return {}; }
  base::Status Aux(std::string_view name, std::string_view value) override {
    if (name == storage::kDataSetField && storage::IsDataSetId(value)) data_set_ = value;
    return {};
  }
  base::Status SelectDb(uint64_t db) override {
    if (db < static_cast<uint64_t>(settings_.databases)) return {};
    return base::Error{fmt::format("it has a database {}, and this server is set up for {}", db,
                                   settings_.databases)};
  }
  base::Status Resize(uint64_t, uint64_t) override { return {}; }
  base::Status String(const snapshot::CutKey&, std::string_view) override { return {}; }
  base::Status Object(const snapshot::CutKey&, std::unique_ptr<types::Object>) override {
    return {};
  }
  bool wants_undecoded() const override { return true; }
  base::Status Function(std::string_view) override { return {}; }
  base::Status AuxData(const types::TypeInfo&) override { return {}; }
  base::Status ForeignAux(std::string_view module) override {
    return base::Error{fmt::format("it has data of a module '{}'", module)};
  }
  base::Status ForeignValue(const snapshot::CutKey& key, std::string_view module) override {
    return base::Error{
        fmt::format("the value of {} is of a module '{}'", storage::ShownKey(key.key), module)};
  }
  const types::CollectionLimits& limits() const override { return settings_; }

  const std::string& data_set() const { return data_set_; }

 private:
  const config::Settings& settings_;
  std::string data_set_;
};

// Returns the id of the data set in the file, "" when it has none.
base::Result<std::string> CheckFile(const std::string& path, const config::Settings& settings) {
  auto file = base::MappedFile::Open(path);
  if (!file) return base::Error{file.error()};
  CheckingSink sink(settings);
  const storage::RdbEnd end = storage::ReadRdb(file->bytes(), types::AllTypes(), sink, true);
  if (end.error) {
    return base::Error{fmt::format("at offset {}: {}", end.error->offset, end.error->text)};
  }
  if (end.size != file->bytes().size()) {
    return base::Error{fmt::format("{} bytes follow its end", file->bytes().size() - end.size)};
  }
  return sink.data_set();
}

}  // namespace

void Persistence::Replace(Replacement replacement) {
  GiveUp();  // a save under way will soon be of no use
  const auto work = [this, replacement = std::move(replacement)]() -> std::string {
    giving_up_.store(false);
    bool emptied = false;
    base::Status status = base::Error{"out of memory"};
    base::IfMemory([&] { status = ReplaceNow(replacement, &emptied); });
    if (!status && emptied) {
      // Never half a data set.
      engine_.Exclusively(engine_.house_lane(), [this] {
        EmptyAll();
        EndLoading();
      });
    }
    static_cast<void>(files_.Remove(replacement.path));
    replacement.done(status, emptied);
    // Until this is done the files have the earlier data.
    if (status && log_ != nullptr) static_cast<void>(Rewrite());
    return {};
  };
  Push({Activity::kLoad, work, {}});
}

void Persistence::EndLoading() {
  engine_.admission().set_loading(false);
  loading_.store(false, std::memory_order_release);
}

base::Status Persistence::ReplaceNow(const Replacement& replacement, bool* emptied) {
  const config::Settings settings = SettingsNow();
  const auto data_set = CheckFile(replacement.path, settings);
  if (!data_set) return base::Error{"the file of the master is refused: " + data_set.error()};
  const auto lock = LockDump(settings);
  if (!lock && log_ == nullptr) return base::Error{lock.error()};
  engine_.Exclusively(engine_.house_lane(), [&] {
    if (!replacement.wanted()) return;
    *emptied = true;
    replacing_.store(true);
    engine_.admission().set_loading(true);
    loading_.store(true, std::memory_order_release);
    if (log_ != nullptr) {
      log_->NoteLost(engine_.journal().Cut(), "a master's data set takes its place");
    }
    EmptyAll();
  });
  if (!*emptied) return base::Error{"it is not wanted any more"};
  AwaitNeedsBase();
  // Then there is never memory for both.
  if (!settings.replica_lazy_flush) engine_.background().Drain();
  spdlog::info("MASTER <-> REPLICA sync: Loading DB in memory");
  BeginProgress(SizeOf(replacement.path));
  const int64_t start = engine_.clock().MonotonicMicros();
  LoadOptions options = OptionsFor(settings, false);
  options.keep_expired = true;
  Loader loader(&engine_, options);
  if (base::Status status = loader.LoadRdb(replacement.path); !status) return status;
  EndPart();
  spdlog::info("Done loading RDB, keys loaded: {}, keys expired: {}.", progress_.keys_loaded.load(),
               progress_.keys_expired.load());
  if (log_ == nullptr) KeepReceived(replacement.path, data_set.value(), settings);
  engine_.Exclusively(engine_.house_lane(), [&] {
    replacement.loaded();
    EndLoading();
    replacing_.store(false);
    engine_.waiting().ServeEverybody(engine_.house_lane());
  });
  spdlog::info("DB loaded from the master: {:.3f} seconds",
               static_cast<double>(engine_.clock().MonotonicMicros() - start) / 1e6);
  return {};
}

// From then on the manifest changes with the new base only.
void Persistence::AwaitNeedsBase() {
  for (int tries = 0; log_ != nullptr && tries < 10000; ++tries) {
    if (log_->state() == AofLog::State::kNeedsBase) return;
    engine_.journal().Nudge();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Without a log the file is the new dump, and the data set is the one it says. Where nothing has to
// be kept it is removed, if the settings say so.
void Persistence::KeepReceived(const std::string& path, const std::string& data_set,
                               const config::Settings& settings) {
  if (settings.save_rules.empty() && settings.rdb_del_sync_files) {
    spdlog::info("Removing the RDB file obtained from the master: nothing is to be kept");
    static_cast<void>(files_.Remove(PathIn(settings.dir, settings.dbfilename)));
    return;
  }
  base::Status status = files_.Rename(path, PathIn(settings.dir, settings.dbfilename));
  if (status) status = files_.SyncDirectory(settings.dir);
  if (!status) {
    // The next snapshot will be one of this data set; until then a start finds the old one.
    spdlog::warn("Failed trying to rename the DB received from the master: {}", status.error());
    return;
  }
  if (!data_set.empty()) data_set_ = data_set;
  const std::lock_guard guard(mutex_);
  figures_.save.dirty = engine_.Dirty();
  figures_.save.last_s = NowSeconds();
}

}  // namespace sava::persistence
