// What the files of the frontier family (FR.*) share: finding a frontier, reading options, logging,
// and the handlers that the rows in frontier.cc name. Nobody outside the family needs this header.
//
// Every command that depends on time takes `NOW ms` and is logged with it, as of the moment when it
// ran, so that the log gives the same state at any time. A command that changed nothing is not
// logged: what was merely due (a lease that ended) happens again at the next one that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/iri.h"
#include "commands/key_context.h"
#include "types/frontier/frontier.h"
#include "types/frontier/url.h"

namespace sava::commands::frontier {

using types::Frontier;

inline constexpr std::string_view kBadHost = "ERR invalid host";
inline constexpr std::string_view kBadTime = "ERR time is out of range";

inline types::UrlNorm NormOf(const Frontier& frontier) {
  return static_cast<types::UrlNorm>(frontier.options().norm);
}
// What a frontier is made with when nothing is said.
Frontier::Options DefaultOptions();

// The frontier at a key, nullptr when nothing is there. Replies WRONGTYPE and returns false when
// something else is.
bool FindFrontier(KeyContext& context, Access access, Frontier** frontier);
// The same where a missing key is an error too.
bool NeedFrontier(KeyContext& context, Access access, Frontier** frontier);

// Argument `i`, a number from `low` to `high`; replies the error and returns false when it is none.
bool NumberArg(KeyContext& context, size_t i, int64_t low, int64_t high, int64_t* out,
               std::string_view error = errors::kOutOfRange);
// A time, or how long to wait, in ms from 0 on.
bool TimeArg(KeyContext& context, size_t i, int64_t* out);
// A delay or the length of a lease in ms, from `low` on.
bool DelayArg(KeyContext& context, size_t i, int64_t* out, int64_t low = 0);
bool StrategyArg(KeyContext& context, size_t i, Frontier::Strategy* strategy);
std::string_view StrategyName(Frontier::Strategy strategy);

// Moments stay within what a frontier keeps.
int64_t Later(int64_t now, int64_t millis);

// The time of a command: its own NOW, or the host's.
class Moment {
 public:
  explicit Moment(const KeyContext& context) : now_(context.now_ms()) {}

  // True when argument `i` is NOW with a time, or an error was replied and *failed is set.
  bool Read(KeyContext& context, size_t i, bool* failed);
  int64_t now() const { return now_; }
  bool given() const { return given_; }

 private:
  int64_t now_;
  bool given_ = false;
};

// Normalises URLs; what it gives is good as long as it lives.
class UrlReader {
 public:
  UrlReader(types::UrlNorm norm, Args urls);

  // REQUIRES: at most once for each of the URLs.
  types::SplitUrl Read(std::string_view url);
  // Whether a URL was beyond ASCII and is not any more: LoggedUrl tells what to log.
  bool converted() const { return !converted_.empty(); }

 private:
  types::UrlNorm norm_;
  size_t used_ = 0;
  std::unique_ptr<char[]> room_;
  std::deque<std::string> converted_;
};

// The name under which a host is known; empty when it cannot be one.
std::string HostArg(const Frontier& frontier, std::string_view text);

// A URL or a host as it is logged: in ASCII, so that the log means the same whatever is known
// about other characters when it is read.
std::string LoggedUrl(const Frontier& frontier, std::string_view text);

// `FR.X key ... NOW t` with NOW put before argument `at`, unless it was given already.
void LogAt(KeyContext& context, const Moment& moment, size_t at);
// The same where arguments first, first + step ... are URLs or hosts.
void LogUrlsAt(KeyContext& context, const Moment& moment, size_t at, const Frontier& frontier,
               size_t first, size_t step);
// What every change of a frontier in place ends with, but for the log.
void FrontierChanged(KeyContext& context, int64_t changes, std::string_view event);

// START pos and COUNT n from argument `at` on.
struct Range {
  uint64_t start = 0;
  uint64_t count = UINT64_MAX;
  bool start_given = false;
};
// A START below 0, if `least_start` allows it, is a position beyond all others.
bool ReadRange(KeyContext& context, size_t at, Range* range, int64_t least_start = 0);

// frontier.cc
void Create(KeyContext& context);
void Add(KeyContext& context);

// frontier_next.cc
void Next(KeyContext& context);
void Ack(KeyContext& context);
void Nack(KeyContext& context);
void Extend(KeyContext& context);

// frontier_hosts.cc
void Peek(KeyContext& context);
void Hosts(KeyContext& context);
void Host(KeyContext& context);
void Purge(KeyContext& context);
void Clear(KeyContext& context);

// frontier_carry.cc
void Seen(KeyContext& context);
void Stats(KeyContext& context);
void Dead(KeyContext& context);
void Export(KeyContext& context);
void Import(KeyContext& context);

}  // namespace sava::commands::frontier
