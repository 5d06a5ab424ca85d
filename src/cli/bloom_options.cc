#include "cli/bloom_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "cli/bloom_text.h"
#include "cli/suggest.h"
#include "types/filters/bit_filter.h"
#include "types/filters/bloom_formulas.h"

namespace sava::cli {

namespace {

constexpr std::string_view kHelp = R"(Usage: sava bloom [--bits M] [--hashes K] [--text]
       sava bloom create FILE [--bits M] [--hashes K] [--text] [--force]
       sava bloom create FILE --items N --rate P [--force]
       sava bloom add FILE [VALUE ...]
       sava bloom check FILE [VALUE ...]
       sava bloom info FILE
       sava bloom explain [--file FILE | --bits M] [--hashes K] [--text] VALUE ...
       sava bloom size --items N --rate P

A Bloom filter in a file: which values may have been added, and which certainly were not.
Alone it shows a menu and works on bloom.txt in the current directory.

  create   make an empty filter; a file that is there is replaced only with --force
  add      add values; without any, the lines of standard input
  check    print `maybe` or `no` for each value; without any, for the lines of standard input
  info     print the numbers of a filter
  explain  show which bits each value looks at and sets
  size     print how large a filter for N values at a rate of P false positives is

  --bits M     the number of bits (1000; explain: 16)
  --hashes K   how many of them a value sets (3)
  --items N    as many bits and hashes as N values need ...
  --rate P     ... so that P of all other values are taken for known, e.g. 0.01
  --text       keep the bits as characters 0 and 1, readable by the program of document S2
  --force      create: replace the file if there is one
  --file FILE  explain: begin with the filter of this file; it is not changed

Files in text form are recognised. Exit code: 0 done (check: every value may be there),
1 check: some value is not there, 2 it could not be done.

Examples:
  sava bloom create words.bloom --items 100000 --rate 0.01
  sava bloom add words.bloom < /usr/share/dict/words
  sava bloom check words.bloom apple aple
  sava bloom --text

'sava bloom SUBCOMMAND --help' tells more of one.
)";

constexpr std::string_view kCreateHelp =
    R"(Usage: sava bloom create FILE [--bits M] [--hashes K] [--text] [--force]
       sava bloom create FILE --items N --rate P [--force]

Makes an empty filter: of M bits and K hashes, or of as many as N values need so that P of all
other values are taken for known.

  --bits M     the number of bits (1000)
  --hashes K   how many of them a value sets (3)
  --items N    how many values will be added
  --rate P     the share of false positives, e.g. 0.01
  --text       keep the bits as characters 0 and 1, readable by the program of document S2;
               always with 3 hashes
  --force      replace the file if there is one

Exit code: 0 done, 2 it could not be done.

Examples:
  sava bloom create seen.bloom
  sava bloom create words.bloom --items 100000 --rate 0.01
  sava bloom create bloom.txt --text --force
)";

constexpr std::string_view kAddHelp = R"(Usage: sava bloom add [--text] FILE [VALUE ...]

Adds values to the filter of a file; without any, the lines of standard input, each a value.
What follows -- is a value even if it looks like an option.

  --text   refuse a file that is not in text form

Exit code: 0 done, 2 it could not be done.

Examples:
  sava bloom add seen.bloom duffy@acme.com roger@acme.com
  sava bloom add words.bloom < /usr/share/dict/words
  sava bloom add seen.bloom -- --force
)";

constexpr std::string_view kCheckHelp = R"(Usage: sava bloom check [--text] FILE [VALUE ...]

Prints `maybe` or `no` for each value; without any, for each line of standard input. What follows
-- is a value even if it looks like an option.

  --text   refuse a file that is not in text form

Exit code: 0 every value may be there, 1 some value is not there, 2 it could not be done.

Examples:
  sava bloom check seen.bloom duffy@acme.com
  sava bloom check words.bloom < essay.txt
)";

constexpr std::string_view kInfoHelp = R"(Usage: sava bloom info [--text] FILE

Prints the numbers of a filter: bits, values, hashes, how many bits are set, and the rate of false
positives by formula 5 and by the bits that are set. A file in text form does not tell how many
values were added; the number is estimated by its bits then.

  --text   refuse a file that is not in text form

Exit code: 0 done, 2 it could not be done.

Example:
  sava bloom info words.bloom
)";

constexpr std::string_view kExplainHelp =
    R"(Usage: sava bloom explain [--file FILE | --bits M] [--hashes K] [--text] VALUE ...

Takes the values one after the other and shows, for each, the bits its hashes choose, what `check`
would answer, and the bits before and after it is added. Nothing is written.

  --file FILE  begin with the filter of this file instead of an empty one
  --bits M     the number of bits of the empty one (16)
  --hashes K   how many of them a value sets (3)
  --text       hash as the program of document S2 does

Exit code: 0 done, 2 it could not be done.

Examples:
  sava bloom explain duffy@acme.com roger@acme.com
  sava bloom explain --text --bits 1000 duffy@acme.com
  sava bloom explain --file words.bloom apple
)";

constexpr std::string_view kSizeHelp = R"(Usage: sava bloom size --items N --rate P

Prints the bits and hashes of a filter for N values of which P of all other values are taken for
known, by formulas 9 and 6, and its bytes.

