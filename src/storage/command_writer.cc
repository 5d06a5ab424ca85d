#include "storage/command_writer.h"

#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "storage/rdb_reader.h"
#include "types/value/object.h"
#include "types/value/type_registry.h"

namespace sava::storage {

namespace {

constexpr size_t kFlushAt = 64 * 1024;
// What a word of a log may have (docs/formats/aof.md).
constexpr uint64_t kMaxWord = UINT32_MAX - 1;

}  // namespace

void CommandWriter::Flush() {
  if (!out_.empty()) sink_(out_);
  out_.clear();
}

void CommandWriter::Command(std::span<const std::string_view> words) {
  char digits[24];
  const auto head = [&](char mark, uint64_t number) {
    out_ += mark;
    out_.append(digits, base::FormatUint(number, digits));
    out_ += "\r\n";
  };
  head('*', words.size());
  for (const std::string_view word : words) {
    head('$', word.size());
    out_.append(word) += "\r\n";
  }
  if (out_.size() >= kFlushAt) Flush();
}

void CommandWriter::SelectDb(uint64_t db, uint64_t /*keys*/, uint64_t /*expiring*/) {
  Command({"SELECT", base::IntText(static_cast<int64_t>(db))});
}

void CommandWriter::Expiry(const snapshot::CutKey& key) {
  if (key.expire_at_ms == -1) return;
  Command({"PEXPIREAT", key.key, base::IntText(key.expire_at_ms)});
}

void CommandWriter::String(const snapshot::CutKey& key, std::string_view value) {
  Command({"SET", key.key, value});
  Expiry(key);
}

void CommandWriter::Number(const snapshot::CutKey& key, int64_t value) {
  String(key, base::IntText(value));
}

types::Writer& CommandWriter::OpenValue(const snapshot::CutKey& key, uint8_t rdb_type) {
  key_name_ = key.key;
  key_ = key;
  key_.key = key_name_;
  value_.assign(1, static_cast<char>(rdb_type));
  return writer_.emplace(&value_);
}

void CommandWriter::CloseValue() {
  writer_.reset();
  if (Rebuild()) {
    Expiry(key_);
  } else {
    Restore();
  }
  if (value_.capacity() > kFlushAt) value_ = {};
}

bool CommandWriter::Rebuild() {
  types::Reader in(value_);
  const uint8_t rdb_type = in.Byte();
  if (rdb_type == types::kRdbModule) return false;
  const std::unique_ptr<types::Object> object = types::AllTypes().Load(rdb_type, in);
  return object != nullptr &&
         object->Rebuild(key_.key,
                         [this](std::span<const std::string_view> words) { Command(words); });
}

void CommandWriter::Restore() {
  types::SealDump(&value_);
  if (value_.size() > kMaxWord) {
    error_ = fmt::format("key {}: its value of {} bytes is too large for a command",
                         ShownKey(key_.key), value_.size());
    return;
  }
  const bool expires = key_.expire_at_ms != -1;
  const std::string at = base::IntText(expires ? key_.expire_at_ms : 0);
  if (expires) {
    Command({"RESTORE", key_.key, at, value_, "ABSTTL"});
  } else {
    Command({"RESTORE", key_.key, at, value_});
  }
}

}  // namespace sava::storage
