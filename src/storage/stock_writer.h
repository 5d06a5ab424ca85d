// StockWriter: writes an RDB file for a stock Redis 7.0: hashes lose the times of their fields;
// native values are left out, and counted, unless they are wanted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "snapshot/cut_writer.h"
#include "storage/rdb_writer.h"

namespace sava::storage {

class StockWriter final : public snapshot::CutWriter {
 public:
  // left_out: counts the keys that are not written; may be nullptr.
  StockWriter(RdbWriter& out, bool natives, uint64_t* left_out)
      : out_(out),
        natives_(natives),
        left_out_(left_out),
        value_([this](std::string_view bytes) { Keep(bytes); }) {}

  void Aux(std::string_view name, std::string_view value) override { out_.Aux(name, value); }
  void Function(std::string_view code) override { out_.Function(code); }
  void SelectDb(uint64_t db, uint64_t keys, uint64_t expiring) override {
    out_.SelectDb(db, keys, expiring);
  }
  void SwitchDb(uint64_t db) override { out_.SwitchDb(db); }
  void String(const snapshot::CutKey& key, std::string_view value) override {
    out_.String(key, value);
  }
  void Number(const snapshot::CutKey& key, int64_t value) override { out_.Number(key, value); }
  types::Writer& OpenValue(const snapshot::CutKey& key, uint8_t rdb_type) override;
  void CloseValue() override;

 private:
  enum class Use : uint8_t { kWrite, kDrop, kConvert };

  void Keep(std::string_view bytes) {
    if (use_ == Use::kConvert) bytes_ += bytes;
  }

  RdbWriter& out_;
  const bool natives_;
  uint64_t* const left_out_;
  types::Writer value_;
  // Of the value that is open.
  Use use_ = Use::kWrite;
  snapshot::CutKey key_;
  uint8_t type_ = 0;
  std::string bytes_;
};

}  // namespace sava::storage
