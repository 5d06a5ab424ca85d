#include "front/output_hold.h"

#include <algorithm>

namespace sava::front {

void OutputHold::Kept(uint64_t kept) {
  size_t done = 0;
  while (done < holds_.size() && holds_[done].ticket <= kept) released_ = holds_[done++].end;
  holds_.erase(holds_.begin(), holds_.begin() + static_cast<ptrdiff_t>(done));
}

void OutputHold::Note(uint64_t produced, uint64_t ticket, uint64_t kept) {
  if (produced <= (holds_.empty() ? released_ : holds_.back().end)) return;
  if (holds_.empty() && ticket <= kept) {
    released_ = produced;
  } else if (!holds_.empty() && holds_.back().ticket == ticket) {
    holds_.back().end = produced;
  } else {
    holds_.push_back({produced, ticket});
  }
}

void HoldList::Add(OutputHold& hold, int64_t now_ms) {
  newest_ = std::max(newest_, hold.last_ticket());
  if (hold.listed_) return;
  hold.listed_ = true;
  hold.since_ms_ = now_ms;
  holds_.push_back(&hold);
  count_.store(holds_.size(), std::memory_order_relaxed);
}

void HoldList::Remove(OutputHold& hold) {
  if (!hold.listed_) return;
  hold.listed_ = false;
  std::erase(holds_, &hold);
  count_.store(holds_.size(), std::memory_order_relaxed);
}

const std::vector<OutputHold*>& HoldList::TakeKept(uint64_t kept) {
  taken_.clear();
  std::erase_if(holds_, [&](OutputHold* hold) {
    if (hold->waits() && hold->next_ticket() > kept) return false;
    hold->listed_ = false;
    taken_.push_back(hold);
    return true;
  });
  count_.store(holds_.size(), std::memory_order_relaxed);
  return taken_;
}

void HoldList::BeginWait() {
  waiting_ = true;
  waits_.exchange(true, std::memory_order_acq_rel);
}

void HoldList::EndWait() {
  if (!waiting_) return;
  waiting_ = false;
  waits_.exchange(false, std::memory_order_acq_rel);
}

}  // namespace sava::front
