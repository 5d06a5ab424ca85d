// FR.CREATE and FR.ADD, what the family shares, and its rows (docs/types/frontier.md). The
// other handlers are in frontier_next.cc (serving and leases), frontier_hosts.cc (hosts) and
// frontier_carry.cc (looking, and carrying URLs elsewhere).
#include "commands/native/frontier.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "commands/find_object.h"
#include "commands/native/families.h"
#include "commands/registry.h"
#include "commands/texts.h"

namespace sava::commands {

namespace frontier {

namespace {

constexpr std::array<std::string_view, 4> kStrategies = {"depth", "breadth", "best", "priority"};

bool FailWith(KeyContext& context, std::string_view error) {
  context.Error(error);
  return false;
}

// The words after DEDUP; *at moves past them.
bool ReadDedup(KeyContext& context, size_t* at, Frontier::Options* options) {
  const size_t i = *at + 1;
  if (context.ArgIs(i, "pending")) {
    options->dedup = Frontier::Dedup::kPending;
  } else if (context.ArgIs(i, "seen")) {
    options->dedup = Frontier::Dedup::kSeen;
  } else if (context.ArgIs(i, "bloom")) {
    options->dedup = Frontier::Dedup::kBloom;
    if (i + 1 == context.argc()) return FailWith(context, errors::kSyntax);
    if (!base::ParseDouble(context.arg(i + 1), &options->bloom_error) ||
        !(options->bloom_error > 0 && options->bloom_error < 1)) {
      return FailWith(context, errors::kBadErrorRate);
    }
    ++*at;
  } else {
    return FailWith(context, "ERR unknown DEDUP, use pending, seen or bloom with an error rate");
  }
  *at += 2;
  return true;
}

bool ReadCreate(KeyContext& context, Frontier::Options* options) {
  for (size_t at = 2; at < context.argc();) {
    if (at + 1 == context.argc()) return FailWith(context, errors::kSyntax);
    if (context.ArgIs(at, "DEDUP")) {
      if (!ReadDedup(context, &at, options)) return false;
      continue;
    }
    int64_t number = 0;
    if (context.ArgIs(at, "STRATEGY")) {
      if (!StrategyArg(context, at + 1, &options->strategy)) return false;
    } else if (context.ArgIs(at, "NORM")) {
      types::UrlNorm norm{};
      if (!types::ParseUrlNorm(context.arg(at + 1), &norm)) {
        return FailWith(context, errors::kUnknownNorm);
      }
      options->norm = static_cast<uint8_t>(norm);
    } else if (context.ArgIs(at, "DELAY")) {
      if (!DelayArg(context, at + 1, &options->delay_ms)) return false;
    } else if (context.ArgIs(at, "MAXHOST")) {
      if (!NumberArg(context, at + 1, 0, Frontier::kMaxPerHost, &number)) return false;
      options->max_per_host = static_cast<uint64_t>(number);
    } else if (context.ArgIs(at, "LEASE")) {
      if (!DelayArg(context, at + 1, &options->lease_ms)) return false;
    } else if (context.ArgIs(at, "RETRIES")) {
      if (!NumberArg(context, at + 1, 0, Frontier::kMaxRetries, &number)) return false;
      options->retries = static_cast<uint32_t>(number);
    } else {
      return FailWith(context, errors::kSyntax);
    }
    at += 2;
  }
  return true;
}

// What stands before the URLs of FR.ADD; *first is where they begin.
bool ReadAttributes(KeyContext& context, Frontier::Attributes* attributes, Moment* moment,
                    size_t* first) {
  size_t at = 2;
  for (; at + 1 < context.argc(); at += 2) {
    bool failed = false;
    int64_t number = 0;
    if (context.ArgIs(at, "PRIO")) {
      if (!NumberArg(context, at + 1, INT16_MIN, INT16_MAX, &number)) return false;
      attributes->priority = static_cast<int16_t>(number);
    } else if (context.ArgIs(at, "AT")) {
      if (!TimeArg(context, at + 1, &attributes->not_before)) return false;
    } else if (context.ArgIs(at, "META")) {
      attributes->meta = context.arg(at + 1);
      if (attributes->meta.size() > Frontier::kMaxMeta) {
        return FailWith(context, "ERR META is too long");
      }
    } else if (!moment->Read(context, at, &failed)) {
      break;
    }
    if (failed) return false;
  }
  *first = at;
  if (at < context.argc()) return true;
  context.ArityError();
  return false;
}

// What FR.ADD did with its URLs.
struct Added {
  int64_t count = 0;
  std::vector<Frontier::Verdict> verdicts;
  std::vector<std::string> logged;  // the URLs as they are logged; empty: as they came
};

// Logs only what was added: refused URLs leave no trace but in the counters of FR.STATS.
void LogAdd(KeyContext& context, const Moment& moment, size_t first, const Added& added) {
  if (!context.wants_effects()) return context.NoEffect();
  NumberText time;
  std::vector<std::string_view> words;
  words.reserve(context.argc() + 2);
  words.insert(words.end(), context.args().begin(),
               context.args().begin() + static_cast<std::ptrdiff_t>(first));
  if (!moment.given()) {
    words.emplace_back("NOW");
    words.push_back(time.Write(moment.now()));
  }
  for (size_t i = 0; i < added.verdicts.size(); ++i) {
    if (added.verdicts[i] != Frontier::Verdict::kAdded) continue;
    words.push_back(added.logged.empty() ? context.arg(first + i) : added.logged[i]);
  }
  context.Effect(Args(words));
}

// Normalises all URLs, then adds all of them.
Added AddAll(KeyContext& context, Frontier* frontier, const Frontier::Attributes& attributes,
             int64_t now, size_t first) {
  Added added;
  const size_t count = context.argc() - first;
  UrlReader reader(NormOf(*frontier), context.args().subspan(first));
  std::vector<Frontier::Url> urls;
  urls.reserve(count);
  added.verdicts.assign(count, Frontier::Verdict::kInvalid);
  for (size_t i = 0; i < count; ++i) {
    const types::SplitUrl split = reader.Read(context.arg(first + i));
    if (!split.ok()) continue;
    urls.push_back({split.host, split.rest, split.depth});
    added.verdicts[i] = Frontier::Verdict::kAdded;
  }
  std::vector<Frontier::Verdict> told(urls.size());
  frontier->Add(urls, attributes, now, told);
  size_t next = 0;
  for (Frontier::Verdict& verdict : added.verdicts) {
    if (verdict != Frontier::Verdict::kAdded) continue;
    verdict = told[next++];
    if (verdict == Frontier::Verdict::kAdded) ++added.count;
  }
  if (reader.converted()) [[unlikely]] {
    for (size_t i = first; i < context.argc(); ++i) {
      added.logged.push_back(LoggedUrl(*frontier, context.arg(i)));
    }
  }
  return added;
}

}  // namespace

// ---- shared ----

Frontier::Options DefaultOptions() {
  Frontier::Options options;
  options.norm = static_cast<uint8_t>(types::UrlNorm::kRfc3986);
  return options;
}

bool FindFrontier(KeyContext& context, Access access, Frontier** frontier) {
  return FindObject(context, context.arg(1), access, frontier);
}

bool NeedFrontier(KeyContext& context, Access access, Frontier** frontier) {
  return NeedObject(context, context.arg(1), access, errors::kNoSuchKey, frontier);
}

bool NumberArg(KeyContext& context, size_t i, int64_t low, int64_t high, int64_t* out,
               std::string_view error) {
  if (!context.IntArg(i, out)) return false;
  return (*out >= low && *out <= high) || FailWith(context, error);
}

bool TimeArg(KeyContext& context, size_t i, int64_t* out) {
  return NumberArg(context, i, 0, Frontier::kMaxTime, out, kBadTime);
}

bool DelayArg(KeyContext& context, size_t i, int64_t* out, int64_t low) {
  return NumberArg(context, i, low, Frontier::kMaxDelay, out, kBadTime);
}

bool StrategyArg(KeyContext& context, size_t i, Frontier::Strategy* strategy) {
  for (size_t n = 0; n < kStrategies.size(); ++n) {
    if (!context.ArgIs(i, kStrategies[n])) continue;
    *strategy = static_cast<Frontier::Strategy>(n);
    return true;
  }
  return FailWith(context, "ERR unknown STRATEGY, use depth, breadth, best or priority");
}

std::string_view StrategyName(Frontier::Strategy strategy) {
  return kStrategies[static_cast<size_t>(strategy)];
}

int64_t Later(int64_t now, int64_t millis) {
  return std::min(std::min(now, Frontier::kMaxTime) + std::min(millis, Frontier::kMaxTime),
                  Frontier::kMaxTime);
}

bool Moment::Read(KeyContext& context, size_t i, bool* failed) {
  if (!context.ArgIs(i, "NOW") || i + 1 >= context.argc()) return false;
  given_ = true;
  *failed = !TimeArg(context, i + 1, &now_);
  return true;
}

UrlReader::UrlReader(types::UrlNorm norm, Args urls) : norm_(norm) {
  size_t bytes = 0;
  for (const std::string_view url : urls) {
    bytes += types::UrlRoom(std::min(url.size(), types::kMaxUrlSize));
  }
  room_ = std::make_unique_for_overwrite<char[]>(bytes);
}

types::SplitUrl UrlReader::Read(std::string_view url) {
  char* room = room_.get() + used_;
  used_ += types::UrlRoom(std::min(url.size(), types::kMaxUrlSize));
  std::string ascii;
  const types::SplitUrl split = NormalizeIri(norm_, url, room, &ascii);
  if (!ascii.empty()) [[unlikely]] {
    // Long: moving it does not move its bytes.
    converted_.push_back(std::move(ascii));
  }
  return split;
}

std::string HostArg(const Frontier& frontier, std::string_view text) {
  return NormalizeIriHost(NormOf(frontier), text);
}

std::string LoggedUrl(const Frontier& frontier, std::string_view text) {
  std::string ascii;
  return IriToAscii(NormOf(frontier), text, &ascii) ? ascii : std::string(text);
}

void LogAt(KeyContext& context, const Moment& moment, size_t at) {
  if (moment.given()) return;
  if (!context.wants_effects()) return context.NoEffect();
  NumberText time;
  std::vector<std::string_view> words(context.args().begin(), context.args().end());
  const std::array<std::string_view, 2> now = {"NOW", time.Write(moment.now())};
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), now.begin(), now.end());
  context.Effect(Args(words));
}

