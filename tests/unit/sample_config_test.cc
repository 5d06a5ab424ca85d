// sava.conf, the sample at the top of the repository: its lines are settings with their defaults.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "config/config.h"
#include "config/config_file.h"

namespace sava::config {
namespace {

// Accepted, but without effect so far, or not for everyday use.
constexpr std::string_view kLeftOut[] = {"activerehashing",
                                         "always-show-logo",
                                         "dynamic-hz",
                                         "enable-module-command",
                                         "lazyfree-lazy-eviction",
                                         "lazyfree-lazy-expire",
                                         "lazyfree-lazy-server-del",

                                         "replicaof",
                                         "sanitize-dump-payload"};

std::string Sample() {
  return *ReadWholeFile((std::filesystem::path(SAVA_SOURCE_DIR) / "sava.conf").string());
}

// The lines "#name value", without the #.
std::vector<std::string> CommentedSettings() {
  std::vector<std::string> lines;
  std::istringstream text(Sample());
  for (std::string line; std::getline(text, line);) {
    if (line.size() > 1 && line[0] == '#' && line[1] != ' ') lines.push_back(line.substr(1));
  }
  return lines;
}

std::string NameOf(const std::string& line) { return line.substr(0, line.find(' ')); }

std::string Value(const Config& config, std::string_view name) {
  const std::string_view names[] = {name};
  return config.Get(names).at(0).second;
}

TEST(SampleConfig, LoadsAsItIs) {
  Config config;
  const base::Status status = config.ParseText(Sample(), "sava.conf");
  EXPECT_TRUE(status.ok()) << status.error();
}

TEST(SampleConfig, EveryCommentedLineIsASettingByItself) {
  const std::vector<std::string> lines = CommentedSettings();
  EXPECT_GT(lines.size(), 80U);
  for (const std::string& line : lines) {
    Config config;
    const base::Status status = config.ParseText(line, "sava.conf");
    EXPECT_TRUE(status.ok()) << status.error();
    EXPECT_NE(FindSetting(NameOf(line)), nullptr) << line;
  }
}

TEST(SampleConfig, CommentedValuesAreTheDefaults) {
  const Config defaults;
  Config config;
  std::string all;
  std::set<std::string> names;
  for (const std::string& line : CommentedSettings()) {
    all += line + "\n";
    names.insert(NameOf(line));
  }
  const base::Status status = config.ParseText(all, "sava.conf");
  ASSERT_TRUE(status.ok()) << status.error();
  for (const std::string& name : names) {
    EXPECT_EQ(Value(config, name), Value(defaults, name)) << name;
    EXPECT_TRUE(config.GivenAtStart(name)) << name;
  }
}

TEST(SampleConfig, HasEverySettingThatDoesSomething) {
  std::set<std::string, std::less<>> names;
  for (const std::string& line : CommentedSettings()) names.insert(NameOf(line));
  for (const Setting& setting : AllSettings()) {
    const bool wanted =
        !setting.kept() && std::ranges::find(kLeftOut, setting.name) == std::end(kLeftOut);
    EXPECT_EQ(names.contains(setting.name), wanted) << setting.name;
  }
}

}  // namespace
}  // namespace sava::config
