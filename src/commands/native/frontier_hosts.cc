// FR.PEEK, FR.HOSTS, FR.HOST, FR.PURGE and FR.CLEAR: a frontier host by host.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "commands/native/frontier.h"

namespace sava::commands::frontier {

namespace {

bool ReadPeek(KeyContext& context, Range* range) {
  int64_t count = 0;
  size_t at = 3;
  if (context.argc() > 3 && base::ParseInt(context.arg(3), &count)) {
    if (!NumberArg(context, 3, 0, INT64_MAX, &count)) return false;
    range->count = static_cast<uint64_t>(count);
    ++at;
  }
  return ReadRange(context, at, range, INT64_MIN);
}

bool ReadHostChange(KeyContext& context, Moment* moment, Frontier::HostChange* change, bool* any) {
  for (size_t at = 3; at < context.argc(); at += 2) {
    if (at + 1 == context.argc()) {
      context.Error(errors::kSyntax);
      return false;
    }
    int64_t number = 0;
    bool failed = false;
    if (context.ArgIs(at, "DELAY")) {
      if (!DelayArg(context, at + 1, &number, -1)) return false;
      change->delay_ms = number;
    } else if (context.ArgIs(at, "BLOCKUNTIL")) {
      if (!TimeArg(context, at + 1, &number)) return false;
      change->blocked_until = number;
    } else if (context.ArgIs(at, "LIMIT")) {
      if (!NumberArg(context, at + 1, 0, Frontier::kMaxPerHost, &number)) return false;
      change->limit = static_cast<uint64_t>(number);
    } else if (moment->Read(context, at, &failed)) {
      if (failed) return false;
      continue;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
    *any = true;
  }
  return true;
}

void ReplyHost(KeyContext& context, const Frontier::HostInfo& info) {
  protocol::Reply& reply = context.reply();
  const auto field = [&reply](std::string_view name, int64_t value) {
    reply.Bulk(name);
    reply.Int(value);
  };
  reply.Map(9);
  reply.Bulk("host");
  reply.Bulk(info.name);
  field("position", static_cast<int64_t>(info.number));
  field("queued", static_cast<int64_t>(info.queued));
  field("delayed", static_cast<int64_t>(info.delayed));
  field("leased", static_cast<int64_t>(info.leased));
  field("delay", info.delay_ms);
  field("limit", static_cast<int64_t>(info.limit));
  field("blocked-until", info.blocked_until);
  field("next-at", info.next_at);
}

}  // namespace

void Peek(KeyContext& context) {
  Range range;
  if (!ReadPeek(context, &range)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kRead, &frontier)) return;
  if (frontier == nullptr) return context.reply().Array(0);
  const std::string host = HostArg(*frontier, context.arg(2));
  protocol::Reply& reply = context.reply();
  const size_t mark = reply.Mark();
  int64_t shown = 0;
  std::string url;
  const Frontier::Look look =
      frontier->Peek(host, range.start, range.count, [&](const Frontier::Served& one) {
        url.clear();
        types::AppendUrl(one.url.host, one.url.rest, &url);
        reply.Bulk(url);
        ++shown;
      });
  if (range.start_given && look == Frontier::Look::kInvalidPosition) {
    const auto info = frontier->FindHost(host);
    const uint64_t last = info.has_value() ? info->queued - 1 : 0;
    std::string error = "ERR invalid position ";
    error += base::IntText(static_cast<int64_t>(range.start));
    error += ", valid 0..";
    error += base::IntText(static_cast<int64_t>(last));
    return context.Error(error);
  }
  if (range.start_given && look == Frontier::Look::kEmpty) {
    return context.Error("ERR the host has no URLs");
  }
  reply.ArrayAt(mark, shown);
}

void Hosts(KeyContext& context) {
  Range range;
  if (!ReadRange(context, 2, &range)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kRead, &frontier)) return;
  if (frontier == nullptr) return context.reply().Array(0);
  const uint64_t known = frontier->host_count();
  const uint64_t left = range.start < known ? known - range.start : 0;
  context.reply().Array(static_cast<int64_t>(std::min(left, range.count)));
  if (left == 0) return;
  frontier->Hosts(range.start, std::min(left, range.count),
                  [&](const Frontier::HostInfo& info) { context.reply().Bulk(info.name); });
}

void Host(KeyContext& context) {
  Moment moment(context);
  Frontier::HostChange change;
  bool any = false;
  if (!ReadHostChange(context, &moment, &change, &any)) return;
  Frontier* frontier = nullptr;
  if (!NeedFrontier(context, any ? Access::kWrite : Access::kRead, &frontier)) return;
  const std::string host = HostArg(*frontier, context.arg(2));
  if (any) {
    if (host.empty() || !frontier->ChangeHost(host, change, moment.now())) {
      return context.Error(kBadHost);
    }
    FrontierChanged(context, 1, "fr.host");
    LogUrlsAt(context, moment, 3, *frontier, 2, context.argc());
  }
  const std::optional<Frontier::HostInfo> info = frontier->FindHost(host);
  info.has_value() ? ReplyHost(context, *info) : context.reply().Null();
}

void Purge(KeyContext& context) {
  Moment moment(context);
  bool failed = false;
  if (context.argc() != 3 && (context.argc() != 5 || !moment.Read(context, 3, &failed))) {
    return context.Error(errors::kSyntax);
  }
  if (failed) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kWrite, &frontier)) return;
  uint64_t purged = 0;
  if (frontier != nullptr) {
    const std::string host = HostArg(*frontier, context.arg(2));
    purged = frontier->Purge(host, moment.now()).value_or(0);
  }
  if (purged > 0) {
    FrontierChanged(context, static_cast<int64_t>(purged), "fr.purge");
    LogUrlsAt(context, moment, 3, *frontier, 2, context.argc());
  }
  context.reply().Int(static_cast<int64_t>(purged));
}

void Clear(KeyContext& context) {
  Moment moment(context);
  bool failed = false;
  if (context.argc() != 2 && (context.argc() != 4 || !moment.Read(context, 2, &failed))) {
    return context.Error(errors::kSyntax);
  }
  Frontier* frontier = nullptr;
  if (failed || !FindFrontier(context, Access::kWrite, &frontier)) return;
  if (frontier != nullptr) {
    frontier->Ack({}, 0, moment.now());  // what is due comes first: it counts lease ids on
    context.SetObject(context.arg(1), frontier->Emptied(), kKeepExpiry);
    context.Changed();
    context.Notify(kNotifyModule, "fr.clear", context.arg(1));
    LogAt(context, moment, 2);
  }
  context.reply().Ok();
}

}  // namespace sava::commands::frontier
