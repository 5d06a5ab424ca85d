// Loading of RDB files: what the reader finds becomes work for BulkInsert.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/aging.h"
#include "persistence/bulk_insert.h"
#include "persistence/loader.h"
#include "storage/rdb_reader.h"
#include "types/value/type_registry.h"

namespace sava::persistence {

namespace {

using keyspace::Keyspace;
using snapshot::CutKey;

// Pages of the file stay mapped this far behind the reading.
constexpr size_t kKeptMapped = 2 << 20;
// Keys and values that are smaller in a file are rare. With this many bytes of the file for each
// key the tables made for them take about as much as the file at most.
constexpr uint64_t kBytesPerKey = 12;

class LoadingSink final : public storage::RdbSink {
 public:
  LoadingSink(engine::Engine* engine, const LoadOptions& options, const base::MappedFile& file,
              bool keep_expired)
      : engine_(*engine),
        keyspace_(engine->keyspace()),
        options_(options),
        settings_(options.settings != nullptr ? *options.settings : engine->settings()),
        file_(file),
        keep_expired_(keep_expired),
        now_ms_(engine->clock().WallMillis()),
        lru_clock_(engine::LruClock(now_ms_)),
        initial_age_(engine::InitialAge(settings_, now_ms_, lru_clock_)),
        insert_(engine,
                options.threads != 0 ? options.threads : std::thread::hardware_concurrency(),
                !options.exclusive,
                options.progress != nullptr ? &options.progress->keys_loaded : nullptr) {
    insert_.set_replace(options.replace);
  }

  base::Status Version(int /*version*/) override { return {}; }
  // Unknown fields are skipped, as in Redis.
  base::Status Aux(std::string_view name, std::string_view value) override {
    for (snapshot::RdbAux* aux : options_.aux) {
      if (aux->LoadField(name, value)) break;
    }
    return {};
  }
  base::Status SelectDb(uint64_t db) override {
    if (db >= static_cast<uint64_t>(keyspace_.databases())) {
      return base::Error{
          fmt::format("FATAL: Data file was created with a Redis server configured to handle more "
                      "than {} databases. Exiting",
                      keyspace_.databases())};
    }
    db_ = static_cast<int>(db);
    insert_.Select(db_, 0);
    return {};
  }
  base::Status Resize(uint64_t keys, uint64_t /*expiring*/) override {
    // Never believed beyond what the rest of the file can hold.
    insert_.Select(db_, std::min(keys, (file_.bytes().size() - done_) / kBytesPerKey));
    return {};
  }
  base::Status String(const snapshot::CutKey& /*key*/, std::string_view /*value*/) override {
    return {};
  }
  base::Status Object(const snapshot::CutKey& key, std::unique_ptr<types::Object> value) override {
    const uint8_t rdb_type = value->rdb_type();
    return Take(key, rdb_type, {}, std::move(value));
  }
  bool wants_undecoded() const override { return true; }
  base::Status Undecoded(const snapshot::CutKey& key, uint8_t rdb_type, std::string_view bytes,
                         uint64_t /*offset*/, const types::FileAux* aux) override {
    insert_.set_aux(aux);
    return Take(key, rdb_type, bytes, nullptr);
  }
  base::Status Function(std::string_view code) override {
    for (snapshot::RdbAux* aux : options_.aux) {
      if (options_.new_libraries && aux->command() == "function") {
        return aux->Replay(std::to_array<std::string_view>({"function", "load", code}));
      }
      if (aux->LoadFunction(code)) return {};
    }
    if (options_.warn)
      options_.warn("A function library is left out: there is no place for libraries here");
    return {};
  }
  base::Status AuxData(const types::TypeInfo& /*type*/) override { return {}; }
  base::Status ForeignAux(std::string_view module) override {
    return base::Error{fmt::format(
        "The RDB file contains AUX module data I can't load: no matching module '{}'", module)};
  }
  base::Status ForeignValue(const snapshot::CutKey& /*key*/, std::string_view module) override {
    return base::Error{fmt::format(
        "The RDB file contains module data I can't load: no matching module type '{}'", module)};
  }
  const types::CollectionLimits& limits() const override { return settings_; }
  void Finished() override { failure_ = insert_.Finish(); }
  void Progress(uint64_t bytes) override {
    done_ = bytes;
    if (options_.progress != nullptr) {
      options_.progress->loaded_bytes.store(bytes, std::memory_order_relaxed);
    }
    if (bytes >= released_ + 2 * kKeptMapped) {
      file_.Release(released_, bytes - kKeptMapped);
      released_ = bytes - kKeptMapped;
    }
  }

