#include "storage/snapshot_file.h"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

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
    auto opened = file.files->Open(file.temporary, FileSystem::Mode::kNew);
    if (opened) {
      out_ = std::move(*opened);
    } else {
      Fail(opened.error());
    }
  }

  void Write(std::string_view bytes) {
    if (error_) return;
    if (base::Status status = out_->Append(bytes); !status) return Fail(status.error());
    written_ += bytes.size();
    if (written_ - synced_ >= kSyncEvery) Sync();
    if (file_.max_rate > 0) HoldBack();
  }
  void Sync() {
    if (error_) return;
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

// Many members are in the file before the cut: writers hand over images only for the time that the
// rest takes.
void BeginSnapshot(snapshot::Snapshot& snapshot, const SnapshotFile& file, Output& output,
                   RdbWriter& writer) {
  auto& members = types::MemberDictionary::Shared();
  bool early = false;
  if (file.begin) {
    members.Pin();
    early = members.size() > 0;
    if (early) writer.BeginDictionary();
    file.begin();
    members.Unpin();
    if (output.error()) snapshot.Abort();
  }
  if (early || (snapshot.refers() && !snapshot.aborted())) writer.Dictionary();
}

// True when all is written.
bool WriteRdb(snapshot::Snapshot& snapshot, const SnapshotFile& file, Output& output,
              bool exclusive) {
  RdbWriter writer([&output](std::string_view bytes) { output.Write(bytes); }, file.options);
  writer.Begin(file.origin);
  for (const std::string& code : file.libraries) writer.Function(code);
  BeginSnapshot(snapshot, file, output, writer);
  const bool whole = snapshot.Walk(writer, exclusive);
  if (whole) writer.End();
  return whole;
}

bool WriteCommands(snapshot::Snapshot& snapshot, const SnapshotFile& file, Output& output,
                   bool exclusive) {
  CommandWriter writer([&output](std::string_view bytes) { output.Write(bytes); });
  for (const std::string& code : file.libraries) writer.Function(code);
  if (file.begin) {
    file.begin();
    if (output.error()) snapshot.Abort();
  }
  const bool whole = snapshot.Walk(writer, exclusive);
  if (writer.error()) output.Fail(*writer.error());
  if (whole) writer.End();
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
