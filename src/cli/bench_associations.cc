#include "cli/bench_associations.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/rng.h"
#include "base/text.h"
#include "cli/client_reply.h"
#include "cli/client_signals.h"

namespace sava::cli {
namespace {

// How many associations the verification looks at, and of how many associators, at most.
constexpr uint64_t kVerifiedAssociations = 200000;
constexpr uint64_t kVerifiedAssociators = 100;

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

// Writes the requests of one thread; keeps its scratch, so that none costs an allocation.
class Requests {
 public:
  Requests(const BenchOptions& options, const AssociationLoad& load)
      : load_(&load), wire_(options.load.wire), key_prefix_(options.prefix) {
    const LoadSettings& settings = options.load;
    head_.host = settings.endpoint.Text();
    if (settings.password.empty()) return;
    head_.authorization = settings.user.empty()
                              ? "Bearer " + settings.password
                              : "Basic " + Base64(settings.user + ":" + settings.password);
  }

  void Insert(const AssociationLoad::Association& association, std::string* out) {
    if (wire_ == Wire::kResp) {
      SetKey(key_prefix_, association.associator);
      member_.clear();
      load_->AppendMember(association.member, &member_);
      return AppendRespRequest({"AFC.ADD", key_, member_}, out);
    }
    member_ = "{\"key\":\"";
    load_->AppendAssociator(association.associator, &member_);
    member_ += "\",\"associatedKey\":\"";
    load_->AppendMember(association.member, &member_);
    member_ += "\"}";
    AppendHttpRequest(head_, "POST", "/associations", member_, out);
  }

  void Top(uint64_t associator, uint64_t k, std::string* out) {
    if (wire_ == Wire::kResp) {
      SetKey(key_prefix_, associator);
      return AppendRespRequest({"AFC.TOP", key_, std::to_string(k), "WITHCOUNTS"}, out);
    }
    SetKey("/associations/", associator);
    key_ += "?k=" + std::to_string(k);
    AppendHttpRequest(head_, "GET", key_, {}, out);
  }

  void Delete(uint64_t associator, std::string* out) {
    if (wire_ == Wire::kResp) {
      SetKey(key_prefix_, associator);
      return AppendRespRequest({"DEL", key_}, out);
    }
    SetKey("/associations/", associator);
    AppendHttpRequest(head_, "DELETE", key_, {}, out);
  }

 private:
  void SetKey(std::string_view before, uint64_t associator) {
    key_ = before;
    load_->AppendAssociator(associator, &key_);
  }

  const AssociationLoad* load_;
  Wire wire_;
  std::string key_prefix_;
  HttpHead head_;
  std::string key_;
  std::string member_;
};

class AssociationBench {
 public:
  explicit AssociationBench(const BenchOptions& options)
      : options_(options), load_(options.shape), client_(options.load) {
    report_.shape = options.shape;
    report_.load = options.load;
  }

  base::Result<BenchReport> Run() {
    const base::Status status = client_.Connect();
    if (!status) {
      return base::Error{
          fmt::format("cannot use {}: {}", options_.load.endpoint.Text(), status.error())};
    }
    const std::optional<int64_t> before = UsedMemory();
    Insert();
    const std::optional<int64_t> after = UsedMemory();
    if (before && after && report_.ok()) report_.memory_bytes = *after - *before;
    Verify();
    for (const uint64_t k : options_.top) Read(k);
    if (!options_.keep) Delete();
    return std::move(report_);
  }

 private:
  using NextRequest = LoadClient::NextRequest;

  bool going_on() const { return report_.failure.empty(); }
  uint64_t threads() const { return options_.load.threads; }

  void Phase(const std::string& name, uint64_t total, const std::vector<NextRequest>& streams) {
    progress_.Begin(name, total);
    bool interrupted = false;
    PhaseResult result = client_.Run(streams, [&](uint64_t done) {
      progress_.Update(done);
      interrupted = interrupted || signals_.TakeInterrupt();
      return !interrupted;
    });
    progress_.End();
    if (interrupted) report_.failure = "interrupted";
    if (!result.failure.empty()) {
      lost_ = true;
      report_.failure = fmt::format("{}: {}", name, result.failure);
    }
    report_.phases.push_back({name, std::move(result)});
  }

  void Insert() {
    std::vector<NextRequest> streams;
    for (uint64_t thread = 0; thread < threads(); ++thread) {
      streams.emplace_back(
          [this, i = thread, requests = Requests(options_, load_)](std::string* out) mutable {
            for (; i < load_.slots(); i += threads()) {
              if (const auto association = load_.At(i)) {
                requests.Insert(*association, out);
                i += threads();
                return true;
              }
            }
            return false;
          });
    }
    Phase("insert", load_.CountOperations(), streams);
  }

  void Read(uint64_t k) {
    if (!going_on()) return;
    std::vector<NextRequest> streams;
    for (uint64_t thread = 0; thread < threads(); ++thread) {
      streams.emplace_back([this, k, i = thread, requests = Requests(options_, load_),
                            rng = base::Rng(options_.shape.seed + k * threads() + thread)](
                               std::string* out) mutable {
        if (i >= options_.reads) return false;
        i += threads();
        requests.Top(rng.Below(options_.shape.associators), k, out);
        return true;
      });
    }
    Phase(fmt::format("top {}", k), options_.reads, streams);
  }

  void Delete() {
    if (lost_) return;
    std::vector<NextRequest> streams;
    for (uint64_t thread = 0; thread < threads(); ++thread) {
      streams.emplace_back(
          [this, i = thread, requests = Requests(options_, load_)](std::string* out) mutable {
            if (i >= options_.shape.associators) return false;
            requests.Delete(i, out);
            i += threads();
            return true;
          });
    }
    Phase("delete", options_.shape.associators, streams);
  }

