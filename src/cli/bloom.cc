#include "cli/bloom.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string_view>

#include "cli/bloom_explain.h"
#include "cli/bloom_file.h"
#include "cli/bloom_menu.h"
#include "cli/bloom_options.h"

namespace sava::cli {

namespace {

// The document's BLOOM, and a filter small enough to be drawn.
constexpr uint64_t kDefaultBits = 1000;
constexpr uint64_t kExplainedBits = 16;
constexpr int kFailed = 2;

int Fail(std::string_view text) {
  fmt::print(stderr, "sava bloom: {}\n", text);
  return kFailed;
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

using Words = std::vector<std::string>;

base::Result<std::unique_ptr<FileFilter>> Make(const BloomOptions& options) {
  return MakeFileFilter(options.form(), options.bits, static_cast<uint32_t>(options.hashes));
}

// The filter of a file; with --text only one in text form.
base::Result<std::unique_ptr<FileFilter>> Open(const std::string& path,
                                               const BloomOptions& options) {
  auto filter = ReadBloomFile(path);
  if (filter && options.text && (*filter)->form() != BloomForm::kText) {
    return base::Error{fmt::format("{}: the Bloom filter is not in text form", path)};
  }
  return filter;
}

int Create(const std::string& path, BloomOptions options) {
  if (const auto problem = SettleBloomSize(&options, kDefaultBits)) return Fail(*problem);
  struct stat about {};
  if (!options.force && lstat(path.c_str(), &about) == 0) {
    return Fail(fmt::format("{} exists; --force replaces it", path));
  }
  const auto filter = Make(options);
  if (!filter) return Fail(filter.error());
  if (const base::Status status = filter.value()->Write(path); !status) {
    return Fail(status.error());
  }
  fmt::print("{}: {} bits, {} hashes\n", path, options.bits, options.hashes);
  return 0;
}

int Add(const Words& words, const BloomOptions& options) {
  auto filter = Open(words[1], options);
  if (!filter) return Fail(filter.error());
  uint64_t values = 0;
  uint64_t fresh = 0;
  ForEachValue(words, 2, [&](std::string_view value) {
    ++values;
    if ((*filter)->Add(value)) ++fresh;
  });
  if (const base::Status status = (*filter)->Write(words[1]); !status) {
    return Fail(status.error());
  }
  fmt::print("{} added, {} of them new\n", values, fresh);
  return 0;
}

int Check(const Words& words, const BloomOptions& options) {
  const auto filter = Open(words[1], options);
  if (!filter) return Fail(filter.error());
  bool all = true;
  ForEachValue(words, 2, [&](std::string_view value) {
    const bool maybe = filter.value()->Has(value);
    all = all && maybe;
    fmt::print("{}\n", maybe ? "maybe" : "no");
  });
  return all ? 0 : 1;
}

int Info(const std::string& path, const BloomOptions& options) {
  const auto filter = Open(path, options);
  if (!filter) return Fail(filter.error());
  const FileFilter::Numbers numbers = filter.value()->numbers();
  fmt::print("bits (m)             {}\n", numbers.bits);
  fmt::print("values (n)           {}{}\n", numbers.items_known ? "" : "about ", numbers.items);
  fmt::print("hashes (k)           {}\n", numbers.hashes);
  fmt::print("bits that are set    {:.2f} %\n", numbers.fill * 100);
  fmt::print("rate by formula 5    {:.6g}\n", numbers.rate_formula);
  fmt::print("rate by set bits     {:.6g}\n", numbers.rate_observed);
  fmt::print("bytes                {}\n", (numbers.bits + 7) / 8);
  return 0;
}

int Explain(const Words& words, BloomOptions options) {
  if (words.size() < 2) return Fail("explain needs a value");
  if (!options.file.empty() && options.sized()) {
    return Fail("explain takes --file, or the size of an empty filter");
  }
  if (const auto problem = SettleBloomSize(&options, kExplainedBits)) return Fail(*problem);
  const auto filter = options.file.empty() ? Make(options) : Open(options.file, options);
  if (!filter) return Fail(filter.error());
  const FileFilter::Numbers numbers = filter.value()->numbers();
  if (filter.value()->Positions(words[1]).empty()) {
    return Fail(fmt::format("{}: only a filter of m bits and k hashes can be shown", options.file));
  }
  fmt::print("m = {} bits, k = {} hashes, {:.2f} % of the bits are set\n", numbers.bits,
             numbers.hashes, numbers.fill * 100);
  for (size_t i = 1; i < words.size(); ++i) {
    fmt::print(
        "\n{}\n{}", words[i],
        ExplainBits(numbers.bits, filter.value()->Positions(words[i]), filter.value()->Bits()));
    filter.value()->Add(words[i]);
  }
  return 0;
}

int Size(BloomOptions options) {
  if (const auto problem = SettleBloomSize(&options, 0)) return Fail(*problem);
  if (options.items == 0) return Fail("size needs --items and --rate");
  fmt::print("bits (m)             {}\n", options.bits);
  fmt::print("hashes (k)           {}\n", options.hashes);
  fmt::print("bytes                {}\n", (options.bits + 7) / 8);
  return 0;
}

int Menu(BloomOptions options) {
  if (const auto problem = SettleBloomSize(&options, kDefaultBits)) return Fail(*problem);
  RunBloomMenu(options);
  return 0;
}

bool IsHelp(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

}  // namespace

int RunBloom(const Words& arguments) {
  Words words = arguments;
  BloomOptions options;
  if (!words.empty() && (IsHelp(words[0]) || (words.size() == 2 && words[1] == "--help"))) {
    fmt::print("{}", BloomHelp(words[0]));
    return 0;
  }
  if (const auto problem = TakeBloomOptions(&words, &options)) return Fail(*problem);
  if (words.empty()) return Menu(options);
  const std::string& verb = words[0];
  if (verb == "size" && words.size() == 1) return Size(options);
  if (const auto problem = FindUnknownBloomWord(words)) return Fail(*problem);
  if (verb == "size") return Fail("size takes no file");
  if (verb == "explain") return Explain(words, options);
  if (words.size() < 2) return Fail(fmt::format("{} needs a file", verb));
  if (verb == "add") return Add(words, options);
  if (verb == "check") return Check(words, options);
  if (words.size() > 2) return Fail(fmt::format("{} takes one file", verb));
  return verb == "create" ? Create(words[1], options) : Info(words[1], options);
}

}  // namespace sava::cli
