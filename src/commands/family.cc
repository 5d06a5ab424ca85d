#include "commands/family.h"

#include <string>

#include "base/text.h"

namespace sava::commands {

void WrongSubcommand(Context& ctx) {
  ctx.Error(errors::UnknownSubcommand(ctx.arg(1), base::ToUpper(ctx.arg(0))));
}

}  // namespace sava::commands