  // Reads whole lists of a few associators and compares every count.
  void Verify() {
    if (!going_on()) return;
    BenchReport::Verification& verification =
        report_.verification.emplace(BenchReport::Verification{});
    const AssociationShape& shape = options_.shape;
    const uint64_t wanted =
        std::min({shape.associators, kVerifiedAssociators,
                  std::max<uint64_t>(1, kVerifiedAssociations / shape.associated)});
    const uint64_t k = options_.load.wire == Wire::kHttp ? std::min(shape.associated, kMostOverHttp)
                                                         : shape.associated;
    const Permutation sample(shape.associators, shape.seed);
    Requests requests(options_, load_);
    for (uint64_t i = 0; i < wanted && verification.problem.empty(); ++i) {
      const uint64_t associator = sample(i);
      std::string request;
      requests.Top(associator, k, &request);
      const base::Result<std::string> reply = client_.Ask(request);
      if (!reply) {
        verification.problem = reply.error();
        return;
      }
      const base::Result<CountedMembers> counted = Parse(reply.value());
      verification.problem =
          counted ? CheckCounts(load_, associator, k, counted.value()) : counted.error();
      ++verification.associators;
      verification.associations += k;
    }
  }

  base::Result<CountedMembers> Parse(std::string_view reply) const {
    if (options_.load.wire == Wire::kResp) return ParseTopReply(reply);
    return ParseTopJson(reply.substr(reply.find("\r\n\r\n") + 4));
  }

  // Nothing over HTTP, or from a server that does not tell.
  std::optional<int64_t> UsedMemory() {
    constexpr std::string_view kField = "\nused_memory:";
    if (options_.load.wire != Wire::kResp || lost_) return {};
    std::string request;
    AppendRespRequest({"INFO", "memory"}, &request);
    const base::Result<std::string> reply = client_.Ask(request);
    if (!reply) return {};
    const size_t at = reply.value().find(kField);
    if (at == std::string::npos) return {};
    const size_t start = at + kField.size();
    int64_t bytes = 0;
    const size_t end = reply.value().find('\r', start);
    if (!base::ParseInt(std::string_view(reply.value()).substr(start, end - start), &bytes)) {
      return {};
    }
    return bytes;
  }

  const BenchOptions& options_;
  Signals signals_;  // before the client's threads, which must not take them
  AssociationLoad load_;
  LoadClient client_;
  Progress progress_;
  BenchReport report_;
  bool lost_ = false;  // the server cannot be asked any more
};

}  // namespace

base::Result<BenchReport> RunAssociations(const BenchOptions& options) {
  return AssociationBench(options).Run();
}

base::Result<CountedMembers> ParseTopReply(std::string_view reply) {
  ReplyParser parser;
  parser.Feed(reply);
  Reply list;
  if (parser.Next(&list) != ReplyParser::Status::kReply || list.type != ReplyType::kArray ||
      list.elements.size() % 2 != 0) {
    return base::Error{"AFC.TOP did not answer with members and counts"};
  }
  CountedMembers counted;
  for (size_t i = 0; i < list.elements.size(); i += 2) {
    if (list.elements[i + 1].type != ReplyType::kInteger) {
      return base::Error{"a count of AFC.TOP is not an integer"};
    }
    counted.emplace_back(list.elements[i].text,
                         static_cast<uint64_t>(list.elements[i + 1].integer));
  }
  return counted;
}

// Our members need no escapes, so objects are told apart by their braces, the property names by
// the colon behind them.
base::Result<CountedMembers> ParseTopJson(std::string_view body) {
  CountedMembers counted;
  std::string member;
  std::string digits;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c == '{') {
      member.clear();
      digits.clear();
    } else if (c == '"') {
      const size_t end = body.find('"', i + 1);
      if (end == std::string_view::npos) return base::Error{"the answer is not JSON"};
      if (end + 1 == body.size() || body[end + 1] != ':') member = body.substr(i + 1, end - i - 1);
      i = end;
    } else if (c >= '0' && c <= '9') {
      digits += c;
    } else if (c == '}') {
      uint64_t count = 0;
      if (member.empty() || !base::ParseUint(digits, &count)) {
        return base::Error{"the answer holds an object without key and frequency"};
      }
      counted.emplace_back(member, count);
    }
  }
  if (!body.starts_with('[')) return base::Error{"the answer is not an array"};
  return counted;
}

std::string CheckCounts(const AssociationLoad& load, uint64_t associator, uint64_t k,
                        const CountedMembers& counted) {
  std::unordered_map<std::string, uint64_t> expected;
  for (uint64_t j = 0; j < load.shape().associated; ++j) {
    expected[load.MemberText(load.Member(associator, j))] = load.Repetitions(associator, j);
  }
  const std::string who = "associator " + load.AssociatorText(associator);
  const size_t wanted = std::min<size_t>(expected.size(), k);
  if (counted.size() != wanted) {
    return fmt::format("{} has {} members instead of {}", who, counted.size(), wanted);
  }
  uint64_t last = UINT64_MAX;
  for (const auto& [member, count] : counted) {
    const auto found = expected.find(member);
    if (found == expected.end()) return fmt::format("{} has {}, which nobody sent", who, member);
    if (count != found->second) {
      return fmt::format("{} has {} {} times instead of {}", who, member, count, found->second);
    }
    if (count > last) return fmt::format("{} is not in order at {}", who, member);
    last = count;
    expected.erase(found);
  }
  for (const auto& [member, count] : expected) {
    if (count > last) return fmt::format("{} lacks {}, which was sent more often", who, member);
  }
  return {};
}

}  // namespace sava::cli
