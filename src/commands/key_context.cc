#include "commands/key_context.h"

#include <string>

namespace sava::commands {

void KeyContext::ArityError() {
  std::string text = "ERR wrong number of arguments for '";
  text += command_name_;
  text += "' command";
  reply_.Error(text);
}

}  // namespace sava::commands
