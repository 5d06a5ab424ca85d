#include "types/collections/packed_forms.h"

#include "base/text.h"

namespace sava::types {

namespace {

constexpr uint8_t kEnd = 0xFF;
constexpr size_t kListpackHead = 6;
constexpr size_t kZiplistHead = 10;
constexpr size_t kManyItems = 0xFFFF;  // in a head: count them yourself
constexpr uint8_t kZipmapMany = 254;
constexpr uint8_t kLongLength = 254;  // of a ziplist's or zipmap's length byte: four bytes follow

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint64_t LittleAt(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | ByteAt(bytes, at + i);
  return value;
}

// Of a little-endian number of `width` bytes in two's complement.
int64_t SignedAt(std::string_view bytes, size_t at, size_t width) {
  const unsigned unused = static_cast<unsigned>(64 - 8 * width);
  return static_cast<int64_t>(LittleAt(bytes, at, width) << unused) >> unused;
}

void AppendLittle(std::string* out, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

bool FitsBits(int64_t value, unsigned bits) {
  const int64_t limit = int64_t{1} << (bits - 1);
  return value >= -limit && value < limit;
}

// How many bytes the back length of an entry of `length` bytes takes. The limits of two bytes and
// more are one lower than need be: so does Redis count.
size_t BackLengthSize(uint64_t length) {
  if (length <= 127) return 1;
  if (length < 16383) return 2;
  if (length < 2097151) return 3;
  if (length < 268435455) return 4;
  return 5;
}

// Reads a back length that ends before `end`, backwards.
uint64_t BackLengthBefore(std::string_view bytes, size_t end) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift <= 28 && end > 0; shift += 7) {
    const uint8_t byte = ByteAt(bytes, --end);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if ((byte & 128) == 0) return value;
  }
  return UINT64_MAX;
}

// How an entry of a listpack is read: bytes of its head, and of what follows.
struct ListpackShape {
  size_t head = 0;  // 0: no such encoding
  bool number = false;
  size_t width = 0;  // of a number behind the head
};

ListpackShape ShapeOf(uint8_t first) {
  if ((first & 0x80) == 0) return {1, true, 0};
  if ((first & 0xC0) == 0x80) return {1, false, 0};
  if ((first & 0xE0) == 0xC0) return {2, true, 0};
  if ((first & 0xF0) == 0xE0) return {2, false, 0};
  switch (first) {
    case 0xF0:
      return {5, false, 0};
    case 0xF1:
      return {1, true, 2};
    case 0xF2:
      return {1, true, 3};
    case 0xF3:
      return {1, true, 4};
    case 0xF4:
      return {1, true, 8};
    default:
      return {};
  }
}

// The number whose head, and bytes behind it, begin at `at`.
int64_t ListpackNumber(std::string_view bytes, size_t at, const ListpackShape& shape) {
  if (shape.width != 0) return SignedAt(bytes, at + 1, shape.width);
  if (shape.head == 1) return ByteAt(bytes, at);
  const int64_t value = (ByteAt(bytes, at) & 0x1F) << 8 | ByteAt(bytes, at + 1);
  return value >= 4096 ? value - 8192 : value;
}

size_t ListpackTextLength(std::string_view bytes, size_t at, const ListpackShape& shape) {
  if (shape.head == 1) return ByteAt(bytes, at) & 0x3F;
  if (shape.head == 2) return (ByteAt(bytes, at) & 0x0FU) << 8 | ByteAt(bytes, at + 1);
  return LittleAt(bytes, at + 1, 4);
}

size_t IntSize(int64_t value) {
  if (value >= 0 && value <= 127) return 1;
  if (FitsBits(value, 13)) return 2;
  if (FitsBits(value, 16)) return 3;
  if (FitsBits(value, 24)) return 4;
  return FitsBits(value, 32) ? 5 : 9;
}

size_t TextHead(size_t length) {
  if (length < 64) return 1;
  return length < 4096 ? 2 : 5;
}

}  // namespace

std::string_view PackedItem::Digits(int64_t value, Scratch& scratch) {
  return {scratch, base::FormatInt(value, scratch)};
}

// ---- listpack ----

ListpackCursor::ListpackCursor(std::string_view bytes) : bytes_(bytes) {
  ok_ = bytes.size() > kListpackHead && LittleAt(bytes, 0, 4) == bytes.size() &&
        ByteAt(bytes, bytes.size() - 1) == kEnd;
  if (ok_) stated_ = LittleAt(bytes, 4, 2);
}

