// The words of a command line: --name value pairs, flags, and the rest in order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "services/application.h"

namespace timeline {

class Options {
 public:
  // Every name that may appear, with whether it takes a value.
  bool Parse(const std::vector<std::string>& words, const std::map<std::string, bool>& known,
             std::string* error);

  bool Has(const std::string& name) const { return values_.count(name) > 0; }
  std::string Text(const std::string& name, const std::string& otherwise) const;
  // A number within limits; otherwise the problem is in *error.
  std::int64_t Number(const std::string& name, std::int64_t otherwise, std::int64_t least,
                      std::int64_t most, std::string* error) const;
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> rest_;
};

// The options that every command has, and what they mean.
extern const std::map<std::string, bool> kCommonOptions;
ApplicationOptions ApplicationOptionsOf(const Options& options, std::string* error);

int Serve(const std::vector<std::string>& words);
int MakeAdministrator(const std::vector<std::string>& words);
int ChangeSettingsCommand(const std::vector<std::string>& words);
int MakeSessions(const std::vector<std::string>& words);
int Generate(const std::vector<std::string>& words);
int BenchDirect(const std::vector<std::string>& words);
int BenchHttp(const std::vector<std::string>& words);

}  // namespace timeline
