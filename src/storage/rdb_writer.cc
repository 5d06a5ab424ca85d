#include "storage/rdb_writer.h"

#include <fmt/format.h>

#include <utility>

#include "base/crc.h"
#include "base/text.h"
#include "storage/data_set.h"
#include "storage/rdb_format.h"
#include "types/value/type_registry.h"

namespace sava::storage {

RdbWriter::RdbWriter(Sink sink, const Options& options)
    : checksum_(options.checksum),
      version_10_(options.version_10),
      out_(
          [this, to = std::move(sink)](std::string_view bytes) {
            if (checksum_) crc_ = base::Crc64(crc_, bytes);
            to(bytes);
          },
          options.compress) {}

void RdbWriter::Begin(const Origin& origin) {
  const uint16_t version = version_10_ ? types::kRdbVersion : types::AllTypes().rdb_version();
  out_.Raw(fmt::format("{}{:04}", kRdbMagic, version));
  Aux("redis-ver", origin.redis_version);
  Aux("redis-bits", "64");
  Aux("ctime", base::IntText(origin.ctime_s));
  Aux("used-mem", base::IntText(static_cast<int64_t>(origin.used_memory)));
  Aux("aof-base", origin.aof_base ? "1" : "0");
  if (!origin.data_set.empty()) Aux(kDataSetField, origin.data_set);
}

void RdbWriter::Aux(std::string_view name, std::string_view value) {
  out_.Byte(kRdbAux);
  out_.String(name);
  out_.String(value);
}

void RdbWriter::OpenAux(const types::TypeInfo& type) {
  out_.Byte(kRdbModuleAux);
  out_.Length(type.module_id);
  out_.ModuleUnsigned(kRdbAuxBeforeKeys);
  open_ = &type;
  saving_ = type.aux()->Save();
  saving_->SaveNew(out_);
}

void RdbWriter::CloseAux() {
  saving_->End(out_);
  out_.ModuleEnd();
  saving_.reset();
}

// One record can be open at a time, so of several types the first gets it.
void RdbWriter::BeginAuxData() {
  for (const types::TypeInfo* type : types::AllTypes().with_aux()) {
    if (!type->aux()->empty()) return OpenAux(*type);
  }
}

void RdbWriter::AuxData() {
  if (saving_ != nullptr) {
    saving_->SaveNew(out_);
    CloseAux();
  }
  for (const types::TypeInfo* type : types::AllTypes().with_aux()) {
    if (type == open_ || type->aux()->empty()) continue;
    OpenAux(*type);
    CloseAux();
  }
  out_.set_refers(true);
}

void RdbWriter::Function(std::string_view code) {
  out_.Byte(kRdbFunction);
  out_.String(code);
}

void RdbWriter::SelectDb(uint64_t db, uint64_t keys, uint64_t expiring) {
  out_.Byte(kRdbSelectDb);
  out_.Length(db);
  out_.Byte(kRdbResizeDb);
  out_.Length(keys);
  out_.Length(expiring);
}

void RdbWriter::SwitchDb(uint64_t db) {
  out_.Byte(kRdbSelectDb);
  out_.Length(db);
}

types::Writer& RdbWriter::OpenValue(const snapshot::CutKey& key, uint8_t rdb_type) {
  if (key.expire_at_ms != -1) {
    out_.Byte(kRdbExpireMs);
    out_.Fixed64(static_cast<uint64_t>(key.expire_at_ms));
  }
  if (key.idle_seconds >= 0) {
    out_.Byte(kRdbIdle);
    out_.Length(static_cast<uint64_t>(key.idle_seconds));
  }
  if (key.frequency >= 0) {
    out_.Byte(kRdbFrequency);
    out_.Byte(static_cast<uint8_t>(key.frequency));
  }
  out_.Byte(rdb_type);
  out_.String(key.key);
  return out_;
}

void RdbWriter::String(const snapshot::CutKey& key, std::string_view value) {
  OpenValue(key, types::kRdbString).String(value);
}

void RdbWriter::Number(const snapshot::CutKey& key, int64_t value) {
  OpenValue(key, types::kRdbString).StringOf(value);
}

void RdbWriter::Object(const snapshot::CutKey& key, const types::Object& value) {
  value.Save(OpenValue(key, value.rdb_type()));
}

void RdbWriter::End() {
  out_.Byte(kRdbEnd);
  out_.Flush();
  out_.Fixed64(crc_);
  out_.Flush();
}

}  // namespace sava::storage
