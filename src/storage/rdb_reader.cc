#include "storage/rdb_reader.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/crc.h"
#include "base/text.h"
#include "types/value/save.h"

namespace sava::storage {

namespace {

// The checksum follows the reading at this distance, while the bytes are still near.
constexpr size_t kChecksumStep = 256 * 1024;
// As much of a key as an error shows.
constexpr size_t kShownKey = 100;

// `in` has failed, and read the value from `begin` on.
std::string Damaged(std::string_view key, uint8_t rdb_type, const types::Reader& in, size_t begin) {
  const std::string check = fmt::format("integrity check failed {} bytes into it: {}",
                                        in.failed_at() - begin, in.failed_check());
  if (rdb_type == types::kRdbString) {
    return fmt::format("key {}: its string is damaged or cut off: {}", ShownKey(key), check);
  }
  return fmt::format("key {}: its value of RDB type {} ({}) is damaged or cut off: {}",
                     ShownKey(key), rdb_type, RdbTypeName(rdb_type), check);
}

class RdbFile {
 public:
  RdbFile(std::string_view file, const types::TypeRegistry& types, RdbSink& sink,
          bool verify_checksum)
      : file_(file),
        types_(types),
        sink_(sink),
        verify_(verify_checksum),
        undecoded_(sink.wants_undecoded()),
        in_(file) {
    in_.set_limits(sink.limits());
  }

  RdbEnd Read();

 private:
  size_t position() const { return file_.size() - in_.remaining(); }
  bool Fail(std::string text);
  // What the sink answered.
  bool Accepted(const base::Status& status);
  // True when all was there since begun_ was set.
  bool Whole(std::string_view what);

  bool Header();
  bool Record(uint8_t opcode);
  bool AuxField();
  bool Resize();
  bool Library();
  bool ModuleAux();
  bool KeyAndValue(uint8_t rdb_type);
  bool ObjectValue(uint8_t rdb_type);
  bool ModuleValue();
  bool UndecodedValue(uint8_t rdb_type);
  bool Foreign(const base::Status& status, std::string_view what);
  bool End();
  void FollowWithChecksum();

