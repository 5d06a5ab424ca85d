#include "cli/frontier_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"

namespace sava::cli {

namespace {

struct VerbRow {
  std::string_view name;
  bool takes_host;
  bool takes_count;
};

constexpr std::array<VerbRow, kScriptVerbs> kVerbs = {{
    {"ADD_URLS", false, true},
    {"ESCALONA_TUDO", false, false},
    {"ESCALONA", false, true},
    {"ESCALONA_HOST", true, true},
    {"VER_HOST", true, false},
    {"LISTA_HOSTS", false, false},
    {"LIMPA_HOST", true, false},
    {"LIMPA_TUDO", false, false},
}};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view TakeWord(std::string_view* text) {
  size_t size = 0;
  while (size < text->size() && !IsBlank((*text)[size])) ++size;
  const std::string_view word = text->substr(0, size);
  text->remove_prefix(size);
  *text = WithoutBlanks(*text);
  return word;
}

// Digits only; leading zeros are allowed, as the document's program reads them.
bool ParseCount(std::string_view word, uint64_t* out) {
  uint64_t value = 0;
  for (const char c : word) {
    const unsigned digit = static_cast<unsigned char>(c) - '0';
    if (digit > 9 || value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return !word.empty();
}

std::string Excerpt(std::string_view text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return base::Quoted(text);
  return base::Quoted(text.substr(0, kMost)) + "...";
}

std::string Usage(const VerbRow& row) {
  return fmt::format("{}{}{}", row.name, row.takes_host ? " host" : "",
                     row.takes_count ? " n" : "");
}

}  // namespace

std::string_view ScriptVerbName(ScriptVerb verb) { return kVerbs[static_cast<size_t>(verb)].name; }

std::string ScriptStep::Problem() const {
  const VerbRow& row = kVerbs[static_cast<size_t>(verb)];
  switch (fault) {
    case Fault::kArguments:
      return fmt::format("malformed line {}: it should be {}", Excerpt(text), Usage(row));
    case Fault::kNumber:
      return fmt::format("malformed line {}: {} needs a number", Excerpt(text), row.name);
    case Fault::kMissingUrls:
      return fmt::format("the file ends {} lines before the last URL of {}", count, row.name);
    case Fault::kUnknown:
    case Fault::kNone:
      break;
  }
  return fmt::format("unknown command {}", Excerpt(text));
}

ScriptReader::ScriptReader(std::string_view bytes) : bytes_(bytes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
}

bool ScriptReader::NextLine(ScriptStep* step) {
  if (position_ >= bytes_.size()) return false;
  const char* begin = bytes_.data() + position_;
  const size_t left = bytes_.size() - position_;
  const auto* end = static_cast<const char*>(std::memchr(begin, '\n', left));
  const size_t size = end != nullptr ? static_cast<size_t>(end - begin) : left;
  position_ += std::min(left, size + 1);
  step->line = ++line_;
  step->text = WithoutBlanks({begin, size});
  return true;
}

ScriptStep ScriptReader::Next() {
  ScriptStep step;
  if (urls_ > 0) {
    if (NextLine(&step)) {
      --urls_;
      step.kind = ScriptStep::Kind::kUrl;
      return step;
    }
    step.kind = ScriptStep::Kind::kMalformed;
    step.fault = ScriptStep::Fault::kMissingUrls;
    step.line = urls_line_;
    step.count = urls_;
    urls_ = 0;
    return step;
  }
  while (NextLine(&step)) {
    if (!step.text.empty()) return Command(step);
  }
  step.kind = ScriptStep::Kind::kEnd;
  return step;
}

ScriptStep ScriptReader::Command(ScriptStep step) {
  step.kind = ScriptStep::Kind::kMalformed;
  std::string_view left = step.text;
  const std::string_view name = TakeWord(&left);
  const auto* const row = std::find_if(kVerbs.begin(), kVerbs.end(),
                                       [&](const VerbRow& one) { return one.name == name; });
  if (row == kVerbs.end()) {
    step.fault = ScriptStep::Fault::kUnknown;
    return step;
  }
  step.verb = static_cast<ScriptVerb>(row - kVerbs.begin());
  step.fault = ScriptStep::Fault::kArguments;
  if (row->takes_host) {
    step.host = TakeWord(&left);
    if (step.host.empty()) return step;
  }
  if (row->takes_count) {
    const std::string_view number = TakeWord(&left);
    if (number.empty()) return step;
    if (!ParseCount(number, &step.count)) {
      step.fault = ScriptStep::Fault::kNumber;
      return step;
    }
  }
  if (!left.empty()) return step;
  step.fault = ScriptStep::Fault::kNone;
  step.kind = ScriptStep::Kind::kCommand;
  if (step.verb == ScriptVerb::kAddUrls) {
    urls_ = step.count;
    urls_line_ = step.line;
  }
  return step;
}

}  // namespace sava::cli
