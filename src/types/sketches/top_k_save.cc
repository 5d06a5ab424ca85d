// Saving and loading of TopK: docs/formats/sketches.md describes the bytes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/varint.h"
#include "types/sketches/top_k.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbTypes[] = {kRdbModule};
constexpr uint64_t kVersion = 1;
// A counter takes at least this many bytes in a saved block, whose own size may have grown by LZF.
constexpr uint64_t kLeastNode = 4;
constexpr uint64_t kMostGrowth = 88;

}  // namespace

const TypeInfo& TopK::Type() {
  static const TypeInfo kInfo{"TopK-TYPE", kRdbTypes, 1, &TopK::Load, ModuleId("sava-top1", 1)};
  return kInfo;
}

uint8_t TopK::rdb_type() const { return kRdbModule; }

void TopK::SaveHead(Writer& out) const {
  out.Length(Type().module_id);
  out.ModuleUnsigned(kVersion);
  out.ModuleUnsigned(options_.k);
  out.ModuleUnsigned(options_.width);
  out.ModuleUnsigned(options_.depth);
  out.ModuleDouble(options_.decay);
  out.ModuleUnsigned(turn_);
  out.ModuleUnsigned(nodes_.size());
}

// Varint block; then for each of its counters: varint count, varint error, varint turn, varint
// length * 2 + 1 if listed, the item's bytes.
void TopK::SaveBlock(size_t block, size_t end, Writer& out) const {
  std::string bytes;
  base::AppendVarint(&bytes, block);
  for (size_t i = block * kBlock; i < std::min(end, (block + 1) * kBlock); ++i) {
    const Node& node = nodes_[i];
    base::AppendVarint(&bytes, node.count);
    base::AppendVarint(&bytes, node.error);
    base::AppendVarint(&bytes, node.turn);
    base::AppendVarint(&bytes, node.text.size() * 2 + (node.listed ? 1 : 0));
    bytes += node.text;
  }
  out.ModuleString(bytes);
}

void TopK::Save(Writer& out) const {
  SaveHead(out);
  for (size_t block = 0; block < blocks(); ++block) SaveBlock(block, nodes_.size(), out);
  out.ModuleEnd();
}

void TopK::BeginCut(const PieceSink& sink, bool /*refer*/) {
  std::string head;
  {
    Writer out(&head);
    SaveHead(out);
  }
  cut_.Begin(sink, head, blocks(), [this, end = nodes_.size()](size_t block, Writer& out) {
    SaveBlock(block, end, out);
  });
}

bool TopK::LoadOptions(Reader& in) {
  options_.k = in.ModuleUnsigned();
  options_.width = in.ModuleUnsigned();
  options_.depth = in.ModuleUnsigned();
  options_.decay = in.ModuleDouble();
  const auto good = [](uint64_t n) { return n >= 1 && n <= kMaxOption; };
  return in.ok() && good(options_.k) && good(options_.width) && good(options_.depth) &&
         options_.decay > 0 && options_.decay <= 1;
}

// One block of `count` counters in all, into its place; it must not have been there.
bool TopK::LoadBlock(const std::string& bytes, uint64_t count, std::vector<Block>* all) const {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = p + bytes.size();
  uint64_t number = 0;
  p = base::GetVarint(p, end, &number);
  if (p == nullptr || number >= all->size() || !(*all)[number].empty()) return false;
  for (uint64_t i = number * kBlock; i < std::min<uint64_t>(count, (number + 1) * kBlock); ++i) {
    Node& node = (*all)[number].emplace_back();
    uint64_t length = 0;
    p = base::GetVarint(p, end, &node.count);
    if (p != nullptr) p = base::GetVarint(p, end, &node.error);
    if (p != nullptr) p = base::GetVarint(p, end, &node.turn);
    if (p != nullptr) p = base::GetVarint(p, end, &length);
    if (p == nullptr || length / 2 > static_cast<size_t>(end - p)) return false;
    if (node.count == 0 || node.count > kMaxCount || node.error >= node.count) return false;
    if (node.turn == 0 || node.turn > turn_) return false;
    node.listed = (length & 1) != 0;
    node.text.assign(reinterpret_cast<const char*>(p), length / 2);
    p += length / 2;
  }
  return p == end;
}

// Heaps and table of the counters that were read; false when they contradict each other.
bool TopK::Assemble() {
  uint64_t lowest_listed = UINT64_MAX;
  uint64_t highest_other = 0;
  std::vector<uint64_t> turns;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (Find(node.text) != TextTable::kNothing) return false;
    table_.Insert(TextTable::HashOf(node.text), i);
    Push(HeapOf(nodes_[i]), i);
    turns.push_back(node.turn);
    if (node.listed) lowest_listed = std::min(lowest_listed, node.count);
    if (!node.listed) highest_other = std::max(highest_other, node.count);
  }
  std::sort(turns.begin(), turns.end());
  if (std::adjacent_find(turns.begin(), turns.end()) != turns.end()) return false;
  return list_.size() == std::min<uint64_t>(nodes_.size(), options_.k) &&
         highest_other <= lowest_listed;
}

std::unique_ptr<Object> TopK::Load(uint8_t /*rdb_type*/, Reader& in) {
  if (in.ModuleUnsigned() != kVersion) return nullptr;
  TopK read{Options{}};
  if (!read.LoadOptions(in)) return nullptr;
  auto top = std::make_unique<TopK>(read.options_);
  top->turn_ = in.ModuleUnsigned();
  const uint64_t count = in.ModuleUnsigned();
  if (!in.ok() || top->turn_ > kMaxCount || count > top->capacity_ ||
      count > in.remaining() * kMostGrowth / kLeastNode) {
    return nullptr;
  }
  std::vector<Block> all((count + kBlock - 1) / kBlock);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!top->LoadBlock(in.ModuleString(), count, &all)) return nullptr;
  }
  for (Block& block : all) {
    for (Node& node : block) top->nodes_.push_back(std::move(node));
  }
  in.ModuleEnd();
  return in.ok() && top->Assemble() ? std::move(top) : nullptr;
}

}  // namespace sava::types
