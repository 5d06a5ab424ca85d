#include "commands/key_context.h"

#include <string>

namespace sava::commands {

void KeyContext::ArityError() { reply_.Error(errors::WrongArity(command_name_)); }

}  // namespace sava::commands