void LogUrlsAt(KeyContext& context, const Moment& moment, size_t at, const Frontier& frontier,
               size_t first, size_t step) {
  std::vector<std::string_view> words(context.args().begin(), context.args().end());
  std::deque<std::string> changed;
  for (size_t i = first; i < words.size(); i += step) {
    std::string logged = LoggedUrl(frontier, words[i]);
    if (logged == words[i]) continue;
    changed.push_back(std::move(logged));
    words[i] = changed.back();
  }
  if (changed.empty()) return LogAt(context, moment, at);
  if (!context.wants_effects()) return context.NoEffect();
  NumberText time;
  if (!moment.given()) {
    const std::array<std::string_view, 2> now = {"NOW", time.Write(moment.now())};
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), now.begin(), now.end());
  }
  context.Effect(Args(words));
}

void FrontierChanged(KeyContext& context, int64_t changes, std::string_view event) {
  context.Touched(context.arg(1));
  context.Changed(changes);
  context.Notify(kNotifyModule, event, context.arg(1));
}

bool ReadRange(KeyContext& context, size_t at, Range* range, int64_t least_start) {
  for (; at < context.argc(); at += 2) {
    if (at + 1 == context.argc()) return FailWith(context, errors::kSyntax);
    int64_t number = 0;
    if (context.ArgIs(at, "START")) {
      if (!NumberArg(context, at + 1, least_start, INT64_MAX, &number)) return false;
      range->start = static_cast<uint64_t>(number);
      range->start_given = true;
    } else if (context.ArgIs(at, "COUNT")) {
      if (!NumberArg(context, at + 1, 0, INT64_MAX, &number)) return false;
      range->count = static_cast<uint64_t>(number);
    } else {
      return FailWith(context, errors::kSyntax);
    }
  }
  return true;
}

