#include "commands/native/families.h"

namespace sava::commands {

std::vector<std::span<const CommandSpec>> NativeFamilies() {
  return {LimitCommands(), AfcCommands(),    CountMinCommands(), TopKCommands(), SimHashCommands(),
          BloomCommands(), CuckooCommands(), FrontierCommands(), UrlCommands()};
}

}  // namespace sava::commands
