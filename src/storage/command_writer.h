// CommandWriter: a data set as commands that make it again, as Redis writes the base of its log
// with aof-use-rdb-preamble no. Values of Redis's types become the commands of their type
// (Object::Rebuild), others RESTORE; times of keys follow as PEXPIREAT.
//
// A value is held in memory as a whole while it is written. Bytes reach the sink in pieces of some
// 64 KB. A value whose RESTORE would be too long to be read again sets error(): what was written is
// worth nothing then. Nothing here is thread-safe.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "snapshot/cut_writer.h"

namespace sava::storage {

class CommandWriter final : public snapshot::CutWriter {
 public:
  using Sink = std::function<void(std::string_view bytes)>;

  explicit CommandWriter(Sink sink) : sink_(std::move(sink)) {}

  void Function(std::string_view code) override { Command({"FUNCTION", "LOAD", code}); }
  void SelectDb(uint64_t db, uint64_t keys, uint64_t expiring) override;
  void SwitchDb(uint64_t db) override { SelectDb(db, 0, 0); }
  void String(const snapshot::CutKey& key, std::string_view value) override;
  void Number(const snapshot::CutKey& key, int64_t value) override;
  types::Writer& OpenValue(const snapshot::CutKey& key, uint8_t rdb_type) override;
  void CloseValue() override;

  // Passes the rest on.
  void End() { Flush(); }

  const std::optional<std::string>& error() const { return error_; }

 private:
  void Command(std::span<const std::string_view> words);
  void Command(std::initializer_list<std::string_view> words) {
    Command(std::span(words.begin(), words.size()));
  }
  bool Rebuild();
  void Restore();
  void Expiry(const snapshot::CutKey& key);
  void Flush();

  Sink sink_;
  std::string out_;
  std::optional<std::string> error_;
  // The value that is open: its key, its type byte and the bytes after it.
  std::string key_name_;
  snapshot::CutKey key_;
  std::string value_;
  std::optional<types::Writer> writer_;
};

}  // namespace sava::storage