// ---- making and adding ----

void Create(KeyContext& context) {
  const std::string_view key = context.arg(1);
  Frontier::Options options = DefaultOptions();
  if (!ReadCreate(context, &options)) return;
  if (context.Find(key, Access::kWrite)) return context.Error(errors::kKeyExists);
  context.SetObject(key, std::make_unique<Frontier>(options));
  context.Changed();
  context.Notify(kNotifyModule, "fr.create", key);
  context.reply().Ok();
}

void Add(KeyContext& context) {
  Frontier::Attributes attributes;
  Moment moment(context);
  size_t first = 0;
  if (!ReadAttributes(context, &attributes, &moment, &first)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kWrite, &frontier)) return;
  std::unique_ptr<Frontier> fresh;
  if (frontier == nullptr) {
    fresh = std::make_unique<Frontier>(DefaultOptions());
    frontier = fresh.get();
  }
  const Added added = AddAll(context, frontier, attributes, moment.now(), first);
  if (added.count > 0) {
    if (fresh != nullptr) context.SetObject(context.arg(1), std::move(fresh));
    FrontierChanged(context, added.count, "fr.add");
    LogAdd(context, moment, first, added);
  }
  context.reply().Array(static_cast<int64_t>(added.verdicts.size()));
  for (const Frontier::Verdict verdict : added.verdicts) {
    context.reply().Int(static_cast<int64_t>(verdict));
  }
}

}  // namespace frontier

