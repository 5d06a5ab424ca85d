// FR.NEXT, and what becomes of the leases it gives: FR.ACK, FR.NACK, FR.EXTEND.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "commands/blocking.h"
#include "commands/native/frontier.h"
#include "commands/texts.h"

namespace sava::commands::frontier {

namespace {

// ---- FR.NEXT ----

struct NextCall {
  Frontier::NextRequest request;
  std::optional<std::string_view> host;  // as it was given
  bool with_meta = false;
  bool block = false;
  int64_t deadline_ms = 0;
};

// An option that has a value after it.
bool ReadNextValue(KeyContext& context, size_t at, Moment* moment, NextCall* call) {
  int64_t number = 0;
  bool failed = false;
  if (context.ArgIs(at, "STRATEGY")) {
    Frontier::Strategy strategy{};
    if (!StrategyArg(context, at + 1, &strategy)) return false;
    call->request.strategy = strategy;
  } else if (context.ArgIs(at, "HOST")) {
    call->host = context.arg(at + 1);
  } else if (context.ArgIs(at, "PERHOST")) {
    if (!NumberArg(context, at + 1, 1, INT64_MAX, &number, errors::kMustBePositive)) return false;
    call->request.per_host = static_cast<uint64_t>(number);
  } else if (context.ArgIs(at, "LEASE")) {
    if (!DelayArg(context, at + 1, &number)) return false;
    call->request.lease_ms = number;
  } else if (context.ArgIs(at, "BLOCK")) {
    if (!TimeoutMillis(context, at + 1, &call->deadline_ms)) return false;
    call->block = true;
  } else if (!moment->Read(context, at, &failed)) {
    context.Error(errors::kSyntax);
    return false;
  }
  return !failed;
}

bool ReadNext(KeyContext& context, Moment* moment, NextCall* call) {
  int64_t count = 0;
  if (!NumberArg(context, 2, 1, INT64_MAX, &count, errors::kMustBePositive)) return false;
  call->request.count = static_cast<size_t>(count);
  for (size_t at = 3; at < context.argc();) {
    if (context.ArgIs(at, "RESTART")) {
      call->request.restart = true;
      ++at;
    } else if (context.ArgIs(at, "WITHMETA")) {
      call->with_meta = true;
      ++at;
    } else if (at + 1 == context.argc()) {
      context.Error(errors::kSyntax);
      return false;
    } else {
      if (!ReadNextValue(context, at, moment, call)) return false;
      at += 2;
    }
  }
  return true;
}

// FR.NEXT as it is to be repeated: nobody waits, and what was served is served again.
void LogNext(KeyContext& context, const Moment& moment, const Frontier& frontier,
             const NextCall& call, size_t served) {
  if (!context.wants_effects()) return context.NoEffect();
  const Frontier::NextRequest& request = call.request;
  std::array<NumberText, 4> numbers;
  std::vector<std::string_view> words = {"FR.NEXT", context.arg(1),
                                         numbers[0].Write(static_cast<int64_t>(served))};
  const auto add = [&words](std::string_view name, std::string_view value) {
    words.push_back(name);
    words.push_back(value);
  };
  if (request.strategy) add("STRATEGY", StrategyName(*request.strategy));
  const std::string host = call.host ? LoggedUrl(frontier, *call.host) : std::string();
  if (call.host) add("HOST", host);
  if (request.per_host != 0) {
    add("PERHOST", numbers[1].Write(static_cast<int64_t>(request.per_host)));
  }
  if (request.lease_ms) add("LEASE", numbers[2].Write(*request.lease_ms));
  if (request.restart) words.emplace_back("RESTART");
  add("NOW", numbers[3].Write(moment.now()));
  context.Effect(Args(words));
}

// Serves into the reply; how many.
size_t ReplyNext(KeyContext& context, Frontier* frontier, const NextCall& call, int64_t now) {
  protocol::Reply& reply = context.reply();
  const bool leased = call.request.lease_ms.value_or(frontier->options().lease_ms) > 0;
  const int64_t words = 1 + (leased ? 1 : 0) + (call.with_meta ? 1 : 0);
  const size_t mark = reply.Mark();
  std::string url;
  const size_t served = frontier->Next(call.request, now, [&](const Frontier::Served& one) {
    url.clear();
    types::AppendUrl(one.url.host, one.url.rest, &url);
    if (words > 1) reply.Array(words);
    if (leased) reply.Int(static_cast<int64_t>(one.lease));
    reply.Bulk(url);
    if (call.with_meta) reply.Bulk(one.meta);
  });
  if (served > 0) reply.ArrayAt(mark, static_cast<int64_t>(served));
  return served;
}

// Nothing to serve: waits, or says so.
void NothingNext(KeyContext& context, const Frontier* frontier, const NextCall& call, int64_t now) {
  if (!call.block || !context.can_block()) return context.reply().Array(0);
  KeyContext::BlockRequest request;
  const std::array<std::string_view, 1> keys = {context.arg(1)};
  request.keys = keys;
  request.deadline_ms = call.deadline_ms;
  request.type = &Frontier::Type();
  request.reply = KeyContext::BlockRequest::TimeoutReply::kEmptyArray;
  if (frontier != nullptr) {
    const int64_t wake = frontier->NextWake(now, call.request.host);
    // Strictly later than now, or a host that serves nobody would be asked without end.
    if (wake != Frontier::kNever) request.wake_at_ms = std::max(wake, context.now_ms() + 1);
  }
  context.Block(request);
}

// ---- leases ----

struct LeaseCall {
  std::vector<uint64_t> ids;
  std::optional<int64_t> millis;  // of the option, when given
};

// Lease ids and options in any order; `option` is the one that has a duration.
bool ReadLeases(KeyContext& context, std::string_view option, Moment* moment, LeaseCall* call) {
  for (size_t at = 2; at < context.argc(); ++at) {
    bool failed = false;
    int64_t number = 0;
    if (context.ArgIs(at, option)) {
      if (at + 1 == context.argc()) {
        context.Error(errors::kSyntax);
        return false;
      }
      if (!TimeArg(context, ++at, &number)) return false;
      call->millis = number;
    } else if (moment->Read(context, at, &failed)) {
      if (failed) return false;
      ++at;
    } else {
      if (!context.IntArg(at, &number)) return false;
      call->ids.push_back(static_cast<uint64_t>(std::max<int64_t>(number, 0)));
    }
  }
  if (!call->ids.empty()) return true;
  context.ArityError();
  return false;
}

void AnswerLeases(KeyContext& context, const Moment& moment, size_t known, std::string_view event) {
  if (known > 0) {
    FrontierChanged(context, static_cast<int64_t>(known), event);
    LogAt(context, moment, 2);
  }
  context.reply().Int(static_cast<int64_t>(known));
}

}  // namespace

void Next(KeyContext& context) {
  Moment moment(context);
  NextCall call;
  if (!ReadNext(context, &moment, &call)) return;
  call.block = call.block && !moment.given();  // that time will never be another
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kWrite, &frontier)) return;
  if (frontier == nullptr) return NothingNext(context, nullptr, call, moment.now());
  std::string host;
  if (call.host) {
    host = HostArg(*frontier, *call.host);
    call.request.host = host;
  }
  const size_t served = ReplyNext(context, frontier, call, moment.now());
  if (served == 0) return NothingNext(context, frontier, call, moment.now());
  FrontierChanged(context, static_cast<int64_t>(served), "fr.next");
  LogNext(context, moment, *frontier, call, served);
}

