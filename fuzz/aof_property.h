// What must hold for any bytes given to the reader of append-only files: it ends within them, what
// it calls good reads to the same commands by itself and is whole, commands lie where it says and
// within the file, and transactions end. Shared by the fuzz target and by the unit test that
// replays its corpus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/aof_reader.h"

namespace sava::storage {

struct ReadCommand {
  std::vector<std::string_view> words;
  bool in_transaction = false;
  bool last = false;
  bool operator==(const ReadCommand&) const = default;
};

inline AofEnd ReadAll(std::string_view bytes, std::vector<ReadCommand>* out, std::string* problem) {
  uint64_t after = 0;
  return ReadAof(bytes, [&](const AofCommand& command) -> base::Status {
    if (command.words.empty()) *problem = "a command without words";
    if (command.offset < after) *problem = "commands overlap";
    for (const std::string_view word : command.words) {
      if (word.data() < bytes.data() + command.offset ||
          word.data() + word.size() > bytes.data() + bytes.size()) {
        *problem = "a word outside the file";
      }
    }
    after = command.offset + 1;
    out->push_back(
        {{command.words.begin(), command.words.end()}, command.in_transaction, command.last});
    return {};
  });
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckAof(std::string_view bytes) {
  std::string problem;
  std::vector<ReadCommand> commands;
  const AofEnd end = ReadAll(bytes, &commands, &problem);
  if (!problem.empty()) return problem;
  if (end.good > bytes.size() || end.offset > bytes.size()) return "an offset beyond the end";
  if (end.commands != commands.size()) return "a wrong count";
  if (end.kind == AofEnd::Kind::kRefused) return "refused by nobody";
  if (end.kind == AofEnd::Kind::kWhole && end.good != bytes.size()) return "whole, but not all";
  if (end.kind != AofEnd::Kind::kWhole && end.text.empty()) return "an error without a text";
  if (end.kind != AofEnd::Kind::kWhole && end.offset < end.good) return "wrong in what is good";
  if (!commands.empty() && commands.back().in_transaction && !commands.back().last) {
    return "a transaction without its end";
  }
  std::vector<ReadCommand> again;
  const AofEnd second = ReadAll(bytes.substr(0, end.good), &again, &problem);
  if (!problem.empty()) return problem;
  if (second.kind != AofEnd::Kind::kWhole) return "what is good is not whole: " + second.text;
  return again == commands ? "" : "what is good reads differently";
}

}  // namespace sava::storage
