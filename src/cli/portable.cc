#include "cli/portable.h"

#include "types/value/save.h"

namespace sava::cli {

bool IsPortable(const types::Object& value) {
  return value.type().module_id == 0 && value.next_deadline() < 0;
}

Conversion WriteConverted(storage::RdbWriter& out, const snapshot::CutKey& key,
                          const types::Object& value, int64_t now_ms) {
  const types::StockForm form = value.stock_form(now_ms);
  if (!form.name.empty() && !form.empty) {
    value.SaveStockForm(out.OpenValue(key, form.rdb_type), now_ms);
  }
  return {form.name, form.empty};
}

}  // namespace sava::cli
