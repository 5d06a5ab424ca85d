#include "commands/family.h"

#include <string>

#include "base/text.h"

namespace sava::commands {

void WrongSubcommand(Context& ctx) {
  std::string text = "ERR unknown subcommand or wrong number of arguments for '";
  text += ctx.arg(1).substr(0, 128);
  text += "'. Try " + base::ToUpper(ctx.arg(0)) + " HELP.";
  ctx.Error(text);
}

}  // namespace sava::commands
