#include "cli/check.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/check_file.h"
#include "cli/check_rdb.h"
#include "cli/check_repair.h"
#include "cli/data_files.h"
#include "cli/suggest.h"
#include "storage/file_system.h"
#include "storage/recovery_plan.h"

namespace sava::cli {

namespace {

using storage::AofEnd;
using storage::RecoveryPlan;

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

class Check final : public storage::PartReader {
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
    if (!data.dump.empty()) Dump(data.dump, !data.directory);
    if (data.has_log()) Log(data);
    if (bad_) return 1;
    if (data.directory || !data.manifest.empty()) {
      fmt::print("{}: {}, {}: all good\n", path_, Counted(files_, "file", "files"),
                 Counted(bytes_, "byte", "bytes"));
    }
    return portable_ ? 0 : 2;
  }

  storage::AofEnd Read(const RecoveryPlan::Part& part, const base::MappedFile& bytes) override {
    CheckedFile file = CheckFile(part.path, bytes, {options_.portable, log_});
    ++files_;
    bytes_ += part.size;
    fmt::print("{}", file.text);
    for (const std::string& unknown : file.unknown) {
      Bad(fmt::format("{}: {}", part.path, unknown));
    }
    if (file.end.kind == AofEnd::Kind::kWhole && part.size >= part.had) {
      TellPortable(file.obstacles);
    } else {
      obstacles_[part.path] = std::move(file.obstacles);
    }
    return std::move(file.end);
  }

 private:
  // A file that is not part of a log. `alone`: commands may follow it, which are to be repaired.
  void Dump(const std::string& path, bool alone) {
    RecoveryPlan plan = storage::PlanFile(files(), path);
    (void)storage::ReadParts(files(), &plan, *this, {.read_on = true});
    for (const RecoveryPlan::Finding& finding : plan.findings) {
      if (alone && finding.end.kind != AofEnd::Kind::kRefused) {
        Tell(plan, finding);
      } else {
        Bad(Problem(plan.parts[0], finding) +
            (options_.repair ? "; an RDB file cannot be repaired" : ""));
      }
    }
  }

  void Log(const DataFiles& data) {
    if (!data.manifest.empty()) {
      fmt::print("{}: manifest of {}\n", data.manifest, Counted(data.log.size(), "file", "files"));
    }
    RecoveryPlan plan = PlanOf(data);
    log_ = true;
    if (!plan.refused.empty()) {
      Bad(plan.refused);
    } else if (TellRing(plan) && options_.repair) {
      plan = PlanOf(data);  // The files have it now.
    }
    (void)storage::ReadParts(files(), &plan, *this, {.read_on = true});
    for (const RecoveryPlan::Finding& finding : plan.findings) Tell(plan, finding);
  }

  // After a power failure the ring may have what the log lacks. True when nothing is in the way of
  // going on.
  bool TellRing(const RecoveryPlan& plan) {
    if (options_.repair) {
      if (const base::Status status = storage::RestoreLog(files(), plan); !status) {
        Bad(status.error());
        return false;
      }
      // All it had is in the file now, which may be cut off next.
      RemoveRing(plan);
    }
    if (plan.ring.lacking == 0) return true;
    const std::string what =
        fmt::format("{}: it lacks {} that were synced, but the log's ring has them", plan.ring.file,
                    Counted(plan.ring.lacking, "byte", "bytes"));
    if (options_.repair) {
      fmt::print("{}: written\n", what);
    } else {
      Bad(what + ". A start of the server writes them, and so does --repair");
    }
    return true;
  }

  // What is wrong, and where.
  static std::string Problem(const RecoveryPlan::Part& part, const RecoveryPlan::Finding& finding) {
    const AofEnd& end = finding.end;
    if (end.kind == AofEnd::Kind::kRefused) return end.text;
    if (end.kind == AofEnd::Kind::kWhole) {
      return fmt::format("{}: it has lost its end: it has {}, and had {}", part.path,
                         Counted(part.size, "byte", "bytes"), part.had);
    }
    return fmt::format("{}: at byte {}: {}", part.path, end.offset, end.text);
  }