namespace {

namespace fr = frontier;

constexpr KeySpec kFrontierRead = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec kFrontierWrite = KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate);

const CommandSpec kFrontierRows[] = {
    {.name = "fr.create",
     .handler = fr::Create,
     .arity = -2,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyOw | kKeyInsert)},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Makes an empty URL frontier.",
     .complexity = "O(1)",
     .arguments = "key [STRATEGY (depth | breadth | best | priority)] "
                  "[DEDUP (pending | seen | bloom error-rate:double)] [NORM (ufmg | rfc3986)] "
                  "[DELAY milliseconds:integer] [MAXHOST urls:integer] "
                  "[LEASE milliseconds:integer] [RETRIES count:integer]",
     .reply = "OK",
     .example = "FR.CREATE crawl STRATEGY breadth DEDUP seen DELAY 1000 LEASE 60000"},
    {.name = "fr.add",
     .handler = fr::Add,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Adds URLs to a frontier.",
     .complexity = "O(N) where N is the length of the URLs",
     .arguments = "key [PRIO priority:integer] [AT unix-time-milliseconds:integer] [META meta] "
                  "[NOW unix-time-milliseconds:integer] url:string [url:string ...]",
     .reply = "array: 1 added, 0 duplicate, -1 invalid, -2 over a limit",
     .example = "FR.ADD crawl http://example.com/a http://example.com/b/c"},
    {.name = "fr.next",
     .handler = fr::Next,
     .arity = -3,
     .flags = kWrite | kBlocking,
     .keys = {kFrontierWrite},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Takes the next URLs of a frontier, or leases them.",
     .complexity = "O(N log H) where N is the number of URLs and H that of hosts; O(N) with the "
                   "strategies depth and breadth",
     .arguments = "key count:integer [STRATEGY (depth | breadth | best | priority)] [HOST host] "
                  "[PERHOST count:integer] [LEASE milliseconds:integer] "
                  "[BLOCK milliseconds:integer] [RESTART] [WITHMETA] "
                  "[NOW unix-time-milliseconds:integer]",
     .reply = "array of URLs; with a lease of pairs of lease id and URL",
     .example = "FR.NEXT crawl 10 LEASE 60000"},
    {.name = "fr.ack",
     .handler = fr::Ack,
     .arity = -3,
     .flags = kWrite | kFast,
     .keys = {kFrontierWrite},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Ends leases: their URLs are done, or come again later.",
     .complexity = "O(N) where N is the number of leases",
     .arguments = "key id:integer [id:integer ...] [REFETCH milliseconds:integer] "
                  "[NOW unix-time-milliseconds:integer]",
     .reply = "integer: how many of the leases were known",
     .example = "FR.ACK crawl 1 2"},
    {.name = "fr.nack",
     .handler = fr::Nack,
     .arity = -3,
     .flags = kWrite | kFast,
     .keys = {kFrontierWrite},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Ends leases: their URLs failed and are tried again, until they are dead.",
     .complexity = "O(N) where N is the number of leases",
     .arguments = "key id:integer [id:integer ...] [RETRY milliseconds:integer] "
                  "[NOW unix-time-milliseconds:integer]",
     .reply = "integer: how many of the leases were known",
     .example = "FR.NACK crawl 1 RETRY 5000"},
    {.name = "fr.extend",
     .handler = fr::Extend,
     .arity = -3,
     .flags = kWrite | kFast,
     .keys = {kFrontierWrite},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Prolongs leases.",
     .complexity = "O(N) where N is the number of leases",
     .arguments = "key id:integer [id:integer ...] [LEASE milliseconds:integer] "
                  "[NOW unix-time-milliseconds:integer]",
     .reply = "integer: how many of the leases were known",
     .example = "FR.EXTEND crawl 1 LEASE 60000"},
    {.name = "fr.peek",
     .handler = fr::Peek,
     .arity = -3,
     .flags = kReadonly,
     .keys = {kFrontierRead},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Shows the URLs a host has queued, in order.",
     .complexity = "O(N + START) where N is the number of URLs shown",
     .arguments = "key host [(n:integer | START position:integer)] [COUNT n:integer]",
     .reply = "array of URLs",
     .example = "FR.PEEK crawl example.com START 0 COUNT 10"},
    {.name = "fr.hosts",
     .handler = fr::Hosts,
     .arity = -2,
     .flags = kReadonly,
     .keys = {kFrontierRead},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Lists the known hosts in order of discovery.",
     .complexity = "O(N) where N is the number of hosts shown",
     .arguments = "key [START position:integer] [COUNT n:integer]",
     .reply = "array of hosts",
     .example = "FR.HOSTS crawl"},
    {.name = "fr.host",
     .handler = fr::Host,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {kFrontierWrite},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Sets how a host is to be treated, and tells how it stands.",
     .complexity = "O(1)",
     .arguments = "key host [DELAY milliseconds:integer] "
                  "[BLOCKUNTIL unix-time-milliseconds:integer] [LIMIT urls:integer] "
                  "[NOW unix-time-milliseconds:integer]",
     .reply = "map: host, position, queued, delayed, leased, delay, limit, blocked-until, next-at; "
              "null when the host is not known",
     .example = "FR.HOST crawl example.com DELAY 5000"},
    {.name = "fr.purge",
     .handler = fr::Purge,
     .arity = -3,
     .flags = kWrite,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Forgets the URLs a host has queued; the host stays known.",
     .complexity = "O(N) where N is the number of URLs forgotten",
     .arguments = "key host [NOW unix-time-milliseconds:integer]",
     .reply = "integer: how many URLs were forgotten",
     .example = "FR.PURGE crawl example.com"},
    {.name = "fr.clear",
     .handler = fr::Clear,
     .arity = -2,
     .flags = kWrite,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Forgets all URLs and hosts of a frontier; what it was made with stays.",
     .complexity = "O(1); what was there is freed in the background",
     .arguments = "key [NOW unix-time-milliseconds:integer]",
     .reply = "OK",
     .example = "FR.CLEAR crawl"},
    {.name = "fr.seen",
     .handler = fr::Seen,
     .arity = -3,
     .flags = kReadonly,
     .keys = {kFrontierRead},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Tells which URLs would be duplicates.",
     .complexity = "O(N) where N is the length of the URLs",
     .arguments = "key url:string [url:string ...]",
     .reply = "array: 1 duplicate, 0 not, -1 invalid",
     .example = "FR.SEEN crawl http://example.com/a"},
    {.name = "fr.stats",
     .handler = fr::Stats,
     .arity = 2,
     .flags = kReadonly,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Tells what a frontier was made with, what it holds and what it has done.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "map",
     .example = "FR.STATS crawl"},
    {.name = "fr.dead",
     .handler = fr::Dead,
     .arity = -2,
     .flags = kWrite,
     .keys = {kFrontierWrite},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Lists the URLs that failed too often, or forgets them.",
     .complexity = "O(N) where N is the number of URLs shown or forgotten",
     .arguments = "key [START position:integer] [COUNT n:integer] [FORGET]",
     .reply = "array of URLs; with FORGET an integer: how many were forgotten",
     .example = "FR.DEAD crawl COUNT 100"},
    {.name = "fr.export",
     .handler = fr::Export,
     .arity = -3,
     .flags = kReadonly,
     .keys = {kFrontierRead},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Gets URLs with their state, a part at a time.",
     .complexity = "O(N) where N is the number of URLs shown",
     .arguments = "key cursor:integer [COUNT n:integer]",
     .reply = "array: the next cursor (0 at the end), and an array of arrays of URL, state, time, "
              "priority, failures and meta",
     .example = "FR.EXPORT crawl 0 COUNT 1000"},
    {.name = "fr.import",
     .handler = fr::Import,
     .arity = -8,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "frontier",
     .since = "0.1.0",
     .summary = "Adds URLs as FR.EXPORT gives them.",
     .complexity = "O(N) where N is the length of the URLs",
     .arguments = "key [NOW unix-time-milliseconds:integer] "
                  "(url:string state:string time:integer priority:integer failures:integer meta) "
                  "[(url:string state:string time:integer priority:integer failures:integer meta) "
                  "...]",
     .reply = "array: 1 added, 0 duplicate, -1 invalid, -2 over a limit",
     .example = "FR.IMPORT crawl http://example.com/a queued 0 0 0 \"\""},
};

}  // namespace

std::span<const CommandSpec> FrontierCommands() { return kFrontierRows; }

}  // namespace sava::commands
