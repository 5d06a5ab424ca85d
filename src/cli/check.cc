#include "cli/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "cli/check_file.h"
#include "cli/check_rdb.h"
#include "cli/check_repair.h"
#include "cli/data_files.h"
#include "cli/suggest.h"
#include "storage/aof_reader.h"
#include "storage/file_system.h"

namespace sava::cli {

namespace {

constexpr std::string_view kHelp = R"(Usage: sava check [--portable] [--repair] PATH

Reads data files from end to end, prints a summary, and says what is wrong with file and offset.
PATH is an RDB file (dump.rdb), a file of an append-only log (*.aof), a manifest, an append-only
directory, or a data directory as 'sava serve --dir' uses it.

  --portable   also list what a stock Redis 7.0 would refuse: native values with their keys, and
               commands of the log that it does not know
  --repair     write what the log lacks and its ring has (after a power failure with appendfsync
               always), then cut a broken end of the log off, behind its last whole command or
               transaction. The file as it was before that is kept as FILE.before-repair. Only
               the end of a log is repaired (its last file, or an earlier one when nothing behind
               that was ever synced), unless another file is given as PATH; RDB files are not.
               Refused while a server is running on the files.

Exit code: 0 all is good, or was repaired; 1 something is damaged, or holds what this version does
           not read; 2 all is good, but not portable.

Examples:
  sava check ./data
  sava check --portable dump.rdb
  sava check --repair ./data/appendonlydir
)";

int Complain(std::string_view text) {
  std::fflush(stdout);
  fmt::print(stderr, "sava check: {}\n", text);
  return 1;
}

struct Options {
  bool portable = false;
  bool repair = false;
};

class Check {
 public:
  Check(std::string path, const Options& options) : path_(std::move(path)), options_(options) {}

  int Run() {
    const auto found = FindData(path_);
    if (!found) return Complain(found.error());
    const DataFiles& data = found.value();
    std::shared_ptr<storage::DataLock> lock;
    if (options_.repair) {
      const auto taken = KeepServersOff(data);
      if (!taken) return Complain(fmt::format("{}: not repaired: {}", path_, taken.error()));
      lock = taken.value();
    } else if (const auto pid = ServerOn(data)) {
      fmt::print("{}: {}: what it has not written yet is not checked\n", path_, Running(*pid));
    }
    if (!data.dump.empty()) One(data.dump, !data.directory);
    if (!data.manifest.empty()) {
      fmt::print("{}: manifest of {}\n", data.manifest, Counted(data.log.size(), "file", "files"));
      Ring(data);
    }
    for (size_t i = 0; i < data.log.size() && !ended_; ++i) {
      const auto told = Hindsight(data, i);
      if (!told) return Complain(told.error());
      LogFile(data.log[i], std::span(data.log).subspan(i + 1), told.value());
    }
    if (bad_) return 1;
    if (data.directory || !data.manifest.empty()) {
      fmt::print("{}: {}, {}: all good\n", path_, Counted(files_, "file", "files"),
                 Counted(bytes_, "byte", "bytes"));
    }
    return portable_ ? 0 : 2;
  }

 private:
  // After a power failure the ring may have what the log lacks.
  void Ring(const DataFiles& data) {
    const auto found = RestoreLog(data, options_.repair);
    if (!found) return Bad(found.error());
    const storage::AofRestored& restored = found.value();
    // All it had is in the file now, which may be cut off next.
    if (options_.repair) RemoveRing(data);
    if (restored.lacking == 0) return;
    const std::string what =
        fmt::format("{}: it lacks {} that were synced, but the log's ring has them", restored.file,
                    Counted(restored.lacking, "byte", "bytes"));
    if (options_.repair) {
      fmt::print("{}: written\n", what);
    } else {
      Bad(what + ". A start of the server writes them, and so does --repair");
    }
  }

  // A file that is not part of a log. `alone`: commands may follow it, which are to be repaired.
  void One(const std::string& path, bool alone) {
    const CheckedFile file = Read(path, {options_.portable, false});
    if (file.state == CheckedFile::State::kGood) return;
    if (alone && file.broken_tail()) return Broken(path, file, {});
    Bad(file.problem + (options_.repair ? "; an RDB file cannot be repaired" : ""));
  }

  // What the later increments tell of a file of the log.
  static base::Result<storage::AofHindsight> Hindsight(const DataFiles& data, size_t part) {
    storage::AofHindsight told;
    const size_t bases = data.parts.base() != nullptr ? 1 : 0;
    told.whole = part < bases;  // before anything followed
    if (data.manifest.empty() || part < bases) return told;
    const auto increments = data.parts.increments();
    for (const std::string& later : std::span(data.log).subspan(part + 1)) {
      const auto file = base::MappedFile::Open(later);
      if (!file) return base::Error{file.error()};
      told.Add(increments[part - bases].sequence, file.value().bytes());
    }
    return told;
  }

  void LogFile(const std::string& path, std::span<const std::string> later,
               const storage::AofHindsight& told) {
    CheckedFile file = Read(path, {options_.portable, true});
    if (file.state == CheckedFile::State::kGood && file.size < told.size) {
      file.state = CheckedFile::State::kTruncated;
      file.problem = fmt::format("{}: it has lost its end: it has {}, and had {}", path,
                                 Counted(file.size, "byte", "bytes"), told.size);
      if (told.whole) {
        return Bad(file.problem +
                   ". Later files of the log were synced since, so this is damage: a server "
                   "refuses it, and it cannot be repaired");
      }
    }
    if (file.state == CheckedFile::State::kGood) return;
    if (file.state == CheckedFile::State::kTruncated && !later.empty() && !told.whole) {
      return EndsHere(path, file, later);
    }
    if (file.broken_tail()) return Broken(path, file, later);
    Bad(file.problem + (options_.repair ? "; this cannot be repaired" : ""));
  }

