#include "types/value/object.h"

#include "types/value/digest_sink.h"

namespace sava::types {

void Object::DigestAsRedis(DigestSink& out) const {
  out.Ordered(type().name);
  Digest([&out](std::string_view element) { out.Ordered(element); });
}

}  // namespace sava::types
