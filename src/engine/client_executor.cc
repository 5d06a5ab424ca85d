#include "engine/client_executor.h"

#include <utility>

#include "base/text.h"

namespace sava::engine {

namespace {
constexpr size_t kKeepReply = 64 << 10;
constexpr std::string_view kOver = "-ERR the reply is over the limit of the client's output\r\n";
}  // namespace

bool ClientExecutor::Run(commands::Args args, int resp, std::string_view* reply) {
  // What the last reply left behind; its view was valid until now.
  replies_.Consume(replies_.pending());
  replies_.ReleaseIfEmpty(kKeepReply);
  std::swap(client_->out, replies_);
  const int own_resp = std::exchange(client_->resp, resp);
  const bool done = engine_.Execute(lane_, *client_, args);
  client_->resp = own_resp;
  std::swap(client_->out, replies_);
  if (replies_.over()) {  // the connection is closed
    replies_ = protocol::OutBuffer();
    *reply = kOver;
    return done;
  }
  iovec vectors[64];
  const size_t count = replies_.Gather(vectors, 64);
  if (count <= 1) {
    *reply = count == 0
                 ? std::string_view()
                 : std::string_view(static_cast<char*>(vectors[0].iov_base), vectors[0].iov_len);
    return done;
  }
  gathered_.clear();
  while (!replies_.empty()) {
    size_t total = 0;
    const size_t parts = replies_.Gather(vectors, 64);
    for (size_t i = 0; i < parts; ++i) {
      gathered_.append(static_cast<char*>(vectors[i].iov_base), vectors[i].iov_len);
      total += vectors[i].iov_len;
    }
    replies_.Consume(total);
  }
  *reply = gathered_;
  return done;
}

bool ClientExecutor::Look(commands::Args args, int resp, std::string_view* reply) {
  client_->rate.paid = engine_.limiter().enabled();
  return Run(args, resp, reply);
}

std::string ClientExecutor::MasterAddress() {
  if (!engine_.role().replica()) return {};
  const config::Settings& settings = engine_.settings();
  return settings.master_host + ":" + base::IntText(settings.master_port);
}

// The emptier of the client's buckets.
bool ClientExecutor::RefusedBy(int64_t* limit, int64_t* period_ms) {
  int64_t least = INT64_MAX;
  for (const auto& bucket : {client_->rate.user, client_->rate.address}) {
    if (bucket == nullptr) continue;
    const RateBucket::Figures figures = bucket->Look(lane_.now_ms);
    if (figures.remaining >= least) continue;
    least = figures.remaining;
    *limit = figures.rule.limit;
    *period_ms = figures.rule.period_ms;
  }
  return least != INT64_MAX;
}

}  // namespace sava::engine
