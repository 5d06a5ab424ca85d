// Chooses between one command, commands from a pipe, and the prompt.
#include "cli/client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "cli/client_docs.h"
#include "cli/client_format.h"
#include "cli/client_interactive.h"
#include "cli/client_options.h"
#include "cli/client_session.h"

namespace sava::cli {
namespace {

std::string ReadStandardInput() {
  std::string text;
  char bytes[size_t{64} << 10];
  while (const size_t count = std::fread(bytes, 1, sizeof bytes, stdin)) text.append(bytes, count);
  return text;
}

// The call of EVAL that runs a file; empty when it cannot be read, which is printed.
std::vector<std::string> CallOf(const Options& options) {
  std::ifstream file(options.script, std::ios::binary);
  std::string source(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad()) {
    fmt::print(stderr, "sava cli: cannot read '{}'\n", options.script);
    return {};
  }
  const auto comma = std::ranges::find(options.command, ",");
  std::vector<std::string> call = {"EVAL", std::move(source),
                                   std::to_string(comma - options.command.begin())};
  call.insert(call.end(), options.command.begin(), comma);
  if (comma != options.command.end()) call.insert(call.end(), comma + 1, options.command.end());
  return call;
}

// `sava cli help [COMMAND]` works without the prompt too.
int PrintHelp(const std::vector<std::string>& command, Session* session) {
  if (command.size() == 1) {
    fmt::print("{}", UsageText());
    return 0;
  }
  if (base::Status status = session->Connect(); !status.ok()) {
    fmt::print(stderr, "{}\n", status.error());
    return 1;
  }
  fmt::print("{}", HelpText(session->Docs(), {command.begin() + 1, command.end()}));
  return 0;
}

int RunOnce(const Options& options, Session* session) {
  std::vector<std::string> command = options.script.empty() ? options.command : CallOf(options);
  if (command.empty()) return 1;
  if (options.script.empty() && base::EqualsNoCase(command.front(), "help"))
    return PrintHelp(command, session);
  if (options.last_argument_from_stdin) {
    command.push_back(ReadStandardInput());
  }
  bool refused = false;
  for (int64_t run = 0; options.repeat < 0 || run < options.repeat; ++run) {
    if (run > 0 && options.interval_seconds > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_seconds));
    }
    const Session::Outcome outcome = session->Run(command);
    if (outcome == Session::Outcome::kFailed) return 1;
    refused = refused || outcome != Session::Outcome::kOk;
  }
  return refused ? 1 : 0;
}

// One command a line; a refusal does not stop the others, a lost server does.
int RunPipe(Session* session) {
  bool refused = false;
  for (std::string line; std::getline(std::cin, line);) {
    const auto words = base::SplitArgs(line);
    if (!words) {
      fmt::print(stderr, "Invalid argument(s): {}\n", line);
      refused = true;
      continue;
    }
    if (words->empty()) continue;
    if (words->size() == 1 && (base::EqualsNoCase(words->front(), "quit") ||
                               base::EqualsNoCase(words->front(), "exit"))) {
      break;
    }
    const Session::Outcome outcome = session->Run(*words);
    if (outcome == Session::Outcome::kFailed) return 1;
    refused = refused || outcome != Session::Outcome::kOk;
  }
  return refused ? 1 : 0;
}

}  // namespace

int RunClient(const std::vector<std::string>& words) {
  base::Result<Options> parsed = ParseOptions(words);
  if (!parsed.ok()) {
    fmt::print(stderr, "sava cli: {}\n", parsed.error());
    return 1;
  }
  Options& options = *parsed;
  if (options.help) {
    fmt::print("{}", UsageText());
    return 0;
  }
  if (const char* password = std::getenv("REDISCLI_AUTH");
      password != nullptr && !options.password) {
    options.password = password;
  }
  const bool to_terminal = isatty(STDOUT_FILENO) != 0;
  const OutputMode mode =
      options.output.value_or(to_terminal ? OutputMode::kTerminal : OutputMode::kRaw);
  const bool once = !options.command.empty() || !options.script.empty();
  if (!once && to_terminal && isatty(STDIN_FILENO) != 0) {
    return RunInteractive(options, mode);
  }
  Session session(options, mode, nullptr, stdout, stderr);
  return once ? RunOnce(options, &session) : RunPipe(&session);
}

}  // namespace sava::cli
