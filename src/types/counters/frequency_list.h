// FrequencyList: members with counts in the order of afc.h, in the layout that suits their number:
// packed up to 1,024 members, indexed beyond, and back again below 512. A packed list holds its
// members themselves, or their ids in the MemberDictionary once most of them are known to stand in
// several lists; an indexed one always holds ids. With ids it holds a reference for each.
//
// A scored list (exponential decay) orders by a score instead: the binary logarithm of a weight, in
// steps of 1/64. It is always indexed.
//
// Used under the owner's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "types/counters/indexed_counter.h"
#include "types/counters/member_dictionary.h"
#include "types/counters/packed_counter.h"

namespace sava::types {

class Reader;
class Writer;

class FrequencyList {
 public:
  static constexpr uint64_t kMaxCount = (uint64_t{1} << 63) - 1;
  // Of a scored list: how many steps a doubling of the weight has.
  static constexpr double kScoreSteps = 64;

  struct Added {
    uint64_t count;
    bool is_new;
  };
  // Gets the pieces of a saved list; see BeginCut.
  using Sink = std::function<void(std::string_view bytes)>;

  FrequencyList() = default;
  static FrequencyList Scored();
  FrequencyList(FrequencyList&& other) noexcept = default;
  FrequencyList& operator=(FrequencyList&& other) noexcept;
  // A snapshot that is not finished is aborted.
  ~FrequencyList() {
    AbortCut();
    Clear();
  }

  size_t size() const { return indexed_ != nullptr ? indexed_->size() : packed_.size(); }
  uint64_t total() const { return total_; }
  bool indexed() const { return indexed_ != nullptr; }
  size_t allocated() const;
  // What `samples` members (0: all) say the list would take with its members inside.
  size_t MemoryUsage(size_t samples) const;

  // maxlen 0: no bound. `dropped`, when given, is told the member whose place a new one took.
  Added Add(const KeptMember& member, uint64_t n, uint64_t maxlen = 0,
            const std::function<void(const KeptMember&)>* dropped = nullptr);
  // For scored lists: adds the weight whose logarithm is `weight`; `single` says that it is one
  // occurrence, with which a new member goes to the end of its step. *score is the result.
  bool AddScore(const KeptMember& member, double weight, bool single, uint64_t maxlen,
                double* score);
  // 0 when it was not there; else what it had, or with scores 1 and *score.
  uint64_t Remove(const KeptMember& member, double* score = nullptr);
  uint64_t Count(const KeptMember& member) const;
  // False when it is not there.
  bool Score(const KeptMember& member, double* score) const;
  void Clear();
  // Forgets up to `members` of them, from the end; true when none is left.
  bool ClearSome(size_t members);
  FrequencyList Clone() const;

  // Walks in order.
  class Cursor {
   public:
    explicit Cursor(const FrequencyList& list)
        : list_(&list),
          packed_(list.packed_),
          node_(list.indexed() ? list.indexed_->First() : IndexedCounter::kNothing) {}
    bool valid() const {
      return list_->indexed() ? node_ != IndexedCounter::kNothing : packed_.valid();
    }
    uint64_t count() const {
      return list_->indexed() ? list_->indexed_->RankOf(node_) : packed_.count();
    }
    double score() const { return list_->indexed_->ScoreOf(node_); }
    KeptMember member() const {
      if (!has_id()) return packed_.member();
      return MemberDictionary::Shared().Get(id());
    }
    bool has_id() const { return list_->indexed() || list_->packed_.width() != 0; }
    uint32_t id() const { return list_->indexed() ? list_->indexed_->IdOf(node_) : packed_.id(); }
    void Prefetch() const {
      if (has_id()) MemberDictionary::Shared().Prefetch(id());
    }
    void Next() {
      if (list_->indexed()) {
        node_ = list_->indexed_->Next(node_);
      } else {
        packed_.Next();
      }
    }

   private:
    const FrequencyList* list_;
    PackedCounter::Cursor packed_;
    IndexedCounter::Node node_;
  };

  // Module items (docs/formats/afc.md). With `refer` members are named by their ids in the
  // dictionary, which the file holds elsewhere.
  void Save(Writer& out, bool refer) const;
  // Fills an empty list; false when the items are not a list of that kind. `saved` resolves ids.
  bool Load(Reader& in, const SavedDictionary* saved);

  // Saves the list as it is now, in pieces that together are what Load reads: the head at once, the
  // rest by SavePieces, and by changes before they change something.
  void BeginCut(Sink sink, bool refer);
  // Hands on some `budget` bytes; true when all is saved.
  bool SavePieces(size_t budget);
  void AbortCut();
  bool cutting() const { return indexed_ != nullptr && indexed_->cutting(); }

 private:
  static constexpr size_t kMaxInline = 256;           // members that stand in the block itself
  static constexpr size_t kMaxInlineBytes = 8 << 10;  // and their bytes
  static constexpr size_t kMaxInlineMember = 255;
  static constexpr size_t kUnpackAt = PackedCounter::kMaxMembers;
  static constexpr size_t kRepackAt = PackedCounter::kMaxMembers / 2;

  static uint8_t WidthFor(uint32_t id) { return id < 1U << 16 ? 2 : id < 1U << 24 ? 3 : 4; }
  static uint64_t RankOf(double score) { return static_cast<uint64_t>(score * kScoreSteps) + 1; }
  void CountUp(uint64_t n) { total_ = total_ + n < total_ ? UINT64_MAX : total_ + n; }
  bool scored() const { return scored_; }

  Added AddById(const KeptMember& member, uint64_t hash, uint64_t n, uint64_t maxlen,
                const std::function<void(const KeptMember&)>* dropped);
  // A member that is not in the list, with its first count; at the end of its group or the front.
  void InsertNew(const KeptMember& member, uint64_t hash, uint64_t count, bool at_end);
  // The same with the sum of all counts kept right, also without memory. `before`: what it has from
  // the member whose place it takes.
  void InsertCounted(const KeptMember& member, uint64_t hash, uint64_t count, uint64_t before);
  // The sum of all counts, as far as it fits.
  uint64_t Sum() const;
  void CountDown(uint64_t count);
  void InsertId(uint32_t id, uint64_t count, bool at_end);
  uint64_t DropLast(const std::function<void(const KeptMember&)>* dropped);
  bool SharingPays() const;
  void ToIds();
  void Widen(uint8_t width);
  void ToIndexed();
  void ToPacked();
  void FinishCut();
  bool Append(const KeptMember& member, uint64_t count, double score);
  bool AppendIds(std::span<const uint32_t> ids, std::span<const uint64_t> counts, uint64_t size);
  bool LoadOrdered(Reader& in, const SavedDictionary* saved, uint64_t size);
  bool LoadLinked(Reader& in, const SavedDictionary* saved, uint64_t size);

  PackedCounter packed_;
  std::unique_ptr<IndexedCounter> indexed_;
  uint64_t total_ = 0;
  bool scored_ = false;
};

}  // namespace sava::types
