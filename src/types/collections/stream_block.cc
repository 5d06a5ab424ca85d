#include "types/collections/stream_block.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/if_memory.h"

namespace sava::types {

namespace {

constexpr int64_t kDeleted = 1;
constexpr int64_t kSameFields = 2;

size_t StreamBackLengthSize(size_t length) {
  if (length <= 127) return 1;
  if (length < 16383) return 2;
  if (length < 2097151) return 3;
  if (length < 268435455) return 4;
  return 5;
}

uint64_t LittleEndian(const char* p, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(p[i])) << (8 * i);
  }
  return value;
}

// The low `bits` bits as a signed number.
int64_t SignExtended(uint64_t value, unsigned bits) {
  const uint64_t sign = uint64_t{1} << (bits - 1);
  return static_cast<int64_t>((value ^ sign) - sign);
}

// The element that ends before `p`.
const char* ElementBefore(const char* p) {
  size_t length = 0;
  unsigned shift = 0;
  do {
    --p;
    length |= static_cast<size_t>(*p & 127) << shift;
    shift += 7;
  } while ((*p & 128) != 0);
  return p - length;
}

// Of a number that is known to stand there.
const char* ReadInt(const char* p, int64_t* value) {
  PackedItem item;
  p = ReadPackedElement(p, &item);
  *value = item.number;
  return p;
}

uint64_t Apart(uint64_t value, uint64_t from) { return value - from; }

}  // namespace

const char* ReadPackedElement(const char* p, PackedItem* item) {
  const auto first = static_cast<uint8_t>(*p);
  size_t head = 1;
  size_t text = 0;
  item->is_number = true;
  if (first < 0x80) {
    item->number = first;
  } else if (first < 0xc0) {
    item->is_number = false;
    text = first & 0x3f;
  } else if (first < 0xe0) {
    head = 2;
    item->number = SignExtended((first & 0x1fU) << 8 | static_cast<uint8_t>(p[1]), 13);
  } else if (first < 0xf0) {
    item->is_number = false;
    head = 2;
    text = (first & 0x0fU) << 8 | static_cast<uint8_t>(p[1]);
  } else if (first == 0xf0) {
    item->is_number = false;
    head = 5;
    text = LittleEndian(p + 1, 4);
  } else {
    constexpr uint8_t kWidths[] = {2, 3, 4, 8};
    const unsigned width = kWidths[(first - 0xf1) & 3];
    head = 1 + width;
    item->number = SignExtended(LittleEndian(p + 1, width), width * 8);
  }
  item->text = {p + head, text};
  return p + head + text + StreamBackLengthSize(head + text);
}

StreamBlock::StreamBlock(const StreamId& id, std::span<const std::string_view> pairs) : id_(id) {
  fields_ = static_cast<uint32_t>(pairs.size() / 2);
  for (size_t i = 0; i < pairs.size(); i += 2) AppendText(pairs[i]);
  entries_at_ = static_cast<uint32_t>(bytes_.size());
}

void StreamBlock::AppendInt(int64_t value) {
  char bytes[10];
  size_t size = 0;
  if (value >= 0 && value <= 127) {
    bytes[size++] = static_cast<char>(value);
  } else if (value >= -4096 && value <= 4095) {
    const auto low = static_cast<uint64_t>(value) & 0x1fff;
    bytes[size++] = static_cast<char>(0xc0 | low >> 8);
    bytes[size++] = static_cast<char>(low);
  } else {
    unsigned width = 8;
    uint8_t code = 0xf4;
    if (value == SignExtended(static_cast<uint64_t>(value) & 0xffff, 16)) {
      width = 2;
      code = 0xf1;
    } else if (value == SignExtended(static_cast<uint64_t>(value) & 0xffffff, 24)) {
      width = 3;
      code = 0xf2;
    } else if (value == static_cast<int32_t>(value)) {
      width = 4;
      code = 0xf3;
    }
    bytes[size++] = static_cast<char>(code);
    for (unsigned i = 0; i < width; ++i) {
      bytes[size++] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
    }
  }
  bytes_.append(bytes, size);
  bytes_ += static_cast<char>(size);
}

void StreamBlock::AppendText(std::string_view text) {
  int64_t number = 0;
  if (base::ParseInt(text, &number)) return AppendInt(number);
  const size_t size = text.size();
  size_t head = 1;
  if (size < 64) {
    bytes_ += static_cast<char>(0x80 | size);
  } else if (size < 4096) {
    head = 2;
    bytes_ += static_cast<char>(0xe0 | size >> 8);
    bytes_ += static_cast<char>(size);
  } else {
    head = 5;
    bytes_ += static_cast<char>(0xf0);
    for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(size >> (8 * i));
  }
  bytes_ += text;
  const size_t length = head + size;
  for (size_t i = StreamBackLengthSize(length), more = 0; i-- > 0; more = 128) {
    bytes_ += static_cast<char>((length >> (7 * i) & 127) | more);
  }
}

