#include "cli/frontier_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "cli/frontier_access_log.h"
#include "cli/frontier_files.h"
#include "cli/frontier_script.h"
#include "cli/progress.h"
#include "commands/iri.h"

namespace sava::cli {

namespace {

using types::Frontier;
using types::FrontierObserver;

// Lines for standard error, gathered: a damaged file may have millions.
class Complaints {
 public:
  explicit Complaints(const std::string& path) : path_(path) {}
  ~Complaints() { Flush(); }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  void Add(uint64_t line, std::string_view reason) {
    constexpr size_t kEnough = 1 << 16;
    fmt::format_to(std::back_inserter(text_), "{}:{}: {}\n", path_, line, reason);
    if (text_.size() >= kEnough) Flush();
  }

 private:
  void Flush() {
    std::fwrite(text_.data(), 1, text_.size(), stderr);
    std::fflush(stderr);
    text_.clear();
  }

  const std::string& path_;
  std::string text_;
};

// The bytes of a command file, or all of standard input.
class CommandFile {
 public:
  base::Status Open(const std::string& path) {
    if (path == "-") return ReadInput();
    auto file = base::MappedFile::Open(path);
    if (!file) return base::Error{file.error()};
    file_.emplace(std::move(*file));
    name_ = path;
    label_ = path;
    return {};
  }
  std::string_view bytes() const { return file_ ? file_->bytes() : std::string_view(text_); }
  const std::string& label() const { return label_; }
  // That after which its output is named. The document's program writes saida-out.txt when it was
  // told no name.
  const std::string& name() const { return name_; }

 private:
  base::Status ReadInput() {
    constexpr size_t kChunk = 1 << 16;
    for (size_t size = 0;; text_.resize(size)) {
      text_.resize(size + kChunk);
      const ssize_t n = read(STDIN_FILENO, text_.data() + size, kChunk);
      if (n > 0) {
        size += static_cast<size_t>(n);
      } else if (n == 0) {
        text_.resize(size);
        return {};
      } else if (errno != EINTR) {
        return base::Error{fmt::format("standard input: {}", std::strerror(errno))};
      }
    }
  }

  std::optional<base::MappedFile> file_;
  std::string text_;
  std::string name_ = "saida";
  std::string label_ = "standard input";
};

// Writes what the frontier does, with the document's phases and ids.
class LoggingObserver final : public FrontierObserver {
 public:
  base::Status Open(const std::string& path) { return log_.Open(path); }
  base::Status Close() { return log_.Close(); }
  void set_phase(ScriptVerb verb) { phase_ = static_cast<uint64_t>(verb); }

  void Access(Part part, uint32_t host, bool write, const void* address, size_t size) override {
    log_.Add(
        {phase_, Id(part, uint64_t{host} + 1), reinterpret_cast<uintptr_t>(address), size, write});
  }

 private:
  static uint64_t Id(Part part, uint64_t host) {
    switch (part) {
      case Part::kHostCell:
        return kQueueCells;
      case Part::kListCell:
        return CellsOf(host);
      case Part::kHost:
        return kHostItems;
      case Part::kUrl:
        break;
    }
    return UrlsOf(host);
  }

  AccessLog log_;
  uint64_t phase_ = 0;
};

// URLs on their way into the frontier: split, not yet added.
class Batch {
 public:
  static constexpr size_t kMost = 64;

  Batch(Frontier* frontier, types::UrlNorm norm, Complaints* complaints)
      : frontier_(frontier), norm_(norm), complaints_(complaints), room_(kRoom) {}

  void Add(std::string_view text, uint64_t line) {
    if (text.size() > types::kMaxUrlSize) {
      Refuse(line, types::UrlFault::kTooLong);
      return;
    }
    const size_t needed = types::UrlRoom(text.size());
    if (size_ == kMost || used_ + needed > room_.size()) Flush();
    const types::SplitUrl split =
        commands::NormalizeIri(norm_, text, room_.data() + used_, &ascii_[size_]);
    if (!split.ok()) {
      Refuse(line, split.fault);
      return;
    }
    used_ += needed;
    lines_[size_] = line;
    urls_[size_++] = {split.host, split.rest, split.depth};
  }

  void Flush() {
    frontier_->Add({urls_.data(), size_}, {}, 0, verdicts_);
    for (size_t i = 0; i < size_; ++i) {
      if (verdicts_[i] == Frontier::Verdict::kInvalid) {
        Refuse(lines_[i], types::UrlFault::kInvalid);
      }
    }
    size_ = 0;
    used_ = 0;
  }

 private:
  static constexpr size_t kRoom = 4 * types::UrlRoom(types::kMaxUrlSize);

