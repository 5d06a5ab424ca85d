// The sava program: one binary, a subcommand for each thing a person may want.
#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/backup.h"
#include "cli/bench.h"
#include "cli/bloom.h"
#include "cli/check.h"
#include "cli/client.h"
#include "cli/export.h"
#include "cli/frontier.h"
#include "cli/module_path.h"
#include "cli/serve.h"
#include "cli/suggest.h"
#include "config/config_table.h"
#include "config/proc_title.h"

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
  sava backup HOST:PORT FILE             a server's data set as a file (sava backup --help)
  sava restore FILE --dir DIR            a file as a data directory (sava restore --help)
  sava export [OPTIONS] FILE             write a data set as one RDB file (sava export --help)
  sava bloom [COMMAND FILE ...]          a Bloom filter in a file (sava bloom --help)
  sava frontier run FILE [OPTIONS]       a crawler's URL scheduler (sava frontier --help)
  sava module-path                       where sava.so is, for a stock server's loadmodule
  sava version                           print the version
  sava help [SUBCOMMAND]                 print this help, or that of a subcommand

'sava FILE' with a configuration file means 'sava serve FILE'.

Examples:
  sava serve                             RESP on 127.0.0.1:6379, one thread per core
  sava serve --port 7000 --threads 2
  sava serve my.conf --maxmemory 1gb --maxmemory-policy allkeys-lru
  sava cli -p 7000 SET greeting hello
)";

struct Subcommand {
  std::string_view name;
  int (*run)(const std::vector<std::string>& words);
};

int Version(const std::vector<std::string>& words) {
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) {
    fmt::print("Usage: sava version\n\nPrints the version.\n\nExample:\n  sava version\n");
    return 0;
  }
  fmt::print("sava {} (redis_version {})\n", sava::base::kVersion, sava::base::kRedisVersion);
  return 0;
}

constexpr Subcommand kSubcommands[] = {
    {"serve", [](const auto& words) { return sava::cli::Serve(words, {}); }},
    {"cli", sava::cli::RunClient},
    {"bench", sava::cli::RunBench},
    {"check", sava::cli::RunCheck},
    {"backup", sava::cli::RunBackup},
    {"restore", sava::cli::RunRestore},
    {"export", sava::cli::RunExport},
    {"bloom", sava::cli::RunBloom},
    {"frontier", sava::cli::RunFrontier},
    {"module-path", sava::cli::RunModulePath},
    {"version", Version},
};

const Subcommand* Find(std::string_view name) {
  for (const Subcommand& one : kSubcommands) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

// As redis-server, which needs no subcommand, takes one.
bool IsConfigFile(const std::string& word) {
  std::error_code error;
  return !word.starts_with('-') &&
         (word.ends_with(".conf") || std::filesystem::is_regular_file(word, error));
}

int Unknown(const std::string& verb) {
  std::vector<std::string_view> names = {"help"};
  for (const Subcommand& one : kSubcommands) names.push_back(one.name);
  std::string hint = sava::cli::DidYouMean(verb, names);
  if (verb.starts_with("--") && sava::config::FindSetting(verb.substr(2)) != nullptr) {
    hint = fmt::format("; did you mean 'sava serve {}'?", verb);
  }
  fmt::print(stderr, "sava: '{}' is not a subcommand{} See 'sava --help'.\n", verb,
             hint.empty() ? "." : hint);
  return 1;
}

std::string Executable() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "sava";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    fmt::print(stderr, "{}", kHelp);
    return 1;
  }
  const std::string& verb = args[0];
  // `sava help check` is `sava check --help`.
  if (verb == "help" && args.size() == 2 && args[1] != "help") {
    if (const Subcommand* subcommand = Find(args[1])) return subcommand->run({"--help"});
  }
  if (verb == "help" || verb == "--help" || verb == "-h") {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (verb == "--version" || verb == "-v") return Version({});
  const Subcommand* const subcommand = Find(verb);
  const bool serves = subcommand == nullptr ? IsConfigFile(verb) : subcommand->name == "serve";
  if (serves) {
    const sava::cli::Program program{Executable(), argv[0]};
    sava::config::TakeCommandLine(argc, argv);
    return sava::cli::Serve({args.begin() + (subcommand == nullptr ? 0 : 1), args.end()}, program);
  }
  if (subcommand != nullptr) return subcommand->run({args.begin() + 1, args.end()});
  return Unknown(verb);
}
