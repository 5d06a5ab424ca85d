#include "cli/bloom.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/bloom_file.h"
#include "cli/suggest.h"
#include "types/filters/bloom.h"
#include "types/filters/bloom_formulas.h"

namespace sava::cli {

namespace {

using types::Bloom;
using types::FilterHash;

constexpr std::string_view kHelp = R"(Usage: sava bloom [--bits M] [--hashes K]
       sava bloom create FILE (--bits M [--hashes K] | --items N --rate P) [--force]
       sava bloom add FILE [VALUE ...]
       sava bloom check FILE [VALUE ...]
       sava bloom info FILE
       sava bloom size --items N --rate P

A Bloom filter in a file: which values may have been added, and which certainly were not.
Alone it shows a menu and works on bloom.txt in the current directory.

  create   make an empty filter; a file that is there is replaced only with --force
  add      add values; without any, the lines of standard input
  check    print `maybe` or `no` for each value; without any, for the lines of standard input
  info     print the numbers of a filter
  size     print how large a filter for N values at a rate of P false positives is

  --bits M     the number of bits (menu: 1000)
  --hashes K   how many of them a value sets (3)
  --items N    as many bits and hashes as N values need ...
  --rate P     ... so that P of all other values are taken for known, e.g. 0.01
  --force      create: replace the file if there is one

Exit code: 0 done (check: every value may be there), 1 check: some value is not there,
           2 it could not be done.

Examples:
  sava bloom create words.bloom --items 100000 --rate 0.01
  sava bloom add words.bloom < /usr/share/dict/words
  sava bloom check words.bloom apple aple
)";

constexpr std::string_view kMenu = R"(          Bloom filter - menu
---------------------------------------
1. Create a Bloom filter
2. Add a value to the Bloom filter
3. Check a value in the Bloom filter
4. Exit
---------------------------------------
)";

constexpr const char* kMenuFile = "bloom.txt";
constexpr int kFailed = 2;

int Fail(std::string_view text) {
  fmt::print(stderr, "sava bloom: {}\n", text);
  return kFailed;
}

// ---- options ----

struct Sizes {
  uint64_t bits = 0;
  uint64_t hashes = 0;
  uint64_t items = 0;
  double rate = 0;
  bool force = false;
};

// Takes the options out of the words; what is left stays in *words. An error text, or nothing.
std::optional<std::string> TakeOptions(std::vector<std::string>* words, Sizes* sizes) {
  std::vector<std::string> left;
  bool values = false;  // behind "--" there are only values
  for (size_t i = 0; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    uint64_t* number = nullptr;
    if (word == "--bits") number = &sizes->bits;
    if (word == "--hashes") number = &sizes->hashes;
    if (word == "--items") number = &sizes->items;
    if (values || (number == nullptr && word != "--rate")) {
      // Elsewhere than behind `create` it is a value.
      const bool force = word == "--force" && !left.empty() && left[0] == "create";
      if (word == "--" && !values) {
        values = true;
      } else if (force && !values) {
        sizes->force = true;
      } else {
        left.push_back(word);
      }
      continue;
    }
    if (++i == words->size()) return fmt::format("{} needs a number", word);
    const std::string& text = (*words)[i];
    const bool good =
        number != nullptr
            ? base::ParseUint(text, number) && *number > 0 && *number <= INT64_MAX
            : base::ParseDouble(text, &sizes->rate) && sizes->rate > 0 && sizes->rate < 1;
    if (!good) return fmt::format("{}: '{}' is not a valid number", word, text);
  }
  *words = std::move(left);
  return std::nullopt;
}

// m and k by formulas 9 and 6, where items and a rate are given.
std::optional<std::string> Work(Sizes* sizes) {
  const bool by_items = sizes->items != 0 || sizes->rate != 0;
  if (by_items && (sizes->bits != 0 || sizes->hashes != 0)) {
    return "either --bits and --hashes, or --items and --rate";
  }
  if (by_items && (sizes->items == 0 || sizes->rate == 0)) {
    return "--items and --rate belong together";
  }
  if (by_items) {
    const auto items = static_cast<double>(sizes->items);
    const double bits = std::max(1.0, types::ClassicBits(items, sizes->rate));
    if (bits > 0x1p62) return "that is too large";
    sizes->bits = static_cast<uint64_t>(bits);
    sizes->hashes = types::ClassicHashes(bits, items);
  }
  if (sizes->hashes == 0) sizes->hashes = 3;
  if (sizes->hashes > types::BitFilter::kMaxHashes) return "at most 255 hashes";
  return std::nullopt;
}

base::Result<std::unique_ptr<Bloom>> Make(const Sizes& sizes) {
  std::unique_ptr<Bloom> bloom =
      Bloom::MakeClassic(sizes.bits, static_cast<uint32_t>(sizes.hashes));
  if (bloom == nullptr) return base::Error{fmt::format("no memory for {} bits", sizes.bits)};
  return bloom;
}