bool ListpackCursor::Next(PackedItem* item) {
  if (!ok_) return false;
  const size_t end = bytes_.size() - 1;  // where the end mark stands
  if (at_ == end) {
    ok_ = stated_ == kManyItems || stated_ == seen_;
    return false;
  }
  ok_ = false;
  const ListpackShape shape = ShapeOf(ByteAt(bytes_, at_));
  if (shape.head == 0 || shape.head + shape.width > end - at_) return false;
  size_t length = shape.head + shape.width;
  item->is_number = shape.number;
  if (shape.number) {
    item->number = ListpackNumber(bytes_, at_, shape);
  } else {
    const size_t text = ListpackTextLength(bytes_, at_, shape);
    if (text > end - at_ - shape.head) return false;
    item->text = bytes_.substr(at_ + shape.head, text);
    length += text;
  }
  const size_t back = BackLengthSize(length);
  if (back > end - at_ - length) return false;
  at_ += length + back;
  if (BackLengthBefore(bytes_, at_) != length) return false;
  ++seen_;
  ok_ = true;
  return true;
}

void ListpackWriter::AddBackLength(size_t length) {
  for (size_t i = BackLengthSize(length); i-- > 0;) {
    const bool first = i + 1 == BackLengthSize(length);
    bytes_.push_back(static_cast<char>(((length >> (7 * i)) & 127) | (first ? 0 : 128)));
  }
  ++count_;
}

void ListpackWriter::AddInt(int64_t value) {
  const size_t size = IntSize(value);
  const auto bits = static_cast<uint64_t>(value);
  if (size == 1) {
    bytes_.push_back(static_cast<char>(value));
  } else if (size == 2) {
    bytes_.push_back(static_cast<char>(0xC0 | ((bits >> 8) & 0x1F)));
    bytes_.push_back(static_cast<char>(bits));
  } else {
    constexpr uint8_t kHeads[] = {0, 0, 0, 0xF1, 0xF2, 0xF3, 0, 0, 0, 0xF4};
    bytes_.push_back(static_cast<char>(kHeads[size]));
    AppendLittle(&bytes_, bits, size - 1);
  }
  AddBackLength(size);
}

void ListpackWriter::AddText(std::string_view text) {
  const size_t head = TextHead(text.size());
  if (head == 1) {
    bytes_.push_back(static_cast<char>(0x80 | text.size()));
  } else if (head == 2) {
    bytes_.push_back(static_cast<char>(0xE0 | text.size() >> 8));
    bytes_.push_back(static_cast<char>(text.size()));
  } else {
    bytes_.push_back(static_cast<char>(0xF0));
    AppendLittle(&bytes_, text.size(), 4);
  }
  bytes_.append(text);
  AddBackLength(head + text.size());
}

void ListpackWriter::Add(std::string_view text) {
  int64_t number = 0;
  if (base::ParseInt(text, &number)) {
    AddInt(number);
  } else {
    AddText(text);
  }
}

std::string ListpackWriter::Finish() {
  bytes_.push_back(static_cast<char>(kEnd));
  std::string head;
  AppendLittle(&head, bytes_.size(), 4);
  AppendLittle(&head, count_ < kManyItems ? count_ : kManyItems, 2);
  bytes_.replace(0, kListpackHead, head);
  std::string done = std::move(bytes_);
  bytes_.assign(kListpackHead, '\0');
  count_ = 0;
  return done;
}

size_t ListpackSizeOfInt(int64_t value) { return IntSize(value) + 1; }

size_t ListpackSize(std::string_view text) {
  int64_t number = 0;
  if (base::ParseInt(text, &number)) return ListpackSizeOfInt(number);
  const size_t length = TextHead(text.size()) + text.size();
  return length + BackLengthSize(length);
}

// ---- ziplist ----

ZiplistCursor::ZiplistCursor(std::string_view bytes) : bytes_(bytes) {
  ok_ = bytes.size() > kZiplistHead && LittleAt(bytes, 0, 4) == bytes.size() &&
        ByteAt(bytes, bytes.size() - 1) == kEnd;
  if (!ok_) return;
  tail_ = LittleAt(bytes, 4, 4);
  stated_ = LittleAt(bytes, 8, 2);
  ok_ = tail_ <= bytes.size() - 1;
}

bool ZiplistCursor::Next(PackedItem* item) {
  if (!ok_) return false;
  if (at_ == bytes_.size() - 1) {
    ok_ = (stated_ == kManyItems || stated_ == seen_) && (last_ == 0 || last_ == tail_);
    return false;
  }
  ok_ = ReadEntry(item);
  return ok_;
}

