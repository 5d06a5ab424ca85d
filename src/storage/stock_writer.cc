#include "storage/stock_writer.h"

#include "types/value/type_registry.h"

namespace sava::storage {

namespace {

// The last type of values that Redis 7.0 reads.
constexpr uint8_t kLastStockType = 19;

}  // namespace

types::Writer& StockWriter::OpenValue(const snapshot::CutKey& key, uint8_t rdb_type) {
  if (rdb_type == types::kRdbModule && !natives_) {
    use_ = Use::kDrop;
    if (left_out_ != nullptr) ++*left_out_;
    return value_;
  }
  if (rdb_type <= kLastStockType || rdb_type == types::kRdbModule) {
    use_ = Use::kWrite;
    return out_.OpenValue(key, rdb_type);
  }
  use_ = Use::kConvert;
  key_ = key;
  type_ = rdb_type;
  return value_;
}

void StockWriter::CloseValue() {
  if (use_ == Use::kWrite) return out_.CloseValue();
  value_.Flush();
  if (use_ == Use::kDrop) return;
  types::Reader in(bytes_);
  const auto value = types::AllTypes().Load(type_, in);
  const types::StockForm form = value == nullptr ? types::StockForm{} : value->stock_form(0);
  if (form.name.empty() || form.empty) {
    if (left_out_ != nullptr) ++*left_out_;
  } else {
    value->SaveStockForm(out_.OpenValue(key_, form.rdb_type), 0);
    out_.CloseValue();
  }
  bytes_ = {};
}

}  // namespace sava::storage
