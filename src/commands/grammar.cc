#include "commands/grammar.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.h"

namespace sava::commands {

namespace {

constexpr std::array<std::string_view, 6> kTypes = {"string", "integer", "double",
                                                    "key",    "pattern", "unix-time"};

// Names that are always numbers.
constexpr std::string_view kNumbers[] = {
    "seconds", "milliseconds", "count",    "index",     "offset", "start",     "end",
    "stop",    "ttl",          "db",       "numkeys",   "cursor", "increment", "decrement",
    "bit",     "frequency",    "timeout",  "port",      "len",    "length",    "numreplicas",
    "samples", "percentage",   "numlocal", "client-id", "limit",  "maxlen",
};

std::string_view TypeOfName(std::string_view name) {
  if (name.ends_with("key") || name == "key1" || name == "key2") return "key";
  if (name.ends_with("pattern")) return "pattern";
  if (name.starts_with("unix-time")) return "unix-time";
  if (std::find(std::begin(kNumbers), std::end(kNumbers), name) != std::end(kNumbers)) {
    return "integer";
  }
  return "string";
}

bool IsToken(std::string_view word) {
  return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string JoinedNames(const std::vector<Argument>& arguments) {
  std::string name;
  for (const Argument& argument : arguments) {
    if (!name.empty()) name += '-';
    name += argument.name;
  }
  return name;
}

// One element of a sequence before tokens have found their arguments.
struct Part {
  bool token = false;
  std::string text;  // as written, spaces evened out: equal texts mean equal parts
  Argument argument;
  // A bracket all of which may be repeated: the texts of its parts.
  std::vector<std::string> repeats;
};

Argument PureToken(const std::string& token) {
  Argument argument;
  argument.name = base::ToLower(token);
  argument.type = "pure-token";
  argument.token = token;
  return argument;
}

Argument Group(std::string_view type, std::vector<Argument> parts) {
  Argument argument;
  argument.type = type;
  argument.name = JoinedNames(parts);
  argument.arguments = std::move(parts);
  return argument;
}

// Gives tokens the plain arguments behind them.
std::vector<Argument> AttachTokens(std::vector<Part> parts) {
  std::vector<Argument> out;
  size_t i = 0;
  while (i < parts.size()) {
    if (!parts[i].token) {
      out.push_back(std::move(parts[i++].argument));
      continue;
    }
    const std::string token = parts[i++].text;
    size_t end = i;
    while (end < parts.size() && !parts[end].token && !parts[end].argument.optional) ++end;
    if (end == i || (end == i + 1 && !parts[i].argument.token.empty())) {
      out.push_back(PureToken(token));
      continue;
    }
    if (end == i + 1) {
      out.push_back(std::move(parts[i].argument));
    } else {
      std::vector<Argument> block;
      for (size_t k = i; k < end; ++k) block.push_back(std::move(parts[k].argument));
      out.push_back(Group("block", std::move(block)));
      out.back().name = base::ToLower(token);
    }
    out.back().token = token;
    i = end;
  }
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  base::Result<std::vector<Argument>> All() {
    std::vector<Part> parts;
    Alternatives(0, &parts);
    if (!error_.empty()) return base::Error{error_};
    return AttachTokens(std::move(parts));
  }

 private:
  void Fail(std::string_view why) {
    if (error_.empty()) {
      error_ =
          std::string(why) + " at " + std::to_string(at_) + " of \"" + std::string(text_) + '"';
    }
    at_ = text_.size();
  }

  bool SkipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size();
  }

  bool Take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::string_view Word() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           std::string_view(" []()<>|").find(text_[at_]) == std::string::npos &&
           !text_.substr(at_).starts_with("...")) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  void Closed(char closing) {
    if (closing == 0) {
      if (at_ < text_.size()) Fail("unexpected bracket");
    } else if (at_ == text_.size() || text_[at_] != closing) {
      Fail("missing bracket");
    } else {
      ++at_;
    }
  }

  // Sequences with | between, up to the closing bracket, which is taken. One sequence gives its
  // parts, several one part. True when an ellipsis stood alone at the end.
  bool Alternatives(char closing, std::vector<Part>* parts) {
    std::vector<Argument> choices;
    bool repeated = Sequence(parts);
    while (at_ < text_.size() && text_[at_] == '|') {
      ++at_;
      if (parts->empty()) Fail("empty alternative");
      if (closing == 0 && parts->size() > 1) Fail("alternatives without brackets");
      choices.push_back(OneArgument(std::move(*parts)));
      parts->clear();
      repeated = Sequence(parts);
    }
    if (parts->empty() && (closing != 0 || !choices.empty())) Fail("empty group");
    Closed(closing);
    if (closing == 0 && !choices.empty() && parts->size() > 1)
      Fail("alternatives without brackets");
    if (!choices.empty() && !parts->empty()) {
      choices.push_back(OneArgument(std::move(*parts)));
      parts->clear();
      parts->emplace_back().argument = Group("oneof", std::move(choices));
    }
    return repeated;
  }

  static Argument OneArgument(std::vector<Part> parts) {
    std::vector<Argument> arguments = AttachTokens(std::move(parts));
    return arguments.size() == 1 ? std::move(arguments[0]) : Group("block", std::move(arguments));
  }

