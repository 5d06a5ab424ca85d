// Saving and loading of FrequencyList: docs/formats/afc.md describes the bytes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bit_packing.h"
#include "types/counters/frequency_list.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

// Bits of a list's form.
constexpr uint64_t kLinked = 1;
constexpr uint64_t kScored = 2;
constexpr uint64_t kRefers = 4;

constexpr size_t kChunkMembers = 4096;
constexpr size_t kChunkBytes = 256 << 10;
constexpr double kMaxScore = 1e15;

MemberDictionary& Dictionary() { return MemberDictionary::Shared(); }

void AppendRecord(std::string* out, const KeptMember& member) {
  const size_t at = out->size();
  out->resize(at + member.record_size());
  member.Write(reinterpret_cast<uint8_t*>(out->data()) + at);
}

void AppendScore(std::string* out, double score) {
  char bytes[sizeof(score)];
  memcpy(bytes, &score, sizeof(score));
  out->append(bytes, sizeof(bytes));
}

// Ids in as few bits as the largest needs, behind a byte that says how many.
void AppendIds(std::string* out, const std::vector<uint32_t>& ids) {
  const uint32_t highest = ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end());
  const unsigned width = base::BitsFor(highest);
  out->push_back(static_cast<char>(width));
  base::PackBits<uint32_t>(ids, width, out);
}

// Reads the parts of a chunk; the first failure sticks.
class ChunkReader {
 public:
  explicit ChunkReader(std::string_view bytes)
      : p_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(p_ + bytes.size()) {}

  bool ok() const { return p_ != nullptr; }
  bool AtEnd() const { return p_ == end_; }
  uint64_t Number() {
    uint64_t value = 0;
    if (ok()) p_ = base::GetVarint(p_, end_, &value);
    return ok() ? value : 0;
  }
  // How many things of at least a bit each follow.
  size_t Count() {
    const uint64_t count = Number();
    if (!ok() || count > static_cast<uint64_t>(end_ - p_) * 8) p_ = nullptr;
    return ok() ? static_cast<size_t>(count) : 0;
  }
  double Score() {
    double score = 0;
    if (!ok() || static_cast<size_t>(end_ - p_) < sizeof(score)) {
      p_ = nullptr;
      return 0;
    }
    memcpy(&score, p_, sizeof(score));
    p_ += sizeof(score);
    if (!(score >= 0 && score <= kMaxScore)) p_ = nullptr;
    return ok() ? score : 0;
  }
  KeptMember Record() {
    KeptMember member;
    if (ok()) p_ = ReadRecord(p_, end_, &member);
    if (ok() && !member.canonical()) p_ = nullptr;
    return member;
  }
  std::vector<uint32_t> Ids(size_t count) {
    std::vector<uint32_t> ids;
    if (!ok() || p_ == end_) {
      p_ = nullptr;
      return ids;
    }
    const unsigned width = *p_++;
    const auto left = static_cast<size_t>(end_ - p_);
    if (width > 32 || base::PackedSize(count, width) > left) {
      p_ = nullptr;
      return ids;
    }
    ids.resize(count);
    base::UnpackBits<uint32_t>(std::span(p_, left), width, ids);
    p_ += base::PackedSize(count, width);
    return ids;
  }

 private:
  const uint8_t* p_;
  const uint8_t* end_;
};

// Makes saved ids ours; false when the file did not name one.
bool Resolve(const SavedDictionary& saved, std::vector<uint32_t>* ids) {
  for (uint32_t& id : *ids) {
    id = saved.Find(id);
    if (id == MemberDictionary::kNone) return false;
  }
  return true;
}

// The members of a chunk: records, or ids that `saved` resolves.
bool ReadMembers(ChunkReader& in, size_t count, const SavedDictionary* saved,
                 std::vector<KeptMember>* members) {
  members->clear();
  if (saved == nullptr) {
    for (size_t i = 0; i < count && in.ok(); ++i) members->push_back(in.Record());
    return in.ok();
  }
  std::vector<uint32_t> ids = in.Ids(count);
  if (!in.ok() || !Resolve(*saved, &ids)) return false;
  for (const uint32_t id : ids) members->push_back(Dictionary().Get(id));
  return true;
}

