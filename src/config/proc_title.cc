#include "config/proc_title.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace sava::config {

namespace {

struct Room {
  char* begin = nullptr;
  char* arguments_end = nullptr;  // behind the last one's zero
  char* end = nullptr;            // behind the environment
};

Room room;

// The end of the texts, if the next one follows at `end` without a gap.
char* Follow(char* text, char* end) { return text == end ? text + strlen(text) + 1 : end; }

std::string Variable(std::string_view name, const Settings& settings, std::string_view title,
                     std::string_view config_file) {
  if (name == "title") return std::string(title);
  if (name == "listen-addr") {
    const int64_t port = settings.port != 0 ? settings.port : settings.tls_port;
    if (port == 0) return "unixsocket:" + settings.unixsocket;
    return fmt::format("{}:{}", settings.bind.empty() ? "*" : settings.bind[0], port);
  }
  if (name == "port") return fmt::format("{}", settings.port);
  if (name == "tls-port") return fmt::format("{}", settings.tls_port);
  if (name == "unixsocket") return settings.unixsocket;
  if (name == "config-file") return std::string(config_file.empty() ? "-" : config_file);
  return {};  // server-mode: neither cluster nor sentinel
}

}  // namespace

void TakeCommandLine(int argc, char** argv) {
  if (argc < 1 || argv[0] == nullptr) return;
  Room found;
  found.begin = found.end = argv[0];
  for (int i = 0; i < argc; ++i) found.end = Follow(argv[i], found.end);
  found.arguments_end = found.end;
  size_t count = 0;
  for (; environ[count] != nullptr; ++count) found.end = Follow(environ[count], found.end);
  auto** const moved = static_cast<char**>(calloc(count + 1, sizeof(char*)));
  if (moved == nullptr) return;
  for (size_t i = 0; i < count; ++i) {
    moved[i] = strdup(environ[i]);
    if (moved[i] == nullptr) return;
  }
  // glibc's two names of the program lie in the first argument.
  char* const name = strdup(argv[0]);
  if (name == nullptr) return;
  program_invocation_name = name;
  char* const slash = strrchr(name, '/');
  program_invocation_short_name = slash == nullptr ? name : slash + 1;
  environ = moved;
  room = found;
}

// A byte other than zero where the arguments ended tells the kernel that a title was written: then
// it shows the text up to its first zero, even if that lies beyond.
void ShowProcTitle(std::string_view title) {
  if (room.begin == nullptr) return;
  const size_t size = std::min(title.size(), static_cast<size_t>(room.end - room.begin) - 1);
  memset(room.begin, 0, static_cast<size_t>(room.end - room.begin));
  memcpy(room.begin, title.data(), size);
  char* const last = room.arguments_end - 1;
  if (last > room.begin + size) *last = '.';
  // Just as long as the arguments: the zero behind it must not be where they ended.
  if (last == room.begin + size && last + 1 < room.end) *last = ' ';
}

std::string ProcTitle(const Settings& settings, std::string_view title,
                      std::string_view config_file) {
  std::string text;
  std::string_view rest = settings.proc_title_template;
  while (!rest.empty()) {
    const size_t open = std::min(rest.find('{'), rest.size());
    text += rest.substr(0, open);
    rest.remove_prefix(open);
    const size_t close = rest.find('}');
    if (close == std::string_view::npos) break;
    text += Variable(rest.substr(1, close - 1), settings, title, config_file);
    rest.remove_prefix(close + 1);
  }
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace sava::config