  // A part that is not good to its end: repairs it, or says what a server and a repair would do.
  void Tell(const RecoveryPlan& plan, const RecoveryPlan::Finding& finding) {
    const RecoveryPlan::Part& part = plan.parts[finding.part];
    const std::string problem = Problem(part, finding);
    const uint64_t rest = part.size - finding.end.good;
    const std::string what =
        fmt::format("{}; it is whole up to byte {}, {} {}", problem, finding.end.good,
                    Counted(rest, "byte", "bytes"), rest == 1 ? "follows" : "follow");
    const bool last = finding.part + 1 == plan.parts.size();
    switch (finding.cure) {
      case RecoveryPlan::Cure::kCut:
        if (options_.repair) return Repair(finding, last ? what : problem);
        if (last) {
          return Bad(what +
                     ". The server would load it with aof-load-truncated yes (the default), "
                     "without these bytes; --repair cuts them off");
        }
        return Bad(fmt::format(
            "{}; it is whole up to byte {}, and nothing in the later files of the log was ever "
            "synced. The server would load it with aof-load-truncated yes (the default) up to "
            "there, without the later ones; --repair cuts them off",
            problem, finding.end.good));
      case RecoveryPlan::Cure::kRepair:
        return options_.repair ? Repair(finding, what) : Bad(what + ". --repair cuts them off");
      case RecoveryPlan::Cure::kAlone:
        return Bad(fmt::format(
            "{}. Later files of the log follow, which would then change another data set: a server "
            "refuses it. 'sava check --repair {}' cuts off this file alone",
            what, part.path));
      case RecoveryPlan::Cure::kNone:
        return Bad(Hopeless(finding, problem, what));
    }
  }

  std::string Hopeless(const RecoveryPlan::Finding& finding, const std::string& problem,
                       const std::string& what) const {
    switch (finding.end.kind) {
      case AofEnd::Kind::kWhole:
        return problem +
               ". Later files of the log were synced since, so this is damage: a server refuses "
               "it, and it cannot be repaired";
      case AofEnd::Kind::kCorrupt:
        return what + ". Nothing in it is whole, so there is nothing to repair";
      default:
        return problem + (options_.repair ? "; this cannot be repaired" : "");
    }
  }

  // `what`: is wrong with the part itself.
  void Repair(const RecoveryPlan::Finding& finding, const std::string& what) {
    if (finding.end.kind == AofEnd::Kind::kWhole) fmt::print("{}: the log ends here\n", what);
    bool first = finding.end.kind != AofEnd::Kind::kWhole;
    for (const RecoveryPlan::Cut& cut : finding.cuts) {
      const std::string why =
          std::exchange(first, false) ? what : fmt::format("{}: {}", cut.path, cut.why);
      const auto copy = RepairTail(cut.path, cut.size, cut.kept);
      if (!copy) return Bad(fmt::format("{}; not repaired: {}", why, copy.error()));
      const uint64_t gone = cut.size - cut.kept;
      fmt::print("{}\n{}: repaired: {} cut off at byte {}; the file as it was is now {}\n", why,
                 cut.path, Counted(gone, "byte", "bytes"), cut.kept, copy.value());
      if (const auto found = obstacles_.find(cut.path); found != obstacles_.end()) {
        bytes_ -= gone;
        TellPortable(found->second);
      }
    }
  }

  void TellPortable(const std::vector<std::string>& obstacles) {
    if (!options_.portable) return;
    if (obstacles.empty()) {
      fmt::print("portable: a stock Redis 7.0 can load this file\n");
      return;
    }
    portable_ = false;
    fmt::print("not portable: a stock Redis 7.0 refuses this file because of\n");
    for (const std::string& obstacle : obstacles) fmt::print("  {}\n", obstacle);
  }

  void Bad(std::string_view text) {
    bad_ = true;
    Complain(text);
  }

  static storage::FileSystem& files() { return storage::FileSystem::Real(); }

  const std::string path_;
  const Options options_;
  bool bad_ = false;
  bool log_ = false;  // what is read is part of a log
  bool portable_ = true;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
  std::map<std::string, std::vector<std::string>> obstacles_;  // of files that are not good
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
