// ReadRdb: reads an RDB file of versions 1 to 12, from memory, and tells a sink what is in it, in
// the order of the file. docs/formats/rdb.md describes the bytes and what is refused.
//
// Nothing in a file is trusted: no memory is reserved for bytes that are not there, and the first
// thing that is wrong ends the reading with its place. The checksum is known only at the end, so a
// sink may have been told much of a damaged file: a loader throws that away. Thread safety: one
// call uses nothing but its arguments and what values of a type share in this process.
//
// Reading is one thread's work, but decoding values need not be: a sink may take them as
// bytes of the file, and decode them where it likes, with DecodeRdbString and DecodeRdbObject.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/cut_writer.h"
#include "storage/rdb_format.h"
#include "types/collections/collection_limits.h"
#include "types/value/aux_data.h"
#include "types/value/object.h"
#include "types/value/type_registry.h"

namespace sava::storage {

// Views given to a sink are valid during the call. An error it returns ends the reading.
class RdbSink {
 public:
  virtual ~RdbSink() = default;

  virtual base::Status Version(int version) = 0;
  virtual base::Status Aux(std::string_view name, std::string_view value) = 0;
  virtual base::Status SelectDb(uint64_t db) = 0;
  // How many keys the database has, as the file says: a hint, not to be believed.
  virtual base::Status Resize(uint64_t keys, uint64_t expiring) = 0;
  // Both belong to the database selected last, at first 0.
  virtual base::Status String(const snapshot::CutKey& key, std::string_view value) = 0;
  virtual base::Status Object(const snapshot::CutKey& key,
                              std::unique_ptr<types::Object> value) = 0;
  virtual base::Status Function(std::string_view code) = 0;
  // The file has data that values of a type share: a server without the type cannot read them.
  virtual base::Status AuxData(const types::TypeInfo& type) = 0;
  // Data of a module that is not known here, beside the keys or as a value: to be passed over, or
  // an error. `module` has nine characters.
  virtual base::Status ForeignAux(std::string_view module) = 0;
  virtual base::Status ForeignValue(const snapshot::CutKey& key, std::string_view module) = 0;

  // A sink that answers true gets strings and values of native types by Undecoded, not by String
  // and Object. `bytes` is a view of the file, as is key.key unless it was encoded there; `offset`
  // is where the bytes begin, `aux` what they may refer to, or nullptr. Both may be used until
  // Finished returns.
  virtual bool wants_undecoded() const { return false; }
  virtual base::Status Undecoded(const snapshot::CutKey& key, uint8_t rdb_type,
                                 std::string_view bytes, uint64_t offset,
                                 const types::FileAux* aux) {
    static_cast<void>(key), static_cast<void>(rdb_type), static_cast<void>(bytes);
    static_cast<void>(offset), static_cast<void>(aux);
    return {};
  }
  // What collections are measured by when their form is chosen.
  virtual const types::CollectionLimits& limits() const { return types::kDefaultCollectionLimits; }
  // The reading has ended, well or not.
  virtual void Finished() {}
  // Called now and then: that many bytes are done.
  virtual void Progress(uint64_t bytes) { static_cast<void>(bytes); }
};

struct RdbError {
  uint64_t offset = 0;  // of what could not be read, in bytes from the start of the file
  std::string text;
};

struct RdbEnd {
  std::optional<RdbError> error;
  // Without an error: where the file ends, its checksum included; the rest is not part of it.
  uint64_t size = 0;
  // Whether there was a checksum to compare with, and it was compared.
  bool checked = false;
};

RdbEnd ReadRdb(std::string_view file, const types::TypeRegistry& types, RdbSink& sink,
               bool verify_checksum = true);

// Decodes what RdbSink::Undecoded got. A view of the bytes or of `scratch`; the error says what is
// wrong.
base::Result<std::string_view> DecodeRdbString(std::string_view key, std::string_view bytes,
                                               std::string* scratch);
base::Result<std::unique_ptr<types::Object>> DecodeRdbObject(const types::TypeRegistry& types,
                                                             std::string_view key, uint8_t rdb_type,
                                                             std::string_view bytes,
                                                             const types::FileAux* aux);

// A key as an error shows it: quoted, a long one cut off.
std::string ShownKey(std::string_view key);
// What Redis calls a value's RDB type, e.g. "hash as a listpack"; empty when there is none such.
std::string_view RdbTypeName(uint8_t rdb_type);

}  // namespace sava::storage
