// Saving and loading of List: Redis's RDB types LIST_QUICKLIST_2 (written), LIST_QUICKLIST,
// LIST_ZIPLIST and LIST (read). docs/types/lists.md describes the bytes.
#include <string>
#include <utility>

#include "types/collections/list.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbList = 1;
constexpr uint8_t kRdbZiplist = 10;
constexpr uint8_t kRdbQuicklist = 14;
constexpr uint8_t kRdbQuicklist2 = 18;
constexpr uint8_t kRdbTypes[] = {kRdbQuicklist2, kRdbQuicklist, kRdbZiplist, kRdbList};

// How a node of a quicklist is written: one element as it is, or a listpack.
constexpr uint64_t kPlainNode = 1;
constexpr uint64_t kPackedNode = 2;
// An element beyond this many bytes does not go into a listpack, as in Redis.
constexpr size_t kMostPacked = size_t{1} << 30;
// A larger element is not compressed while others wait for the list.
constexpr size_t kMostCompressed = size_t{1} << 20;

}  // namespace

const TypeInfo& List::Type() {
  static constexpr SharedStore kEncodedBlocks[] = {
      {"list-encoded-blocks", [] { return EncodedTotal().blocks.load(std::memory_order_relaxed); },
       [] { return EncodedTotal().bytes.load(std::memory_order_relaxed); }}};
  static const TypeInfo kInfo{.name = "list",
                              .rdb_types = kRdbTypes,
                              .rdb_type_count = std::size(kRdbTypes),
                              .load = &List::Load,
                              .shared_stores = kEncodedBlocks,
                              .digest_number = 1};
  return kInfo;
}

uint8_t List::rdb_type() const { return kRdbQuicklist2; }

// ---- saving ----

void List::AppendListpack(const Piece* pieces, size_t n, size_t bytes, size_t count, Writer& out) {
  std::string listpack;
  listpack.reserve(bytes + 7);
  const auto total = static_cast<uint32_t>(bytes + 7);
  const auto stated = static_cast<uint16_t>(count < UINT16_MAX ? count : UINT16_MAX);
  listpack.append(reinterpret_cast<const char*>(&total), sizeof total);
  listpack.append(reinterpret_cast<const char*>(&stated), sizeof stated);
  for (size_t i = 0; i < n; ++i) AppendEntries(pieces[i], &listpack);
  listpack.push_back(static_cast<char>(0xFF));
  out.Length(kPackedNode);
  out.String(listpack);
}

void List::SavePiece(const Piece& piece, Writer& out) {
  if (piece.count == 1 && piece.bytes() > kMostPacked) {
    PackedItem item;
    list_entry::Read(piece.first(), &item);
    out.Length(kPlainNode);
    out.String(item.text);
    return;
  }
  AppendListpack(&piece, 1, piece.bytes(), piece.count, out);
}

// A list that Redis would keep as a listpack is one node, else each piece is one.
void List::Save(Writer& out) const {
  if (!quicklist_ && bytes_ < kMostPacked) {
    out.Length(1);
    AppendListpack(pieces(), piece_count_, bytes_, count_, out);
    return;
  }
  out.Length(piece_count_);
  for (size_t i = 0; i < piece_count_; ++i) SavePiece(pieces()[i], out);
}

List::Cut::~Cut() {
  for (size_t i = next; i < pieces.size(); ++i) Release(pieces[i].block);
}

void List::BeginCut(const PieceSink& sink, bool /*refer*/) {
  std::string head;
  {
    Writer out(&head);
    out.Length(piece_count_);
  }
  cut_ = std::make_unique<Cut>();
  cut_->sink = sink;
  cut_->pieces.assign(pieces(), pieces() + piece_count_);
  for (const Piece& piece : cut_->pieces) ++piece.block->refs;
  sink(head);
}

bool List::SavePieces(size_t budget) {
  if (cut_ == nullptr) return true;
  size_t done = 0;
  while (cut_->next < cut_->pieces.size() && done < budget) {
    std::string bytes;
    const Piece& piece = cut_->pieces[cut_->next];
    {
      Writer out(&bytes, piece.bytes() < kMostCompressed);
      SavePiece(piece, out);
    }
    Release(piece.block);
    ++cut_->next;
    done += bytes.size();
    cut_->sink(bytes);
  }
  if (cut_->next < cut_->pieces.size()) return false;
  cut_.reset();
  return true;
}

void List::AbortCut() { cut_.reset(); }

// ---- loading ----

bool List::LoadNode(uint8_t rdb_type, Reader& in) {
  std::string scratch;
  const auto append = [this](const PackedItem& item) {
    if (!item.is_number && item.text.size() > kMaxElement) return false;
    Push(End::kTail, list_entry::New(item));
    return true;
  };
  if (rdb_type == kRdbQuicklist2) {
    const uint64_t container = in.Length();
    const std::string_view bytes = in.StringView(&scratch);
    if (!in.ok()) return false;
    // As in Redis: a node of its own is for what is large.
    if (container == kPlainNode) return !bytes.empty() && append({.text = bytes});
    return container == kPackedNode && ForEachListpack(bytes, append);
  }
  const std::string_view bytes = in.StringView(&scratch);
  if (!in.ok()) return false;
  return rdb_type == kRdbList ? append({.text = bytes}) : ForEachZiplist(bytes, append);
}

std::unique_ptr<Object> List::Load(uint8_t rdb_type, Reader& in) {
  auto list = std::make_unique<List>();
  list->set_encoding(in.limits());
  const uint64_t parts = rdb_type == kRdbZiplist ? 1 : in.Count();
  uint64_t nodes = 0;  // that had elements
  for (uint64_t i = 0; i < parts; ++i) {
    const size_t before = list->size();
    if (!list->LoadNode(rdb_type, in)) {
      in.Fail("the listpack or ziplist of a list");
      return nullptr;
    }
    if (list->size() > before) ++nodes;
  }
  if (list->size() == 0) in.Fail("a list has elements");
  if (!in.ok()) return nullptr;
  // Elements one by one are packed as they come.
  if (rdb_type == kRdbList) nodes = list->piece_count_;
  list->FitLoaded(in.limits().list_max_listpack_size, nodes);
  return list;
}

}  // namespace sava::types