// ---- values ----

// How far standard input was read, on the terminal if there is one.
class Progress {
 public:
  Progress() : shown_(isatty(STDERR_FILENO) != 0) {
    struct stat about {};
    if (fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode)) {
      size_ = static_cast<uint64_t>(about.st_size);
    }
  }
  ~Progress() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Line(size_t bytes) {
    constexpr uint64_t kEvery = 1 << 16;
    bytes_ += bytes + 1;
    if (++lines_ % kEvery != 0 || !shown_) return;
    drawn_ = true;
    if (size_ == 0) {
      fmt::print(stderr, "\r{} values", lines_);
      return;
    }
    constexpr size_t kWidth = 40;
    const double done = std::min(1.0, static_cast<double>(bytes_) / static_cast<double>(size_));
    const auto full = static_cast<size_t>(done * kWidth);
    fmt::print(stderr, "\r[{:<{}}] {:3.0f} %  {} values", std::string(full, '#'), kWidth,
               done * 100, lines_);
  }

 private:
  bool shown_;
  bool drawn_ = false;
  uint64_t size_ = 0;
  uint64_t bytes_ = 0;
  uint64_t lines_ = 0;
};

// The values of the command line from `first` on, or the lines of standard input.
void ForEachValue(const std::vector<std::string>& words, size_t first,
                  const std::function<void(std::string_view)>& visit) {
  if (words.size() > first) {
    for (size_t i = first; i < words.size(); ++i) visit(words[i]);
    return;
  }
  std::ios::sync_with_stdio(false);
  Progress progress;
  std::string line;
  while (std::getline(std::cin, line)) {
    progress.Line(line.size());
    if (!line.empty() && line.back() == '\r') line.pop_back();
    visit(line);
  }
}

// ---- subcommands ----

int Create(const std::string& path, Sizes sizes) {
  if (const auto problem = Work(&sizes)) return Fail(*problem);
  if (sizes.bits == 0) return Fail("create needs --bits, or --items and --rate");
  struct stat about {};
  if (!sizes.force && lstat(path.c_str(), &about) == 0) {
    return Fail(fmt::format("{} exists; --force replaces it", path));
  }
  auto bloom = Make(sizes);
  if (!bloom) return Fail(bloom.error());
  if (const base::Status status = WriteBloomFile(path, **bloom); !status) {
    return Fail(status.error());
  }
  fmt::print("{}: {} bits, {} hashes\n", path, sizes.bits, sizes.hashes);
  return 0;
}

int Add(const std::string& path, const std::vector<std::string>& words) {
  auto bloom = ReadBloomFile(path);
  if (!bloom) return Fail(bloom.error());
  uint64_t values = 0;
  uint64_t fresh = 0;
  ForEachValue(words, 2, [&](std::string_view value) {
    ++values;
    if ((*bloom)->Add(FilterHash(value)) == Bloom::Added::kNew) ++fresh;
  });
  if (const base::Status status = WriteBloomFile(path, **bloom); !status) {
    return Fail(status.error());
  }
  fmt::print("{} added, {} of them new\n", values, fresh);
  return 0;
}

int Check(const std::string& path, const std::vector<std::string>& words) {
  const auto bloom = ReadBloomFile(path);
  if (!bloom) return Fail(bloom.error());
  bool all = true;
  ForEachValue(words, 2, [&](std::string_view value) {
    const bool maybe = bloom.value()->Has(FilterHash(value));
    all = all && maybe;
    fmt::print("{}\n", maybe ? "maybe" : "no");
  });
  return all ? 0 : 1;
}

int Info(const std::string& path) {
  const auto bloom = ReadBloomFile(path);
  if (!bloom) return Fail(bloom.error());
  const Bloom::Stats stats = bloom.value()->stats();
  fmt::print("bits (m)             {}\n", stats.bits);
  fmt::print("values (n)           {}\n", stats.items);
  fmt::print("hashes (k)           {}\n", stats.hashes);
  fmt::print("bits that are set    {:.2f} %\n", stats.fill * 100);
  fmt::print("rate by formula 5    {:.6g}\n", stats.rate_formula);
  fmt::print("rate by set bits     {:.6g}\n", stats.rate_observed);
  fmt::print("bytes                {}\n", (stats.bits + 7) / 8);
  return 0;
}

int Size(Sizes sizes) {
  if (const auto problem = Work(&sizes)) return Fail(*problem);
  if (sizes.items == 0) return Fail("size needs --items and --rate");
  fmt::print("bits (m)             {}\n", sizes.bits);
  fmt::print("hashes (k)           {}\n", sizes.hashes);
  fmt::print("bytes                {}\n", (sizes.bits + 7) / 8);
  return 0;
}

