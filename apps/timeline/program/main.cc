// sava_timeline: a social network whose timeline comes from lists of ids in Sava
// (docs/timeline.md).
#include <fmt/format.h>

#include <functional>

#include "program/options.h"

namespace {

constexpr const char* kHelp =
    R"(sava_timeline serve      [--port 8080] [--host 127.0.0.1] [--keep-alive 5]   serve the pages
sava_timeline admin EMAIL                                   make a registered user an administrator
sava_timeline settings   [--cache on|off] [--front-page N] [--profile-page N] [--strategy update|delete]
sava_timeline sessions   --count N [--seed S]               sign in random users; prints USER TOKEN
sava_timeline generate   --users N --posts M [--follows 200..800] [--seed S] [--from Users.xml Posts.xml]
sava_timeline direct     [--threads 10,20,…] [--cache on|off] load test of the data behind a page
sava_timeline http       --url URL --sessions FILE          load test of the front page

All of them: [--database FILE | mariadb://USER[:PASSWORD]@[HOST[:PORT]]/NAME[?socket=PATH]]
             [--layout document|indexed] [--store HOST:PORT | SOCKET] [--feed-length 1000]
             [--connections 32] [--account-limit 5] [--address-limit 30]
)";

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const std::map<std::string, std::function<int(const std::vector<std::string>&)>> commands = {
      {"serve", timeline::Serve},
      {"admin", timeline::MakeAdministrator},
      {"settings", timeline::ChangeSettingsCommand},
      {"sessions", timeline::MakeSessions},
      {"generate", timeline::Generate},
      {"direct", timeline::BenchDirect},
      {"http", timeline::BenchHttp},
  };
  auto found = words.empty() ? commands.end() : commands.find(words[0]);
  if (found == commands.end()) {
    bool asked = !words.empty() && (words[0] == "help" || words[0] == "--help");
    fmt::print(asked ? stdout : stderr, "{}", kHelp);
    return asked ? 0 : 2;
  }
  words.erase(words.begin());
  return found->second(words);
}
