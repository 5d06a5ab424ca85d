// Afc: the association frequency counter. It counts how often members occur and keeps them ordered,
// so that the most frequent are read from the front.
//
// The order, exactly: frequency descending; a change moves a member to the front of the group that
// has its new frequency; a new member with frequency 1 goes to the very end. So members of equal
// frequency stand with the latest change first, except that those of frequency 1 stand in order of
// arrival. A frequency stops at 2^63 - 1; the member still moves to the front of that group.
//
// Options, fixed at creation:
//   maxlen      Space-Saving: a new member takes the place of the last one, with that one's count
//               plus its own. As long as nothing is removed, no count is more than total/maxlen too
//               high, none too low, and every member above total/maxlen is there.
//   halflife    exponential decay: an occurrence weighs half as much after every `halflife`. Order
//               is by decayed weight in steps of 1/64 of a doubling (1.1 %), latest first within a
//               step; it never changes by time alone. Counts are the decayed weight, rounded.
//   window      only recent occurrences count: all of the last `window`, nothing older than twice
//               that (two generations). With maxlen each generation is bounded.
//
// Time is Unix milliseconds, given by the caller. A moment before the beginning (of the decay, of
// the current generation) counts as the beginning. Thread safety: as every Object, used under its
// owner's lock; the members of large and of similar counters live in the process-wide
// MemberDictionary, which has its own locks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "types/counters/frequency_list.h"
#include "types/value/object.h"

namespace sava::types {

class Afc final : public Object {
 public:
  static constexpr uint64_t kMaxCount = (uint64_t{1} << 63) - 1;

  struct Options {
    uint64_t maxlen = 0;      // 0: no bound
    int64_t halflife_ms = 0;  // 0: no decay
    int64_t window_ms = 0;    // 0: no window; never together with halflife
    bool operator==(const Options&) const = default;
  };
  struct Added {
    uint64_t count;  // after the change
    bool is_new;
  };
  using Visit = std::function<void(std::string_view member, uint64_t count)>;

  Afc();
  Afc(const Options& options, int64_t now_ms);
  ~Afc() override;

  // `n` more occurrences. REQUIRES: n >= 1.
  Added Add(std::string_view member, uint64_t n, int64_t now_ms);
  // True when it was there.
  bool Remove(std::string_view member, int64_t now_ms);
  // 0 when it is not there.
  uint64_t Count(std::string_view member, int64_t now_ms) const;
  // The first k in order.
  void Top(size_t k, int64_t now_ms, const Visit& visit) const;
  size_t Card(int64_t now_ms) const;
  // The sum of all counts ever added and not removed, 2^64 - 1 at most; with a window, of the two
  // generations; with decay, the decayed weight.
  uint64_t Total(int64_t now_ms) const;
  // Whether what it answers depends on the time.
  bool timed() const { return extra_ != nullptr && (decays() || windowed()); }
  Options options() const { return extra_ == nullptr ? Options{} : extra_->options; }
  // "packed" or "indexed".
  std::string_view layout() const;

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return layout(); }
  size_t size() const override;
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  StockForm stock_form(int64_t now) const override;
  void SaveStockForm(Writer& out, int64_t now) const override;
  bool large() const override {
    return list_.indexed() || (windowed() && extra_->previous.indexed());
  }
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override;
  void AbortCut() override;

 private:
  // The generations that count at a moment.
  struct Generations {
    const FrequencyList* current;
    const FrequencyList* previous;
    size_t shared;
  };
  struct Extra {
    Options options;
    int64_t started_ms = 0;              // of the current generation, or when decay began
    double weight = 0;                   // decay: logarithm of the sum of all weights
    FrequencyList previous;              // window: the generation before
    std::vector<FrequencyList> retired;  // window: generations that are over
    size_t shared = 0;                   // window: members in both generations
    PieceSink sink;                      // of the snapshot being taken
    bool saving_previous = false;
    bool refer = false;
  };

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  bool decays() const { return extra_ != nullptr && extra_->options.halflife_ms != 0; }
  bool windowed() const { return extra_ != nullptr && extra_->options.window_ms != 0; }
  uint64_t maxlen() const { return extra_ != nullptr ? extra_->options.maxlen : 0; }
  // How many half-lives have passed since the beginning.
  double Age(int64_t now_ms) const;
  uint64_t Weight(double score, int64_t now_ms) const;
  Generations At(int64_t now_ms) const;
  void Rotate(int64_t now_ms);
  void ForgetRetired();
  void WeighAnew();
  Added AddToWindow(const KeptMember& member, uint64_t n, int64_t now_ms);
  void TopOfWindow(size_t k, const Generations& at, const Visit& visit) const;
  void SaveOptions(Writer& out) const;
  bool LoadOptions(Reader& in);
  void FinishSaving();

  FrequencyList list_;
  std::unique_ptr<Extra> extra_;
};

}  // namespace sava::types
