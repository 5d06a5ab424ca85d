// What may follow what has been typed so far: the hint behind the cursor and Tab's candidates.
// Pure functions of the line and the server's command docs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client_docs.h"

namespace sava::cli {

// A line that may stop in the middle of a word or of a quoted one.
struct PartialLine {
  std::vector<std::string> words;
  bool in_word = false;  // the last word still touches the cursor
  bool valid = true;     // false: quotes that no continuation can mend
};
PartialLine SplitPartial(std::string_view line);

// The arguments still to come, beginning with a space if the cursor touches a word. Empty when
// there is nothing to say: unknown command, all arguments given, or words the grammar does not
// allow.
std::string HintFor(const CommandDocs& docs, std::string_view line);

struct Completions {
  size_t word_start = 0;  // where in the line the word to replace begins; it ends at the line's end
  std::vector<std::string> words;  // sorted, in the case the user types in
};
// `builtins` are the client's own commands, in lower case.
Completions CompletionsFor(const CommandDocs& docs, const std::vector<std::string_view>& builtins,
                           std::string_view line);

}  // namespace sava::cli
