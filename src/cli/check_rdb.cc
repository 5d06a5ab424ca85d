#include "cli/check_rdb.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "base/text.h"
#include "cli/portable.h"
#include "types/value/aux_data.h"

namespace sava::cli {

std::string Counted(uint64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

RdbSummary::RdbSummary(bool portable, std::function<void(uint64_t)> progress)
    : portable_(portable), progress_(std::move(progress)) {}

base::Status RdbSummary::Version(int version) {
  version_ = version;
  if (version > kPortableRdbVersion) Obstacle(fmt::format("RDB version {}", version));
  return {};
}

base::Status RdbSummary::Aux(std::string_view name, std::string_view value) {
  if (name == "redis-ver") redis_version_ = value;
  if (name == "valkey-ver") valkey_version_ = value;
  if (name == "ctime" && !base::ParseInt(value, &ctime_)) ctime_ = -1;
  return {};
}

base::Status RdbSummary::SelectDb(uint64_t db) {
  db_ = db;
  return {};
}

base::Status RdbSummary::Resize(uint64_t /*keys*/, uint64_t /*expiring*/) { return {}; }

base::Status RdbSummary::String(const snapshot::CutKey& key, std::string_view /*value*/) {
  Count(key, "string");
  return {};
}

base::Status RdbSummary::Object(const snapshot::CutKey& key, std::unique_ptr<types::Object> value) {
  Count(key, value->type().name);
  if (!IsPortable(*value)) {
    const std::string_view type = value->type().name;
    KeyObstacle(key, value->next_deadline() < 0 ? std::string(type)
                                                : fmt::format("{} with times of fields", type));
  }
  return {};
}

base::Status RdbSummary::Function(std::string_view /*code*/) {
  ++functions_;
  return {};
}

base::Status RdbSummary::AuxData(const types::TypeInfo& type) {
  Obstacle(std::string(type.aux()->name()));
  return {};
}

base::Status RdbSummary::ForeignAux(std::string_view module) {
  ++foreign_[std::string(module)];
  Obstacle(fmt::format("data of module {}", module));
  return {};
}

base::Status RdbSummary::ForeignValue(const snapshot::CutKey& key, std::string_view module) {
  const std::string type = fmt::format("module {}", module);
  ++foreign_[std::string(module)];
  Count(key, type);
  KeyObstacle(key, type);
  return {};
}

void RdbSummary::Count(const snapshot::CutKey& key, std::string_view type) {
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

void RdbSummary::Obstacle(std::string text) {
  if (portable_) obstacles_.push_back(std::move(text));
}

void RdbSummary::KeyObstacle(const snapshot::CutKey& key, std::string_view type) {
  if (portable_) Obstacle(fmt::format("database {} {} {}", db_, base::Quoted(key.key), type));
}

std::string RdbSummary::Creator() const {
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

std::string RdbSummary::Text(const storage::RdbEnd& end) const {
  std::string text = fmt::format("  written by   {}\n", Creator());
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

}  // namespace sava::cli
