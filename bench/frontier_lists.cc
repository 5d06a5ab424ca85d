// The URL scheduler as document S1 builds it, to be compared with ours: hosts in a linked queue,
// each host's URLs in a linked list ordered by depth (include/sava/documents).
//
//   sava_frontier_lists FILE [-b] [-l]     writes FILE-lists-out.txt [and FILE-lists-access.log]
//
// Cells and items are allocated one by one, as there. The access log has the accesses of which the
// document's chapter 5.2 tells: an item's cells on the way to its position, and the item itself.

#include "frontier_lists.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "cli/frontier_files.h"

namespace {

using sava::bench::ListsProgram;

struct Options {
  std::string path;
  bool breadth = false;
  bool log = false;
};

int Fail(std::string_view text) {
  fmt::print(stderr, "sava_frontier_lists: {}\n", text);
  return 2;
}

// The output is there even when nothing is written to it.
void SetOutput(const std::string& path, auto* scheduler) {
  std::ofstream(path, std::ios::trunc).close();
  scheduler->setOutput(path);
}

int RunLogged(const Options& options, std::string_view script, const std::string& output) {
  sava::cli::AccessLog log;
  const auto opened = log.Open(sava::cli::NameBeside(options.path, "-lists-access.log"));
  if (!opened) return Fail(opened.error());
  sava::bench::Tracer tracer;
  tracer.log = &log;
  {
    using Scheduler = sava::documents::EscalonadorRastreado<sava::bench::LoggedRastreador>;
    Scheduler scheduler(sava::bench::LoggedRastreador{&tracer});
    SetOutput(output, &scheduler);
    ListsProgram(&scheduler, options.breadth).Run(script, [&](sava::cli::ScriptVerb verb) {
      tracer.phase = static_cast<uint64_t>(verb);
    });
    tracer.log = nullptr;  // the document's log ends before what is left is freed
  }
  const auto closed = log.Close();
  return closed ? 0 : Fail(closed.error());
}

int Run(const Options& options) {
  auto script = sava::base::MappedFile::Open(options.path);
  if (!script) return Fail(script.error());
  const std::string output = sava::cli::NameBeside(options.path, "-lists-out.txt");
  if (options.log) return RunLogged(options, script->bytes(), output);
  sava::documents::Escalonador scheduler;
  SetOutput(output, &scheduler);
  ListsProgram(&scheduler, options.breadth).Run(script->bytes(), [](sava::cli::ScriptVerb) {});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-l") {
      options.log = true;
    } else if (word == "-b") {
      options.breadth = true;
    } else {
      options.path = word;
    }
  }
  try {
    return Run(options);
  } catch (const std::exception& error) {
    return Fail(error.what());
  }
}