  std::string_view file_;
  const types::TypeRegistry& types_;
  RdbSink& sink_;
  bool verify_;
  bool undecoded_;
  types::Reader in_;
  int version_ = 0;
  size_t begun_ = 0;  // where the record or the value being read begins
  size_t summed_ = 0;
  uint64_t crc_ = 0;
  snapshot::CutKey key_;
  std::string key_scratch_;
  std::string scratch_;
  types::FileAux aux_;
  RdbEnd end_;
};

bool RdbFile::Fail(std::string text) {
  end_.error = RdbError{begun_, std::move(text)};
  return false;
}

bool RdbFile::Accepted(const base::Status& status) { return status.ok() || Fail(status.error()); }

bool RdbFile::Whole(std::string_view what) {
  return in_.ok() || Fail(fmt::format("{} is damaged or cut off", what));
}

RdbEnd RdbFile::Read() {
  if (!Header()) return std::move(end_);
  for (;;) {
    begun_ = position();
    const uint8_t opcode = in_.Byte();
    if (!in_.ok()) {
      Fail("the file is cut off: its end mark is missing");
      break;
    }
    if (opcode == kRdbEnd) {
      End();
      break;
    }
    if (!Record(opcode)) break;
    FollowWithChecksum();
  }
  return std::move(end_);
}

bool RdbFile::Header() {
  const std::string_view magic = in_.Raw(kRdbMagic.size());
  const std::string_view digits = in_.Raw(4);
  if (file_.starts_with("VALKEY")) return Fail("an RDB file of Valkey 9 or later is not read here");
  if (!in_.ok() || magic != kRdbMagic) return Fail("this is not an RDB file");
  for (const char digit : digits) {
    if (digit < '0' || digit > '9')
      return Fail("this is not an RDB file: its version is no number");
    version_ = version_ * 10 + (digit - '0');
  }
  if (version_ < 1 || version_ > types::kRdbNewestVersion) {
    return Fail(fmt::format("RDB version {} is not read here: 1 to {} are", version_,
                            types::kRdbNewestVersion));
  }
  return Accepted(sink_.Version(version_));
}

bool RdbFile::Record(uint8_t opcode) {
  switch (opcode) {
    case kRdbExpireMs:
      key_.expire_at_ms = static_cast<int64_t>(in_.Fixed64());
      return Whole("an expiry");
    case kRdbExpireSeconds:
      key_.expire_at_ms = int64_t{static_cast<int32_t>(in_.Fixed32())} * 1000;
      return Whole("an expiry");
    case kRdbIdle: {
      const uint64_t seconds = in_.Length();
      if (!Whole("an idle time")) return false;
      if (seconds > INT64_MAX / 1000) return Fail("an idle time is out of range");
      key_.idle_seconds = static_cast<int64_t>(seconds);
      return true;
    }
    case kRdbFrequency:
      key_.frequency = in_.Byte();
      return Whole("a frequency");
    case kRdbAux:
      return AuxField();
    case kRdbSelectDb: {
      const uint64_t db = in_.Length();
      return Whole("a database's number") && Accepted(sink_.SelectDb(db));
    }
    case kRdbResizeDb:
      return Resize();
    case kRdbSlotInfo:
      for (int i = 0; i < 3; ++i) in_.Length();
      return Whole("what is said of a slot");
    case kRdbFunction:
      return Library();
    case kRdbModuleAux:
      return ModuleAux();
    case kRdbFunctionDraft:
      return Fail("functions in the form of a release candidate of Redis 7.0 are not read here");
    case kRdbKeyMeta:
      return Fail("opcode 243 belongs to RDB versions that are not read here");
    default:
      return KeyAndValue(opcode);
  }
}

bool RdbFile::AuxField() {
  const std::string_view name = in_.StringView(&key_scratch_);
  const std::string_view value = in_.StringView(&scratch_);
  return Whole("an AUX field") && Accepted(sink_.Aux(name, value));
}

bool RdbFile::Resize() {
  const uint64_t keys = in_.Length();
  const uint64_t expiring = in_.Length();
  return Whole("a database's size") && Accepted(sink_.Resize(keys, expiring));
}

bool RdbFile::Library() {
  const std::string_view code = in_.StringView(&scratch_);
  return Whole("a function library") && Accepted(sink_.Function(code));
}

bool RdbFile::ModuleAux() {
  const uint64_t id = in_.Length();
  const uint64_t when = in_.ModuleUnsigned();
  if (!Whole("data of a module")) return false;
  const types::TypeInfo* const type = types_.FindModule(id);
  if (type == nullptr || type->aux == nullptr) {
    const std::string name = types::ModuleName(id);
    return Foreign(sink_.ForeignAux(name), fmt::format("data of module {}", name));
  }
  const std::string_view name = type->aux()->name();
  if (aux_.Find(id) != nullptr || when != kRdbAuxBeforeKeys) {
    return Fail(fmt::format("{} stands twice, or not before the keys", name));
  }
  auto loaded = type->aux()->Load(in_);
  if (loaded == nullptr) return Fail(fmt::format("{} is damaged or cut off", name));
  in_.ModuleEnd();
  if (!Whole(name)) return false;
  aux_.Put(id, std::move(loaded));
  in_.set_aux(&aux_);
  return Accepted(sink_.AuxData(*type));
}

bool RdbFile::KeyAndValue(uint8_t rdb_type) {
  const bool known = rdb_type == types::kRdbString || rdb_type == types::kRdbModule ||
                     types_.Find(rdb_type) != nullptr;
  if (!known && RdbTypeName(rdb_type).empty()) {
    return Fail(fmt::format("there is no RDB type or opcode {}", rdb_type));
  }
  key_.key = in_.StringView(&key_scratch_);
  if (!Whole("a key")) return false;
  begun_ = position();
  bool read = false;
  if (!known) {
    read = Fail(fmt::format("key {}: values of RDB type {} ({}) are not read here",
                            ShownKey(key_.key), rdb_type, RdbTypeName(rdb_type)));
  } else if (rdb_type == types::kRdbString) {
    if (undecoded_) {
      read = UndecodedValue(rdb_type);
    } else {
      const std::string_view value = in_.StringView(&scratch_);
      read = in_.ok() ? Accepted(sink_.String(key_, value))
                      : Fail(Damaged(key_.key, rdb_type, in_, begun_));
    }
  } else {
    read = rdb_type == types::kRdbModule ? ModuleValue() : ObjectValue(rdb_type);
  }
  key_ = {};
  return read;
}

bool RdbFile::ModuleValue() {
  types::Reader ahead = in_;
  const uint64_t id = ahead.Length();
  if (!ahead.ok()) {
    return Fail(fmt::format("key {}: its value is damaged or cut off", ShownKey(key_.key)));
  }
  if (types_.FindModule(id) != nullptr) {
    return undecoded_ ? UndecodedValue(types::kRdbModule) : ObjectValue(types::kRdbModule);
  }
  in_.Length();
  const std::string name = types::ModuleName(id);
  return Foreign(sink_.ForeignValue(key_, name),
                 fmt::format("key {}: its value, of module {},", ShownKey(key_.key), name));
}

bool RdbFile::ObjectValue(uint8_t rdb_type) {
  std::unique_ptr<types::Object> object = types_.Load(rdb_type, in_);
  if (object == nullptr) return Fail(Damaged(key_.key, rdb_type, in_, begun_));
  return Accepted(sink_.Object(key_, std::move(object)));
}

// Finds the value's end and passes its bytes on.
bool RdbFile::UndecodedValue(uint8_t rdb_type) {
  if (rdb_type == types::kRdbString) {
    in_.SkipString();
  } else {
    in_.Length();
    in_.SkipModule();
  }
  if (!in_.ok()) return Fail(Damaged(key_.key, rdb_type, in_, begun_));
  return Accepted(sink_.Undecoded(key_, rdb_type, file_.substr(begun_, position() - begun_), begun_,
                                  aux_.empty() ? nullptr : &aux_));
}

// Passes over the items of a module that is not known, if the sink agrees.
bool RdbFile::Foreign(const base::Status& status, std::string_view what) {
  if (!Accepted(status)) return false;
  in_.SkipModule();
  return Whole(what);
}

void RdbFile::FollowWithChecksum() {
  const size_t at = position();
  if (at - summed_ < kChecksumStep) return;
  if (verify_) crc_ = base::Crc64(crc_, file_.substr(summed_, at - summed_));
  summed_ = at;
  sink_.Progress(at);
}

bool RdbFile::End() {
  const size_t at = position();
  if (version_ >= kRdbFirstChecksum) {
    begun_ = at;
    const uint64_t expected = in_.Fixed64();
    if (!Whole("the checksum")) return false;
    if (verify_ && expected != 0) {
      crc_ = base::Crc64(crc_, file_.substr(summed_, at - summed_));
      if (crc_ != expected) {
        return Fail(
            fmt::format("CRC error, the checksum is wrong: it says {:016x}, the bytes give {:016x}",
                        expected, crc_));
      }
      end_.checked = true;
    }
  }
  end_.size = position();
  sink_.Progress(end_.size);
  return true;
}

}  // namespace

std::string ShownKey(std::string_view key) {
  if (key.size() <= kShownKey) return base::Quoted(key);
  return fmt::format("{}... ({} bytes)", base::Quoted(key.substr(0, kShownKey)), key.size());
}

RdbEnd ReadRdb(std::string_view file, const types::TypeRegistry& types, RdbSink& sink,
               bool verify_checksum) {
  RdbFile reading(file, types, sink, verify_checksum);
  RdbEnd end = reading.Read();
  sink.Finished();
  return end;
}

base::Result<std::string_view> DecodeRdbString(std::string_view key, std::string_view bytes,
                                               std::string* scratch) {
  types::Reader in(bytes);
  const std::string_view text = in.StringView(scratch);
  if (!in.ok()) return base::Error{Damaged(key, types::kRdbString, in, 0)};
  return text;
}

base::Result<std::unique_ptr<types::Object>> DecodeRdbObject(const types::TypeRegistry& types,
                                                             std::string_view key, uint8_t rdb_type,
                                                             std::string_view bytes,
                                                             const types::FileAux* aux) {
  types::Reader in(bytes);
  in.set_aux(aux);
  std::unique_ptr<types::Object> object = types.Load(rdb_type, in);
  if (in.remaining() != 0) in.Fail("the end of the value");
  if (!in.ok()) return base::Error{Damaged(key, rdb_type, in, 0)};
  return object;
}

std::string_view RdbTypeName(uint8_t rdb_type) {
  constexpr std::string_view kNames[] = {
      "string",
      "list",
      "set",
      "sorted set with text scores",
      "hash",
      "sorted set",
      "module, first form",
      "module",
      "",
      "hash as a zipmap",
      "list as a ziplist",
      "set as an intset",
      "sorted set as a ziplist",
      "hash as a ziplist",
      "list as a quicklist of ziplists",
      "stream, first form",
      "hash as a listpack",
      "sorted set as a listpack",
      "list as a quicklist",
      "stream, second form",
      "set as a listpack",
      "stream, third form",
      "hash with field expiry, first form",
      "hash with field expiry as a listpack, first form",
      "hash with field expiry",
      "hash with field expiry as a listpack",
  };
  return rdb_type < std::size(kNames) ? kNames[rdb_type] : std::string_view();
}

}  // namespace sava::storage