  void Refuse(uint64_t line, types::UrlFault fault) {
    complaints_->Add(line, fmt::format("refused URL: {}", types::UrlFaultText(fault)));
  }

  Frontier* frontier_;
  types::UrlNorm norm_;
  Complaints* complaints_;
  std::vector<char> room_;
  size_t used_ = 0;  // of room_
  size_t size_ = 0;
  std::array<Frontier::Url, kMost> urls_;
  std::array<Frontier::Verdict, kMost> verdicts_;
  std::array<uint64_t, kMost> lines_;
  std::array<std::string, kMost> ascii_;  // of URLs beyond ASCII
};

class Program {
 public:
  Program(const FrontierRunOptions& options, OutFile* out, LoggingObserver* log)
      : options_(options), out_(out), log_(log), frontier_(Settings(options)) {
    frontier_.set_observer(log);
  }

  void Run(const std::string& label, std::string_view script) {
    ProgressLine progress(label, script.size(), kLargeFile);
    Complaints complaints(label);
    Batch batch(&frontier_, options_.norm, &complaints);
    ScriptReader reader(script);
    while (true) {
      const ScriptStep step = reader.Next();
      if (step.kind == ScriptStep::Kind::kUrl) {
        batch.Add(step.text, step.line);
        if (step.line % kUpdateEvery == 0) progress.Update(reader.position());
        continue;
      }
      batch.Flush();
      if (step.kind == ScriptStep::Kind::kEnd) break;
      if (step.kind == ScriptStep::Kind::kMalformed) {
        complaints.Add(step.line, step.Problem());
        continue;
      }
      if (log_ != nullptr) log_->set_phase(step.verb);
      Execute(step);
    }
  }

 private:
  static constexpr uint64_t kUpdateEvery = 4096;
  static constexpr uint64_t kAll = UINT64_MAX;

  static Frontier::Options Settings(const FrontierRunOptions& options) {
    Frontier::Options settings;
    settings.strategy = options.strategy;
    settings.norm = static_cast<uint8_t>(options.norm);
    return settings;
  }

  void Execute(const ScriptStep& step) {
    switch (step.verb) {
      case ScriptVerb::kAddUrls:
        break;  // its URLs are steps of their own
      case ScriptVerb::kScheduleAll:
        Schedule(kAll, std::nullopt);
        break;
      case ScriptVerb::kSchedule:
        Schedule(step.count, std::nullopt);
        break;
      case ScriptVerb::kScheduleHost:
        Schedule(step.count, HostName(step.host));
        break;
      case ScriptVerb::kShowHost:
        frontier_.Peek(HostName(step.host), 0, kAll, Printer());
        break;
      case ScriptVerb::kListHosts:
        frontier_.Hosts(0, kAll, [this](const Frontier::HostInfo& host) {
          out_->buffer()->append(host.name);
          out_->Append("\n");
        });
        break;
      case ScriptVerb::kClearHost:
        frontier_.Purge(HostName(step.host), 0);
        break;
      case ScriptVerb::kClearAll:
        frontier_.Clear();
        break;
    }
  }

  void Schedule(uint64_t count, std::optional<std::string_view> host) {
    Frontier::NextRequest request;
    request.count = std::min<uint64_t>(count, frontier_.size());
    request.host = host;
    if (request.count > 0) frontier_.Next(request, 0, Printer());
  }

  Frontier::Serve Printer() {
    return [this](const Frontier::Served& served) {
      types::AppendUrl(served.url.host, served.url.rest, out_->buffer());
      out_->Append("\n");
    };
  }

  // The name under which the host is known, good until the next call. Empty: no host.
  std::string_view HostName(std::string_view text) {
    host_ = commands::NormalizeIriHost(options_.norm, text);
    return host_;
  }

  const FrontierRunOptions& options_;
  OutFile* out_;
  LoggingObserver* log_;  // may be nullptr
  Frontier frontier_;
  std::string host_;
};

}  // namespace

base::Status RunFrontierScript(const FrontierRunOptions& options) {
  CommandFile file;
  if (base::Status status = file.Open(options.path); !status) return status;
  OutFile out;
  const std::string output =
      options.output.empty() ? NameBeside(file.name(), "-out.txt") : options.output;
  if (base::Status status = out.Open(output); !status) return status;
  LoggingObserver log;
  if (options.log) {
    if (base::Status status = log.Open(NameBeside(file.name(), "-access.log")); !status) {
      return status;
    }
  }
  {
    Program program(options, &out, options.log ? &log : nullptr);
    program.Run(file.label(), file.bytes());
  }
  base::Status status = out.Close();
  if (options.log) {
    base::Status log_status = log.Close();
    if (status.ok()) status = log_status;
  }
  return status;
}

}  // namespace sava::cli