  bool Sequence(std::vector<Part>* parts) {
    bool repeated = false;
    while (SkipSpace()) {
      const char c = text_[at_];
      if (c == '|' || c == ']' || c == ')' || c == '>') break;
      if (repeated) {
        Fail("something behind ...");
        break;
      }
      if (Take("...")) {
        repeated = true;
        if (parts->empty()) Fail("nothing before ...");
        continue;
      }
      const size_t begin = at_;
      Part part;
      if (c == '[' || c == '(' || c == '<') {
        ++at_;
        Bracket(c, &part);
      } else {
        OneWord(&part);
      }
      if (!error_.empty()) break;
      part.text = text_.substr(begin, at_ - begin);
      if (!part.token && Take("...")) part.argument.multiple = true;
      if (part.repeats.empty() || !Merge(parts, part.repeats)) parts->push_back(std::move(part));
    }
    // Outside brackets an ellipsis behind a space is that of the last argument.
    if (repeated && depth_ == 0 && !parts->empty()) parts->back().argument.multiple = true;
    return repeated;
  }

  void OneWord(Part* part) {
    const std::string_view word = Word();
    if (word.empty()) {
      Fail("unexpected character");
      return;
    }
    if (IsToken(word)) {
      part->token = true;
      part->argument.token = word;
      return;
    }
    const size_t colon = word.find(':');
    const std::string_view name = word.substr(0, colon);
    const size_t equals = name.find('=');
    part->argument.name = name.substr(0, equals);
    if (equals != std::string_view::npos) part->argument.display = name.substr(equals + 1);
    part->argument.type = TypeOfName(part->argument.name);
    if (colon == std::string_view::npos) return;
    part->argument.type = word.substr(colon + 1);
    if (std::find(kTypes.begin(), kTypes.end(), part->argument.type) == kTypes.end()) {
      Fail("unknown type");
    }
  }

  void Bracket(char opening, Part* part) {
    const char closing = opening == '[' ? ']' : opening == '(' ? ')' : '>';
    SkipSpace();
    const size_t begin = at_;
    std::string_view label = Word();
    if (label.size() > 1 && label.ends_with(':')) {
      label.remove_suffix(1);
    } else {
      label = {};
      at_ = begin;
    }
    std::vector<Part> inside;
    ++depth_;
    const bool repeated = Alternatives(closing, &inside);
    --depth_;
    if (inside.empty()) return;
    if (repeated) {
      for (const Part& inner : inside) part->repeats.push_back(inner.text);
    }
    part->argument = OneArgument(std::move(inside));
    if (!label.empty()) part->argument.name = label;
    if (opening == '[') part->argument.optional = true;
    if (repeated) {
      part->argument.multiple = true;
      part->argument.multiple_token = !part->argument.token.empty();
    }
  }

  // Whether the texts are those of the last parts; then these become the repeated thing.
  static bool Merge(std::vector<Part>* parts, const std::vector<std::string>& texts) {
    if (texts.size() > parts->size()) return false;
    const auto begin = parts->end() - static_cast<ptrdiff_t>(texts.size());
    if (!std::equal(texts.begin(), texts.end(), begin, parts->end(),
                    [](const std::string& text, const Part& part) { return text == part.text; })) {
      return false;
    }
    std::vector<Part> tail(std::make_move_iterator(begin), std::make_move_iterator(parts->end()));
    parts->erase(begin, parts->end());
    const bool with_token = tail[0].token;
    Part merged;
    merged.argument = OneArgument(std::move(tail));
    merged.argument.multiple = true;
    merged.argument.multiple_token = with_token;
    parts->push_back(std::move(merged));
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
};

void NumberKeys(std::vector<Argument>* arguments, int key_specs, int* next) {
  for (Argument& argument : *arguments) {
    if (argument.type == "key" && key_specs > 0) {
      argument.key_spec_index = std::min((*next)++, key_specs - 1);
    }
    NumberKeys(&argument.arguments, key_specs, next);
  }
}

// Without brackets, repetition and token.
std::string Body(const Argument& argument, NameStyle style) {
  if (!argument.is_group()) {
    return style == NameStyle::kAngles ? '<' + argument.shown() + '>' : argument.shown();
  }
  if (argument.type == "block") return UsageText(argument.arguments, style);
  std::string text;
  for (const Argument& choice : argument.arguments) {
    if (!text.empty()) text += " | ";
    text += UsageText({choice}, style);
  }
  const bool bare = argument.optional && argument.token.empty() && !argument.multiple;
  return bare ? text : '<' + text + '>';
}

std::string Usage(const Argument& argument, NameStyle style) {
  std::string text = argument.token;
  if (argument.type != "pure-token") {
    const std::string body = Body(argument, style);
    if (!text.empty()) text += ' ';
    text += body;
    if (argument.multiple) {
      const std::string again = argument.multiple_token ? argument.token + ' ' + body : body;
      text += " [" + again + " ...]";
    }
  }
  return argument.optional ? '[' + text + ']' : text;
}

}  // namespace

base::Result<std::vector<Argument>> ParseGrammar(std::string_view grammar, int key_specs) {
  auto arguments = Parser(grammar).All();
  if (arguments) {
    int next = 0;
    NumberKeys(&arguments.value(), key_specs, &next);
  }
  return arguments;
}

std::string UsageText(const std::vector<Argument>& arguments, NameStyle style) {
  std::string text;
  for (const Argument& argument : arguments) {
    if (!text.empty()) text += ' ';
    text += Usage(argument, style);
  }
  return text;
}

}  // namespace sava::commands
