#include "server/families.h"

#include "access/families.h"
#include "admin/families.h"
#include "commands/native/families.h"
#include "commands/redis/families.h"
#include "config/config_commands.h"
#include "engine/engine.h"
#include "front/families.h"
#include "persistence/families.h"
#include "replication/families.h"
#include "replication/follower.h"
#include "script/scripts.h"
#include "server/shutdown_command.h"

namespace sava::server {

std::vector<std::span<const commands::CommandSpec>> ServerFamilies() {
  return {engine::TransactionCommands(),  // one a line
          engine::PubSubCommands(),
          script::ScriptCommands(),
          script::FunctionCommands(),
          access::AuthCommands(),
          front::ConnectionCommands(),
          front::ClientCommands(),
          config::ConfigCommands(),
          admin::InfoCommands(),
          admin::SlowlogCommands(),
          admin::LatencyCommands(),
          admin::MemoryCommands(),
          admin::DebugCommands(),
          access::AclCommands(),
          admin::ClusterCommands(),
          admin::AdminCommands(),
          ShutdownCommands(),
          persistence::PersistenceCommands(),
          replication::FollowerCommands(),
          replication::MasterCommands(),
          replication::MigrationCommands()};
}

std::vector<std::span<const commands::CommandSpec>> AllFamilies() {
  auto all = commands::RedisFamilies();
  for (const auto family : commands::NativeFamilies()) all.push_back(family);
  for (const auto family : ServerFamilies()) all.push_back(family);
  return all;
}

}  // namespace sava::server