  const std::optional<BulkInsert::Failure>& failure() const { return failure_; }

 private:
  base::Status Take(const snapshot::CutKey& key, uint8_t rdb_type, std::string_view bytes,
                    std::unique_ptr<types::Object> object) {
    if (key.expire_at_ms != -1 && key.expire_at_ms < now_ms_ && !keep_expired_) {
      if (options_.progress != nullptr) {
        options_.progress->keys_expired.fetch_add(1, std::memory_order_relaxed);
      }
      for (snapshot::RdbAux* aux : options_.aux) aux->LeftOut(db_, key.key);
      return {};
    }
    BulkInsert::Item item;
    item.hash = keyspace_.Hash(key.key);
    item.key = key.key;
    item.value = bytes;
    item.object = std::move(object);
    item.expire_at = key.expire_at_ms == -1 ? -1 : std::max<int64_t>(key.expire_at_ms, 0);
    item.age =
        key.idle_seconds < 0 && key.frequency < 0
            ? initial_age_
            : engine::AgeFrom(settings_, now_ms_, lru_clock_, key.idle_seconds, key.frequency);
    item.rdb_type = rdb_type;
    Delay();
    const std::string_view all = file_.bytes();
    const bool in_file = key.key.data() >= all.data() && key.key.data() < all.data() + all.size();
    if (!insert_.Add(std::move(item), in_file)) return base::Error{"a key could not be inserted"};
    return {};
  }

  // As with rdb-key-save-delay: below zero, a microsecond after that many keys.
  void Delay() {
    const int64_t delay = options_.key_delay_us;
    if (delay == 0) return;
    if (delay < 0 && ++keys_ % -delay != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(delay > 0 ? delay : 1));
  }

  engine::Engine& engine_;
  Keyspace& keyspace_;
  const LoadOptions& options_;
  const config::Settings& settings_;
  int64_t keys_ = 0;
  const base::MappedFile& file_;
  const bool keep_expired_;
  const int64_t now_ms_;
  const uint32_t lru_clock_;
  const uint32_t initial_age_;
  int db_ = 0;
  uint64_t done_ = 0;
  uint64_t released_ = 0;
  std::optional<BulkInsert::Failure> failure_;
  BulkInsert insert_;
};

}  // namespace

base::Status Loader::LoadRdbBytes(const std::string& path, const base::MappedFile& file,
                                  bool keep_expired, uint64_t* size) {
  LoadingSink sink(&engine_, options_, file, keep_expired);
  const storage::RdbEnd end =
      storage::ReadRdb(file.bytes(), types::AllTypes(), sink, options_.verify_checksum);
  *size = end.size;
  std::optional<storage::RdbError> error = end.error;
  if (const auto& failure = sink.failure(); failure) {
    // Another thread found it, at an earlier place than the one where the reading thread stopped.
    const uint64_t offset =
        failure->at == nullptr ? 0 : static_cast<uint64_t>(failure->at - file.bytes().data());
    error = storage::RdbError{offset, failure->text};
  }
  if (!error) return {};
  return base::Error{fmt::format("{}: at offset {}: {}", path, error->offset, error->text)};
}

base::Status Loader::LoadRdb(const std::string& path) {
  auto file = base::MappedFile::Open(path);
  if (!file.ok()) return base::Error{file.error()};
  if (options_.progress != nullptr) options_.progress->total_bytes = file->bytes().size();
  uint64_t size = 0;
  return LoadRdbBytes(path, *file, options_.keep_expired, &size);
}

}  // namespace sava::persistence
