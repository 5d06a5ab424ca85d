#include "commands/redis/families.h"

namespace sava::commands {

std::vector<std::span<const CommandSpec>> RedisFamilies() {
  return {StringCommands(),
          BitmapCommands(),
          KeyCommands(),
          CommandCommands(),
          ListCommands(),
          ListEditCommands(),
          ListMoveCommands(),
          ListBlockingCommands(),
          HyperLogLogCommands(),
          SortCommands(),
          StreamCommands(),
          StreamReadCommands(),
          StreamGroupCommands(),
          StreamClaimCommands(),
          StreamInfoCommands(),
          SortedSetCommands(),
          SortedSetRangeCommands(),
          SortedSetPopCommands(),
          SortedSetAlgebraCommands(),
          SetCommands(),
          SetRandomCommands(),
          SetAlgebraCommands(),
          GeoCommands(),
          GeoSearchCommands(),
          HashCommands(),
          HashMoreCommands(),
          HashExpireCommands(),
          HashGetSetCommands()};
}

}  // namespace sava::commands