// ---- the menu ----

bool Ask(std::string_view question, std::string* answer) {
  fmt::print("{}", question);
  std::fflush(stdout);
  return static_cast<bool>(std::getline(std::cin, *answer));
}

void MenuCreate(const Sizes& sizes) {
  auto bloom = Make(sizes);
  const base::Status status =
      bloom ? WriteBloomFile(kMenuFile, **bloom) : base::Status(base::Error{bloom.error()});
  if (status) {
    fmt::print("The Bloom filter was created.\n");
  } else {
    fmt::print("The Bloom filter cannot be created: {}\n", status.error());
  }
}

void MenuAdd(const std::string& value) {
  auto bloom = ReadBloomFile(kMenuFile);
  base::Status status;
  if (bloom) {
    (*bloom)->Add(FilterHash(value));
    status = WriteBloomFile(kMenuFile, **bloom);
  } else {
    status = base::Error{bloom.error()};
  }
  if (status) {
    fmt::print("The value '{}' was added to the Bloom filter.\n", value);
  } else {
    fmt::print("The Bloom filter cannot be changed: {}\n", status.error());
  }
}

void MenuCheck(const std::string& value) {
  const auto bloom = ReadBloomFile(kMenuFile);
  if (!bloom) {
    fmt::print("The Bloom filter cannot be opened: {}\n", bloom.error());
  } else if (bloom.value()->Has(FilterHash(value))) {
    fmt::print("The value '{}' may be in the Bloom filter.\n", value);
  } else {
    fmt::print("The value '{}' is not in the Bloom filter.\n", value);
  }
}

int Menu(Sizes sizes) {
  if (const auto problem = Work(&sizes)) return Fail(*problem);
  if (sizes.bits == 0) sizes.bits = 1000;
  std::string choice;
  std::string value;
  while (true) {
    fmt::print("{}", kMenu);
    if (!Ask("Enter the number of the operation: ", &choice)) break;
    if (choice == "1") {
      MenuCreate(sizes);
    } else if (choice == "2" || choice == "3") {
      if (!Ask("Enter the value: ", &value)) break;
      choice == "2" ? MenuAdd(value) : MenuCheck(value);
    } else if (choice == "4") {
      fmt::print("Good bye.\n");
      return 0;
    } else {
      fmt::print("'{}' is not a choice. Try again.\n", choice);
    }
    fmt::print("\n");
  }
  fmt::print("\n");
  return 0;
}

// A word that means nothing here, and what may have been meant. Values may begin with a dash.
std::optional<std::string> FindUnknown(const std::vector<std::string>& words, bool takes_values) {
  constexpr std::string_view kVerbs[] = {"create", "add", "check", "info", "size"};
  constexpr std::string_view kOptions[] = {"--bits", "--hashes", "--items",
                                           "--rate", "--force",  "--help"};
  std::string hint;
  if (std::ranges::find(kVerbs, words[0]) == std::end(kVerbs)) {
    const bool option = words[0].starts_with("--");
    hint = option ? DidYouMean(words[0], kOptions) : DidYouMean(words[0], kVerbs);
    return fmt::format("'{}' is not {}{} See 'sava bloom --help'.", words[0],
                       option ? "an option" : "a subcommand", hint.empty() ? "." : hint);
  }
  for (size_t i = 1; i < words.size() && !takes_values; ++i) {
    if (!words[i].starts_with("--")) continue;
    hint = DidYouMean(words[i], kOptions);
    return fmt::format("{} has no option '{}'{} See 'sava bloom --help'.", words[0], words[i],
                       hint.empty() ? "." : hint);
  }
  return std::nullopt;
}

}  // namespace

int RunBloom(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  Sizes sizes;
  const bool of_verb = words.size() == 2 && words[1] == "--help";
  if (!words.empty() &&
      (of_verb || words[0] == "--help" || words[0] == "-h" || words[0] == "help")) {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (const auto problem = TakeOptions(&words, &sizes)) return Fail(*problem);
  if (words.empty()) return Menu(sizes);
  const std::string& verb = words[0];
  if (verb == "size" && words.size() == 1) return Size(sizes);
  const bool takes_values = verb == "add" || verb == "check";
  if (const auto problem = FindUnknown(words, takes_values)) return Fail(*problem);
  if (verb == "size") return Fail("size takes no file");
  if (words.size() < 2) return Fail(fmt::format("{} needs a file", verb));
  if (verb == "add") return Add(words[1], words);
  if (verb == "check") return Check(words[1], words);
  if (words.size() > 2) return Fail(fmt::format("{} takes one file", verb));
  return verb == "create" ? Create(words[1], sizes) : Info(words[1]);
}

}  // namespace sava::cli
