#include "cli/bench_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/rng.h"
#include "base/text.h"
#include "cli/suggest.h"

namespace sava::cli {
namespace {

constexpr std::string_view kUsage =
    R"(Usage: sava bench associations [OPTION ...]

Writes random associations to a running server, reads the most frequent ones, checks
sampled counts, deletes what it wrote, and tells how long everything took.

  --associators N    how many associators (100)
  --associated M     associated keys of each (100)
  --repetitions R    each pair is repeated a random 1 to R times (10)
  --exclusive        1 to R - 1 times, as the document's program draws them
  --distinct D       associated keys there are in all, of which each associator has M (M)
  --order ORDER      random, or document: pair after pair (random)
  --top K[,K ...]    how many to read (20,50,100,200,1000,2000); over HTTP up to 10000
  --reads N          reads for each K, of random associators (10000)
  --seed S           of everything random; printed, so that a run can be repeated
  --keep             do not delete the associations afterwards

  --resp, --http     which interface to use (RESP)
  -h HOST            server's address (127.0.0.1)
  -p PORT            server's port (6379, or 7379 with --http)
  -s SOCKET          path of the server's Unix socket; RESP only
  --password WORD    also -a; the environment's REDISCLI_AUTH does the same unseen by ps
  --user NAME        authenticate as this user
  --clients N        connections (50)
  --pipeline N       requests a connection sends before it waits for replies (1)
  --threads N        threads of this program (1)
  --prefix TEXT      what the server puts before an associator's key (assoc:); RESP only

  --json             print the result as JSON
  --help             this text

Examples:
  sava bench associations --associators 1000 --associated 100 --pipeline 16
  sava bench associations --http --clients 20 --json
)";

struct Number {
  std::string_view name;
  uint64_t least;
  uint64_t most;
  uint64_t value;
  bool given = false;
};

struct Parsed {
  Number associators{"--associators", 1, 1000000000, 100};
  Number associated{"--associated", 1, 1000000000, 100};
  Number repetitions{"--repetitions", 1, 1000000, 10};
  Number distinct{"--distinct", 1, 1000000000, 0};
  Number reads{"--reads", 0, 1000000000, 10000};
  Number seed{"--seed", 0, UINT64_MAX, 0};
  Number port{"-p", 1, 65535, 0};
  Number clients{"--clients", 1, 10000, 50};
  Number pipeline{"--pipeline", 1, 10000, 1};
  Number threads{"--threads", 1, 256, 1};

