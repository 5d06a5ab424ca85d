#include "cli/backup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>

#include "base/text.h"
#include "cli/check_rdb.h"
#include "cli/client_options.h"
#include "cli/progress.h"
#include "cli/sync_client.h"
#include "storage/data_lock.h"
#include "storage/file_system.h"
#include "storage/rdb_format.h"
#include "storage/rdb_reader.h"
#include "types/value/type_registry.h"

namespace sava::cli {

namespace {

using storage::FileSystem;
using storage::PathIn;

constexpr std::string_view kBackupHelp = R"(Usage: sava backup [OPTIONS] HOST:PORT FILE

Asks a running server, Sava or Redis, for its whole data set, as a replica does, and writes it as
one RDB file. The server goes on serving meanwhile. The file is read back and checked before it
gets its name: FILE is whole, or it is as it was.

  --user NAME   authenticate as this user (needs --pass)
  --pass WORD   authenticate with this password
  --tls         encrypt the connection; --cacert FILE, --cert FILE, --key FILE, --insecure and the
                others as in 'sava cli'
  --force       replace FILE if it exists

Exit code: 0 the file is written and good; 1 it is not.

Examples:
  sava backup 127.0.0.1:6379 /backups/monday.rdb
  sava backup --pass secret --tls --cacert ca.crt db.example.com:6379 monday.rdb
)";

constexpr std::string_view kRestoreHelp = R"(Usage: sava restore [--force] FILE --dir DIR

Checks an RDB file, of 'sava backup', SAVE or Redis, and makes DIR a data directory with it, from
which 'sava serve --dir DIR' starts, with its log on or off.

  --dir DIR     the directory; it is made when it is missing
  --force       go on although DIR has a data set, which is kept beside under other names, or a
                server is running on it (restart that one afterwards)

Exit code: 0 DIR is ready; 1 it is as it was.

Example:
  sava restore /backups/monday.rdb --dir ./data
)";

// A server that says nothing for so long is given up. Getting ready it sends empty lines.
constexpr int kPatienceMs = 60000;
constexpr std::string_view kDump = "dump.rdb";
constexpr std::string_view kLog = "appendonly.aof";
constexpr std::string_view kLogDirectory = "appendonlydir";

int Complain(std::string_view verb, std::string_view text) {
  std::fflush(stdout);
  fmt::print(stderr, "sava {}: {}\n", verb, text);
  return 1;
}

// How much has come, on one line that overwrites itself; for people at a terminal only.
class Arrivals {
 public:
  Arrivals() : shown_(isatty(STDERR_FILENO) != 0) {}
  ~Arrivals() {
    if (any_) fmt::print(stderr, "\r\x1b[K");
  }
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  void Update(uint64_t bytes, std::optional<uint64_t> total) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    any_ = true;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const auto rate = static_cast<uint64_t>(static_cast<double>(bytes) / std::max(seconds, 0.001));
    fmt::print(stderr, "\r\x1b[K{}{}, {}/s", base::HumanBytes(bytes),
               total ? " of " + base::HumanBytes(*total) : "", base::HumanBytes(rate));
    std::fflush(stderr);
  }

 private:
  const bool shown_;
  bool any_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

// What is in the file, for people, when it is whole.
base::Result<std::string> Verify(const std::string& path) {
  auto file = FileSystem::Real().Map(path);
  if (!file) return base::Error{fmt::format("{}: {}", path, file.error())};
  const std::string_view bytes = file->bytes();
  if (!bytes.starts_with(storage::kRdbMagic)) {
    return base::Error{fmt::format("{} is no RDB file", path)};
  }
  ProgressLine line(base::HumanBytes(bytes.size()), bytes.size(), kLargeFile);
  RdbSummary summary(false, [&line](uint64_t done) { line.Update(done); });
  const storage::RdbEnd end = storage::ReadRdb(bytes, types::AllTypes(), summary);
  if (end.error) {
    return base::Error{
        fmt::format("{} is damaged at offset {}: {}", path, end.error->offset, end.error->text)};
  }
  if (end.size != bytes.size()) {
    return base::Error{fmt::format("{}: something follows the end of the RDB file", path)};
  }
  return fmt::format("RDB version {}, {}\n{}", summary.version(),
                     Counted(bytes.size(), "byte", "bytes"), summary.Text(end));
}

// "(process 12)"; empty: nobody has it.
std::string HeldBy(const std::string& path) {
  const auto holder = storage::DataLock::HolderOf(storage::DataLockName(path));
  return holder ? fmt::format("a server (process {}) is running on {}", holder->pid, path) : "";
}

// ---- backup ----

struct BackupWords {
  bool help = false;
  bool force = false;
  std::vector<std::string> places;
  std::vector<std::string> connection;  // options of the client
};

BackupWords SplitBackup(const std::vector<std::string>& words) {
  BackupWords split;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      split.help = true;
    } else if (word == "--force") {
      split.force = true;
    } else if (!word.starts_with('-')) {
      split.places.push_back(word);
    } else {
      split.connection.push_back(word);
      const bool alone = word == "--tls" || word == "--insecure";
      if (!alone && i + 1 < words.size()) split.connection.push_back(words[++i]);
    }
  }
  return split;
}

// "host:port", "[::1]:port".
bool SplitPlace(std::string_view place, Endpoint* endpoint) {
  const size_t colon = place.rfind(':');
  int64_t port = 0;
  if (colon == std::string_view::npos || !base::ParseInt(place.substr(colon + 1), &port) ||
      port < 1 || port > 65535) {
    return false;
  }
  std::string_view host = place.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return false;
  endpoint->host = host;
  endpoint->port = static_cast<int>(port);
  return true;
}

