#include "cli/frontier.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "cli/frontier_generate.h"
#include "cli/frontier_locality.h"
#include "cli/frontier_run.h"
#include "cli/suggest.h"
#include "commands/idna.h"

namespace sava::cli {

namespace {

constexpr std::string_view kHelp =
    R"(Usage: sava frontier run FILE [-b | --best] [-l] [--norm ufmg|rfc3986] [-o FILE]
       sava frontier generate [--hosts N] [--urls N] [--urls-mean X] [--urls-variance X]
                              [--depth-mean X] [--depth-variance X] [--seed N] [-o FILE]
       sava frontier locality LOG -o DIR [--structures N]

A crawler's URL scheduler, without a server.

run        executes a file of commands; x.txt writes x-out.txt beside it. Without FILE, or with -,
           the commands come from standard input and the output is saida-out.txt
  -b           breadth-first: one URL of each host in turn (else: all of a host, then the next)
  --best       best-first: always from the host with most URLs
  -l           write every access to memory to x-access.log
  --norm HOW   how URLs are normalised: ufmg (the default: only http, no www., no trailing slash,
               no images and the like) or rfc3986
  -o FILE      where to write, instead (-: standard output)

  The commands, one a line:
    ADD_URLS n            add the URLs of the next n lines
    ESCALONA_TUDO         print and remove all
    ESCALONA q            print and remove at most q
    ESCALONA_HOST host q  at most q of one host
    VER_HOST host         print a host's URLs
    LISTA_HOSTS           print the known hosts
    LIMPA_HOST host       remove a host's URLs
    LIMPA_TUDO            remove everything
  Refused URLs and lines that are no command are told on standard error as FILE:LINE: reason.

generate   makes up such a file: ADD_URLS, LISTA_HOSTS, ESCALONA_TUDO, LIMPA_TUDO
  --hosts N            how many hosts (10)
  --urls N             exactly so many URLs in all, at least one a host
  --urls-mean X        URLs per host: mean (10; with --urls: N by hosts) ...
  --urls-variance X    ... and variance (5)
  --depth-mean X       depth of a URL: mean (5) ...
  --depth-variance X   ... and variance (5)
  --seed N             the same seed makes the same file (1)
  -o FILE              where to (standard output)

locality   draws access maps and stack distances of an access log, by structure and phase
  -o DIR               where to: map-ID.svg, distance-PHASE-ID.svg, summary.csv, index.html
  --structures N       draw the N most used structures (64)

Exit code: 0 done, 2 it could not be done.

Examples:
  sava frontier generate --hosts 5 --seed 7 -o urls.txt
  sava frontier run urls.txt -b -l
  sava frontier locality urls-access.log -o maps
)";

constexpr int kFailed = 2;

int Fail(std::string_view text) {
  fmt::print(stderr, "sava frontier: {}\n", text);
  return kFailed;
}

int Finish(const base::Status& status) { return status.ok() ? 0 : Fail(status.error()); }

// An option without (`flag`) or with (`value`) a word behind it.
struct Option {
  std::string_view name;
  std::function<void()> flag;
  std::function<bool(const std::string& text)> value;  // false: not a good one
};

// Takes the options out of words[1] and on, wherever they stand; what is left goes to *left. An
// error text, or nothing.
std::optional<std::string> TakeOptions(const std::vector<std::string>& words,
                                       const std::vector<Option>& options,
                                       std::vector<std::string>* left) {
  bool only_files = false;  // behind "--"
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_files || word.size() < 2 || word[0] != '-') {
      left->push_back(word);
      continue;
    }
    if (word == "--") {
      only_files = true;
      continue;
    }
    const Option* found = nullptr;
    for (const Option& option : options) {
      if (option.name == word) found = &option;
    }
    if (found == nullptr) {
      std::vector<std::string_view> known;
      known.reserve(options.size());
      for (const Option& option : options) known.push_back(option.name);
      return fmt::format("{} has no option {}{}", words[0], word,
                         word.size() > 2 ? DidYouMean(word, known) : "");
    }
    if (found->flag) {
      found->flag();
      continue;
    }
    if (++i == words.size()) return fmt::format("{} needs a value", word);
    if (!found->value(words[i])) return fmt::format("{}: '{}' is not valid", word, words[i]);
  }
  return std::nullopt;
}

Option Number(std::string_view name, uint64_t* number, uint64_t least, uint64_t most) {
  return {name, nullptr, [=](const std::string& text) {
            return base::ParseUint(text, number) && *number >= least && *number <= most;
          }};
}

