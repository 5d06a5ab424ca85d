#include "commands/context.h"

namespace sava::commands {

const Parts& Context::parts() const {
  static const Parts kNone;
  return kNone;
}

}  // namespace sava::commands
