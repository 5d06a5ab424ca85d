// The sava program: one binary, a subcommand for each thing a person may want.
#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/bench.h"
#include "cli/bloom.h"
#include "cli/check.h"
#include "cli/client.h"
#include "cli/export.h"
#include "cli/frontier.h"
#include "cli/serve.h"

// Read by jemalloc: memory goes back to the system about a second after it is no longer used.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf =
    "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4,tcache_max:8192";
}

namespace {

constexpr std::string_view kHelp = R"(sava: a Redis-compatible in-memory server

Usage:
  sava serve [FILE] [--name value ...]   start the server; settings as in redis.conf
  sava cli [OPTIONS] [COMMAND ...]       talk to a server (sava cli --help)
  sava bench NAME [OPTIONS]              put load on a server (sava bench --help)
  sava check [OPTIONS] PATH              verify data files (sava check --help)
  sava export [OPTIONS] FILE             write a data set as one RDB file (sava export --help)
  sava bloom [COMMAND FILE ...]          a Bloom filter in a file (sava bloom --help)
  sava frontier run FILE [OPTIONS]       a crawler's URL scheduler (sava frontier --help)
  sava version                           print the version
  sava help                              print this help

Examples:
  sava serve                             RESP on 127.0.0.1:6379, one thread per core
  sava serve --port 7000 --threads 2
  sava serve my.conf --maxmemory 1gb --maxmemory-policy allkeys-lru
  sava cli -p 7000 SET greeting hello
)";

std::string Executable() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "sava";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const std::string_view verb = args.empty() ? std::string_view() : args[0];
  if (verb == "serve") {
    if (args.size() > 1 && (args[1] == "--help" || args[1] == "-h")) {
      fmt::print("{}", kHelp);
      return 0;
    }
    return sava::cli::Serve({args.begin() + 1, args.end()}, Executable());
  }
  if (verb == "cli") return sava::cli::RunClient(argc - 1, argv + 1);
  if (verb == "bench") return sava::cli::RunBench({args.begin() + 1, args.end()});
  if (verb == "check") return sava::cli::RunCheck({args.begin() + 1, args.end()});
  if (verb == "export") return sava::cli::RunExport({args.begin() + 1, args.end()});
  if (verb == "bloom") return sava::cli::RunBloom({args.begin() + 1, args.end()});
  if (verb == "frontier") return sava::cli::RunFrontier({args.begin() + 1, args.end()});
  if (verb == "version" || verb == "--version" || verb == "-v") {
    fmt::print("sava {} (redis_version {})\n", sava::base::kVersion, sava::base::kRedisVersion);
    return 0;
  }
  if (verb == "help" || verb == "--help" || verb == "-h") {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (verb.empty()) {
    fmt::print(stderr, "{}", kHelp);
  } else {
    fmt::print(stderr, "sava: '{}' is not a subcommand. See 'sava --help'.\n", verb);
  }
  return 1;
}
