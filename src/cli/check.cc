#include "cli/check.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "base/text.h"
#include "journal/rdb_reader.h"
#include "types/type_registry.h"

namespace sava::cli {

namespace {

constexpr std::string_view kHelp = R"(Usage: sava check [--portable] FILE

Reads an RDB file (dump.rdb) from end to end and prints a summary.

  --portable   also list what a stock Redis 7.0 would refuse: native types, with their keys

Exit code: 0 the file is good; 1 it is damaged, or holds what this version does not read;
           2 it is good, but not portable.
)";

// Progress is shown for files from this size on.
constexpr uint64_t kLargeFile = 64 << 20;

// The newest version that a stock Redis 7.0 reads.
constexpr int kPortableVersion = 10;

// Collects what the summary says.
class Summary final : public journal::RdbSink {
 public:
  struct Database {
    uint64_t keys = 0;
    uint64_t expiring = 0;
  };

  Summary(bool portable, std::function<void(uint64_t)> progress)
      : portable_(portable), progress_(std::move(progress)) {}

  base::Status Version(int version) override {
    version_ = version;
    if (version > kPortableVersion) Obstacle(fmt::format("RDB version {}", version));
    return {};
  }
  base::Status Aux(std::string_view name, std::string_view value) override {
    if (name == "redis-ver") redis_version_ = value;
    if (name == "valkey-ver") valkey_version_ = value;
    if (name == "ctime" && !base::ParseInt(value, &ctime_)) ctime_ = -1;
    return {};
  }
  base::Status SelectDb(uint64_t db) override {
    db_ = db;
    return {};
  }
  base::Status Resize(uint64_t /*keys*/, uint64_t /*expiring*/) override { return {}; }
  base::Status String(const journal::RdbKey& key, std::string_view /*value*/) override {
    Count(key, "string");
    return {};
  }
  base::Status Object(const journal::RdbKey& key, std::unique_ptr<types::Object> value) override {
    Count(key, value->type().name);
    if (value->type().module_id != 0) KeyObstacle(key, value->type().name);
    return {};
  }
  base::Status Function(std::string_view /*code*/) override {
    ++functions_;
    return {};
  }
  base::Status Dictionary() override {
    Obstacle("the member dictionary of association counters");
    return {};
  }
  base::Status ForeignAux(std::string_view module) override {
    ++foreign_[std::string(module)];
    Obstacle(fmt::format("data of module {}", module));
    return {};
  }
  base::Status ForeignValue(const journal::RdbKey& key, std::string_view module) override {
    const std::string type = fmt::format("module {}", module);
    ++foreign_[std::string(module)];
    Count(key, type);
    KeyObstacle(key, type);
    return {};
  }
  void Progress(uint64_t bytes) override { progress_(bytes); }

  std::string Text(const std::string& path, const journal::RdbEnd& end) const;
  // Modules whose data was passed over, and how often.
  const std::map<std::string, uint64_t>& foreign() const { return foreign_; }
  const std::vector<std::string>& obstacles() const { return obstacles_; }

 private:
  void Count(const journal::RdbKey& key, std::string_view type) {
    Database& database = databases_[db_];
    ++database.keys;
    if (key.expire_at_ms != -1) ++database.expiring;
    const auto found = types_.find(type);
    if (found != types_.end()) {
      ++found->second;
    } else {
      types_.emplace(type, 1);
    }
  }
  void Obstacle(std::string text) {
    if (portable_) obstacles_.push_back(std::move(text));
  }
  void KeyObstacle(const journal::RdbKey& key, std::string_view type) {
    if (portable_) Obstacle(fmt::format("database {} {} {}", db_, base::Quoted(key.key), type));
  }
  std::string Creator() const;

