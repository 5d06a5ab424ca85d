// ScriptReader: a file of the URL scheduler's commands, one step at a time, without copying it.
//
//   ADD_URLS n        and n lines with a URL each     VER_HOST host
//   ESCALONA_TUDO                                     LISTA_HOSTS
//   ESCALONA q                                        LIMPA_HOST host
//   ESCALONA_HOST host q                              LIMPA_TUDO
//
// Lines end in LF or CRLF, the last one may lack its end; blanks around words do not matter. Empty
// lines between commands are skipped; inside ADD_URLS every line counts. What is no command is a
// step of its own, and reading goes on with the next line. Any bytes may be given. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sava::cli {

// In the order of the document's table 3: the number is the phase in an access log.
enum class ScriptVerb : uint8_t {
  kAddUrls,
  kScheduleAll,
  kSchedule,
  kScheduleHost,
  kShowHost,
  kListHosts,
  kClearHost,
  kClearAll,
};
inline constexpr int kScriptVerbs = 8;

std::string_view ScriptVerbName(ScriptVerb verb);  // "ADD_URLS"

struct ScriptStep {
  enum class Kind : uint8_t {
    kEnd,        // nothing is left
    kCommand,    // `verb` with `host` and `count`, as far as it takes them
    kUrl,        // `text`, one line of the last ADD_URLS
    kMalformed,  // no command: Problem() says why
  };
  // What is wrong with a malformed line.
  enum class Fault : uint8_t { kNone, kUnknown, kArguments, kNumber, kMissingUrls };

  Kind kind = Kind::kEnd;
  ScriptVerb verb = ScriptVerb::kAddUrls;
  Fault fault = Fault::kNone;
  uint64_t line = 0;  // from 1
  uint64_t count = 0;
  std::string_view host;
  std::string_view text;  // the line, without its end and the blanks around it

  // REQUIRES: kind is kMalformed.
  std::string Problem() const;
};

class ScriptReader {
 public:
  // `bytes` must outlive the reader and its steps.
  explicit ScriptReader(std::string_view bytes);

  ScriptStep Next();
  // How many bytes were read.
  uint64_t position() const { return position_; }

 private:
  bool NextLine(ScriptStep* step);
  ScriptStep Command(ScriptStep step);

  std::string_view bytes_;
  uint64_t position_ = 0;
  uint64_t line_ = 0;
  uint64_t urls_ = 0;       // still to come of the last ADD_URLS
  uint64_t urls_line_ = 0;  // where it stands
};

}  // namespace sava::cli
