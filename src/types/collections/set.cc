#include "types/collections/set.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/if_memory.h"
#include "base/varint.h"
#include "types/collections/packed_forms.h"
#include "types/value/digest_sink.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbSet = 2;
constexpr uint8_t kRdbSetIntset = 11;
constexpr uint8_t kRdbSetListpack = 20;
// Redis's bound for a listpack, which only huge members reach.
constexpr uint64_t kListpackSafe = uint64_t{1} << 30;

uint64_t UpTo(int64_t limit) { return limit < 0 ? 0 : static_cast<uint64_t>(limit); }

size_t WidthOf(int64_t value) {
  if (value >= INT16_MIN && value <= INT16_MAX) return 2;
  return value >= INT32_MIN && value <= INT32_MAX ? 4 : 8;
}

int64_t ReadNumber(const char* data, size_t width, size_t i) {
  int64_t value = 0;
  if (width == 2) {
    int16_t narrow;
    memcpy(&narrow, data + 2 * i, 2);
    value = narrow;
  } else if (width == 4) {
    int32_t narrow;
    memcpy(&narrow, data + 4 * i, 4);
    value = narrow;
  } else {
    memcpy(&value, data + 8 * i, 8);
  }
  return value;
}

// Little-endian: the low bytes are the number.
void WriteNumber(char* data, size_t width, size_t i, int64_t value) {
  memcpy(data + width * i, &value, width);
}

size_t DigitCount(int64_t value) {
  char digits[24];
  return base::FormatInt(value, digits);
}

}  // namespace

// ---- forms ----

Set::Set()
    : block_(SmallBlock::New(static_cast<uint8_t>(Form::kNumbers),
                             static_cast<uint8_t>(Encoding::kIntset))) {
  block_->detail = 2;
}

Set::Set(std::string_view first, size_t expected, const CollectionLimits& limits) : Set() {
  int64_t number = 0;
  if (base::ParseInt(first, &number) && expected <= UpTo(limits.set_max_intset_entries)) return;
  ToPacked();
  if (expected > UpTo(limits.set_max_listpack_entries)) ToTable(Encoding::kHashtable);
}

Set::~Set() { Replace(nullptr); }

void Set::Replace(SmallBlock* block) {
  if (form() == Form::kTable) {
    delete static_cast<Large*>(block_);
  } else {
    free(block_);
  }
  block_ = block;
}

void Set::ToPacked() {
  SmallBlock* old = block_;
  block_ = SmallBlock::New(static_cast<uint8_t>(Form::kPacked),
                           static_cast<uint8_t>(Encoding::kListpack));
  const bool done = base::IfMemory([&] {
    for (size_t i = 0; i < old->count; ++i) {
      char digits[24];
      AppendPacked({digits, base::FormatInt(ReadNumber(old->data(), old->detail, i), digits)});
    }
  });
  if (!done) std::swap(block_, old);  // it stays as it was
  free(old);
  if (!done) throw std::bad_alloc();
}

void Set::ToTable(Encoding encoding) {
  if (form() == Form::kTable) {
    block_->encoding = static_cast<uint8_t>(encoding);
    return;
  }
  auto large = std::make_unique<Large>();
  static_cast<SmallBlock&>(*large) = {.form = static_cast<uint8_t>(Form::kTable),
                                      .encoding = static_cast<uint8_t>(encoding),
                                      .detail = 0,
                                      .more = 0,
                                      .count = 0,
                                      .used = 0};
  ForEach([&](std::string_view member) { large->table.Insert(member); });
  Replace(large.release());
}

void Set::MaybeNumbers(const CollectionLimits& limits) {
  if (numbers() || size() > UpTo(limits.set_max_intset_entries)) return;
  std::vector<int64_t> values;
  values.reserve(size());
  bool all = true;
  ForEach([&](std::string_view member) {
    int64_t value = 0;
    all = all && base::ParseInt(member, &value);
    if (all) values.push_back(value);
  });
  if (!all) return;
  std::sort(values.begin(), values.end());
  Set fresh;
  for (const int64_t value : values) fresh.AddNumber(value);
  std::swap(block_, fresh.block_);
}

// ---- numbers ----

int64_t Set::NumberAt(size_t i) const { return ReadNumber(block_->data(), block_->detail, i); }

size_t Set::NumberPlace(int64_t value, bool* found) const {
  size_t low = 0;
  size_t high = block_->count;
  // Numbers often come in ascending order.
  if (high > 0 && value > NumberAt(high - 1)) low = high;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    NumberAt(middle) < value ? low = middle + 1 : high = middle;
  }
  *found = low < block_->count && NumberAt(low) == value;
  return low;
}

void Set::Widen(size_t width) {
  const size_t old = block_->detail;
  block_ = SmallBlock::Resize(block_, block_->count * width);
  for (size_t i = block_->count; i-- > 0;) {
    WriteNumber(block_->data(), width, i, ReadNumber(block_->data(), old, i));
  }
  block_->detail = static_cast<uint8_t>(width);
}

