// Matching of typed words against the argument grammar of COMMAND DOCS.
//
// The grammar is ambiguous (values may look like tokens), so this is a best effort that never
// blocks typing: options that stand beside each other match in any order, a repeated argument takes
// words until the token of a later argument appears, and what does not fit yields no hint.
#include "cli/client_hints.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"

namespace sava::cli {
namespace {

using Arguments = std::span<const ArgumentDoc>;

bool LooksNumeric(std::string_view word) {
  double value = 0;
  return base::ParseDouble(word, &value);
}

bool HasPrefix(std::string_view word, std::string_view prefix) {
  return word.size() >= prefix.size() && base::EqualsNoCase(word.substr(0, prefix.size()), prefix);
}

// The fixed words an argument can begin with.
void AddFirstTokens(const ArgumentDoc& argument, std::vector<std::string>* tokens) {
  if (!argument.token.empty()) {
    tokens->push_back(argument.token);
    return;
  }
  for (const ArgumentDoc& inner : argument.arguments) {
    AddFirstTokens(inner, tokens);
    if (argument.type == ArgumentType::kBlock && !inner.optional) return;
  }
}

bool CanBegin(Arguments arguments, std::string_view word) {
  std::vector<std::string> tokens;
  for (const ArgumentDoc& argument : arguments) AddFirstTokens(argument, &tokens);
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const std::string& token) { return base::EqualsNoCase(token, word); });
}

class Matcher {
 public:
  explicit Matcher(std::span<const std::string> words) : words_(words) {}

  // True if the words fit. Then rest() is what may follow and next_tokens() the fixed words that
  // may come next.
  bool Match(Arguments arguments) { return Sequence(arguments, &rest_) && AtEnd(); }

  const std::string& rest() const { return rest_; }
  const std::vector<std::string>& next_tokens() const { return next_tokens_; }

 private:
  bool AtEnd() const { return position_ == words_.size(); }
  const std::string& word() const { return words_[position_]; }

  static void AddPiece(const std::string& piece, std::string* rest) {
    if (piece.empty()) return;
    if (!rest->empty()) *rest += ' ';
    *rest += piece;
  }

  void Offer(const ArgumentDoc& argument, std::string* rest) {
    AddPiece(RenderArgument(argument), rest);
    if (!value_expected_) AddFirstTokens(argument, &next_tokens_);
    if (!argument.optional) value_expected_ = true;
  }

  // Arguments in their order; `rest` gets what is missing once the words are used up.
  bool Sequence(Arguments arguments, std::string* rest) {
    for (size_t i = 0; i < arguments.size();) {
      if (!arguments[i].optional) {
        if (AtEnd()) {
          Offer(arguments[i], rest);
        } else if (!One(arguments[i], arguments.subspan(i + 1), /*strict=*/false, rest)) {
          return false;
        }
        ++i;
        continue;
      }
      size_t end = i;
      while (end < arguments.size() && arguments[end].optional) ++end;
      Options(arguments.subspan(i, end - i), arguments.subspan(end), rest);
      i = end;
    }
    return true;
  }

  // Neighbouring options, each at most once, in any order.
  void Options(Arguments options, Arguments following, std::string* rest) {
    std::vector<bool> used(options.size(), false);
    for (bool progress = true; progress && !AtEnd();) {
      progress = false;
      for (size_t i = 0; i < options.size() && !AtEnd(); ++i) {
        if (used[i]) continue;
        used[i] = One(options[i], following, /*strict=*/true, rest);
        progress = progress || used[i];
      }
    }
    if (!AtEnd()) return;
    for (size_t i = 0; i < options.size(); ++i) {
      if (!used[i]) Offer(options[i], rest);
    }
  }

  // One argument with its token and repetitions. Takes no words when it returns false.
  // REQUIRES: !AtEnd().
  bool One(const ArgumentDoc& argument, Arguments following, bool strict, std::string* rest) {
    const size_t start = position_;
    std::string missing;
    if (!Once(argument, /*with_token=*/true, strict, &missing)) {
      position_ = start;
      return false;
    }
    while (argument.multiple && !AtEnd() && !CanBegin(following, word())) {
      const size_t before = position_;
      if (!Once(argument, argument.multiple_token, strict, &missing)) {
        position_ = before;
        break;
      }
    }
    if (!AtEnd()) return true;
    AddPiece(missing, rest);
    if (!argument.multiple) return true;
    AddPiece(RenderRepetition(argument), rest);
    if (argument.multiple_token && !value_expected_) next_tokens_.push_back(argument.token);
    return true;
  }

  bool Once(const ArgumentDoc& argument, bool with_token, bool strict, std::string* missing) {
    const bool has_token = !argument.token.empty() && argument.type != ArgumentType::kToken;
    if (has_token && with_token) {
      if (!base::EqualsNoCase(word(), argument.token)) return false;
      ++position_;
      if (AtEnd()) {
        *missing = RenderBody(argument);
        if (!value_expected_) {
          for (const ArgumentDoc& inner : argument.arguments) AddFirstTokens(inner, &next_tokens_);
        }
        value_expected_ = true;
        return true;
      }
      strict = false;
    }
    return Body(argument, strict, missing);
  }