base::Status FetchTo(const Options& options, const std::string& temporary) {
  auto file = FileSystem::Real().Open(temporary, FileSystem::Mode::kNew);
  if (!file) return base::Error{fmt::format("{}: {}", temporary, file.error())};
  Arrivals arrivals;
  SyncClient client(kPatienceMs);
  base::Status status = client.Fetch(
      options, [&](std::string_view bytes) { return (*file)->Append(bytes); },
      [&](uint64_t bytes, std::optional<uint64_t> total) { arrivals.Update(bytes, total); });
  if (!status) return base::Error{options.endpoint.Text() + ": " + status.error()};
  return (*file)->Sync();
}

base::Status PutInPlace(const std::string& temporary, const std::string& path) {
  FileSystem& files = FileSystem::Real();
  base::Status status = files.Rename(temporary, path);
  if (status) status = files.SyncDirectory(storage::DirectoryOf(path));
  return status;
}

// ---- restore ----

// A name beside the path that nobody has.
std::string Aside(const std::string& path) {
  std::string name = path + ".before-restore";
  for (int number = 2; access(name.c_str(), F_OK) == 0; ++number) {
    name = fmt::format("{}.before-restore.{}", path, number);
  }
  return name;
}

base::Status CopyFile(const std::string& from, const std::string& to) {
  FileSystem& files = FileSystem::Real();
  auto source = files.Map(from);
  if (!source) return base::Error{source.error()};
  auto target = files.Open(to, FileSystem::Mode::kNew);
  if (!target) return base::Error{target.error()};
  ProgressLine line(base::HumanBytes(source->bytes().size()), source->bytes().size(), kLargeFile);
  constexpr size_t kStep = 4 << 20;
  for (std::string_view rest = source->bytes(); !rest.empty();) {
    const std::string_view step = rest.substr(0, kStep);
    if (base::Status status = (*target)->Append(step); !status) return status;
    rest.remove_prefix(step.size());
    line.Update(source->bytes().size() - rest.size());
  }
  return (*target)->Sync();
}

// The old log goes first: a start takes the log when there is one.
base::Status PutAside(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return {};
  const std::string name = Aside(path);
  base::Status status = FileSystem::Real().Rename(path, name);
  if (status) fmt::print("{} is kept as {}\n", path, name);
  return status;
}

}  // namespace

int RunBackup(const std::vector<std::string>& words) {
  const BackupWords split = SplitBackup(words);
  if (split.help) {
    fmt::print("{}", kBackupHelp);
    return 0;
  }
  auto options = ParseOptions(split.connection);
  if (!options) return Complain("backup", options.error());
  if (split.places.size() != 2 || !SplitPlace(split.places[0], &options->endpoint)) {
    return Complain("backup", "it wants HOST:PORT and FILE. See 'sava backup --help'.");
  }
  const std::string& path = split.places[1];
  if (!split.force) {
    if (access(path.c_str(), F_OK) == 0) {
      return Complain("backup", path + " exists; --force replaces it");
    }
    if (const std::string held = HeldBy(path); !held.empty()) {
      return Complain("backup", held + "; --force writes it all the same");
    }
  }
  const std::string temporary = fmt::format("{}.{}.part", path, getpid());
  base::Status status = FetchTo(*options, temporary);
  std::string text;
  if (status) {
    auto verified = Verify(temporary);
    if (verified) text = std::move(*verified);
    if (!verified) status = base::Error{"what came is not written: " + verified.error()};
  }
  if (status) status = PutInPlace(temporary, path);
  if (!status) {
    static_cast<void>(FileSystem::Real().Remove(temporary));
    return Complain("backup", status.error());
  }
  fmt::print("{}: {}", path, text);
  return 0;
}

int RunRestore(const std::vector<std::string>& words) {
  bool force = false;
  std::string from;
  std::string dir;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kRestoreHelp);
      return 0;
    }
    if (word == "--force") {
      force = true;
    } else if (word == "--dir" && i + 1 < words.size()) {
      dir = words[++i];
    } else if (!word.starts_with('-') && from.empty()) {
      from = word;
    } else {
      return Complain("restore",
                      fmt::format("'{}' is not understood. See 'sava restore --help'.", word));
    }
  }
  if (from.empty() || dir.empty()) {
    return Complain("restore", "it wants FILE and --dir DIR. See 'sava restore --help'.");
  }
  const std::string dump = PathIn(dir, kDump);
  const std::string log = PathIn(dir, kLogDirectory);
  if (!force) {
    for (const std::string& path : {dump, PathIn(dir, kLog)}) {
      if (const std::string held = HeldBy(path); !held.empty()) {
        return Complain("restore", held + "; shut it down first");
      }
    }
    for (const std::string& path : {dump, log, PathIn(dir, kLog)}) {
      if (access(path.c_str(), F_OK) == 0) {
        return Complain("restore", path + " exists; --force keeps it under another name");
      }
    }
  }
  auto verified = Verify(from);
  if (!verified) return Complain("restore", verified.error());
  const std::string temporary = fmt::format("{}.{}.part", dump, getpid());
  base::Status status = FileSystem::Real().MakeDirectory(dir);
  if (status) status = CopyFile(from, temporary);
  for (const std::string& path : {log, PathIn(dir, kLog), dump}) {
    if (status) status = PutAside(path);
  }
  if (status) status = PutInPlace(temporary, dump);
  if (!status) {
    static_cast<void>(FileSystem::Real().Remove(temporary));
    return Complain("restore", fmt::format("{}: {}", dir, status.error()));
  }
  fmt::print("{}: {}", dump, *verified);
  return 0;
}

}  // namespace sava::cli
