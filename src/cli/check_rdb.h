// RdbSummary: what an RDB file holds, as `sava check` tells it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/rdb_reader.h"

namespace sava::cli {

class RdbSummary final : public storage::RdbSink {
 public:
  // With `portable` it notes what a stock Redis 7.0 refuses.
  RdbSummary(bool portable, std::function<void(uint64_t)> progress);

  base::Status Version(int version) override;
  base::Status Aux(std::string_view name, std::string_view value) override;
  base::Status SelectDb(uint64_t db) override;
  base::Status Resize(uint64_t keys, uint64_t expiring) override;
  base::Status String(const snapshot::CutKey& key, std::string_view value) override;
  base::Status Object(const snapshot::CutKey& key, std::unique_ptr<types::Object> value) override;
  base::Status Function(std::string_view code) override;
  base::Status AuxData(const types::TypeInfo& type) override;
  base::Status ForeignAux(std::string_view module) override;
  base::Status ForeignValue(const snapshot::CutKey& key, std::string_view module) override;
  void Progress(uint64_t bytes) override { progress_(bytes); }

  // Lines for people, below the one that names the file.
  std::string Text(const storage::RdbEnd& end) const;
  int version() const { return version_; }
  // Modules whose data was passed over, and how often.
  const std::map<std::string, uint64_t>& foreign() const { return foreign_; }
  const std::vector<std::string>& obstacles() const { return obstacles_; }

 private:
  struct Database {
    uint64_t keys = 0;
    uint64_t expiring = 0;
  };

  void Count(const snapshot::CutKey& key, std::string_view type);
  void Obstacle(std::string text);
  void KeyObstacle(const snapshot::CutKey& key, std::string_view type);
  std::string Creator() const;

  const bool portable_;
  const std::function<void(uint64_t)> progress_;
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

// "1 byte", "2 bytes".
std::string Counted(uint64_t n, std::string_view one, std::string_view many);

}  // namespace sava::cli
