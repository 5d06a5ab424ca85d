#include "cli/frontier_generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cli/frontier_files.h"
#include "cli/progress.h"

namespace sava::cli {

namespace {

constexpr uint64_t kLetters = 26;

// Rounded values of a normal distribution, at least 1 (Box and Muller).
class RoundedNormal {
 public:
  RoundedNormal(double mean, double variance, double most)
      : mean_(mean), deviation_(std::sqrt(variance)), most_(most) {}

  uint64_t Next(base::Rng* rng) {
    const double value = std::round(mean_ + deviation_ * Standard(rng));
    return static_cast<uint64_t>(std::clamp(value, 1.0, most_));
  }

 private:
  double Standard(base::Rng* rng) {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - rng->Unit()));
    const double angle = 2 * std::numbers::pi * rng->Unit();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

  double mean_;
  double deviation_;
  double most_;
  double spare_ = 0;
  bool has_spare_ = false;
};

void AppendLetters(base::Rng* rng, size_t least, size_t most, std::string* out) {
  const size_t size = least + rng->Below(most - least + 1);
  uint64_t bits = rng->Next();
  for (size_t i = 0; i < size; ++i) {
    out->push_back(static_cast<char>('a' + bits % kLetters));
    bits /= kLetters;
  }
}

// How many letters tell `count` things apart.
size_t LettersFor(uint64_t count) {
  size_t width = 1;
  for (uint64_t room = kLetters; room < count; room *= kLetters) ++width;
  return width;
}

void AppendNumber(uint64_t number, size_t width, std::string* out) {
  const size_t at = out->size();
  out->append(width, 'a');
  for (size_t i = at + width; i-- > at;) {
    (*out)[i] = static_cast<char>('a' + number % kLetters);
    number /= kLetters;
  }
}

struct Host {
  uint64_t number = 0;  // also the seed of its name
  uint64_t left = 0;
  uint64_t made = 0;
};

class Generator {
 public:
  Generator(const GenerateOptions& options, OutFile* out)
      : options_(options),
        out_(out),
        rng_(options.seed),
        depth_(options.depth_mean, options.depth_variance, kMaxGeneratedDepth) {
    RoundedNormal urls(options.urls_mean, options.urls_variance, kMaxGeneratedUrls);
    hosts_.resize(options.hosts);
    for (uint64_t i = 0; i < options.hosts; ++i) {
      hosts_[i] = {i, urls.Next(&rng_), 0};
      total_ += hosts_[i].left;
    }
    if (options.urls > 0) Adjust(options.urls);
    uint64_t most = 0;
    for (const Host& host : hosts_) most = std::max(most, host.left);
    host_letters_ = LettersFor(options.hosts);
    url_letters_ = LettersFor(most);
  }

  void Run() {
    constexpr uint64_t kWorthShowing = 500'000;
    ProgressLine progress(fmt::format("{} URLs", total_), total_, kWorthShowing);
    out_->Append(fmt::format("ADD_URLS {}\n", total_));
    uint64_t done = 0;
    while (!hosts_.empty()) {
      constexpr uint64_t kLongestRun = 3;
      const size_t pick = rng_.Below(hosts_.size());
      Host& host = hosts_[pick];
      const uint64_t run = std::min(host.left, 1 + rng_.Below(kLongestRun));
      MakeName(host.number);
      for (uint64_t i = 0; i < run; ++i) AppendUrl(host.made++);
      host.left -= run;
      if (host.left == 0) {
        std::swap(host, hosts_.back());
        hosts_.pop_back();
      }
      done += run;
      progress.Update(done);
    }
    out_->Append("LISTA_HOSTS\nESCALONA_TUDO\nLIMPA_TUDO\n");
  }

 private:
  // Gives and takes URLs, host by host, until there are `wanted`; every host keeps one.
  void Adjust(uint64_t wanted) {
    for (size_t at = 0; total_ != wanted; at = (at + 1) % hosts_.size()) {
      const uint64_t behind = hosts_.size() - at;  // hosts of this round still to come
      uint64_t* left = &hosts_[at].left;
      if (total_ < wanted) {
        const uint64_t share = (wanted - total_ + behind - 1) / behind;
        *left += share;
        total_ += share;
      } else {
        const uint64_t share = std::min((total_ - wanted + behind - 1) / behind, *left - 1);
        *left -= share;
        total_ -= share;
      }
    }
  }

  // The host's name is made again from its number whenever it is needed: it is never stored.
  void MakeName(uint64_t number) {
    base::Rng rng(options_.seed ^ (number + 1) * 0x9e3779b97f4a7c15ULL);
    constexpr uint64_t kBeforeW = 22;  // so that no name begins with `www.`
    name_ = "http://";
    name_.push_back(static_cast<char>('a' + rng.Below(kBeforeW)));
    AppendLetters(&rng, 0, 5, &name_);
    AppendNumber(number, host_letters_, &name_);
    for (uint64_t labels = rng.Below(3); labels > 0; --labels) {
      name_.push_back('.');
      AppendLetters(&rng, 3, 8, &name_);
    }
    name_ += ".com";
  }

  void AppendUrl(uint64_t number) {
    std::string* out = out_->buffer();
    *out += name_;
    for (uint64_t depth = depth_.Next(&rng_); depth > 1; --depth) {
      out->push_back('/');
      AppendLetters(&rng_, 2, 9, out);
    }
    out->push_back('/');
    AppendLetters(&rng_, 1, 6, out);
    AppendNumber(number, url_letters_, out);
    *out += ".html\n";
    out_->Grown();
  }

  const GenerateOptions& options_;
  OutFile* out_;
  base::Rng rng_;
  RoundedNormal depth_;
  std::vector<Host> hosts_;  // those with URLs left
  uint64_t total_ = 0;
  size_t host_letters_ = 1;
  size_t url_letters_ = 1;
  std::string name_;
};

}  // namespace

base::Status GenerateScript(const GenerateOptions& options) {
  OutFile out;
  if (base::Status status = out.Open(options.path); !status) return status;
  Generator(options, &out).Run();
  return out.Close();
}

}  // namespace sava::cli
