// The store through hiredis.
#include <hiredis.h>

#include <charconv>

#include "cache/store.h"

namespace timeline {
namespace {

Reply Convert(const redisReply* raw) {
  Reply reply;
  switch (raw->type) {
    case REDIS_REPLY_INTEGER:
      reply.kind = Reply::Kind::kInteger;
      reply.integer = raw->integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      reply.kind = Reply::Kind::kText;
      reply.text.assign(raw->str, static_cast<std::size_t>(raw->len));
      break;
    case REDIS_REPLY_ERROR:
      reply.kind = Reply::Kind::kError;
      reply.text.assign(raw->str, static_cast<std::size_t>(raw->len));
      break;
    case REDIS_REPLY_ARRAY:
      reply.kind = Reply::Kind::kArray;
      for (std::size_t i = 0; i < raw->elements; ++i) {
        reply.elements.push_back(Convert(raw->element[i]));
      }
      break;
    default:
      break;
  }
  return reply;
}

class RespConnection : public StoreConnection {
 public:
  RespConnection(redisContext* context, std::atomic<std::uint64_t>* asked)
      : context_(context), asked_(asked) {}
  RespConnection(const RespConnection&) = delete;
  RespConnection& operator=(const RespConnection&) = delete;
  ~RespConnection() override { redisFree(context_); }

  bool Run(const std::vector<Command>& commands, std::vector<Reply>* replies) override {
    asked_->fetch_add(commands.size());
    replies->clear();
    for (const auto& command : commands) {
      std::vector<const char*> parts;
      std::vector<std::size_t> sizes;
      for (const auto& part : command) {
        parts.push_back(part.data());
        sizes.push_back(part.size());
      }
      redisAppendCommandArgv(context_, static_cast<int>(parts.size()), parts.data(), sizes.data());
    }
    for (std::size_t i = 0; i < commands.size(); ++i) {
      void* raw = nullptr;
      if (redisGetReply(context_, &raw) != REDIS_OK || !raw) {
        usable_ = false;
        return false;
      }
      replies->push_back(Convert(static_cast<redisReply*>(raw)));
      freeReplyObject(raw);
      // A server that is still loading its files answers with errors: as good as no answer.
      if (replies->back().is_error() && replies->back().text.rfind("LOADING", 0) == 0) {
        usable_ = false;
        return false;
      }
    }
    return true;
  }

  bool usable() const override { return usable_; }

 private:
  redisContext* context_;
  std::atomic<std::uint64_t>* asked_;
  bool usable_ = true;
};

class RespStore : public Store {
 public:
  explicit RespStore(const std::string& address) {
    auto colon = address.rfind(':');
    if (address.find('/') != std::string::npos || colon == std::string::npos) {
      path_ = address;
    } else {
      host_ = address.substr(0, colon);
      std::from_chars(address.data() + colon + 1, address.data() + address.size(), port_);
    }
  }

 protected:
  std::unique_ptr<StoreConnection> Open() override {
    timeval connecting{0, 300 * 1000};
    timeval answering{2, 0};
    redisContext* context = path_.empty()
                                ? redisConnectWithTimeout(host_.c_str(), port_, connecting)
                                : redisConnectUnixWithTimeout(path_.c_str(), connecting);
    if (!context || context->err) {
      if (context) redisFree(context);
      return nullptr;
    }
    redisSetTimeout(context, answering);
    return std::make_unique<RespConnection>(context, &asked_);
  }

 private:
  std::string host_;
  int port_ = 0;
  std::string path_;
};

}  // namespace

std::unique_ptr<Store> MakeRespStore(const std::string& address) {
  return std::make_unique<RespStore>(address);
}

}  // namespace timeline