// Up to kChunkMembers members from the cursor on.
std::string OrderedChunk(FrequencyList::Cursor& at, bool scored, bool refer) {
  std::string heads;
  std::string members;
  std::vector<uint32_t> ids;
  size_t count = 0;
  uint64_t run = 0;
  uint64_t run_members = 0;
  for (; at.valid() && count < kChunkMembers && members.size() < kChunkBytes; at.Next(), ++count) {
    if (scored) {
      AppendScore(&heads, at.score());
    } else if (run_members != 0 && run == at.count()) {
      ++run_members;
    } else {
      if (run_members != 0) base::AppendVarint(&heads, run_members);
      base::AppendVarint(&heads, run_members == 0 ? at.count() : run - at.count());
      run = at.count();
      run_members = 1;
    }
    if (refer) {
      ids.push_back(at.id());
    } else {
      AppendRecord(&members, at.member());
    }
  }
  if (run_members != 0) base::AppendVarint(&heads, run_members);
  std::string chunk;
  base::AppendVarint(&chunk, count);
  chunk += heads;
  if (refer) AppendIds(&chunk, ids);
  return chunk + members;
}

std::string LinkedBlock(size_t block, const std::vector<IndexedCounter::Saved>& nodes, bool scored,
                        bool refer) {
  std::string chunk;
  chunk.reserve(16 * nodes.size() + 16);
  base::AppendVarint(&chunk, block);
  base::AppendVarint(&chunk, nodes.size());
  std::vector<uint32_t> ids;
  if (refer) ids.reserve(nodes.size());
  std::string members;
  for (const IndexedCounter::Saved& node : nodes) {
    base::AppendVarint(&chunk, node.node % IndexedCounter::kBlockNodes);
    base::AppendVarint(&chunk, node.next == IndexedCounter::kNothing ? 0 : uint64_t{node.next} + 1);
    if (scored) {
      AppendScore(&chunk, node.score);
    } else {
      base::AppendVarint(&chunk, node.rank);
    }
    if (refer) {
      ids.push_back(node.id);
    } else {
      AppendRecord(&members, Dictionary().Get(node.id));
    }
  }
  if (refer) AppendIds(&chunk, ids);
  return chunk + members;
}

}  // namespace

// A list whose members stand in itself cannot be referred to by id: it is saved with them.
void FrequencyList::Save(Writer& out, bool refer) const {
  refer = refer && (indexed() || packed_.width() != 0);
  out.ModuleUnsigned((scored() ? kScored : 0) | (refer ? kRefers : 0));
  out.ModuleUnsigned(size());
  out.ModuleUnsigned(total_);
  Cursor at(*this);
  while (at.valid()) out.ModuleString(OrderedChunk(at, scored(), refer));
}

void FrequencyList::BeginCut(Sink sink, bool refer) {
  std::string head;
  {
    Writer out(&head);
    if (indexed_ == nullptr) {
      Save(out, refer);
    } else {
      out.ModuleUnsigned(kLinked | (scored() ? kScored : 0) | (refer ? kRefers : 0));
      out.ModuleUnsigned(size());
      out.ModuleUnsigned(total_);
      const IndexedCounter::Node first = indexed_->First();
      out.ModuleUnsigned(first == IndexedCounter::kNothing ? 0 : uint64_t{first} + 1);
      out.ModuleUnsigned(indexed_->blocks());
    }
  }
  sink(head);
  if (indexed_ == nullptr) return;
  indexed_->BeginCut([sink = std::move(sink), with_scores = scored(), refer](
                         size_t block, const std::vector<IndexedCounter::Saved>& nodes) {
    // As it is: packing it would gain little and take a writer most of its time.
    std::string piece;
    {
      Writer out(&piece, false);
      out.ModuleString(LinkedBlock(block, nodes, with_scores, refer));
    }
    sink(piece);
  });
}