  bool portable_;
  std::function<void(uint64_t)> progress_;
  int version_ = 0;
  uint64_t db_ = 0;
  std::string redis_version_;
  std::string valkey_version_;
  int64_t ctime_ = -1;
  uint64_t functions_ = 0;
  std::map<uint64_t, Database> databases_;
  std::map<std::string, uint64_t, std::less<>> types_;
  std::map<std::string, uint64_t> foreign_;
  std::vector<std::string> obstacles_;
};

std::string Counted(uint64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string Summary::Creator() const {
  std::string text = "unknown";
  if (!valkey_version_.empty()) {
    text = fmt::format("Valkey {}", valkey_version_);
  } else if (!redis_version_.empty()) {
    text = fmt::format("Redis {} or compatible", redis_version_);
  }
  constexpr int64_t kLastYear = 253402300800;  // the year 10000
  if (ctime_ >= 0 && ctime_ < kLastYear) {
    text += fmt::format(", {:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<time_t>(ctime_)));
  }
  return text;
}

std::string Summary::Text(const std::string& path, const journal::RdbEnd& end) const {
  std::string text =
      fmt::format("{}: RDB version {}, {}\n", path, version_, Counted(end.size, "byte", "bytes"));
  text += fmt::format("  written by   {}\n", Creator());
  for (const auto& [number, database] : databases_) {
    text += fmt::format("  database {:<3} {}, {} expiring\n", number,
                        Counted(database.keys, "key", "keys"), database.expiring);
  }
  if (databases_.empty()) text += "  no keys\n";
  for (const auto& [name, count] : types_)
    text += fmt::format("  type         {} {}\n", count, name);
  if (functions_ != 0) {
    text += fmt::format("  functions    {}\n", Counted(functions_, "library", "libraries"));
  }
  text += fmt::format("  checksum     {}\n", end.checked ? "correct" : "none");
  return text;
}

// Overwrites its line on standard error, at most once per percent; nothing unless a person looks.
std::function<void(uint64_t)> ProgressLine(uint64_t size) {
  if (size < kLargeFile || isatty(STDERR_FILENO) == 0) return [](uint64_t) {};
  return [size, shown = uint64_t{UINT64_MAX}](uint64_t bytes) mutable {
    const uint64_t percent = bytes / (size / 100);
    if (percent == shown) return;
    shown = percent;
    fmt::print(stderr, "\r{} % of {}{}", std::min<uint64_t>(percent, 100), base::HumanBytes(size),
               bytes >= size ? "\n" : "");
    std::fflush(stderr);
  };
}

// Why the file is no RDB file that can be checked; empty when it may be one.
std::string NotAnRdb(const std::string& path, std::string_view bytes) {
  if (bytes.starts_with('*')) {
    return fmt::format(
        "{}: this looks like an append-only file; only RDB files can be checked so far", path);
  }
  if (bytes.starts_with("file ")) {
    return fmt::format(
        "{}: this looks like the manifest of an append-only directory; only RDB "
        "files can be checked so far",
        path);
  }
  return "";
}

int Complain(std::string_view text) {
  fmt::print(stderr, "sava check: {}\n", text);
  return 1;
}

int Check(const std::string& path, bool portable) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Complain(fmt::format(
        "{}: a directory; append-only directories cannot be checked yet, only RDB files", path));
  }
  const base::Result<base::MappedFile> file = base::MappedFile::Open(path);
  if (!file) return Complain(file.error());
  const std::string_view bytes = file.value().bytes();
  if (std::string problem = NotAnRdb(path, bytes); !problem.empty()) return Complain(problem);

  Summary summary(portable, ProgressLine(bytes.size()));
  const journal::RdbEnd end = journal::ReadRdb(bytes, types::AllTypes(), summary);
  if (end.error) {
    return Complain(fmt::format("{}: at byte {}: {}", path, end.error->offset, end.error->text));
  }
  if (end.size != bytes.size()) {
    return Complain(
        fmt::format("{}: at byte {}: {} follow the end of the RDB file; an append-only "
                    "file with a preamble cannot be checked yet",
                    path, end.size, Counted(bytes.size() - end.size, "byte", "bytes")));
  }
  fmt::print("{}", summary.Text(path, end));
  if (portable) {
    if (summary.obstacles().empty()) {
      fmt::print("portable: a stock Redis 7.0 can load this file\n");
      return 0;
    }
    fmt::print("not portable: a stock Redis 7.0 refuses this file because of\n");
    for (const std::string& obstacle : summary.obstacles()) fmt::print("  {}\n", obstacle);
    return 2;
  }
  for (const auto& [module, count] : summary.foreign()) {
    Complain(fmt::format("{}: {} of module {}, which is not known here", path,
                         Counted(count, "value", "values"), module));
  }
  return summary.foreign().empty() ? 0 : 1;
}

}  // namespace

int RunCheck(const std::vector<std::string>& words) {
  bool portable = false;
  std::vector<std::string> paths;
  bool options = true;
  for (const std::string& word : words) {
    if (options && (word == "--help" || word == "-h")) {
      fmt::print("{}", kHelp);
      return 0;
    }
    if (options && word == "--portable") {
      portable = true;
    } else if (options && word == "--") {
      options = false;
    } else if (options && word.size() > 1 && word[0] == '-') {
      return Complain(fmt::format("there is no option '{}'. See 'sava check --help'.", word));
    } else {
      paths.push_back(word);
    }
  }
  if (paths.size() != 1) {
    return Complain("one file is to be given. See 'sava check --help'.");
  }
  return Check(paths[0], portable);
}

}  // namespace sava::cli