void StreamBlock::AppendItem(const PackedItem& item) {
  item.is_number ? AppendInt(item.number) : AppendText(item.text);
}

bool StreamBlock::SameFields(std::span<const std::string_view> pairs) const {
  if (pairs.size() / 2 != fields_) return false;
  const char* p = bytes_.data();
  PackedItem item;
  PackedItem::Scratch digits;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    p = ReadPackedElement(p, &item);
    if (item.Text(digits) != pairs[i]) return false;
  }
  return true;
}

void StreamBlock::Append(const StreamId& id, std::span<const std::string_view> pairs) {
  const size_t before = bytes_.size();
  if (base::IfMemory([&] { AppendEntry(id, pairs); })) return;
  bytes_.resize(before);
  throw std::bad_alloc();
}

void StreamBlock::AppendEntry(const StreamId& id, std::span<const std::string_view> pairs) {
  const bool same = SameFields(pairs);
  const size_t fields = pairs.size() / 2;
  AppendInt(same ? kSameFields : 0);
  AppendInt(static_cast<int64_t>(Apart(id.ms, id_.ms)));
  AppendInt(static_cast<int64_t>(Apart(id.seq, id_.seq)));
  if (!same) AppendInt(static_cast<int64_t>(fields));
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!same || i % 2 == 1) AppendText(pairs[i]);
  }
  const size_t elements = same ? fields + 3 : fields * 2 + 4;
  AppendInt(static_cast<int64_t>(elements));
  elements_ += elements + 1;
  ++count_;
}

size_t StreamBlock::PackedSize() const {
  return 7 + bytes() + ListpackSizeOfInt(count_) + ListpackSizeOfInt(deleted_) +
         ListpackSizeOfInt(fields_) + ListpackSizeOfInt(0);
}

bool StreamBlock::HasRoom(size_t size, uint64_t max_bytes, int64_t max_entries) const {
  if (encoded()) return false;
  const size_t most = max_bytes == 0 ? kMostBytes : std::min<size_t>(max_bytes, kMostBytes);
  if (PackedSize() + size >= most) return false;
  return max_entries <= 0 || int64_t{count_} + int64_t{deleted_} < max_entries;
}

EncodedTotals& StreamBlock::EncodedTotal() {
  static EncodedTotals totals;
  return totals;
}

void StreamBlock::Close(bool encode) {
  static thread_local std::string encoded;
  // Without memory it stays as it is.
  const bool done = encode && base::IfMemory([&] {
                      if (!EncodeEntries(bytes_, fields_ + elements_, &encoded)) return;
                      std::string exact(encoded);
                      share_.Set(exact.size());
                      plain_bytes_ = static_cast<uint32_t>(bytes_.size());
                      bytes_ = std::move(exact);
                    });
  if (!done || !this->encoded()) bytes_.shrink_to_fit();
}

size_t StreamBlock::Expand(size_t at) {
  const EncodedEntries elements(bytes_);
  const size_t position = elements.Size(0, at);
  std::string plain(plain_bytes_, '\0');
  elements.Expand(0, elements.count(), plain.data());
  bytes_ = std::move(plain);
  plain_bytes_ = 0;
  share_.Set(0);
  return position;
}

size_t StreamBlock::ReadEncoded(size_t at, StreamEntry* entry) const {
  const EncodedEntries elements(bytes_);
  const auto number = [&elements, &at] {
    int64_t value = 0;
    ReadInt(elements[at++].data(), &value);
    return value;
  };
  const int64_t flags = number();
  const auto ms = static_cast<uint64_t>(number());
  const auto seq = static_cast<uint64_t>(number());
  entry->id = {id_.ms + ms, id_.seq + seq};
  entry->deleted = (flags & kDeleted) != 0;
  entry->same_fields_ = (flags & kSameFields) != 0;
  entry->fields = entry->same_fields_ ? fields_ : static_cast<size_t>(number());
  entry->encoded_ = bytes_;
  entry->values_at_ = at;
  return at + entry->fields * (entry->same_fields_ ? 1 : 2) + 1;
}

size_t StreamBlock::Read(size_t at, StreamEntry* entry) const {
  if (encoded()) [[unlikely]] {
    return ReadEncoded(at, entry);
  }
  entry->encoded_ = {};
  const char* p = bytes_.data() + at;
  int64_t flags = 0;
  int64_t ms = 0;
  int64_t seq = 0;
  p = ReadInt(p, &flags);
  p = ReadInt(p, &ms);
  p = ReadInt(p, &seq);
  entry->id = {id_.ms + static_cast<uint64_t>(ms), id_.seq + static_cast<uint64_t>(seq)};
  entry->deleted = (flags & kDeleted) != 0;
  const bool same = (flags & kSameFields) != 0;
  auto fields = static_cast<int64_t>(fields_);
  if (!same) p = ReadInt(p, &fields);
  entry->fields = static_cast<size_t>(fields);
  entry->master_fields_ = same ? bytes_.data() : nullptr;
  entry->values_ = p;
  PackedItem item;
  for (size_t i = entry->fields * (same ? 1 : 2) + 1; i > 0; --i) p = ReadPackedElement(p, &item);
  return static_cast<size_t>(p - bytes_.data());
}