bool Set::AddNumber(int64_t value) {
  if (const size_t width = WidthOf(value); width > block_->detail) Widen(width);
  bool found = false;
  const size_t place = NumberPlace(value, &found);
  if (found) return false;
  block_ = SmallBlock::Splice(block_, place * block_->detail, 0, block_->detail);
  WriteNumber(block_->data(), block_->detail, place, value);
  ++block_->count;
  return true;
}

// ---- packed ----

std::string_view Set::PackedAt(size_t* at) const {
  const auto* begin = reinterpret_cast<const uint8_t*>(block_->data());
  uint64_t length = 0;
  const uint8_t* p = base::GetVarint(begin + *at, begin + block_->used, &length);
  *at = static_cast<size_t>(p - begin) + length;
  return {reinterpret_cast<const char*>(p), length};
}

bool Set::FindPacked(std::string_view member, size_t* from, size_t* to) const {
  for (size_t at = 0; at < block_->used;) {
    *from = at;
    const std::string_view here = PackedAt(&at);
    if (here == member) {
      *to = at;
      return true;
    }
  }
  return false;
}

void Set::AppendPacked(std::string_view member) {
  uint8_t head[base::kMaxVarintBytes];
  const size_t head_size = base::PutVarint(head, member.size());
  const size_t at = block_->used;
  block_ = SmallBlock::Splice(block_, at, 0, head_size + member.size());
  memcpy(block_->data() + at, head, head_size);
  if (!member.empty()) memcpy(block_->data() + at + head_size, member.data(), member.size());
  ++block_->count;
}

bool Set::PackedTooLarge(size_t more) const {
  return block_->count >= kMaxPackedMembers || block_->used + more + 2 > kMaxPacked;
}

// ---- members ----

void Set::Expect(size_t expected, const CollectionLimits& limits) {
  const bool outgrown =
      (kind() == Encoding::kIntset && expected > UpTo(limits.set_max_intset_entries)) ||
      (kind() == Encoding::kListpack && expected > UpTo(limits.set_max_listpack_entries));
  if (outgrown) ToTable(Encoding::kHashtable);
}

bool Set::Add(std::string_view member, const CollectionLimits& limits) {
  if (form() == Form::kTable && kind() == Encoding::kHashtable) return table().Insert(member);
  if (form() != Form::kNumbers) return AddOther(member, limits);
  int64_t number = 0;
  if (base::ParseInt(member, &number)) {
    if (!AddNumber(number)) return false;
    if (block_->count > UpTo(limits.set_max_intset_entries)) ToTable(Encoding::kHashtable);
    return true;
  }
  size_t longest = 0;
  if (block_->count > 0) {
    longest = std::max(DigitCount(NumberAt(0)), DigitCount(NumberAt(block_->count - 1)));
  }
  if (block_->count < UpTo(limits.set_max_listpack_entries) &&
      member.size() <= limits.set_max_listpack_value && longest <= limits.set_max_listpack_value &&
      member.size() < kListpackSafe) {
    ToPacked();
  } else {
    ToTable(Encoding::kHashtable);
  }
  return AddOther(member, limits);
}

// To a packed set, or a table that Redis may still call a listpack.
bool Set::AddOther(std::string_view member, const CollectionLimits& limits) {
  size_t from = 0;
  size_t to = 0;
  const bool found =
      form() == Form::kTable ? table().Contains(member) : FindPacked(member, &from, &to);
  if (found) return false;
  const bool listpack =
      kind() == Encoding::kListpack && size() < UpTo(limits.set_max_listpack_entries) &&
      member.size() <= limits.set_max_listpack_value && member.size() < kListpackSafe;
  if (!listpack) {
    ToTable(Encoding::kHashtable);
  } else if (form() == Form::kPacked && PackedTooLarge(member.size())) {
    ToTable(Encoding::kListpack);
  }
  if (form() == Form::kTable) {
    table().Insert(member);
  } else {
    AppendPacked(member);
  }
  return true;
}

bool Set::Remove(std::string_view member) {
  if (form() == Form::kTable) return table().Erase(member);
  size_t from = 0;
  size_t to = 0;
  if (form() == Form::kNumbers) {
    int64_t number = 0;
    bool found = false;
    if (!base::ParseInt(member, &number)) return false;
    from = NumberPlace(number, &found) * block_->detail;
    if (!found) return false;
    to = from + block_->detail;
  } else if (!FindPacked(member, &from, &to)) {
    return false;
  }
  block_ = SmallBlock::Splice(block_, from, to - from, 0);
  --block_->count;
  return true;
}

bool Set::Contains(std::string_view member) const {
  if (form() == Form::kTable) return table().Contains(member);
  size_t from = 0;
  size_t to = 0;
  if (form() == Form::kPacked) return FindPacked(member, &from, &to);
  int64_t number = 0;
  bool found = false;
  if (!base::ParseInt(member, &number)) return false;
  NumberPlace(number, &found);
  return found;
}

