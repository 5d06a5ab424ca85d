#include "commands/dump.h"

#include "types/value/save.h"
#include "types/value/type_registry.h"

namespace sava::commands {

std::string DumpOf(const Value& value) {
  std::string payload;
  {
    types::Writer out(&payload);
    if (value.object != nullptr) {
      out.Byte(value.object->rdb_type());
      value.object->Save(out);
    } else {
      out.Byte(types::kRdbString);
      value.is_int() ? out.StringOf(value.integer) : out.String(value.bytes);
    }
  }
  types::SealDump(&payload);
  return payload;
}

}  // namespace sava::commands
