// Loading of append-only files: their commands are run as a client's would be, in batches.
#include "persistence/loader.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "storage/aof_reader.h"
#include "storage/rdb_format.h"

namespace sava::persistence {

namespace {

constexpr size_t kBatchCommands = 64;
constexpr size_t kBatchWords = 4096;
// Pages of the file stay mapped this far behind the reading.
constexpr size_t kKeptMapped = 2 << 20;

// Runs what a log says on the engine's house lane.
class Replay {
 public:
  Replay(engine::Engine* engine, const LoadOptions& options, const std::string& path, uint64_t base)
      : engine_(*engine), lane_(engine->house_lane()), options_(options), path_(path), base_(base) {
    client_.id = engine_.NewClientId();
    client_.lane = lane_.index;
    client_.origin = engine::kFromLog;
    client_.rate.exempt = true;
  }
  ~Replay() { engine_.RemoveClient(lane_, client_); }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  base::Status Add(const storage::AofCommand& command) {
    for (snapshot::RdbAux* aux : options_.aux) {
      const std::string_view name = aux->command();
      if (name.empty() || !base::EqualsNoCase(command.words[0], name)) continue;
      ReplayAux(command, *aux);
      return {};
    }
    pending_.push_back({words_.size(), command.words.size(), base_ + command.offset});
    words_.insert(words_.end(), command.words.begin(), command.words.end());
    // The keys of a batch are looked for in one database.
    const bool select =
        command.words[0].size() == 6 && base::EqualsNoCase(command.words[0], "select");
    if (select || pending_.size() == kBatchCommands || words_.size() >= kBatchWords) return Run();
    return {};
  }
  // Runs what was added.
  base::Status Run();

 private:
  struct Pending {
    size_t first_word;
    size_t words;
    uint64_t offset;
  };

  void ReplayAux(const storage::AofCommand& command, snapshot::RdbAux& aux);
  void PrefetchPlaces();
  void RunOne(engine::Request& request);
  base::Status RunPrepared();

  engine::Engine& engine_;
  engine::Lane& lane_;
  const LoadOptions& options_;
  const std::string& path_;
  const uint64_t base_;  // where the commands begin in the file
  engine::Client client_;
  std::vector<std::string_view> words_;
  std::vector<Pending> pending_;
  std::vector<engine::Request> requests_;
};

base::Status Replay::Run() {
  requests_.clear();
  for (const Pending& pending : pending_) {
    engine::Request request;
    request.client = &client_;
    request.args = {words_.data() + pending.first_word, pending.words};
    requests_.push_back(request);
  }
  engine_.BeginBatch(lane_);
  lane_.memory.limited = false;  // what is in the log was accepted once
  engine_.Prepare(lane_, requests_);
  PrefetchPlaces();
  base::Status status = RunPrepared();
  engine_.EndBatch(lane_);
  client_.out.TruncateTo(0);
  words_.clear();
  pending_.clear();
  return status;
}

// No other command depends on it, so it need not wait for its turn.
void Replay::ReplayAux(const storage::AofCommand& command, snapshot::RdbAux& aux) {
  const base::Status status = aux.Replay(command.words);
  if (status || !options_.warn) return;
  options_.warn(fmt::format("{}: at offset {}: command '{}' is passed over: {}", path_,
                            base_ + command.offset, aux.command(), status.error()));
}

// Most keys of a log are new.
void Replay::PrefetchPlaces() {
  for (const uint64_t hash : lane_.batch.hashes) {
    const keyspace::Table* table =
        engine_.keyspace().table(client_.db, keyspace::Keyspace::StripeOf(hash));
    if (table != nullptr) table->PrefetchPlace(hash);
  }
}

base::Status Replay::RunPrepared() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    engine::Request& request = requests_[i];
    const std::string_view name = request.args[0];
    if (request.command == nullptr) {
      return base::Error{
          fmt::format("{}: at offset {}: Unknown command '{}' reading the append only file", path_,
                      pending_[i].offset, name.substr(0, 128))};
    }
    if (!request.command->has(commands::kWrite | commands::kReadonly) &&
        !request.command->is(commands::kSelectsDatabase)) {
      if (options_.warn) {
        options_.warn(
            fmt::format("{}: at offset {}: command '{}' is passed over: it changes no data", path_,
                        pending_[i].offset, name));
      }
      continue;
    }
    const uint64_t errors = lane_.stats.error_replies.get();
    const size_t mark = client_.out.Mark();
    RunOne(request);
    if (lane_.stats.error_replies.get() == errors) continue;
    const std::string_view reply = client_.out.Since(mark);
    const std::string text =
        fmt::format("{}: at offset {}: command '{}' was answered with an error: {}", path_,
                    pending_[i].offset, name, reply.substr(0, reply.find('\r')));
    const config::Settings& settings =
        options_.settings != nullptr ? *options_.settings : engine_.settings();
    if (settings.propagation_error_behavior == config::PropagationError::kPanic) {
      return base::Error{text + "; propagation-error-behavior says that this ends the server"};
    }
    if (options_.warn) options_.warn(text);
  }
  return {};
}

void Replay::RunOne(engine::Request& request) {
  while (true) {
    engine_.RunBatch(lane_, {&request, 1});
    if (request.outcome == engine::Request::Outcome::kDone) return;
    engine_.ResumeWaiting(lane_);  // a stripe was busy for long
    lane_.waits.TakeResumed();
  }
}

storage::AofEnd Refused(const base::Status& status) {
  storage::AofEnd end;
  end.kind = storage::AofEnd::Kind::kRefused;
  end.text = status.error();
  return end;
}

}  // namespace

Loader::Loader(engine::Engine* engine, const LoadOptions& options)
    : engine_(*engine), options_(options) {}

storage::AofEnd Loader::LoadAof(const std::string& path, const base::MappedFile& file) {
  const std::string_view bytes = file.bytes();
  LoadProgress* const progress = options_.progress;
  if (progress != nullptr) progress->total_bytes = bytes.size();
  uint64_t base = 0;
  if (bytes.starts_with(storage::kRdbMagic)) {
    if (base::Status status = LoadRdbBytes(path, file, true, &base); !status.ok()) {
      return Refused(status);
    }
  }
  Replay replay(&engine_, options_, path, base);
  uint64_t released = base;
  const auto report = [&](uint64_t done) {
    if (progress != nullptr) progress->loaded_bytes.store(base + done, std::memory_order_relaxed);
    if (base + done < released + 2 * kKeptMapped) return;
    file.Release(released, base + done - kKeptMapped);
    released = base + done - kKeptMapped;
  };
  storage::AofEnd end = storage::ReadAof(
      bytes.substr(base), [&](const storage::AofCommand& command) { return replay.Add(command); },
      report);
  end.good += base;
  end.offset += base;
  if (end.kind == storage::AofEnd::Kind::kRefused) return end;
  if (base::Status status = replay.Run(); !status.ok()) return Refused(status);
  report(end.good - base);
  return end;
}

}  // namespace sava::persistence
