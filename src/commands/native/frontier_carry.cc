// FR.SEEN, FR.STATS, FR.DEAD, FR.EXPORT and FR.IMPORT: looking at a frontier, and carrying its URLs
// elsewhere.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "commands/native/frontier.h"

namespace sava::commands::frontier {

namespace {

constexpr std::array<std::string_view, 4> kStates = {"queued", "delayed", "leased", "dead"};
constexpr std::array<std::string_view, 3> kDedups = {"pending", "seen", "bloom"};
constexpr size_t kEntryWords = 6;
constexpr int64_t kMostExported = 100'000;

bool StateNamed(std::string_view name, Frontier::State* state) {
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (!base::EqualsNoCase(name, kStates[i])) continue;
    *state = static_cast<Frontier::State>(i);
    return true;
  }
  return false;
}

// The entry whose words begin at argument `at`, but for its URL.
bool ReadEntry(KeyContext& context, size_t at, Frontier::Entry* entry) {
  if (!StateNamed(context.arg(at + 1), &entry->state)) {
    context.Error("ERR unknown state, use queued, delayed, leased or dead");
    return false;
  }
  int64_t priority = 0;
  int64_t failures = 0;
  if (!TimeArg(context, at + 2, &entry->time)) return false;
  if (!NumberArg(context, at + 3, INT16_MIN, INT16_MAX, &priority)) return false;
  if (!NumberArg(context, at + 4, 0, Frontier::kMaxRetries + 1, &failures)) return false;
  entry->url.priority = static_cast<int16_t>(priority);
  entry->url.failures = static_cast<uint32_t>(failures);
  entry->url.meta = context.arg(at + 5);
  if (entry->url.meta.size() <= Frontier::kMaxMeta) return true;
  context.Error("ERR meta is too long");
  return false;
}

bool ReadEntries(KeyContext& context, size_t first, std::vector<Frontier::Entry>* entries) {
  for (size_t at = first; at < context.argc(); at += kEntryWords) {
    Frontier::Entry entry;
    if (!ReadEntry(context, at, &entry)) return false;
    entries->push_back(entry);
  }
  return true;
}

void ReplyOptions(protocol::Reply& reply, const Frontier::Options& options) {
  const auto text = [&reply](std::string_view name, std::string_view value) {
    reply.Bulk(name);
    reply.Bulk(value);
  };
  const auto number = [&reply](std::string_view name, int64_t value) {
    reply.Bulk(name);
    reply.Int(value);
  };
  text("strategy", StrategyName(options.strategy));
  text("dedup", kDedups[static_cast<size_t>(options.dedup)]);
  text("norm", types::UrlNormName(static_cast<types::UrlNorm>(options.norm)));
  number("delay", options.delay_ms);
  number("maxhost", static_cast<int64_t>(options.max_per_host));
  number("lease", options.lease_ms);
  number("retries", options.retries);
}

// FR.DEAD key FORGET [NOW ms]
void ForgetDead(KeyContext& context) {
  Moment moment(context);
  bool failed = false;
  if (context.argc() != 3 && (context.argc() != 5 || !moment.Read(context, 3, &failed))) {
    return context.Error(errors::kSyntax);
  }
  Frontier* frontier = nullptr;
  if (failed || !FindFrontier(context, Access::kWrite, &frontier)) return;
  const uint64_t gone = frontier == nullptr ? 0 : frontier->ForgetDead(moment.now());
  if (gone > 0) {
    FrontierChanged(context, static_cast<int64_t>(gone), "fr.dead");
    LogAt(context, moment, 3);
  }
  context.reply().Int(static_cast<int64_t>(gone));
}

}  // namespace

void Seen(KeyContext& context) {
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kRead, &frontier)) return;
  const types::UrlNorm norm = frontier == nullptr ? types::UrlNorm::kRfc3986 : NormOf(*frontier);
  UrlReader reader(norm, context.args().subspan(2));
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) {
    const types::SplitUrl split = reader.Read(context.arg(i));
    if (!split.ok()) {
      context.reply().Int(-1);
    } else {
      const bool seen =
          frontier != nullptr && frontier->Seen({split.host, split.rest, split.depth});
      context.reply().Int(seen ? 1 : 0);
    }
  }
}

