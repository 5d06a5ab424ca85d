// The command line of the client, and what of typed lines may be kept.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/client_history.h"
#include "cli/client_options.h"

namespace sava::cli {
namespace {

using Words = std::vector<std::string>;

Options Parse(const Words& words) {
  const auto parsed = ParseOptions(words);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error());
  return parsed.ok() ? parsed.value() : Options();
}

TEST(CliOptions, Defaults) {
  const Options options = Parse({});
  EXPECT_EQ(options.endpoint.Text(), "127.0.0.1:6379");
  EXPECT_EQ(options.database, 0);
  EXPECT_EQ(options.protocol, 0);
  EXPECT_EQ(options.repeat, 1);
  EXPECT_FALSE(options.output.has_value());
  EXPECT_TRUE(options.command.empty());
}

TEST(CliOptions, ReadsEveryOption) {
  const Options options = Parse({"-h", "::1", "-p", "7000", "-a", "pw", "--user", "u", "-n", "3",
                                 "-3", "-x", "-r", "-1", "-i", "0.5", "--json", "SET", "key"});
  EXPECT_EQ(options.endpoint.Text(), "[::1]:7000");
  EXPECT_EQ(options.password, "pw");
  EXPECT_EQ(options.user, "u");
  EXPECT_EQ(options.database, 3);
  EXPECT_EQ(options.protocol, 3);
  EXPECT_TRUE(options.last_argument_from_stdin);
  EXPECT_EQ(options.repeat, -1);
  EXPECT_EQ(options.interval_seconds, 0.5);
  EXPECT_EQ(options.output, OutputMode::kJson);
  EXPECT_EQ(options.command, (Words{"SET", "key"}));
  EXPECT_EQ(Parse({"-s", "/run/x.sock"}).endpoint.Text(), "/run/x.sock");
  EXPECT_EQ(Parse({"--raw"}).output, OutputMode::kRaw);
  EXPECT_EQ(Parse({"--no-raw"}).output, OutputMode::kTerminal);
  EXPECT_TRUE(Parse({"--help"}).help);
}

TEST(CliOptions, ReadsThoseOfTls) {
  EXPECT_FALSE(Parse({}).endpoint.tls);
  const Options options =
      Parse({"--tls", "--cacert", "a", "--cacertdir", "b", "--cert", "c", "--key", "d", "--sni",
             "e", "--insecure", "--tls-ciphers", "f", "--tls-ciphersuites", "g", "PING"});
  const Endpoint& endpoint = options.endpoint;
  EXPECT_TRUE(endpoint.tls);
  EXPECT_TRUE(endpoint.insecure);
  EXPECT_EQ(endpoint.sni, "e");
  EXPECT_EQ(endpoint.tls_options.ca_file, "a");
  EXPECT_EQ(endpoint.tls_options.ca_dir, "b");
  EXPECT_EQ(endpoint.tls_options.certificate, "c");
  EXPECT_EQ(endpoint.tls_options.key, "d");
  EXPECT_EQ(endpoint.tls_options.ciphers, "f");
  EXPECT_EQ(endpoint.tls_options.ciphersuites, "g");
  EXPECT_EQ(options.command, (Words{"PING"}));
  EXPECT_FALSE(ParseOptions({"--tls", "--cert", "c"}).ok());
}

TEST(CliOptions, CommandIsVerbatim) {
  EXPECT_EQ(Parse({"-p", "1", "SET", "-p", "--json", "-x"}).command,
            (Words{"SET", "-p", "--json", "-x"}));
  EXPECT_EQ(Parse({"--", "-odd"}).command, (Words{"-odd"}));
  EXPECT_EQ(Parse({"", "a"}).command, (Words{"", "a"}));
  EXPECT_EQ(Parse({"-"}).command, (Words{"-"}));
}

TEST(CliOptions, RefusesNonsense) {
  const std::vector<Words> wrong = {{"--bogus"},     {"-p"},       {"-p", "0"},
                                    {"-p", "65536"}, {"-p", "x"},  {"-n", "-1"},
                                    {"-r", "-2"},    {"-i", "-1"}, {"-i", "nan"},
                                    {"-i", "inf"},   {"-x"},       {"--user", "u", "PING"}};
  for (const Words& words : wrong) EXPECT_FALSE(ParseOptions(words).ok()) << words.front();
}

TEST(CliHistory, KnowsSecrets) {
  for (const char* line :
       {"auth pw", "AUTH user pw", "  Auth 'pw", "\"auth\" pw", "auth \"a\" \"b\"c", "3 auth pw",
        "hello 3 auth u p", "acl setuser bob >pw", "config set requirepass x",
        "CONFIG SET maxmemory 1 masterauth x", "migrate h 1 k 0 1 AUTH pw",
        "migrate h 1 k 0 1 auth2 u pw"}) {
    EXPECT_TRUE(CarriesSecret(line)) << line;
  }
  for (const char* line : {"", "get auth", "set auth x", "hello 3", "acl getuser bob",
                           "config get requirepass", "help auth", "config set maxmemory 1"}) {
    EXPECT_FALSE(CarriesSecret(line)) << line;
  }
}

class CliHistoryFile : public testing::Test {
 protected:
  CliHistoryFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sava_history_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/history";
  }
  ~CliHistoryFile() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(CliHistoryFile, KeepsLinesButNoSecrets) {
  HistoryFile first(path_);
  EXPECT_TRUE(first.Load().empty());
  first.Append("get a");
  first.Append("auth hush");
  HistoryFile(path_).Append("get b");
  EXPECT_EQ(HistoryFile(path_).Load(), (Words{"get a", "get b"}));
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(CliHistoryFile, StaysBounded) {
  {
    std::ofstream file(path_);
    for (size_t i = 0; i < 2 * HistoryFile::kMaxLines + 5; ++i) file << "get " << i << '\n';
  }
  const Words lines = HistoryFile(path_).Load();
  ASSERT_EQ(lines.size(), HistoryFile::kMaxLines);
  EXPECT_EQ(lines.back(), "get " + std::to_string(2 * HistoryFile::kMaxLines + 4));
  std::ifstream file(path_);
  size_t kept = 0;
  for (std::string line; std::getline(file, line);) ++kept;
  EXPECT_EQ(kept, HistoryFile::kMaxLines);
}

TEST_F(CliHistoryFile, NoFileIsFine) {
  HistoryFile nowhere("");
  nowhere.Append("get a");
  EXPECT_TRUE(nowhere.Load().empty());
  HistoryFile device("/dev/null");
  device.Append("get a");
  EXPECT_TRUE(device.Load().empty());
  HistoryFile missing(folder_ + "/no/such/folder");
  missing.Append("get a");
  EXPECT_TRUE(missing.Load().empty());
}

}  // namespace
}  // namespace sava::cli