Option Real(std::string_view name, double* number, double most) {
  return {name, nullptr, [=](const std::string& text) {
            return base::ParseDouble(text, number) && *number >= 0 && *number <= most;
          }};
}

Option Path(std::string_view name, std::string* path) {
  return {name, nullptr, [=](const std::string& text) {
            *path = text;
            return !text.empty();
          }};
}

int Run(const std::vector<std::string>& words) {
  FrontierRunOptions options;
  bool breadth = false;
  bool best = false;
  std::vector<std::string> files;
  const auto problem = TakeOptions(
      words,
      {{"-b", [&] { breadth = true; }, nullptr},
       {"--best", [&] { best = true; }, nullptr},
       {"-l", [&] { options.log = true; }, nullptr},
       {"--norm", nullptr,
        [&](const std::string& text) { return types::ParseUrlNorm(text, &options.norm); }},
       Path("-o", &options.output)},
      &files);
  if (problem) return Fail(*problem);
  if (files.size() > 1) return Fail("run takes one file of commands");
  if (files.empty() && isatty(STDIN_FILENO) != 0) return Fail("run needs a file of commands");
  if (breadth && best) return Fail("either -b or --best");
  if (breadth) options.strategy = types::Frontier::Strategy::kBreadth;
  if (best) options.strategy = types::Frontier::Strategy::kBest;
  if (!files.empty()) options.path = files[0];
  return Finish(RunFrontierScript(options));
}

int Generate(const std::vector<std::string>& words) {
  GenerateOptions options;
  double mean = -1;  // none given
  constexpr double kMostVariance = 1e18;
  std::vector<std::string> left;
  const auto problem =
      TakeOptions(words,
                  {Number("--hosts", &options.hosts, 1, kMaxGeneratedHosts),
                   Number("--urls", &options.urls, 1, static_cast<uint64_t>(kMaxGeneratedUrls)),
                   Real("--urls-mean", &mean, kMaxGeneratedUrls),
                   Real("--urls-variance", &options.urls_variance, kMostVariance),
                   Real("--depth-mean", &options.depth_mean, kMaxGeneratedDepth),
                   Real("--depth-variance", &options.depth_variance, kMostVariance),
                   Number("--seed", &options.seed, 0, UINT64_MAX), Path("-o", &options.path)},
                  &left);
  if (problem) return Fail(*problem);
  if (!left.empty()) return Fail(fmt::format("generate does not know what '{}' is", left[0]));
  if (options.urls > 0 && options.urls < options.hosts) {
    return Fail(
        fmt::format("--urls: {} hosts need at least {} URLs", options.hosts, options.hosts));
  }
  if (mean >= 0) {
    options.urls_mean = mean;
  } else if (options.urls > 0) {
    options.urls_mean = static_cast<double>(options.urls) / static_cast<double>(options.hosts);
  }
  if (static_cast<double>(options.hosts) * options.urls_mean > kMaxGeneratedUrls) {
    return Fail(fmt::format("at most {:.0f} URLs", kMaxGeneratedUrls));
  }
  return Finish(GenerateScript(options));
}

int Locality(const std::vector<std::string>& words) {
  LocalityOptions options;
  constexpr uint64_t kMostDrawn = 10000;
  uint64_t structures = options.structures;
  std::vector<std::string> files;
  const auto problem = TakeOptions(
      words, {Path("-o", &options.directory), Number("--structures", &structures, 1, kMostDrawn)},
      &files);
  if (problem) return Fail(*problem);
  if (files.size() != 1) return Fail("locality needs one access log");
  if (options.directory.empty()) return Fail("locality needs -o DIR");
  options.log = files[0];
  options.structures = structures;
  return Finish(DrawLocality(options));
}

}  // namespace

int RunFrontier(const std::vector<std::string>& words) {
  if (words.empty()) {
    fmt::print(stderr, "{}", kHelp);
    return kFailed;
  }
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word == "--help" || word == "-h" || (&word == words.data() && word == "help")) {
      fmt::print("{}", kHelp);
      return 0;
    }
  }
  if (words[0] == "run") {
    commands::InstallIdna();
    return Run(words);
  }
  if (words[0] == "generate") return Generate(words);
  if (words[0] == "locality") return Locality(words);
  const std::string hint = DidYouMean(words[0], {"run", "generate", "locality", "help"});
  return Fail(fmt::format("'{}' is not a subcommand{} See 'sava frontier --help'.", words[0],
                          hint.empty() ? "." : hint));
}

}  // namespace sava::cli