size_t StreamBlock::Before(size_t at) const {
  if (encoded()) {
    int64_t before = 0;
    ReadInt(EncodedEntries(bytes_)[at - 1].data(), &before);
    return at - 1 - static_cast<size_t>(before);
  }
  const char* p = ElementBefore(bytes_.data() + at);
  int64_t elements = 0;
  ReadInt(p, &elements);
  for (; elements > 0; --elements) p = ElementBefore(p);
  return static_cast<size_t>(p - bytes_.data());
}

StreamId StreamBlock::LastId() const {
  if (begin() == end()) return id_;
  StreamEntry entry;
  Read(Before(end()), &entry);
  return entry.id;
}

void StreamBlock::Delete(size_t at) {
  bytes_[at] = static_cast<char>(bytes_[at] | kDeleted);
  --count_;
  ++deleted_;
}

std::string StreamBlock::Pack() const {
  if (encoded()) {
    StreamBlock plain(*this);
    plain.Expand(0);
    return plain.Pack();
  }
  StreamBlock head(id_);
  head.AppendInt(count_);
  head.AppendInt(deleted_);
  head.AppendInt(fields_);
  const size_t size = PackedSize();
  const uint64_t elements = std::min<uint64_t>(uint64_t{4} + fields_ + elements_, 65535);
  std::string out;
  out.reserve(size);
  for (int i = 0; i < 4; ++i) out += static_cast<char>(size >> (8 * i));
  for (int i = 0; i < 2; ++i) out += static_cast<char>(elements >> (8 * i));
  out += head.bytes_;
  out.append(bytes_, 0, entries_at_);
  out.append("\0\1", 2);
  out.append(bytes_, entries_at_);
  out += static_cast<char>(0xff);
  return out;
}

// ---- reading bytes that nothing vouches for ----

bool StreamBlock::UnpackEntry(ListpackCursor& in, const PackedItem& flags, StreamId* last) {
  const auto number = [&in](int64_t* value) {
    PackedItem item;
    const bool there = in.Next(&item) && item.is_number;
    *value = item.number;
    return there;
  };
  int64_t ms = 0;
  int64_t seq = 0;
  int64_t fields = fields_;
  int64_t stated = 0;
  if (!flags.is_number || (flags.number & ~(kDeleted | kSameFields)) != 0) return false;
  if (!number(&ms) || !number(&seq)) return false;
  const bool same = (flags.number & kSameFields) != 0;
  AppendInt(flags.number);
  AppendInt(ms);
  AppendInt(seq);
  if (!same) {
    if (!number(&fields) || fields < 0 || fields > INT32_MAX) return false;
    AppendInt(fields);
  }
  PackedItem item;
  for (int64_t i = same ? fields : fields * 2; i > 0; --i) {
    if (!in.Next(&item)) return false;
    AppendItem(item);
  }
  const int64_t elements = same ? fields + 3 : fields * 2 + 4;
  if (!number(&stated) || stated != elements) return false;
  AppendInt(elements);
  elements_ += static_cast<uint64_t>(elements) + 1;
  if ((flags.number & kDeleted) != 0) return true;
  const StreamId id{id_.ms + static_cast<uint64_t>(ms), id_.seq + static_cast<uint64_t>(seq)};
  const bool in_order = id >= id_ && (id > *last || last->zero()) && !id.zero();
  *last = id;
  return in_order;
}

std::unique_ptr<StreamBlock> StreamBlock::Unpack(const StreamId& id, std::string_view listpack) {
  std::unique_ptr<StreamBlock> block(new StreamBlock(id));
  ListpackCursor in(listpack);
  PackedItem head[3];
  PackedItem item;
  for (PackedItem& number : head) {
    if (!in.Next(&number) || !number.is_number) return nullptr;
    if (number.number < 0 || number.number > INT32_MAX) return nullptr;
  }
  block->bytes_.reserve(listpack.size());
  for (int64_t i = 0; i < head[2].number; ++i) {
    if (!in.Next(&item)) return nullptr;
    block->AppendItem(item);
  }
  block->fields_ = static_cast<uint32_t>(head[2].number);
  block->entries_at_ = static_cast<uint32_t>(block->bytes_.size());
  if (!in.Next(&item) || !item.is_number || item.number != 0) return nullptr;
  StreamId last;
  int64_t deleted = 0;
  int64_t all = 0;
  while (in.Next(&item)) {
    if (!block->UnpackEntry(in, item, &last)) return nullptr;
    ++all;
    deleted += item.number & kDeleted;
  }
  if (!in.ok() || all != head[0].number + head[1].number || deleted != head[1].number || all == 0) {
    return nullptr;
  }
  block->count_ = static_cast<uint32_t>(head[0].number);
  block->deleted_ = static_cast<uint32_t>(head[1].number);
  return block;
}

}  // namespace sava::types