Exit code: 0 done, 2 it could not be done.

Example:
  sava bloom size --items 1000000 --rate 0.01
)";

struct Verb {
  std::string_view name;
  std::string_view help;
  bool takes_values;
};
constexpr Verb kVerbs[] = {{"create", kCreateHelp, false},  {"add", kAddHelp, true},
                           {"check", kCheckHelp, true},     {"info", kInfoHelp, false},
                           {"explain", kExplainHelp, true}, {"size", kSizeHelp, false}};

const Verb* FindVerb(std::string_view name) {
  const auto* const verb = std::ranges::find(kVerbs, name, &Verb::name);
  return verb == std::end(kVerbs) ? nullptr : verb;
}

// Whether a flag is one here; elsewhere it is a value or a word nobody knows. `left` are the words
// ahead of it that are no options.
bool TakeFlag(const std::string& word, const std::vector<std::string>& left,
              BloomOptions* options) {
  const std::string_view verb = left.empty() ? std::string_view() : left[0];
  if (word == "--force" && verb == "create") return options->force = true;
  // Behind the file of `add` and `check` there are values.
  const bool values = left.size() >= 2 && (verb == "add" || verb == "check");
  if (word == "--text" && !values) return options->text = true;
  return false;
}

// The option's place for a number; nullptr when it takes none.
uint64_t* NumberOf(const std::string& word, BloomOptions* options) {
  if (word == "--bits") return &options->bits;
  if (word == "--hashes") return &options->hashes;
  if (word == "--items") return &options->items;
  return nullptr;
}

}  // namespace

std::optional<std::string> TakeBloomOptions(std::vector<std::string>* words,
                                            BloomOptions* options) {
  std::vector<std::string> left;
  for (size_t i = 0; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    if (word == "--") {  // behind it there are only values
      left.insert(left.end(), words->begin() + static_cast<ptrdiff_t>(i) + 1, words->end());
      break;
    }
    if (TakeFlag(word, left, options)) continue;
    uint64_t* const number = NumberOf(word, options);
    const bool file = word == "--file" && !left.empty() && left[0] == "explain";
    if (number == nullptr && word != "--rate" && !file) {
      left.push_back(word);
      continue;
    }
    if (++i == words->size()) {
      return fmt::format("{} needs a {}", word, file ? "file" : "number");
    }
    const std::string& text = (*words)[i];
    if (file) {
      options->file = text;
      continue;
    }
    const bool good =
        number != nullptr
            ? base::ParseUint(text, number) && *number > 0 && *number <= INT64_MAX
            : base::ParseDouble(text, &options->rate) && options->rate > 0 && options->rate < 1;
    if (!good) return fmt::format("{}: '{}' is not a valid number", word, text);
  }
  *words = std::move(left);
  return std::nullopt;
}

std::optional<std::string> SettleBloomSize(BloomOptions* options, uint64_t default_bits) {
  const bool by_items = options->items != 0 || options->rate != 0;
  if (options->text && (by_items || (options->hashes != 0 && options->hashes != kTextHashes))) {
    return fmt::format("--text has {} hashes and takes its size from --bits", kTextHashes);
  }
  if (by_items && (options->bits != 0 || options->hashes != 0)) {
    return "either --bits and --hashes, or --items and --rate";
  }
  if (by_items && (options->items == 0 || options->rate == 0)) {
    return "--items and --rate belong together";
  }
  if (by_items) {
    const auto items = static_cast<double>(options->items);
    const double bits = std::max(1.0, types::ClassicBits(items, options->rate));
    if (bits > 0x1p62) return "that is too large";
    options->bits = static_cast<uint64_t>(bits);
    options->hashes = types::ClassicHashes(bits, items);
  }
  if (options->bits == 0) options->bits = default_bits;
  if (options->hashes == 0) options->hashes = 3;
  if (options->hashes > types::BitFilter::kMaxHashes) return "at most 255 hashes";
  return std::nullopt;
}

std::optional<std::string> FindUnknownBloomWord(const std::vector<std::string>& words) {
  constexpr std::string_view kNames[] = {"create", "add", "check", "info", "explain", "size"};
  constexpr std::string_view kOptions[] = {"--bits",  "--hashes", "--items", "--rate",
                                           "--force", "--text",   "--file",  "--help"};
  std::string hint;
  const Verb* const verb = FindVerb(words[0]);
  if (verb == nullptr) {
    const bool option = words[0].starts_with("--");
    hint = option ? DidYouMean(words[0], kOptions) : DidYouMean(words[0], kNames);
    return fmt::format("'{}' is not {}{} See 'sava bloom --help'.", words[0],
                       option ? "an option" : "a subcommand", hint.empty() ? "." : hint);
  }
  // Values may begin with a dash.
  for (size_t i = 1; i < words.size() && !verb->takes_values; ++i) {
    if (!words[i].starts_with("--")) continue;
    hint = DidYouMean(words[i], kOptions);
    return fmt::format("{} has no option '{}'{} See 'sava bloom --help'.", words[0], words[i],
                       hint.empty() ? "." : hint);
  }
  return std::nullopt;
}

std::string_view BloomHelp(std::string_view subcommand) {
  const Verb* const verb = FindVerb(subcommand);
  return verb == nullptr ? kHelp : verb->help;
}

}  // namespace sava::cli