void Ack(KeyContext& context) {
  Moment moment(context);
  LeaseCall call;
  if (!ReadLeases(context, "REFETCH", &moment, &call)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kWrite, &frontier)) return;
  const int64_t refetch_at = call.millis ? Later(moment.now(), *call.millis) : 0;
  const size_t known = frontier == nullptr ? 0 : frontier->Ack(call.ids, refetch_at, moment.now());
  AnswerLeases(context, moment, known, "fr.ack");
}

void Nack(KeyContext& context) {
  Moment moment(context);
  LeaseCall call;
  if (!ReadLeases(context, "RETRY", &moment, &call)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kWrite, &frontier)) return;
  const int64_t retry_at = call.millis ? Later(moment.now(), *call.millis) : 0;
  const size_t known = frontier == nullptr ? 0 : frontier->Nack(call.ids, retry_at, moment.now());
  AnswerLeases(context, moment, known, "fr.nack");
}

void Extend(KeyContext& context) {
  Moment moment(context);
  LeaseCall call;
  if (!ReadLeases(context, "LEASE", &moment, &call)) return;
  Frontier* frontier = nullptr;
  if (!FindFrontier(context, Access::kWrite, &frontier)) return;
  size_t known = 0;
  if (frontier != nullptr) {
    const int64_t millis = call.millis.value_or(frontier->options().lease_ms);
    if (millis == 0) return context.Error("ERR say LEASE: the frontier was made without one");
    known = frontier->Extend(call.ids, Later(moment.now(), millis), moment.now());
  }
  AnswerLeases(context, moment, known, "fr.extend");
}

}  // namespace sava::commands::frontier