  bool Body(const ArgumentDoc& argument, bool strict, std::string* missing) {
    switch (argument.type) {
      case ArgumentType::kToken:
        if (!base::EqualsNoCase(word(), argument.token)) return false;
        ++position_;
        return true;
      case ArgumentType::kNumber:
        if (strict && !LooksNumeric(word())) return false;
        ++position_;
        return true;
      case ArgumentType::kOneOf:
        return std::any_of(
            argument.arguments.begin(), argument.arguments.end(),
            [&](const ArgumentDoc& choice) { return One(choice, {}, /*strict=*/true, missing); });
      case ArgumentType::kBlock: {
        const size_t start = position_;
        return Sequence(argument.arguments, missing) && position_ > start;
      }
      case ArgumentType::kText:
        break;
    }
    ++position_;
    return true;
  }

  std::span<const std::string> words_;
  size_t position_ = 0;
  std::string rest_;
  std::vector<std::string> next_tokens_;
  bool value_expected_ = false;  // an argument that must come has been offered: no tokens past it
};

// "5 INCR x" runs INCR five times: the number is not part of the command.
void DropRepeatCount(PartialLine* line) {
  int64_t count = 0;
  if (line->words.size() > 1 && base::ParseInt(line->words.front(), &count)) {
    line->words.erase(line->words.begin());
  }
}

// Completed text follows the typed one: lower case if that has a lower-case letter.
std::string InCaseOf(std::string_view typed, const std::string& word) {
  const bool lower =
      std::any_of(typed.begin(), typed.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return lower ? base::ToLower(word) : word;
}

void AddNames(const std::map<std::string, CommandDoc>& commands, std::string_view typed,
              std::vector<std::string>* words) {
  for (const auto& [name, doc] : commands) {
    if (HasPrefix(name, typed)) words->push_back(InCaseOf(typed, name));
  }
}

// Candidates for the word after `before`, which names a command and perhaps arguments of it.
void AddArguments(const CommandDocs& docs, const std::vector<std::string>& before,
                  std::string_view typed, std::vector<std::string>* words) {
  size_t consumed = 0;
  const CommandDoc* doc = docs.Find(before, &consumed);
  if (doc == nullptr) return;
  if (consumed == before.size()) AddNames(doc->subcommands, typed, words);
  Matcher matcher(std::span<const std::string>(before).subspan(consumed));
  if (!matcher.Match(doc->arguments)) return;
  const std::string style = typed.empty() ? before.front() : std::string(typed);
  for (const std::string& token : matcher.next_tokens()) {
    if (HasPrefix(token, typed)) words->push_back(InCaseOf(style, token));
  }
}

}  // namespace

PartialLine SplitPartial(std::string_view line) {
  PartialLine partial;
  partial.in_word = !line.empty() && line.back() != ' ' && line.back() != '\t';
  for (const std::string_view ending : {"", "\"", "'"}) {
    auto words = base::SplitArgs(std::string(line).append(ending));
    if (!words) continue;
    partial.words = std::move(*words);
    partial.in_word = (partial.in_word || !ending.empty()) && !partial.words.empty();
    return partial;
  }
  partial.valid = false;
  return partial;
}

std::string HintFor(const CommandDocs& docs, std::string_view line) {
  PartialLine partial = SplitPartial(line);
  DropRepeatCount(&partial);
  if (!partial.valid || partial.words.empty()) return {};
  size_t consumed = 0;
  const CommandDoc* doc = docs.Find(partial.words, &consumed);
  if (doc == nullptr) return {};
  const std::string space = partial.in_word ? " " : "";
  const auto given = std::span<const std::string>(partial.words).subspan(consumed);
  if (given.empty()) {
    const std::string all = RenderArguments(*doc);
    return all.empty() ? all : space + all;
  }
  Matcher matcher(given);
  if (matcher.Match(doc->arguments)) {
    return matcher.rest().empty() ? std::string() : space + matcher.rest();
  }
  if (!partial.in_word) return {};
  // The last word may be the beginning of a token: then show what it can become.
  Matcher before(given.first(given.size() - 1));
  if (!before.Match(doc->arguments)) return {};
  for (const std::string& token : before.next_tokens()) {
    if (HasPrefix(token, given.back())) return "  " + before.rest();
  }
  return {};
}

Completions CompletionsFor(const CommandDocs& docs, const std::vector<std::string_view>& builtins,
                           std::string_view line) {
  Completions found;
  PartialLine partial = SplitPartial(line);
  DropRepeatCount(&partial);
  std::string typed;
  if (partial.in_word) {
    typed = partial.words.back();
    partial.words.pop_back();
  }
  // A quoted or escaped word is data, never a name.
  if (!partial.valid || !line.ends_with(typed)) return found;
  const size_t start = line.size() - typed.size();
  if (start > 0 && line[start - 1] != ' ' && line[start - 1] != '\t') return found;
  found.word_start = start;
  if (partial.words.empty()) {
    AddNames(docs.commands(), typed, &found.words);
    for (const std::string_view builtin : builtins) {
      if (HasPrefix(builtin, typed)) {
        found.words.push_back(InCaseOf(typed, base::ToUpper(builtin)));
      }
    }
  } else if (base::EqualsNoCase(partial.words.front(), "help")) {
    partial.words.erase(partial.words.begin());
    size_t consumed = 0;
    const CommandDoc* container = docs.Find(partial.words, &consumed);
    if (partial.words.empty()) AddNames(docs.commands(), typed, &found.words);
    if (container != nullptr && partial.words.size() == 1) {
      AddNames(container->subcommands, typed, &found.words);
    }
  } else {
    AddArguments(docs, partial.words, typed, &found.words);
  }
  std::sort(found.words.begin(), found.words.end());
  found.words.erase(std::unique(found.words.begin(), found.words.end()), found.words.end());
  return found;
}

}  // namespace sava::cli
