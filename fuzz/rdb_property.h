// What must hold for any bytes given to the reader of RDB files: they are refused at a place within
// them, or what they hold can be written and reads back the same. Shared by the fuzz target and by
// the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/rdb_reader.h"
#include "storage/rdb_writer.h"
#include "types/value/save.h"
#include "types/value/type_registry.h"

namespace sava::storage {

struct RecordedKey {
  uint64_t db = 0;
  std::string key;
  int64_t expire_at_ms = -1;
  int64_t idle_seconds = -1;
  int frequency = -1;
  std::string type;
  std::string value;  // a string's bytes, or what Save writes
  bool operator==(const RecordedKey&) const = default;
};

// Keeps all it is told.
class RecordingSink final : public RdbSink {
 public:
  base::Status Version(int version) override {
    version_ = version;
    return {};
  }
  base::Status Aux(std::string_view name, std::string_view value) override {
    aux.emplace_back(name, value);
    bytes += name.size() + value.size();
    return {};
  }
  base::Status SelectDb(uint64_t db) override {
    if (db >= databases) return base::Error{"no such database"};
    db_ = db;
    return {};
  }
  base::Status Resize(uint64_t keys_hint, uint64_t expiring) override {
    sizes.emplace_back(keys_hint, expiring);
    return {};
  }
  base::Status String(const snapshot::CutKey& key, std::string_view value) override {
    Keep(key, "string", std::string(value));
    return {};
  }
  base::Status Object(const snapshot::CutKey& key, std::unique_ptr<types::Object> value) override {
    std::string saved;
    {
      types::Writer out(&saved);
      value->Save(out);
    }
    Keep(key, value->type().name, std::move(saved));
    objects.push_back(std::move(value));
    return {};
  }
  base::Status Function(std::string_view code) override {
    functions.emplace_back(code);
    bytes += code.size();
    return {};
  }
  base::Status AuxData(const types::TypeInfo& /*type*/) override {
    has_dictionary = true;
    return {};
  }
  base::Status ForeignAux(std::string_view module) override {
    if (!skips) return base::Error{"data of an unknown module"};
    foreign.emplace_back(module);
    return {};
  }
  base::Status ForeignValue(const snapshot::CutKey& key, std::string_view module) override {
    if (!skips) return base::Error{"a value of an unknown module"};
    foreign.emplace_back(std::string(key.key) + " " + std::string(module));
    return {};
  }

  int version() const { return version_; }

  uint64_t databases = UINT64_MAX;  // selecting others is refused
  bool skips = true;                // passes over what other modules wrote

  std::vector<std::pair<std::string, std::string>> aux;
  std::vector<std::pair<uint64_t, uint64_t>> sizes;
  std::vector<RecordedKey> keys;
  std::vector<std::unique_ptr<types::Object>> objects;  // those among the keys, in order
  std::vector<std::string> functions;
  std::vector<std::string> foreign;
  bool has_dictionary = false;
  size_t bytes = 0;  // of all strings together

 private:
  void Keep(const snapshot::CutKey& key, std::string_view type, std::string value) {
    if (type == "string") bytes += value.size();
    bytes += key.key.size();
    keys.push_back({db_, std::string(key.key), key.expire_at_ms, key.idle_seconds, key.frequency,
                    std::string(type), std::move(value)});
  }

  int version_ = 0;
  uint64_t db_ = 0;
};

// Writes all that was recorded and can be written.
inline std::string WriteRecorded(const RecordingSink& recorded, const RdbWriter::Options& options) {
  std::string file;
  RdbWriter out([&file](std::string_view bytes) { file += bytes; }, options);
  out.Begin({.redis_version = "7.0.15"});
  for (const auto& [name, value] : recorded.aux) out.Aux(name, value);
  for (const std::string& code : recorded.functions) out.Function(code);
  uint64_t db = 0;
  size_t object = 0;
  for (const RecordedKey& at : recorded.keys) {
    if (at.db != db) out.SelectDb(at.db, 1, 0);
    db = at.db;
    const snapshot::CutKey key{at.key, at.expire_at_ms, at.idle_seconds, at.frequency};
    if (at.type == "string") {
      out.String(key, at.value);
    } else {
      out.Object(key, *recorded.objects[object++]);
    }
  }
  out.End();
  return file;
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckRdb(std::string_view bytes) {
  RecordingSink strict;
  const RdbEnd checked = ReadRdb(bytes, types::AllTypes(), strict);
  RecordingSink sink;
  const RdbEnd end = ReadRdb(bytes, types::AllTypes(), sink, false);
  if (end.error) {
    if (!checked.error) return "the checksum repairs a file";
    if (end.error->offset > bytes.size()) return "an error beyond the end";
    return end.error->text.empty() ? "an error without a text" : "";
  }
  if (end.size > bytes.size()) return "the file ends beyond its bytes";
  if (sink.keys != strict.keys) return "the checksum changes what is read";
  // No honest string is more than 88 times as long as its compressed form.
  if (sink.bytes > bytes.size() * 88) return "more bytes than the input can hold";
  for (const bool compress : {true, false}) {
    const std::string written = WriteRecorded(sink, {.compress = compress});
    RecordingSink again;
    const RdbEnd second = ReadRdb(written, types::AllTypes(), again);
    if (second.error) return "what was written does not read: " + second.error->text;
    if (second.size != written.size()) return "what was written does not end at its end";
    if (!second.checked) return "what was written has no checksum";
    if (again.keys != sink.keys) return "keys do not read back";
    if (again.functions != sink.functions) return "functions do not read back";
  }
  return "";
}

}  // namespace sava::storage
