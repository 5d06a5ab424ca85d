#include "cli/check_file.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/check_rdb.h"
#include "cli/data_files.h"
#include "cli/portable.h"
#include "cli/progress.h"
#include "commands/registry.h"
#include "commands/stock.h"
#include "engine/engine.h"
#include "server/families.h"
#include "storage/aof_reader.h"
#include "storage/rdb_format.h"
#include "types/value/type_registry.h"

namespace sava::cli {

namespace {

// Pages of the file stay mapped this far behind the reading.
constexpr size_t kKeptMapped = 8 << 20;

// Counts the commands of a log.
class LogSummary {
 public:
  LogSummary(bool portable, uint64_t base) : portable_(portable), base_(base) {
    for (const auto family : server::AllFamilies()) table_.Add(family);
  }

  void Add(const storage::AofCommand& command) {
    if (command.in_transaction && command.last) ++transactions_;
    Note(&names_, base::ToLower(command.words[0]), command);
    if (!portable_) return;
    std::string foreign = commands::ForeignCommand(command.words);
    if (!foreign.empty()) Note(&foreign_, std::move(foreign), command);
  }

  void Tell(const storage::AofEnd& end, CheckedFile* file) const {
    file->text += fmt::format("  commands     {}", end.commands);
    if (transactions_ != 0) {
      file->text += fmt::format(", with {}", Counted(transactions_, "transaction", "transactions"));
    }
    file->text += '\n';
    for (const auto& [name, seen] : names_) {
      file->text += fmt::format("  command      {} {}\n", seen.times, Shown(name));
      // Libraries are kept, though no client can load one.
      if (table_.Find(name) != nullptr || name == "function") continue;
      file->unknown.push_back(fmt::format("at byte {}: command '{}' ({}), which is not known here",
                                          seen.first, Shown(name),
                                          Counted(seen.times, "time", "times")));
    }
    for (const auto& [name, seen] : foreign_) {
      file->obstacles.push_back(fmt::format("{} ({}, from byte {} on)", Shown(name),
                                            Counted(seen.times, "time", "times"), seen.first));
    }
  }

 private:
  struct Seen {
    uint64_t times = 0;
    uint64_t first = 0;
  };
  using Names = std::map<std::string, Seen>;

  void Note(Names* names, std::string name, const storage::AofCommand& command) const {
    Seen& seen = (*names)[std::move(name)];
    if (seen.times++ == 0) seen.first = base_ + command.offset;
  }
  // A name may be any bytes, as many as there are.
  static std::string Shown(std::string_view name) {
    const std::string quoted = base::Quoted(name.substr(0, 128));
    return quoted.substr(1, quoted.size() - 2);
  }

  const bool portable_;
  const uint64_t base_;  // where the commands begin in the file
  commands::CommandTable table_;
  uint64_t transactions_ = 0;
  Names names_;
  Names foreign_;
};

class Checker {
 public:
  Checker(const std::string& path, const CheckOptions& options, const base::MappedFile& file,
          CheckedFile* result)
      : path_(path),
        options_(options),
        mapped_(file),
        bytes_(file.bytes()),
        line_(base::HumanBytes(bytes_.size()), bytes_.size(), kLargeFile),
        result_(*result) {}

  void Run() {
    if (!bytes_.starts_with(storage::kRdbMagic) && LooksLikeLog(path_, bytes_)) {
      result_.text =
          fmt::format("{}: append-only file, {}\n", path_, Counted(bytes_.size(), "byte", "bytes"));
      return Commands(0);
    }
    RdbSummary summary(options_.portable, [this](uint64_t bytes) { Progress(bytes); });
    const storage::RdbEnd end = storage::ReadRdb(bytes_, types::AllTypes(), summary);
    if (end.error) return Refuse(end.error->offset, end.error->text);
    const std::string_view rest = bytes_.substr(end.size);
    const bool log = options_.log || path_.ends_with(".aof");
    if (!rest.empty() && !log && !LooksLikeLog(path_, rest)) {
      return Refuse(end.size, fmt::format("{} follow the end of the RDB file",
                                          Counted(rest.size(), "byte", "bytes")));
    }
    result_.text =
        fmt::format("{}: RDB version {}{}, {}\n", path_, summary.version(),
                    rest.empty() ? "" : " and commands", Counted(bytes_.size(), "byte", "bytes")) +
        summary.Text(end);
    result_.end.good = result_.end.offset = end.size;
    result_.obstacles = summary.obstacles();
    if (!options_.portable) {
      for (const auto& [module, count] : summary.foreign()) {
        result_.unknown.push_back(fmt::format("{} of module {}, which is not known here",
                                              Counted(count, "value", "values"), module));
      }
    }
    if (!rest.empty()) Commands(end.size);
  }

 private:
  void Commands(uint64_t base) {
    LogSummary summary(options_.portable, base);
    const storage::AofEnd end = storage::ReadAof(
        bytes_.substr(base),
        [&summary](const storage::AofCommand& command) {
          summary.Add(command);
          return base::Status();
        },
        [this, base](uint64_t bytes) { Progress(base + bytes); });
    summary.Tell(end, &result_);
    result_.end = end;
    result_.end.good += base;
    result_.end.offset += base;
  }

  void Refuse(uint64_t offset, std::string_view text) {
    result_.end.kind = storage::AofEnd::Kind::kRefused;
    result_.end.offset = offset;
    result_.end.text = fmt::format("{}: at byte {}: {}", path_, offset, text);
  }

  void Progress(uint64_t bytes) {
    line_.Update(bytes);
    if (bytes < released_ + 2 * kKeptMapped) return;
    mapped_.Release(released_, bytes - kKeptMapped);
    released_ = bytes - kKeptMapped;
  }

  const std::string& path_;
  const CheckOptions& options_;
  const base::MappedFile& mapped_;
  const std::string_view bytes_;
  ProgressLine line_;
  uint64_t released_ = 0;
  CheckedFile& result_;
};

}  // namespace

CheckedFile CheckFile(const std::string& path, const base::MappedFile& file,
                      const CheckOptions& options) {
  CheckedFile result;
  Checker(path, options, file, &result).Run();
  return result;
}

}  // namespace sava::cli
