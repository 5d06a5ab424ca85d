#include "storage/snapshot_file.h"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "base/if_memory.h"
#include "storage/stock_writer.h"
#include "types/value/type_registry.h"

namespace sava::storage {

namespace {

using Clock = std::chrono::steady_clock;

// What was written reaches the disk bit by bit rather than in one burst at the end.
constexpr uint64_t kSyncEvery = 32 << 20;

// The file being written; the first failure sticks and gives the snapshot up.
class Output {
 public:
  Output(snapshot::Snapshot& snapshot, const SnapshotFile& file)
      : snapshot_(snapshot), file_(file) {
    if (file.sink) return;
    auto opened = file.files->Open(file.temporary, FileSystem::Mode::kNew);
    if (opened) {
      out_ = std::move(*opened);
    } else {
      Fail(opened.error());
    }
  }

  void Write(std::string_view bytes) {
    if (error_) return;
    const base::Status status = file_.sink ? file_.sink(bytes) : out_->Append(bytes);
    if (!status) return Fail(status.error());
    written_ += bytes.size();
    if (written_ - synced_ >= kSyncEvery) Sync();
    if (file_.max_rate > 0) HoldBack();
  }
  void Sync() {
    if (error_ || file_.sink) return;
    if (base::Status status = out_->Sync(); !status) return Fail(status.error());
    synced_ = written_;
  }
  void Fail(std::string error) {
    if (!error_) error_ = std::move(error);
    snapshot_.Abort();
  }
  void Close() { out_.reset(); }

  const std::optional<std::string>& error() const { return error_; }
  bool opened() const { return out_ != nullptr; }
  uint64_t written() const { return written_; }

 private:
  void HoldBack() {
    const auto due =
        start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                     static_cast<double>(written_) / static_cast<double>(file_.max_rate)));
    while (Clock::now() < due && !snapshot_.aborted()) {
      std::this_thread::sleep_for(
          std::min<Clock::duration>(due - Clock::now(), std::chrono::milliseconds(50)));
    }
  }

  snapshot::Snapshot& snapshot_;
  const SnapshotFile& file_;
  std::unique_ptr<File> out_;
  std::optional<std::string> error_;
  uint64_t written_ = 0;
  uint64_t synced_ = 0;
  const Clock::time_point start_ = Clock::now();
};

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Much of what values share is in the file before the cut: writers hand over images only for the
// time that the rest takes.
void BeginSnapshot(snapshot::Snapshot& snapshot, const SnapshotFile& file, Output& output,
                   RdbWriter& writer) {
  const types::TypeRegistry& all = types::AllTypes();
  bool early = false;
  if (file.begin) {
    all.PinAux();
    const struct Unpins {
      ~Unpins() { all.UnpinAux(); }  // also when there is no memory
      const types::TypeRegistry& all;
    } unpins{all};
    early = all.has_aux() && file.natives && file.keys;
    if (early) writer.BeginAuxData();
    file.begin();
    if (output.error()) snapshot.Abort();
  }
  if (early || (snapshot.refers() && !snapshot.aborted())) writer.AuxData();
}

// True when all is written.
template <typename Writer>
bool Finish(snapshot::Snapshot& snapshot, Output& output, Writer& writer, bool exclusive) {
  const bool whole = snapshot.Walk(writer, exclusive);
  if (whole && base::IfMemory([&] { writer.End(); })) return true;
  if (whole || snapshot.out_of_memory()) output.Fail("out of memory");
  return false;
}

// Without memory for its beginning: a cut that was made has to be walked all the same.
bool Drop(snapshot::Snapshot& snapshot, Output& output, snapshot::CutWriter& writer,
          bool exclusive) {
  output.Fail("out of memory");
  if (snapshot.active()) static_cast<void>(snapshot.Walk(writer, exclusive));
  return false;
}

// True when all is written.
bool WriteRdb(snapshot::Snapshot& snapshot, const SnapshotFile& file, Output& output,
              bool exclusive) {
  RdbWriter::Options options = file.options;
  options.version_10 = options.version_10 || file.stock;
  RdbWriter writer([&output](std::string_view bytes) { output.Write(bytes); }, options);
  const bool begun = base::IfMemory([&] {
    writer.Begin(file.origin);
    BeginSnapshot(snapshot, file, output, writer);
    for (const snapshot::RdbAux* aux : file.aux) aux->Save(writer);
  });
  if (!begun) return Drop(snapshot, output, writer, exclusive);
  if (!file.keys) {
    if (base::IfMemory([&] { writer.End(); })) return true;
    output.Fail("out of memory");
    return false;
  }
  if (!file.stock) return Finish(snapshot, output, writer, exclusive);
  StockWriter stock(writer, file.natives, file.left_out);
  const bool whole = snapshot.Walk(stock, exclusive);
  if (whole && base::IfMemory([&] { writer.End(); })) return true;
  if (whole || snapshot.out_of_memory()) output.Fail("out of memory");
  return false;
}

bool WriteCommands(snapshot::Snapshot& snapshot, const SnapshotFile& file, Output& output,
                   bool exclusive) {
  CommandWriter writer([&output](std::string_view bytes) { output.Write(bytes); });
  const bool begun = base::IfMemory([&] {
    if (file.begin) {
      file.begin();
      if (output.error()) snapshot.Abort();
    }
    for (const snapshot::RdbAux* aux : file.aux) aux->Save(writer);
  });
  if (!begun) return Drop(snapshot, output, writer, exclusive);
  const bool whole = Finish(snapshot, output, writer, exclusive);
  if (writer.error()) output.Fail(*writer.error());
  return whole;
}

}  // namespace

base::Result<uint64_t> WriteSnapshotFile(snapshot::Snapshot& snapshot, const SnapshotFile& file,
                                         bool exclusive) {
  Output output(snapshot, file);
  const bool opened = output.opened();
  const bool whole = file.commands ? WriteCommands(snapshot, file, output, exclusive)
                                   : WriteRdb(snapshot, file, output, exclusive);
  if (whole) {
    output.Sync();
  } else if (!output.error()) {
    output.Fail("it was given up before it was complete");
  }
  output.Close();
  if (!output.error() && !file.path.empty()) {
    base::Status status;
    if (!file.aside.empty()) status = file.files->Rename(file.path, file.aside);
    if (status) status = file.files->Rename(file.temporary, file.path);
    if (status) status = file.files->SyncDirectory(DirectoryOf(file.path));
    if (!status) output.Fail(status.error());
  }
  if (output.error()) {
    if (opened) static_cast<void>(file.files->Remove(file.temporary));
    return base::Error{*output.error()};
  }
  return output.written();
}

}  // namespace sava::storage