bool Set::Random(const RandomBits& random, std::string* member) const {
  if (size() == 0) return false;
  if (form() == Form::kTable) {
    RecordTable::Record record;
    table().Random(random, &record);
    *member = record.key;
    return true;
  }
  const size_t rank = random() % block_->count;
  if (form() == Form::kNumbers) {
    *member = base::IntText(NumberAt(rank));
    return true;
  }
  size_t at = 0;
  for (size_t i = 0; i < rank; ++i) PackedAt(&at);
  *member = PackedAt(&at);
  return true;
}

uint64_t Set::Scan(uint64_t cursor, size_t count,
                   const std::function<void(std::string_view)>& visit) const {
  if (form() == Form::kTable) {
    return table().Scan(cursor, count,
                        [&](const RecordTable::Record& record) { visit(record.key); });
  }
  ForEach(visit);
  return 0;
}

// ---- the object ----

const TypeInfo& Set::Type() {
  static constexpr uint8_t kRdbTypes[] = {kRdbSet, kRdbSetIntset, kRdbSetListpack};
  static const TypeInfo info{.name = "set",
                             .rdb_types = kRdbTypes,
                             .rdb_type_count = std::size(kRdbTypes),
                             .load = Load,
                             .digest_number = 2};
  return info;
}

std::string_view Set::encoding() const {
  switch (kind()) {
    case Encoding::kIntset:
      return "intset";
    case Encoding::kListpack:
      return "listpack";
    default:
      return "hashtable";
  }
}

size_t Set::MemoryUsage(size_t /*samples*/) const {
  if (form() == Form::kTable) return sizeof(*this) + sizeof(SmallBlock) + table().memory();
  return sizeof(*this) + SmallBlock::BlockFor(block_->used);
}

std::unique_ptr<Object> Set::Copy() const {
  auto copy = std::make_unique<Set>();
  if (form() != Form::kTable) {
    copy->Replace(SmallBlock::Copy(block_));
    return copy;
  }
  copy->ToTable(kind());
  copy->table().CopyFrom(table());
  return copy;
}

uint8_t Set::rdb_type() const { return numbers() ? kRdbSetIntset : kRdbSet; }

void Set::Save(Writer& out) const {
  if (numbers()) {
    std::vector<int64_t> values(block_->count);
    for (size_t i = 0; i < values.size(); ++i) values[i] = NumberAt(i);
    out.String(WriteIntset(values));
    return;
  }
  out.Length(size());
  ForEach([&](std::string_view member) { out.String(member); });
}

void Set::Digest(const std::function<void(std::string_view)>& add) const {
  std::vector<std::string> members;
  members.reserve(size());
  ForEach([&](std::string_view member) { members.emplace_back(member); });
  std::sort(members.begin(), members.end());
  for (const std::string& member : members) add(member);
}

void Set::DigestAsRedis(DigestSink& out) const {
  ForEach([&out](std::string_view member) { out.Unordered(member); });
}

void Set::BeginCut(const PieceSink& sink, bool /*refer*/) {
  std::string head;
  {
    Writer out(&head);
    out.Length(size());
  }
  table().BeginCut(sink, head,
                   [](const RecordTable::Record& record, Writer& out) { out.String(record.key); });
}

bool Set::SavePieces(size_t budget) { return table().SavePieces(budget); }

void Set::AbortCut() {
  if (form() == Form::kTable) table().AbortCut();
}

// ---- loading ----

bool Set::LoadMembers(Set* set, Reader& in) {
  const uint64_t count = in.Count();
  if (count > UpTo(in.limits().set_max_intset_entries)) set->ToTable(Encoding::kHashtable);
  std::string scratch;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view member = in.StringView(&scratch);
    if (!in.ok()) return false;
    if (!set->Add(member, in.limits())) return in.Fail("no member of a set twice");
  }
  return in.ok();
}

bool Set::LoadPacked(Set* set, uint8_t rdb_type, Reader& in) {
  std::string scratch;
  const std::string_view bytes = in.StringView(&scratch);
  if (!in.ok()) return false;
  if (rdb_type == kRdbSetIntset) {
    const bool read = ForEachIntset(bytes, [&](int64_t value) { return set->AddNumber(value); });
    if (!read) return in.Fail("the intset of a set");
    set->Expect(set->size(), in.limits());
    return true;
  }
  // A listpack as it stands, whatever the limit for single members is now.
  CollectionLimits limits = in.limits();
  limits.set_max_listpack_value = UINT64_MAX;
  set->ToPacked();
  const bool read = ForEachListpack(bytes, [&](const PackedItem& item) {
    PackedItem::Scratch digits;
    return set->Add(item.Text(digits), limits);
  });
  return read || in.Fail("the listpack of a set");
}

std::unique_ptr<Object> Set::Load(uint8_t rdb_type, Reader& in) {
  auto set = std::make_unique<Set>();
  const bool read =
      rdb_type == kRdbSet ? LoadMembers(set.get(), in) : LoadPacked(set.get(), rdb_type, in);
  if (!read || set->size() == 0) {
    in.Fail("a set has members");
    return nullptr;
  }
  return set;
}

}  // namespace sava::types
