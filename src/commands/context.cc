#include "commands/context.h"

#include <string>

namespace sava::commands {

void Context::ArityError() {
  std::string text = "ERR wrong number of arguments for '";
  text += command_name_;
  text += "' command";
  reply_.Error(text);
}

const Parts& Context::parts() const {
  static const Parts kNone;
  return kNone;
}

}  // namespace sava::commands
