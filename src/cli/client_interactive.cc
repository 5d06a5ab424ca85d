// The interactive loop and the client's own commands.
#include "cli/client_interactive.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/client_editor.h"
#include "cli/client_history.h"
#include "cli/client_session.h"
#include "cli/client_signals.h"

namespace sava::cli {
namespace {

constexpr double kWorthTellingSeconds = 0.5;

constexpr std::string_view kHelp = R"(
  help COMMAND      what a command does and takes; help @GROUP lists a group
  quit, exit        leave (also Ctrl-D)
  clear             clear the screen (also Ctrl-L)
  connect HOST PORT speak with another server
  N COMMAND ...     run a command N times
  :hints on|off     show the arguments to come, or not

  Tab completes commands, subcommands and options. Ctrl-R searches the history.
  "..." takes escapes such as \n, \" and \x00; '...' takes text as it is.

)";

const std::vector<std::string_view>& Builtins() {
  static const std::vector<std::string_view> kNames = {"help", "quit", "exit", "clear", "connect"};
  return kNames;
}

class Prompt {
 public:
  Prompt(const Options& options, OutputMode mode)
      : session_(options, mode, &signals_, stdout, stderr),
        history_(HistoryFile::DefaultPath()),
        editor_(&signals_,
                {[this] { return session_.Prompt(); },
                 [this](std::string_view line) { return HintFor(Docs(), line); },
                 [this](std::string_view line) { return CompletionsFor(Docs(), Builtins(), line); },
                 [this] { return session_.idle_fd(); }, [this] { session_.OnIdle(); }}) {
    for (const std::string& line : history_.Load()) editor_.Remember(line);
  }

  int Run() {
    if (base::Status status = session_.Connect(); !status.ok()) {
      fmt::print(stderr, "{}\n", status.error());
    }
    while (!leaving_ && !signals_.terminated()) {
      docs_asked_ = false;
      std::string line;
      switch (editor_.ReadLine(&line)) {
        case Editor::Result::kLine:
          Handle(line);
          break;
        case Editor::Result::kInterrupted:
          leaving_ = line.empty();
          break;
        case Editor::Result::kEnd:
          fmt::print("\n");
          leaving_ = true;
          break;
      }
    }
    return 0;
  }

 private:
  // Asks an unreachable server at most once a line, so that typing stays fluent.
  const CommandDocs& Docs() {
    static const CommandDocs kNone;
    if (docs_asked_ && !docs_known_) return kNone;
    docs_asked_ = true;
    if (session_.idle_fd() < 0 && !docs_known_) return kNone;
    const CommandDocs& docs = session_.Docs();
    docs_known_ = !docs.empty();
    return docs;
  }

  void Handle(const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    if (!CarriesSecret(line)) {
      editor_.Remember(line);
      history_.Append(line);
    }
    std::optional<std::vector<std::string>> words = base::SplitArgs(line);
    if (!words) {
      fmt::print("Invalid argument(s)\n");
      return;
    }
    if (words->empty() || RunBuiltin(*words)) return;
    int64_t repeat = 1;
    if (words->size() > 1 && base::ParseInt(words->front(), &repeat)) {
      words->erase(words->begin());
      if (repeat < 1) {
        fmt::print("Invalid repeat count\n");
        return;
      }
    }
    RunCommand(*words, repeat);
  }

  void RunCommand(const std::vector<std::string>& args, int64_t repeat) {
    for (int64_t i = 0; i < repeat; ++i) {
      const Session::Outcome outcome = session_.Run(args);
      if (outcome == Session::Outcome::kFailed || outcome == Session::Outcome::kInterrupted) return;
      const double seconds = std::chrono::duration<double>(session_.elapsed()).count();
      if (seconds >= kWorthTellingSeconds) fmt::print("({:.2f}s)\n", seconds);
      if (signals_.TakeInterrupt()) return;
    }
  }

  bool RunBuiltin(const std::vector<std::string>& words) {
    const auto is = [&](std::string_view name) { return base::EqualsNoCase(words[0], name); };
    if (is("quit") || is("exit")) {
      leaving_ = true;
    } else if (is("clear") && words.size() == 1) {
      fmt::print("\033[H\033[2J");
    } else if (is("connect") && words.size() == 3) {
      Reconnect(words[1], words[2]);
    } else if (is(":hints") && words.size() == 2) {
      editor_.set_hints(!base::EqualsNoCase(words[1], "off"));
    } else if ((is("help") || is("?")) && words.size() == 1) {
      fmt::print("{}", kHelp);
    } else if (is("help") || is("?")) {
      fmt::print("{}", HelpText(Docs(), {words.begin() + 1, words.end()}));
    } else {
      return false;
    }
    std::fflush(stdout);
    return true;
  }

  void Reconnect(const std::string& host, const std::string& port) {
    Endpoint endpoint = session_.endpoint();
    endpoint.socket.clear();
    int64_t number = 0;
    if (!base::ParseInt(port, &number) || number < 1 || number > 65535) {
      fmt::print("Invalid port\n");
      return;
    }
    endpoint.host = host;
    endpoint.port = static_cast<int>(number);
    docs_known_ = false;
    session_.Redirect(endpoint);
    if (base::Status status = session_.Connect(); !status.ok()) {
      fmt::print(stderr, "{}\n", status.error());
    }
  }

  Signals signals_;
  Session session_;
  HistoryFile history_;
  Editor editor_;
  bool docs_asked_ = false;  // for the line being typed
  bool docs_known_ = false;
  bool leaving_ = false;
};

}  // namespace

int RunInteractive(const Options& options, OutputMode mode) { return Prompt(options, mode).Run(); }

}  // namespace sava::cli