void Stats(KeyContext& context) {
  Frontier* frontier = nullptr;
  if (!NeedFrontier(context, Access::kRead, &frontier)) return;
  const Frontier::Stats stats = frontier->stats();
  const std::pair<std::string_view, uint64_t> counts[] = {
      {"hosts", stats.hosts.known},
      {"ready-hosts", stats.hosts.ready},
      {"waiting-hosts", stats.hosts.waiting},
      {"queued", stats.queued},
      {"delayed", stats.delayed},
      {"leased", stats.leased},
      {"dead", stats.dead},
      {"seen", stats.seen},
      {"added", stats.added},
      {"duplicates", stats.duplicates},
      {"over-limit", stats.over_limit},
      {"served", stats.served},
      {"acked", stats.acked},
      {"failed", stats.failed},
      {"expired", stats.expired},
      {"bytes", stats.bytes},
  };
  constexpr int64_t kOptionFields = 7;
  protocol::Reply& reply = context.reply();
  reply.Map(kOptionFields + static_cast<int64_t>(std::size(counts)));
  ReplyOptions(reply, frontier->options());
  for (const auto& [name, count] : counts) {
    reply.Bulk(name);
    reply.Int(static_cast<int64_t>(count));
  }
}

void Dead(KeyContext& context) {
  if (context.argc() > 2 && context.ArgIs(2, "FORGET")) return ForgetDead(context);
  Range range;
  if (!ReadRange(context, 2, &range)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kRead, &frontier)) return;
  protocol::Reply& reply = context.reply();
  if (frontier == nullptr) return reply.Array(0);
  const size_t mark = reply.Mark();
  int64_t shown = 0;
  std::string url;
  frontier->Dead(range.start, range.count, [&](const Frontier::Served& one) {
    url.clear();
    types::AppendUrl(one.url.host, one.url.rest, &url);
    reply.Bulk(url);
    ++shown;
  });
  reply.ArrayAt(mark, shown);
}

void Export(KeyContext& context) {
  uint64_t cursor = 0;
  int64_t count = 1000;
  if (!base::ParseUint(context.arg(2), &cursor)) return context.Error(errors::kBadCursor);
  if (context.argc() > 3) {
    if (context.argc() != 5 || !context.ArgIs(3, "COUNT")) return context.Error(errors::kSyntax);
    if (!NumberArg(context, 4, 1, INT64_MAX, &count, errors::kMustBePositive)) return;
  }
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kRead, &frontier)) return;
  protocol::Reply& reply = context.reply();
  std::string url;
  const size_t mark = reply.Mark();
  int64_t shown = 0;
  uint64_t next = 0;
  if (frontier != nullptr) {
    const auto most = static_cast<uint64_t>(std::min(count, kMostExported));
    next = frontier->Export(cursor, most, [&](const Frontier::Entry& entry) {
      const Frontier::Served& one = entry.url;
      url.clear();
      types::AppendUrl(one.url.host, one.url.rest, &url);
      reply.Array(kEntryWords);
      reply.Bulk(url);
      reply.Bulk(kStates[static_cast<size_t>(entry.state)]);
      reply.Int(entry.time);
      reply.Int(one.priority);
      reply.Int(one.failures);
      reply.Bulk(one.meta);
      ++shown;
    });
  }
  reply.ArrayAt(mark, shown);
  // The cursor is known last and comes first.
  const std::string text = std::to_string(next);
  reply.out().InsertAt(mark, "*2\r\n$" + std::to_string(text.size()) + "\r\n" + text + "\r\n");
}

void Import(KeyContext& context) {
  Moment moment(context);
  bool failed = false;
  size_t first = 2;
  if (moment.Read(context, 2, &failed)) first = 4;
  if (failed) return;
  if (first == context.argc() || (context.argc() - first) % kEntryWords != 0) {
    return context.ArityError();
  }
  std::vector<Frontier::Entry> entries;
  if (!ReadEntries(context, first, &entries)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kWrite, &frontier)) return;
  std::unique_ptr<Frontier> fresh;
  if (frontier == nullptr) {
    fresh = std::make_unique<Frontier>(DefaultOptions());
    frontier = fresh.get();
  }
  int64_t added = 0;
  context.reply().Array(static_cast<int64_t>(entries.size()));
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string_view url = context.arg(first + i * kEntryWords);
    UrlReader reader(NormOf(*frontier), {&url, 1});
    const types::SplitUrl split = reader.Read(url);
    Frontier::Verdict verdict = Frontier::Verdict::kInvalid;
    if (split.ok()) {
      entries[i].url.url = {split.host, split.rest, split.depth};
      verdict = frontier->Import(entries[i], moment.now());
    }
    if (verdict == Frontier::Verdict::kAdded) ++added;
    context.reply().Int(static_cast<int64_t>(verdict));
  }
  if (added == 0) return;
  if (fresh != nullptr) context.SetObject(context.arg(1), std::move(fresh));
  FrontierChanged(context, added, "fr.import");
  LogUrlsAt(context, moment, 2, *frontier, first, kEntryWords);
}

}  // namespace sava::commands::frontier
