// RdbWriter: streams an RDB file, version 10, as Redis 7.0 writes it (12, as Redis 7.4, once fields
// of hashes have times). It is told what to write in the order of the file: Begin,
// [BeginAuxData,] [AuxData], [Aux, Function ...], then for each database that has keys SelectDb
// and its keys, at last End. docs/formats/rdb.md describes the bytes.
//
// Bytes reach the sink in pieces of some 64 KB, in order. A sink that cannot keep them remembers
// that itself: the writer goes on. Nothing here is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "snapshot/cut_writer.h"
#include "types/value/aux_data.h"
#include "types/value/object.h"
#include "types/value/save.h"

namespace sava::storage {

class RdbWriter final : public snapshot::CutWriter {
 public:
  using Sink = types::Writer::Sink;

  struct Options {
    bool compress = true;     // rdbcompression
    bool checksum = true;     // rdbchecksum; without, the file ends with zeros
    bool version_10 = false;  // whatever there is in this process: no times of fields will come
  };
  // What the file says of its writer.
  struct Origin {
    std::string_view redis_version;
    int64_t ctime_s = 0;
    uint64_t used_memory = 0;
    bool aof_base = false;
    std::string_view data_set = "";  // its id; empty: none
  };

  RdbWriter(Sink sink, const Options& options);

  void Begin(const Origin& origin);
  void Aux(std::string_view name, std::string_view value) override;
  // What the values of types share; from here on values refer to it. Nothing when there is none; a
  // stock server refuses a file with some. REQUIRES: it is pinned until End, or no value changes.
  void AuxData();
  // Writes most of it early; AuxData then adds what has come since. REQUIRES: it is pinned from
  // here on.
  void BeginAuxData();
  void Function(std::string_view code) override;
  void SelectDb(uint64_t db, uint64_t keys, uint64_t expiring) override;
  void SwitchDb(uint64_t db) override;

  // Redis writes idle_seconds with an LRU policy and frequency with an LFU policy, else neither.
  void String(const snapshot::CutKey& key, std::string_view value) override;
  void Number(const snapshot::CutKey& key, int64_t value) override;
  void Object(const snapshot::CutKey& key, const types::Object& value);
  types::Writer& OpenValue(const snapshot::CutKey& key, uint8_t rdb_type) override;

  // Ends the file and passes the rest on.
  void End();

  uint64_t written() const { return out_.written(); }

 private:
  void OpenAux(const types::TypeInfo& type);
  void CloseAux();

  bool checksum_;
  bool version_10_;
  uint64_t crc_ = 0;  // of what the sink got
  types::Writer out_;
  const types::TypeInfo* open_ = nullptr;  // whose aux data is being written
  std::unique_ptr<types::AuxData::Saving> saving_;
};

}  // namespace sava::storage
