// Saving and loading of Afc: docs/formats/afc.md describes the bytes.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/varint.h"
#include "types/counters/afc.h"
#include "types/counters/member_dictionary.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbTypes[] = {kRdbModule};
constexpr uint8_t kRdbStockSortedSet = 5;

// Longest half-life and window that are taken: a hundred years.
constexpr uint64_t kMaxPeriodMs = uint64_t{100} * 366 * 86400 * 1000;

// The members that counters name by their ids.
class SharedMembers final : public AuxData {
 public:
  std::string_view name() const override { return "the member dictionary of association counters"; }
  bool empty() const override { return MemberDictionary::Shared().size() == 0; }
  void Pin() override { MemberDictionary::Shared().Pin(); }
  void Unpin() override { MemberDictionary::Shared().Unpin(); }

  std::unique_ptr<Saving> Save() const override { return std::make_unique<SavingMembers>(); }
  std::shared_ptr<const LoadedAux> Load(Reader& in) const override {
    auto loaded = std::make_shared<SavedDictionary>();
    if (!loaded->Load(in)) return nullptr;
    return loaded;
  }

 private:
  class SavingMembers final : public Saving {
   public:
    void SaveNew(Writer& out) override { MemberDictionary::Shared().SaveNew(out, &saved_); }
    void End(Writer& out) override { MemberDictionary::SaveEnd(out); }

   private:
    MemberDictionary::SavedIds saved_;
  };
};

AuxData* Shared() {
  static SharedMembers members;
  return &members;
}

const SavedDictionary* DictionaryOf(const Reader& in) {
  if (in.aux() == nullptr) return nullptr;
  return static_cast<const SavedDictionary*>(in.aux()->Find(Afc::Type().module_id));
}

}  // namespace

const TypeInfo& Afc::Type() {
  static const TypeInfo kInfo{.name = "afc",
                              .rdb_types = kRdbTypes,
                              .rdb_type_count = 1,
                              .load = &Afc::Load,
                              .module_id = ModuleId("sava-afc1", 1),
                              .aux = &Shared};
  return kInfo;
}

StockForm Afc::stock_form(int64_t now) const {
  uint64_t members = 0;
  Top(1, now, [&members](std::string_view, uint64_t) { ++members; });
  return {"sorted sets", kRdbStockSortedSet, members == 0};
}

void Afc::SaveStockForm(Writer& out, int64_t now) const {
  uint64_t members = 0;
  Top(SIZE_MAX, now, [&members](std::string_view, uint64_t) { ++members; });
  out.Length(members);
  Top(SIZE_MAX, now, [&out](std::string_view member, uint64_t count) {
    out.String(member);
    out.Double(static_cast<double>(count));
  });
}

uint8_t Afc::rdb_type() const { return kRdbModule; }

// Nothing, or varints: maxlen, half-life, window, when it began (zigzag).
void Afc::SaveOptions(Writer& out) const {
  std::string bytes;
  if (options() != Options{}) {
    base::AppendVarint(&bytes, extra_->options.maxlen);
    base::AppendVarint(&bytes, static_cast<uint64_t>(extra_->options.halflife_ms));
    base::AppendVarint(&bytes, static_cast<uint64_t>(extra_->options.window_ms));
    base::AppendSignedVarint(&bytes, extra_->started_ms);
  }
  out.ModuleString(bytes);
}

bool Afc::LoadOptions(Reader& in) {
  const std::string bytes = in.ModuleString();
  if (!in.ok()) return false;
  if (bytes.empty()) return true;
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = p + bytes.size();
  uint64_t maxlen = 0;
  uint64_t halflife = 0;
  uint64_t window = 0;
  int64_t started = 0;
  p = base::GetVarint(p, end, &maxlen);
  if (p != nullptr) p = base::GetVarint(p, end, &halflife);
  if (p != nullptr) p = base::GetVarint(p, end, &window);
  if (p != nullptr) p = base::GetSignedVarint(p, end, &started);
  if (p != end || halflife > kMaxPeriodMs || window > kMaxPeriodMs) return false;
  if ((halflife != 0 && window != 0) || (maxlen == 0 && halflife == 0 && window == 0)) return false;
  if (started < 0 || started > INT64_MAX / 2) return false;
  extra_ = std::make_unique<Extra>();
  extra_->options = {maxlen, static_cast<int64_t>(halflife), static_cast<int64_t>(window)};
  extra_->started_ms = started;
  extra_->weight = -INFINITY;
  if (decays()) list_ = FrequencyList::Scored();
  return true;
}

void Afc::Save(Writer& out) const {
  out.Length(Type().module_id);
  SaveOptions(out);
  list_.Save(out, out.refers());
  if (windowed()) extra_->previous.Save(out, out.refers());
  out.ModuleEnd();
}

std::unique_ptr<Object> Afc::Load(uint8_t /*rdb_type*/, Reader& in) {
  auto afc = std::make_unique<Afc>();
  if (!afc->LoadOptions(in) || !afc->list_.Load(in, DictionaryOf(in))) return nullptr;
  if (afc->windowed() && !afc->extra_->previous.Load(in, DictionaryOf(in))) return nullptr;
  in.ModuleEnd();
  if (!in.ok()) return nullptr;
  const uint64_t bound = afc->maxlen() == 0 ? UINT64_MAX : afc->maxlen();
  if (afc->list_.size() > bound) return nullptr;
  if (afc->windowed() && afc->extra_->previous.size() > bound) return nullptr;
  if (afc->windowed()) {
    for (FrequencyList::Cursor at(afc->list_); at.valid(); at.Next()) {
      afc->extra_->shared += afc->extra_->previous.Count(at.member()) != 0 ? 1 : 0;
    }
  }
  if (afc->decays()) {
    afc->WeighAnew();
  }
  return afc;
}

// ---- in pieces ----
//
// The current list first, the one before it after that: until its turn comes that one does not
// change, because whatever would change it finishes the snapshot first.

void Afc::BeginCut(const PieceSink& sink, bool refer) {
  if (extra_ == nullptr) extra_ = std::make_unique<Extra>();
  std::string head;
  {
    Writer out(&head);
    out.Length(Type().module_id);
    SaveOptions(out);
  }
  sink(head);
  extra_->sink = sink;
  extra_->refer = refer;
  extra_->saving_previous = false;
  list_.BeginCut(extra_->sink, refer);
}

bool Afc::SavePieces(size_t budget) {
  if (extra_ == nullptr || !extra_->sink) return true;
  if (!list_.SavePieces(budget)) return false;
  if (windowed()) {
    if (!extra_->saving_previous) extra_->previous.BeginCut(extra_->sink, extra_->refer);
    extra_->saving_previous = true;
    if (!extra_->previous.SavePieces(budget)) return false;
  }
  std::string end;
  {
    Writer out(&end);
    out.ModuleEnd();
  }
  extra_->sink(end);
  AbortCut();
  return true;
}

void Afc::FinishSaving() {
  while (!SavePieces(SIZE_MAX)) continue;
}

void Afc::AbortCut() {
  list_.AbortCut();
  if (extra_ == nullptr) return;
  extra_->previous.AbortCut();
  extra_->sink = nullptr;
  if (extra_->options == Options{}) extra_.reset();
}

}  // namespace sava::types