bool ZiplistCursor::ReadEntry(PackedItem* item) {
  const size_t end = bytes_.size() - 1;
  const size_t begin = at_;
  // The length of the entry before.
  size_t p = begin + 1;
  uint64_t before = ByteAt(bytes_, begin);
  if (before == kEnd) return false;
  if (before == kLongLength) {
    if (end - begin < 5) return false;
    before = LittleAt(bytes_, begin + 1, 4);
    p += 4;
  }
  if (before != last_size_ || p >= end) return false;
  // What kind of entry it is, and how long its head is.
  const uint8_t code = ByteAt(bytes_, p);
  size_t head = 1;
  uint64_t size = 0;
  item->is_number = code >= 0xC0;
  if (item->is_number) {
    switch (code) {
      case 0xC0:
        size = 2;
        break;
      case 0xD0:
        size = 4;
        break;
      case 0xE0:
        size = 8;
        break;
      case 0xF0:
        size = 3;
        break;
      case 0xFE:
        size = 1;
        break;
      default:
        if (code < 0xF1 || code > 0xFD) return false;
    }
  } else {
    head = code < 0x40 ? 1 : code < 0x80 ? 2 : 5;
    if (head > end - p) return false;
    if (head == 1) size = code;
    if (head == 2) size = (code & 0x3FU) << 8 | ByteAt(bytes_, p + 1);
    for (size_t i = 1; head == 5 && i < 5; ++i) size = size << 8 | ByteAt(bytes_, p + i);
  }
  if (size > end - p - head) return false;
  if (!item->is_number) {
    item->text = bytes_.substr(p + head, size);
  } else {
    item->number = size == 0 ? (code & 0x0F) - 1 : SignedAt(bytes_, p + head, size);
  }
  at_ = p + head + size;
  last_ = begin;
  last_size_ = at_ - begin;
  ++seen_;
  return true;
}

// ---- zipmap ----

ZipmapCursor::ZipmapCursor(std::string_view bytes) : bytes_(bytes) {
  ok_ = bytes.size() >= 2 && ByteAt(bytes, bytes.size() - 1) == kEnd;
}

bool ZipmapCursor::ReadLength(size_t* length) {
  const size_t end = bytes_.size() - 1;
  if (at_ >= end) return false;
  const uint8_t first = ByteAt(bytes_, at_++);
  if (first == kEnd) return false;
  *length = first;
  if (first == kLongLength) {
    if (end - at_ < 4) return false;
    *length = LittleAt(bytes_, at_, 4);
    at_ += 4;
  }
  return *length <= end - at_;
}

bool ZipmapCursor::Next(std::string_view* field, std::string_view* value) {
  if (!ok_) return false;
  const size_t end = bytes_.size() - 1;
  if (at_ == end) {
    const uint8_t stated = ByteAt(bytes_, 0);
    ok_ = stated == kZipmapMany || stated == seen_;
    return false;
  }
  ok_ = false;
  size_t length = 0;
  if (!ReadLength(&length)) return false;
  *field = bytes_.substr(at_, length);
  at_ += length;
  if (!ReadLength(&length) || at_ >= end) return false;
  const size_t unused = ByteAt(bytes_, at_++);
  if (length > end - at_ || unused > end - at_ - length) return false;
  *value = bytes_.substr(at_, length);
  at_ += length + unused;
  ++seen_;
  ok_ = true;
  return true;
}

// ---- intset ----

bool CheckIntset(std::string_view bytes, size_t* width, size_t* count) {
  if (bytes.size() < 8) return false;
  *width = LittleAt(bytes, 0, 4);
  *count = LittleAt(bytes, 4, 4);
  if ((*width != 2 && *width != 4 && *width != 8) || *count == 0) return false;
  if (bytes.size() - 8 != *width * *count) return false;
  for (size_t i = 1; i < *count; ++i) {
    if (IntsetAt(bytes, *width, i - 1) >= IntsetAt(bytes, *width, i)) return false;
  }
  return true;
}

int64_t IntsetAt(std::string_view bytes, size_t width, size_t i) {
  return SignedAt(bytes, 8 + i * width, width);
}

std::string WriteIntset(std::span<const int64_t> values) {
  size_t width = 2;
  // The widest stand at the ends.
  for (const int64_t value : {values.front(), values.back()}) {
    const size_t needed = FitsBits(value, 16) ? 2 : FitsBits(value, 32) ? 4 : 8;
    if (needed > width) width = needed;
  }
  std::string out;
  out.reserve(8 + width * values.size());
  AppendLittle(&out, width, 4);
  AppendLittle(&out, values.size(), 4);
  for (const int64_t value : values) AppendLittle(&out, static_cast<uint64_t>(value), width);
  return out;
}

}  // namespace sava::types