  CheckedFile Read(const std::string& path, const CheckOptions& options) {
    CheckedFile file = CheckFile(path, options);
    ++files_;
    bytes_ += file.size;
    fmt::print("{}", file.text);
    for (const std::string& unknown : file.unknown) {
      Bad(fmt::format("{}: {}", path, unknown));
    }
    if (options_.portable && file.state == CheckedFile::State::kGood) TellPortable(file);
    return file;
  }

  void TellPortable(const CheckedFile& file) {
    if (file.obstacles.empty()) {
      fmt::print("portable: a stock Redis 7.0 can load this file\n");
      return;
    }
    portable_ = false;
    fmt::print("not portable: a stock Redis 7.0 refuses this file because of\n");
    for (const std::string& obstacle : file.obstacles) fmt::print("  {}\n", obstacle);
  }

  // Cut off by a power failure that came before later increments counted: the log ends here.
  void EndsHere(const std::string& path, const CheckedFile& file,
                std::span<const std::string> later) {
    ended_ = true;
    if (!options_.repair) {
      return Bad(fmt::format(
          "{}; it is whole up to byte {}, and nothing in the later files of the log was ever "
          "synced. The server would load it with aof-load-truncated yes (the default) up to there, "
          "without the later ones; --repair cuts them off",
          file.problem, file.good));
    }
    if (file.good == file.size) {
      fmt::print("{}: the log ends here\n", file.problem);
    } else if (!Repair(path, file, file.problem)) {
      return;
    }
    bytes_ -= file.size - file.good;
    // As in an increment without records.
    const uint64_t first_line = storage::AofSyncedLine(0).size();
    for (const std::string& name : later) {
      const auto size = storage::FileSystem::Real().Size(name);
      if (!size) return Bad(size.error());
      if (size.value() <= first_line) continue;
      CheckedFile left_out;
      left_out.size = size.value();
      left_out.good = first_line;
      if (!Repair(name, left_out, fmt::format("{}: what comes before it is cut off", name))) return;
    }
  }

  // The end of a log's file is broken.
  void Broken(const std::string& path, const CheckedFile& file,
              std::span<const std::string> later) {
    const bool truncated = file.state == CheckedFile::State::kTruncated;
    const uint64_t rest = file.size - file.good;
    const std::string what =
        fmt::format("{}; it is whole up to byte {}, {} {}", file.problem, file.good,
                    Counted(rest, "byte", "bytes"), rest == 1 ? "follows" : "follow");
    // Empty files add nothing, so what comes before them is still the end.
    const bool at_end = std::ranges::all_of(later, [](const std::string& name) {
      const auto size = storage::FileSystem::Real().Size(name);
      return size && size.value() == 0;
    });
    if (!at_end) {
      return Bad(fmt::format(
          "{}. Later files of the log follow, which would then change another data set: a server "
          "refuses it. 'sava check --repair {}' cuts off this file alone",
          what, path));
    }
    if (!truncated && file.good == 0) {
      return Bad(what + ". Nothing in it is whole, so there is nothing to repair");
    }
    if (options_.repair) {
      if (Repair(path, file, what)) bytes_ -= rest;
      return;
    }
    if (truncated && later.empty()) {
      return Bad(what +
                 ". The server would load it with aof-load-truncated yes (the default), without "
                 "these bytes; --repair cuts them off");
    }
    Bad(what + ". --repair cuts them off");
  }

  bool Repair(const std::string& path, const CheckedFile& file, const std::string& what) {
    const auto copy = RepairTail(path, file.size, file.good);
    if (!copy) {
      Bad(fmt::format("{}; not repaired: {}", what, copy.error()));
      return false;
    }
    fmt::print("{}\n{}: repaired: {} cut off at byte {}; the file as it was is now {}\n", what,
               path, Counted(file.size - file.good, "byte", "bytes"), file.good, copy.value());
    if (options_.portable) TellPortable(file);
    return true;
  }

  void Bad(std::string_view text) {
    bad_ = true;
    Complain(text);
  }

  const std::string path_;
  const Options options_;
  bool bad_ = false;
  bool ended_ = false;  // what follows of the log does not count
  bool portable_ = true;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

int RunCheck(const std::vector<std::string>& words) {
  Options chosen;
  std::vector<std::string> paths;
  bool options = true;
  for (const std::string& word : words) {
    if (options && (word == "--help" || word == "-h")) {
      fmt::print("{}", kHelp);
      return 0;
    }
    if (options && word == "--portable") {
      chosen.portable = true;
    } else if (options && word == "--repair") {
      chosen.repair = true;
    } else if (options && word == "--") {
      options = false;
    } else if (options && word.size() > 1 && word[0] == '-') {
      const std::string hint = DidYouMean(word, {"--portable", "--repair", "--help"});
      return Complain(fmt::format("there is no option '{}'{} See 'sava check --help'.", word,
                                  hint.empty() ? "." : hint));
    } else {
      paths.push_back(word);
    }
  }
  if (paths.size() != 1) {
    return Complain("one file or directory is to be given. See 'sava check --help'.");
  }
  return Check(paths[0], chosen).Run();
}

}  // namespace sava::cli