  Number* Find(std::string_view name) {
    for (Number* number : {&associators, &associated, &repetitions, &distinct, &reads, &seed, &port,
                           &clients, &pipeline, &threads}) {
      if (number->name == name) return number;
    }
    return nullptr;
  }
};

base::Status SetNumber(const std::string& text, Number* number) {
  uint64_t value = 0;
  if (!base::ParseUint(text, &value) || value < number->least || value > number->most) {
    return base::Error{fmt::format("{} wants a number from {} to {}, not '{}'", number->name,
                                   number->least, number->most, text)};
  }
  number->value = value;
  number->given = true;
  return {};
}

base::Status SetTop(std::string_view text, std::vector<uint64_t>* top) {
  top->clear();
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    Number k{"--top", 1, 1000000000, 0};
    base::Status status = SetNumber(std::string(rest.substr(0, comma)), &k);
    if (!status) return status;
    top->push_back(k.value);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (top->empty()) return base::Error{"--top wants a number"};
  return {};
}

bool SetFlag(std::string_view word, BenchOptions* options) {
  if (word == "--keep") {
    options->keep = true;
  } else if (word == "--exclusive") {
    options->exclusive = true;
  } else if (word == "--json") {
    options->json = true;
  } else if (word == "--help") {
    options->help = true;
  } else if (word == "--http") {
    options->load.wire = Wire::kHttp;
  } else if (word == "--resp") {
    options->load.wire = Wire::kResp;
  } else {
    return false;
  }
  return true;
}

constexpr std::string_view kOptions[] = {"--associators",
                                         "--associated",
                                         "--repetitions",
                                         "--exclusive",
                                         "--distinct",
                                         "--order",
                                         "--top",
                                         "--reads",
                                         "--seed",
                                         "--keep",
                                         "--resp",
                                         "--http",
                                         "-h",
                                         "-p",
                                         "-s",
                                         "--password",
                                         "-a",
                                         "--user",
                                         "--clients",
                                         "--pipeline",
                                         "--threads",
                                         "--prefix",
                                         "--json",
                                         "--help"};

bool KnowsOption(std::string_view word) {
  return std::ranges::find(kOptions, word) != std::end(kOptions);
}

std::string UnknownOption(std::string_view word) {
  const std::string hint = word.size() > 2 ? DidYouMean(word, kOptions) : "";
  return fmt::format("unknown option '{}'{} 'sava bench associations --help' lists them.", word,
                     hint.empty() ? "." : hint);
}

base::Status SetText(std::string_view word, const std::string& value, BenchOptions* options) {
  if (word == "-h") {
    options->load.endpoint.host = value;
  } else if (word == "-s") {
    options->load.endpoint.socket = value;
  } else if (word == "--password" || word == "-a") {
    options->load.password = value;
  } else if (word == "--user") {
    options->load.user = value;
  } else if (word == "--prefix") {
    options->prefix = value;
  } else if (word == "--top") {
    return SetTop(value, &options->top);
  } else if (word == "--order") {
    if (value != "random" && value != "document") {
      return base::Error{"--order wants random or document, not '" + value + "'"};
    }
    options->shape.in_order = value == "document";
  } else {
    return base::Error{UnknownOption(word)};
  }
  return {};
}

base::Status Apply(const Parsed& numbers, BenchOptions* options) {
  AssociationShape& shape = options->shape;
  shape.associators = numbers.associators.value;
  shape.associated = numbers.associated.value;
  // .NET's random.Next(1, 1) gives 1.
  shape.repetitions = options->exclusive ? std::max<uint64_t>(numbers.repetitions.value, 2) - 1
                                         : numbers.repetitions.value;
  shape.distinct = numbers.distinct.value;
  shape.seed = numbers.seed.given ? numbers.seed.value : base::SecureRandom64() >> 32;
  options->reads = numbers.reads.value;
  LoadSettings& load = options->load;
  load.clients = static_cast<uint32_t>(numbers.clients.value);
  load.pipeline = static_cast<uint32_t>(numbers.pipeline.value);
  load.threads = std::min(static_cast<uint32_t>(numbers.threads.value), load.clients);
  load.endpoint.port = numbers.port.given         ? static_cast<int>(numbers.port.value)
                       : load.wire == Wire::kHttp ? 7379
                                                  : 6379;
  if (numbers.distinct.given && shape.distinct < shape.associated) {
    return base::Error{"--distinct wants at least as many as --associated"};
  }
  if (shape.associators * shape.associated > AssociationLoad::kMaxSlots / shape.repetitions) {
    return base::Error{"associators x associated x repetitions is too much"};
  }
  if (load.wire == Wire::kHttp) {
    if (!load.endpoint.socket.empty()) return base::Error{"-s is for RESP, not for --http"};
    if (*std::max_element(options->top.begin(), options->top.end()) > kMostOverHttp) {
      return base::Error{fmt::format("--top wants at most {} with --http", kMostOverHttp)};
    }
  }
  if (!load.user.empty() && load.password.empty()) return base::Error{"--user needs --password"};
  return {};
}

}  // namespace

base::Result<BenchOptions> ParseBenchOptions(const std::vector<std::string>& words) {
  BenchOptions options;
  Parsed numbers;
  if (const char* password = std::getenv("REDISCLI_AUTH")) options.load.password = password;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (SetFlag(word, &options)) continue;
    if (i + 1 == words.size() || !KnowsOption(word)) {
      return base::Error{KnowsOption(word) ? fmt::format("{} wants a value", word)
                                           : UnknownOption(word)};
    }
    Number* number = numbers.Find(word);
    const std::string& value = words[++i];
    const base::Status status =
        number != nullptr ? SetNumber(value, number) : SetText(word, value, &options);
    if (!status) return base::Error{status.error()};
  }
  if (options.help) return options;
  const base::Status status = Apply(numbers, &options);
  if (!status) return base::Error{status.error()};
  return options;
}

std::string_view BenchUsage() { return kUsage; }

}  // namespace sava::cli
