// What must hold for any bytes given as a file of the URL scheduler's commands. Shared by the fuzz
// target and by the unit test that replays its corpus.

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/frontier_access_log.h"
#include "cli/frontier_script.h"

namespace sava::cli {

// The command as it would be written.
inline std::string WrittenCommand(const ScriptStep& step) {
  std::string text(ScriptVerbName(step.verb));
  const bool counted = step.verb == ScriptVerb::kAddUrls || step.verb == ScriptVerb::kSchedule ||
                       step.verb == ScriptVerb::kScheduleHost;
  if (!step.host.empty()) text.append(" ").append(step.host);
  if (counted) text += " " + std::to_string(step.count);
  return text;
}

// A command that is written again is the same command. Empty if all is well.
inline std::string CheckCommand(const ScriptStep& step) {
  const std::string written = WrittenCommand(step);
  ScriptReader again(written);
  const ScriptStep other = again.Next();
  if (other.kind != ScriptStep::Kind::kCommand || other.verb != step.verb ||
      other.host != step.host || other.count != step.count) {
    return "a command changed when it was written again: " + written;
  }
  return {};
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckScript(std::string_view bytes) {
  const auto lines = static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1;
  ScriptReader reader(bytes);
  uint64_t line = 0;
  uint64_t urls = 0;  // still to come
  for (uint64_t steps = 0;; ++steps) {
    if (steps > lines + 1) return "more steps than lines";
    const uint64_t before = reader.position();
    const ScriptStep step = reader.Next();
    if (reader.position() < before || reader.position() > bytes.size()) return "position";
    if (step.kind == ScriptStep::Kind::kEnd) break;
    const bool missing = step.fault == ScriptStep::Fault::kMissingUrls;
    if (!missing && step.line <= line) return "the line did not grow";
    if (step.line > lines) return "a line beyond the last";
    if (!missing) line = step.line;
    if (!step.text.empty() && (step.text.data() < bytes.data() ||
                               step.text.data() + step.text.size() > bytes.data() + bytes.size())) {
      return "text from elsewhere";
    }
    if ((step.kind == ScriptStep::Kind::kUrl || missing) != (urls > 0)) return "URLs out of place";
    if (step.kind == ScriptStep::Kind::kUrl) {
      --urls;
    } else if (step.kind == ScriptStep::Kind::kCommand) {
      if (const std::string problem = CheckCommand(step); !problem.empty()) return problem;
      if (step.verb == ScriptVerb::kAddUrls) urls = step.count;
    } else {
      if (missing && step.count != urls) return "how many URLs are missing";
      if (missing) urls = 0;
      if (step.Problem().empty()) return "a problem without words";
    }
    Access access;
    ParseAccess(step.text, &access);
  }
  if (reader.position() != bytes.size()) return "bytes were left over";
  return {};
}

}  // namespace sava::cli
