#include <sava/token_bucket.h>

#include <algorithm>
#include <utility>

#include "types/counters/rate_limit.h"

namespace sava {

namespace {

types::RateAlgorithm AlgorithmOf(TokenBucket::Algorithm algorithm) {
  switch (algorithm) {
    case TokenBucket::Algorithm::kWindow:
      return types::RateAlgorithm::kWindow;
    case TokenBucket::Algorithm::kGcra:
      return types::RateAlgorithm::kGcra;
    case TokenBucket::Algorithm::kSliding:
      return types::RateAlgorithm::kSliding;
    case TokenBucket::Algorithm::kToken:
      break;
  }
  return types::RateAlgorithm::kToken;
}

std::optional<types::RateRule> RuleOf(const TokenBucket::Rule& rule) {
  const types::RateRule checked{.algorithm = AlgorithmOf(rule.algorithm),
                                .limit = rule.limit,
                                .period_ms = rule.period_ms,
                                .capacity = rule.capacity == 0 ? rule.limit : rule.capacity};
  if (!types::CheckRule(checked).empty()) return std::nullopt;
  return checked;
}

std::int64_t TimeOf(std::int64_t now_ms) {
  return std::clamp<std::int64_t>(now_ms, 0, types::kMaxNowMs);
}

std::int64_t CostOf(std::int64_t cost) {
  return std::clamp<std::int64_t>(cost, 0, types::kMaxTokens);
}

TokenBucket::Answer AnswerOf(const types::RateAnswer& answer) {
  return {answer.allowed, answer.remaining, answer.retry_ms, answer.reset_ms};
}

}  // namespace

struct TokenBucket::Impl {
  Rule asked;
  types::RateRule rule;
  types::RateState state;
};

TokenBucket::TokenBucket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenBucket::TokenBucket(TokenBucket&& other) noexcept = default;
TokenBucket& TokenBucket::operator=(TokenBucket&& other) noexcept = default;
TokenBucket::~TokenBucket() = default;

std::optional<TokenBucket> TokenBucket::Make(const Rule& rule, std::int64_t now_ms) {
  const std::optional<types::RateRule> checked = RuleOf(rule);
  if (!checked) return std::nullopt;
  std::unique_ptr<Impl> impl(new Impl{rule, *checked, {}});
  types::FreshBucket(impl->rule, TimeOf(now_ms), &impl->state);
  return TokenBucket(std::move(impl));
}

TokenBucket::Answer TokenBucket::Take(std::int64_t cost, std::int64_t now_ms) {
  return AnswerOf(types::TakeTokens(impl_->rule, CostOf(cost), TimeOf(now_ms), &impl_->state));
}

TokenBucket::Answer TokenBucket::Peek(std::int64_t cost, std::int64_t now_ms) const {
  return AnswerOf(types::PeekTokens(impl_->rule, CostOf(cost), TimeOf(now_ms), impl_->state));
}

bool TokenBucket::Refund(std::int64_t cost, std::int64_t now_ms) {
  return types::RefundTokens(impl_->rule, CostOf(cost), TimeOf(now_ms), &impl_->state).allowed;
}

const TokenBucket::Rule& TokenBucket::rule() const { return impl_->asked; }

TokenBucket TokenBucket::Clone() const {
  return TokenBucket(std::unique_ptr<Impl>(new Impl(*impl_)));
}

std::string TokenBucket::Save() const {
  char text[types::kBucketText];
  return {text, types::FormatBucket(impl_->rule.algorithm, impl_->state, text)};
}

std::optional<TokenBucket> TokenBucket::Load(const Rule& rule, std::string_view text) {
  const std::optional<types::RateRule> checked = RuleOf(rule);
  if (!checked) return std::nullopt;
  std::unique_ptr<Impl> impl(new Impl{rule, *checked, {}});
  if (!types::ParseBucket(checked->algorithm, text, &impl->state)) return std::nullopt;
  return TokenBucket(std::move(impl));
}

}  // namespace sava
