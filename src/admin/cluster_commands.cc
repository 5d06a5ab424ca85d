// CLUSTER, READONLY, READWRITE and ASKING, as a server answers them that is no part of a cluster.
#include "admin/families.h"
#include "commands/family.h"

namespace sava::admin {

namespace {

using commands::Context;

void Disabled(Context& ctx) { ctx.Error("ERR This instance has cluster support disabled"); }

constexpr uint32_t kAsk = commands::kStale;
constexpr uint32_t kLook = commands::kAdmin | commands::kStale;
constexpr uint32_t kChange = kLook | commands::kNoAsyncLoading;

// What the rows of CLUSTER have in common; they differ in what a cluster would do.
constexpr commands::CommandSpec Row(std::string_view name, int16_t arity, uint32_t flags,
                                    std::string_view since, std::string_view arguments,
                                    std::string_view summary, std::string_view example,
                                    std::string_view tips = {}) {
  return {.name = name,
          .handler = Disabled,
          .arity = arity,
          .flags = flags,
          .group = "cluster",
          .since = since,
          .summary = summary,
          .complexity = "O(1)",
          .arguments = arguments,
          .reply = "an error: this server is no part of a cluster",
          .example = example,
          .tips = tips};
}

constexpr std::string_view kVaries = "nondeterministic_output";

constexpr commands::CommandSpec Replaced(commands::CommandSpec row, std::string_view since,
                                         std::string_view by) {
  row.deprecated_since = since;
  row.replaced_by = by;
  return row;
}

constexpr commands::CommandSpec kSubcommands[] = {
    Row("addslots", -3, kChange, "3.0.0", "slot:integer ...", "Gives slots to the node.",
        "CLUSTER ADDSLOTS 1"),
    Row("addslotsrange", -4, kChange, "7.0.0", "(start-slot:integer end-slot:integer)...",
        "Gives ranges of slots to the node.", "CLUSTER ADDSLOTSRANGE 1 5"),
    Row("bumpepoch", 2, kChange, "3.0.0", "", "Raises the cluster's epoch.", "CLUSTER BUMPEPOCH",
        kVaries),
    Row("count-failure-reports", 3, kLook, "3.0.0", "node-id",
        "Counts the reports that a node failed.", "CLUSTER COUNT-FAILURE-REPORTS node", kVaries),
    Row("countkeysinslot", 3, kAsk, "3.0.0", "slot:integer", "Counts the keys of a slot.",
        "CLUSTER COUNTKEYSINSLOT 1"),
    Row("delslots", -3, kChange, "3.0.0", "slot:integer ...", "Takes slots from the node.",
        "CLUSTER DELSLOTS 1"),
    Row("delslotsrange", -4, kChange, "7.0.0", "(start-slot:integer end-slot:integer)...",
        "Takes ranges of slots from the node.", "CLUSTER DELSLOTSRANGE 1 5"),
    Row("failover", -2, kChange, "3.0.0", "[options: FORCE | TAKEOVER]",
        "Makes a replica the master.", "CLUSTER FAILOVER"),
    Row("flushslots", 2, kChange, "3.0.0", "", "Takes all slots from the node.",
        "CLUSTER FLUSHSLOTS"),
    Row("forget", 3, kChange, "3.0.0", "node-id", "Forgets a node.", "CLUSTER FORGET node"),
    Row("getkeysinslot", 4, kAsk, "3.0.0", "slot:integer count", "Lists keys of a slot.",
        "CLUSTER GETKEYSINSLOT 1 10", kVaries),
    Row("help", 2, commands::kAnytime, "5.0.0", "", "Shows the subcommands.", "CLUSTER HELP"),
    Row("info", 2, kAsk, "3.0.0", "", "Tells how the cluster is.", "CLUSTER INFO", kVaries),
    Row("keyslot", 3, kAsk, "3.0.0", "key:string", "Tells the slot of a key.",
        "CLUSTER KEYSLOT greeting"),
    Row("links", 2, kAsk, "7.0.0", "", "Lists the connections between nodes.", "CLUSTER LINKS",
        kVaries),
    Row("meet", -4, kChange, "3.0.0", "ip port [cluster-bus-port:integer]",
        "Makes the node known to another.", "CLUSTER MEET 127.0.0.1 6380"),
    Row("myid", 2, kAsk, "3.0.0", "", "Tells the node's name.", "CLUSTER MYID"),
    Row("myshardid", 2, kAsk, "7.2.0", "", "Tells the name of the node's shard.",
        "CLUSTER MYSHARDID", kVaries),
    Row("nodes", 2, kAsk, "3.0.0", "", "Describes the nodes, a line each.", "CLUSTER NODES",
        kVaries),
    Row("replicas", 3, kLook, "5.0.0", "node-id", "Lists the replicas of a node.",
        "CLUSTER REPLICAS node", kVaries),
    Row("replicate", 3, kChange, "3.0.0", "node-id", "Makes the node a replica of another.",
        "CLUSTER REPLICATE node"),
    Row("reset", -2, kLook | commands::kNoscript, "3.0.0", "[reset-type: HARD | SOFT]",
        "Makes the node as if it were new.", "CLUSTER RESET"),
    Row("saveconfig", 2, kChange, "3.0.0", "", "Writes the cluster's configuration to disk.",
        "CLUSTER SAVECONFIG"),
    Row("set-config-epoch", 3, kChange, "3.0.0", "config-epoch:integer",
        "Sets the epoch of a new node.", "CLUSTER SET-CONFIG-EPOCH 1"),
    Row("setslot", -4, kChange, "3.0.0",
        "slot:integer (subcommand: IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE)",
        "Says where a slot belongs or moves to.", "CLUSTER SETSLOT 1 STABLE"),
    Row("shards", 2, kAsk, "7.0.0", "", "Describes the shards.", "CLUSTER SHARDS", kVaries),
    Replaced(Row("slaves", 3, kLook, "3.0.0", "node-id", "Lists the replicas of a node.",
                 "CLUSTER SLAVES node", kVaries),
             "5.0.0", "`CLUSTER REPLICAS`"),
    Replaced(Row("slots", 2, kAsk, "3.0.0", "", "Lists which nodes serve which slots.",
                 "CLUSTER SLOTS", kVaries),
             "7.0.0", "`CLUSTER SHARDS`"),
};

constexpr commands::CommandSpec kRows[] = {
    {.name = "cluster",
     .arity = -2,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Shows and governs a cluster; this server is no part of one.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
    {.name = "readonly",
     .handler = Disabled,
     .arity = 1,
     .flags = commands::kAnytime | commands::kFast,
     .acl = commands::kAclConnection,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Lets a cluster's replica answer reads on this connection.",
     .complexity = "O(1)",
     .reply = "an error: this server is no part of a cluster",
     .example = "READONLY"},
    {.name = "readwrite",
     .handler = Disabled,
     .arity = 1,
     .flags = commands::kAnytime | commands::kFast,
     .acl = commands::kAclConnection,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Ends what READONLY began.",
     .complexity = "O(1)",
     .reply = "an error: this server is no part of a cluster",
     .example = "READWRITE"},
    {.name = "asking",
     .handler = Disabled,
     .arity = 1,
     .flags = commands::kFast,
     .acl = commands::kAclConnection,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Lets the next command reach a slot that is moving here.",
     .complexity = "O(1)",
     .reply = "an error: this server is no part of a cluster",
     .example = "ASKING"},
};

}  // namespace

std::span<const commands::CommandSpec> ClusterCommands() { return kRows; }

}  // namespace sava::admin
