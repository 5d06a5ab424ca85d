// TokenBucket: limits how much somebody may take: `limit` tokens in a period. It is what the server
// keeps behind a key of RL.TAKE.
//
//   auto bucket = sava::TokenBucket::Make({.limit = 10, .period_ms = 1000});
//   if (bucket->Take(1, now_ms).allowed) Serve();
//
// Four ways to count: kWindow gives all tokens back when the period that began with the first one
// taken is over; kToken gives them back continuously, up to `capacity`; kGcra does the same by one
// time alone; kSliding lets at most `limit` pass in any span of a period.
//
// Time is a parameter, in Unix milliseconds. All operations are O(1) and allocate nothing but the
// text of Save. Thread safety: one thread at a time for each object; const functions of one object
// may run at the same time; different objects are independent.
#pragma once

#include <sava/export.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sava {

class SAVA_EXPORT TokenBucket {
 public:
  enum class Algorithm { kWindow, kToken, kGcra, kSliding };
  struct Rule {
    Algorithm algorithm = Algorithm::kToken;
    std::int64_t limit = 1;      // tokens in a period
    std::int64_t period_ms = 1;  // of it
    std::int64_t capacity = 0;   // how many at once, for kToken and kGcra; 0: as many as `limit`
  };
  struct Answer {
    bool allowed;
    std::int64_t remaining;
    std::int64_t retry_ms;  // when to try again; 0: allowed; -1: more than ever fits
    std::int64_t reset_ms;  // until nothing is missing any more
  };

  // A full bucket. Nothing when the rule cannot be used.
  static std::optional<TokenBucket> Make(const Rule& rule, std::int64_t now_ms = 0);
  TokenBucket(TokenBucket&& other) noexcept;
  TokenBucket& operator=(TokenBucket&& other) noexcept;
  ~TokenBucket();

  // Takes `cost` tokens if there are that many. A negative cost or time counts as 0.
  Answer Take(std::int64_t cost, std::int64_t now_ms);
  // What Take would answer.
  Answer Peek(std::int64_t cost, std::int64_t now_ms) const;
  // Gives tokens back, never beyond a full bucket. False when nothing was missing.
  bool Refund(std::int64_t cost, std::int64_t now_ms);
  const Rule& rule() const;

  TokenBucket Clone() const;
  // The state as the server keeps it in a key: the text of GET.
  std::string Save() const;
  // Nothing when the rule cannot be used or the text is no state of its algorithm.
  static std::optional<TokenBucket> Load(const Rule& rule, std::string_view text);

 private:
  struct Impl;
  explicit TokenBucket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sava