bool FrequencyList::SavePieces(size_t budget) {
  constexpr size_t kPerBlock = IndexedCounter::kBlockNodes * 16;
  return indexed_ == nullptr || indexed_->SaveNextBlocks(std::max<size_t>(1, budget / kPerBlock));
}

void FrequencyList::AbortCut() {
  if (indexed_ != nullptr) indexed_->AbortCut();
}

void FrequencyList::FinishCut() {
  if (cutting()) indexed_->SaveNextBlocks(SIZE_MAX);
}

bool FrequencyList::Load(Reader& in, const SavedDictionary* saved) {
  const uint64_t form = in.ModuleUnsigned();
  const uint64_t size = in.ModuleUnsigned();
  const uint64_t total = in.ModuleUnsigned();
  if (!in.ok() || form > 7 || scored() != ((form & kScored) != 0)) return false;
  if ((form & kRefers) == 0) {
    saved = nullptr;
  } else if (saved == nullptr) {
    return false;
  }
  const bool loaded =
      (form & kLinked) != 0 ? LoadLinked(in, saved, size) : LoadOrdered(in, saved, size);
  if (!loaded || FrequencyList::size() != size) return false;
  total_ = scored() ? 0 : Sum();
  return total_ == total;
}

// At the end of the list; false when it is there already or does not belong at the end.
bool FrequencyList::Append(const KeptMember& member, uint64_t count, double score) {
  const uint64_t hash = Dictionary().HashOf(member);
  if (!scored()) {
    if (count == 0 || count > kMaxCount || Count(member) != 0) return false;
    InsertNew(member, hash, count, true);
    return true;
  }
  double known = 0;
  const auto last = indexed_->Last();
  if (Score(member, &known)) return false;
  if (last != IndexedCounter::kNothing && indexed_->RankOf(last) < RankOf(score)) return false;
  const auto node = indexed_->Insert(Dictionary().Intern(member, hash), RankOf(score), true);
  indexed_->SetScore(node, score);
  return true;
}

// The same for members that the dictionary knows; `size` is the whole list's.
bool FrequencyList::AppendIds(std::span<const uint32_t> ids, std::span<const uint64_t> counts,
                              uint64_t size) {
  if (FrequencyList::size() == 0 && ids.size() == size && size <= kUnpackAt) {
    std::vector<uint32_t> sorted(ids.begin(), ids.end());
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) return false;
    for (const uint32_t id : sorted) Dictionary().Prefetch(id);
    for (const uint32_t id : sorted) Dictionary().AddReference(id);
    packed_ = PackedCounter::Of(WidthFor(sorted.back()), ids, counts);
    return true;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool there = indexed_ != nullptr ? indexed_->Find(ids[i]) != IndexedCounter::kNothing
                                           : packed_.width() != 0 && packed_.FindId(ids[i]);
    if (there) return false;
    Dictionary().AddReference(ids[i]);
    InsertId(ids[i], counts[i], true);
  }
  return true;
}

bool FrequencyList::LoadOrdered(Reader& in, const SavedDictionary* saved, uint64_t size) {
  std::vector<KeptMember> members;
  std::vector<uint64_t> counts;
  std::vector<double> scores;
  uint64_t last = kMaxCount;
  while (FrequencyList::size() < size) {
    const std::string bytes = in.ModuleString();
    if (!in.ok()) return false;
    ChunkReader chunk(bytes);
    const size_t count = chunk.Count();
    if (!chunk.ok() || count == 0 || count > kChunkMembers) return false;
    counts.clear();
    scores.clear();
    if (scored()) {
      for (size_t i = 0; i < count && chunk.ok(); ++i) scores.push_back(chunk.Score());
    }
    for (uint64_t run = 0; !scored() && counts.size() < count;) {
      const uint64_t number = chunk.Number();
      const uint64_t run_members = chunk.Number();
      if (!chunk.ok() || number == 0 || run_members == 0) return false;
      if (!counts.empty() && number >= run) return false;
      run = counts.empty() ? number : run - number;
      if (run > last || run_members > count - counts.size()) return false;
      last = run;
      counts.insert(counts.end(), run_members, run);
    }
    if (saved != nullptr && !scored()) {
      std::vector<uint32_t> ids = chunk.Ids(count);
      if (!chunk.ok() || !chunk.AtEnd() || !Resolve(*saved, &ids)) return false;
      if (!AppendIds(ids, counts, size)) return false;
      continue;
    }
    if (!chunk.ok() || !ReadMembers(chunk, count, saved, &members) || !chunk.AtEnd()) return false;
    for (size_t i = 0; i < count; ++i) {
      if (!Append(members[i], scored() ? 1 : counts[i], scored() ? scores[i] : 0)) return false;
    }
  }
  return true;
}

