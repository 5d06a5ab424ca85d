// What the host's COMMAND INFO, COMMAND DOCS, ACL and cluster routing are told of a command: its
// row, in the host's terms.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "commands/grammar.h"
#include "commands/spec.h"
#include "module/host_api.h"

namespace sava::module {

// "write deny-oom fast", as CreateCommand takes it.
std::string HostFlags(const commands::CommandSpec& spec);

// Whether the host cannot find the keys by the specification: before 7.2 it takes keys behind their
// number to stand side by side. It asks the command itself then (getkeys-api).
bool NeedsKeysRequest(const commands::CommandSpec& spec);

// Owns what info() points to.
class CommandDescription {
 public:
  explicit CommandDescription(const commands::CommandSpec& spec);
  CommandDescription(const CommandDescription&) = delete;
  CommandDescription& operator=(const CommandDescription&) = delete;

  const host::CommandInfo& info() const { return info_; }

 private:
  const char* Keep(std::string_view text);
  host::Argument* Arguments(const std::vector<commands::Argument>& arguments);
  void AddKeySpecs(const commands::CommandSpec& spec);

  host::CommandInfo info_{};
  std::deque<std::string> texts_;
  std::deque<std::vector<host::Argument>> arguments_;
  std::vector<host::KeySpec> keys_;
};

}  // namespace sava::module
