#include "cli/bench_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/client_json.h"

namespace sava::cli {
namespace {

constexpr auto kLineInterval = std::chrono::seconds(5);
constexpr size_t kBarWidth = 30;
constexpr double kPercentiles[] = {50, 90, 99, 99.9};

// 1234567 as 1,234,567.
std::string Grouped(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

double Rate(uint64_t operations, double seconds) {
  return seconds > 0 ? static_cast<double>(operations) / seconds : 0;
}

std::string_view WireName(Wire wire) { return wire == Wire::kHttp ? "http" : "resp"; }

std::string Millis(double nanos) { return fmt::format("{:.3f}", nanos / 1e6); }

void AppendRow(const BenchReport::Phase& phase, std::string* out) {
  const PhaseResult& result = phase.result;
  const LatencyHistogram& latency = result.latency;
  *out += fmt::format("{:<10} {:>12} {:>11} {:>7} {:>8}", phase.name, Grouped(result.operations),
                      Grouped(static_cast<uint64_t>(Rate(result.operations, result.seconds))),
                      Grouped(result.errors), Millis(latency.mean()));
  for (const double percent : kPercentiles) {
    *out += fmt::format(" {:>8}", Millis(static_cast<double>(latency.Percentile(percent))));
  }
  *out += fmt::format(" {:>9}\n", Millis(static_cast<double>(latency.max())));
}

std::string PhaseJson(const BenchReport::Phase& phase) {
  const PhaseResult& result = phase.result;
  std::string text = fmt::format(
      R"({{"name":{},"operations":{},"errors":{},"seconds":{:.6f},"ops_per_second":{:.1f},)"
      R"("latency_ms":{{"mean":{})",
      JsonString(phase.name), result.operations, result.errors, result.seconds,
      Rate(result.operations, result.seconds), Millis(result.latency.mean()));
  for (const double percent : kPercentiles) {
    text += fmt::format(R"(,"p{}":{})", percent,
                        Millis(static_cast<double>(result.latency.Percentile(percent))));
  }
  text += fmt::format(R"(,"max":{}}})", Millis(static_cast<double>(result.latency.max())));
  if (!result.first_error.empty()) {
    text += R"(,"first_error":)" + JsonString(result.first_error);
  }
  return text + "}";
}

}  // namespace

bool BenchReport::ok() const {
  const bool wrong = verification && !verification->problem.empty();
  return failure.empty() && !wrong && std::all_of(phases.begin(), phases.end(), [](const Phase& p) {
           return p.result.errors == 0 && p.result.failure.empty();
         });
}

std::string ReportText(const BenchReport& report) {
  const AssociationShape& shape = report.shape;
  std::string text = fmt::format(
      "{} associators x {} associated keys x 1 to {} repetitions, {} order, seed {}\n"
      "{} on {}, {} clients, pipeline {}, {} thread{}\n\n",
      Grouped(shape.associators), Grouped(shape.associated), Grouped(shape.repetitions),
      shape.in_order ? "document" : "random", shape.seed, WireName(report.load.wire),
      report.load.endpoint.Text(), report.load.clients, report.load.pipeline, report.load.threads,
      report.load.threads == 1 ? "" : "s");
  text +=
      fmt::format("{:<10} {:>12} {:>11} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}\n", "phase",
                  "operations", "ops/s", "errors", "mean ms", "p50", "p90", "p99", "p99.9", "max");
  for (const BenchReport::Phase& phase : report.phases) AppendRow(phase, &text);
  text += "\n";
  for (const BenchReport::Phase& phase : report.phases) {
    if (phase.result.first_error.empty()) continue;
    text += fmt::format("{}: first error: {}\n", phase.name, phase.result.first_error);
  }
  if (report.memory_bytes) {
    const double pairs =
        static_cast<double>(shape.associators) * static_cast<double>(shape.associated);
    text += fmt::format("memory: {:.1f} MB, {:.2f} bytes for each different association\n",
                        static_cast<double>(*report.memory_bytes) / 1e6,
                        static_cast<double>(*report.memory_bytes) / pairs);
  }
  if (report.verification) {
    const BenchReport::Verification& verification = *report.verification;
    text += fmt::format("verification: {} associations of {} associators, {}\n",
                        Grouped(verification.associations), Grouped(verification.associators),
                        verification.problem.empty() ? "all counts right" : verification.problem);
  }
  if (!report.failure.empty()) text += fmt::format("ended early: {}\n", report.failure);
  return text;
}

std::string ReportJson(const BenchReport& report) {
  const AssociationShape& shape = report.shape;
  std::string text = fmt::format(
      R"({{"associators":{},"associated":{},"repetitions":{},"distinct":{},"order":"{}","seed":{},)"
      R"("protocol":"{}","clients":{},"pipeline":{},"threads":{},"phases":[)",
      shape.associators, shape.associated, shape.repetitions,
      std::max(shape.distinct, shape.associated), shape.in_order ? "document" : "random",
      shape.seed, WireName(report.load.wire), report.load.clients, report.load.pipeline,
      report.load.threads);
  for (const BenchReport::Phase& phase : report.phases) {
    if (text.back() != '[') text += ',';
    text += PhaseJson(phase);
  }
  text += "]";
  if (report.memory_bytes) text += fmt::format(R"(,"memory_bytes":{})", *report.memory_bytes);
  if (report.verification) {
    text += fmt::format(R"(,"verification":{{"associators":{},"associations":{},"problem":{}}})",
                        report.verification->associators, report.verification->associations,
                        JsonString(report.verification->problem));
  }
  if (!report.failure.empty()) text += R"(,"failure":)" + JsonString(report.failure);
  return text + fmt::format(R"(,"ok":{}}})", report.ok()) + "\n";
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::Begin(std::string_view name, uint64_t total) {
  name_ = name;
  total_ = total;
  begun_ = shown_ = SteadyClock::now();
}

void Progress::Update(uint64_t done) {
  const SteadyClock::time_point now = SteadyClock::now();
  if (!terminal_ && now - shown_ < kLineInterval) return;
  shown_ = now;
  const double share = total_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total_);
  const auto rate =
      static_cast<uint64_t>(Rate(done, std::chrono::duration<double>(now - begun_).count()));
  if (!terminal_) {
    fmt::print(stderr, "{}: {} of {}, {}/s\n", name_, Grouped(done), Grouped(total_),
               Grouped(rate));
    return;
  }
  const size_t filled = std::min(static_cast<size_t>(share * kBarWidth), kBarWidth);
  const uint64_t left = rate == 0 ? 0 : (total_ - std::min(done, total_)) / rate;
  fmt::print(stderr, "\r\x1b[K{:<10} [{}{}] {:3.0f} %  {}/s  {} s left", name_,
             std::string(filled, '#'), std::string(kBarWidth - filled, '.'), share * 100,
             Grouped(rate), left);
  std::fflush(stderr);
}

void Progress::End() {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace sava::cli