bool FrequencyList::LoadLinked(Reader& in, const SavedDictionary* saved, uint64_t size) {
  struct Loaded {
    uint64_t offset;
    uint64_t next;  // node + 1
    uint64_t rank;
    double score;
    uint32_t id;
  };
  const uint64_t first = in.ModuleUnsigned();
  const uint64_t block_count = in.ModuleUnsigned();
  // A block takes four bytes at least: its opcode and length, its number, its count.
  if (!in.ok() || block_count > in.remaining() / 4) return false;
  std::unordered_map<uint64_t, std::vector<Loaded>> blocks;
  const auto release = [&] {
    for (const auto& [index, block] : blocks) {
      for (const Loaded& node : block) Dictionary().Release(node.id);
    }
    return false;
  };
  uint64_t live = 0;
  std::vector<KeptMember> members;
  for (uint64_t i = 0; i < block_count; ++i) {
    const std::string bytes = in.ModuleString();
    ChunkReader chunk(bytes);
    const uint64_t index = chunk.Number();
    const size_t count = chunk.Count();
    if (!in.ok() || !chunk.ok() || index >= block_count || blocks.contains(index)) return release();
    if (count > IndexedCounter::kBlockNodes) return release();
    std::vector<Loaded> nodes;
    for (size_t n = 0; n < count && chunk.ok(); ++n) {
      Loaded node{chunk.Number(), chunk.Number(), 0, 0, 0};
      if (scored()) {
        node.score = chunk.Score();
        node.rank = RankOf(node.score);
      } else {
        node.rank = chunk.Number();
      }
      if (!nodes.empty() && node.offset <= nodes.back().offset) return release();
      if (node.offset >= IndexedCounter::kBlockNodes) return release();
      if (node.rank == 0 || (!scored() && node.rank > kMaxCount)) return release();
      nodes.push_back(node);
    }
    if (!chunk.ok() || !ReadMembers(chunk, count, saved, &members) || !chunk.AtEnd()) {
      return release();
    }
    for (size_t n = 0; n < count; ++n) {
      nodes[n].id = Dictionary().Intern(members[n], Dictionary().HashOf(members[n]));
    }
    live += count;
    blocks.emplace(index, std::move(nodes));
  }
  if (live != size) return release();
  // The list in order: every node once, ranks never rising.
  if (indexed_ == nullptr) indexed_ = std::make_unique<IndexedCounter>();
  uint64_t next = first;
  uint64_t rank = UINT64_MAX;
  while (next != 0 && indexed_->size() < size) {
    const uint64_t block = (next - 1) / IndexedCounter::kBlockNodes;
    const uint64_t offset = (next - 1) % IndexedCounter::kBlockNodes;
    const auto found = blocks.find(block);
    if (found == blocks.end()) return release();
    const std::vector<Loaded>& nodes = found->second;
    const auto node = std::lower_bound(nodes.begin(), nodes.end(), offset,
                                       [](const Loaded& l, uint64_t o) { return l.offset < o; });
    if (node == nodes.end() || node->offset != offset || node->rank > rank) return release();
    if (indexed_->Find(node->id) != IndexedCounter::kNothing) return release();
    const auto made = indexed_->Insert(node->id, node->rank, true);
    if (scored()) indexed_->SetScore(made, node->score);
    Dictionary().AddReference(node->id);
    rank = node->rank;
    next = node->next;
  }
  release();
  if (next != 0) return false;
  if (!scored() && indexed_->size() < kRepackAt) ToPacked();
  return true;
}

}  // namespace sava::types
