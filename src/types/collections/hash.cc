#include "types/collections/hash.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/varint.h"
#include "types/collections/shared_texts.h"
#include "types/value/digest_sink.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

// Of every Redis: fields and values, all strings.
constexpr uint8_t kRdbStockHash = 4;

constexpr uint8_t kWide = 0xe0;  // the first byte of a head of two bytes, and up
constexpr size_t kNarrowField = 7;
constexpr size_t kNarrowValue = 31;
constexpr size_t kWideField = 62;
constexpr size_t kWideValue = 126;
constexpr size_t kNumbered = 63;  // as the field length of two bytes: its number follows
// As the value length of two bytes: what stands as the field length says what follows.
constexpr size_t kOpen = 127;
constexpr size_t kTwoLengths = 0;   // varints
constexpr size_t kValueNumber = 1;  // varint of the field length, number of the value
constexpr size_t kBothNumbers = 2;  // of the name, of the value
constexpr size_t kMaxHead = 2 + 2 * base::kMaxVarintBytes;

uint64_t UpTo(int64_t limit) { return limit < 0 ? 0 : static_cast<uint64_t>(limit); }

uint8_t* PutWide(uint8_t* out, size_t field, size_t value) {
  const size_t bits = field << 7 | value;
  out[0] = static_cast<uint8_t>(kWide | bits >> 8);
  out[1] = static_cast<uint8_t>(bits);
  return out + 2;
}

uint8_t* PutNumber(uint8_t* out, uint16_t number) {
  memcpy(out, &number, sizeof number);
  return out + sizeof number;
}

const uint8_t* GetNumber(const uint8_t* p, uint16_t* number) {
  memcpy(number, p, sizeof *number);
  return p + sizeof *number;
}

// The head of a pair whose texts have these sizes and numbers; returns its end. A name has its
// number only together with a value of up to kWideValue bytes, or one that has a number.
uint8_t* PutHead(uint8_t* out, size_t field, uint16_t name, size_t value, uint16_t text) {
  const bool has_name = name != SharedTexts::kNone;
  if (text != SharedTexts::kNone) {
    if (has_name) return PutNumber(PutNumber(PutWide(out, kBothNumbers, kOpen), name), text);
    out = PutWide(out, kValueNumber, kOpen);
    return PutNumber(out + base::PutVarint(out, field), text);
  }
  if (has_name) return PutNumber(PutWide(out, kNumbered, value), name);
  if (field >= 1 && field <= kNarrowField && value <= kNarrowValue) {
    *out = static_cast<uint8_t>((field - 1) << 5 | value);
    return out + 1;
  }
  if (field <= kWideField && value <= kWideValue) return PutWide(out, field, value);
  out = PutWide(out, kTwoLengths, kOpen);
  out += base::PutVarint(out, field);
  return out + base::PutVarint(out, value);
}

}  // namespace

// ---- the packed form ----

Hash::Pair Hash::PairAt(size_t* at) const {
  const auto* begin = reinterpret_cast<const uint8_t*>(block_->data());
  const uint8_t* const end = begin + block_->used;
  const uint8_t* p = begin + *at;
  uint64_t field = 0;
  uint64_t value = 0;
  uint16_t name = SharedTexts::kNone;
  Pair pair;
  pair.begin = *at;
  if (*p < kWide) {
    field = (*p >> 5) + 1U;
    value = *p & 31U;
    ++p;
  } else {
    const size_t bits = (*p & 31U) << 8 | p[1];
    p += 2;
    field = bits >> 7;
    value = bits & 127;
    if (value != kOpen) {
      if (field == kNumbered) p = GetNumber(p, &name);
    } else if (field == kTwoLengths) {
      p = base::GetVarint(p, end, &field);
      p = base::GetVarint(p, end, &value);
    } else {
      p = field == kBothNumbers ? GetNumber(p, &name) : base::GetVarint(p, end, &field);
      p = GetNumber(p, &pair.value_number);
      value = 0;
    }
  }
  if (name != SharedTexts::kNone) {
    pair.field = SharedTexts::FieldNames().Text(name);
    field = 0;
  } else {
    pair.field = {reinterpret_cast<const char*>(p), field};
  }
  pair.plain = {reinterpret_cast<const char*>(p) + field, value};
  *at = static_cast<size_t>(p - begin) + field + value;
  return pair;
}

bool Hash::FindPacked(std::string_view field, Pair* pair, size_t* end) const {
  for (size_t at = 0; at < block_->used;) {
    *pair = PairAt(&at);
    if (pair->field != field) continue;
    *end = at;
    return true;
  }
  return false;
}

void Hash::WritePacked(size_t at, size_t removed, std::string_view field, std::string_view value) {
  uint8_t head[kMaxHead];
  const uint16_t text = SharedTexts::FieldValues().Use(value);
  const bool may_name = text != SharedTexts::kNone || value.size() <= kWideValue;
  const uint16_t name = may_name ? SharedTexts::FieldNames().Use(field) : SharedTexts::kNone;
  const auto head_size =
      static_cast<size_t>(PutHead(head, field.size(), name, value.size(), text) - head);
  if (name != SharedTexts::kNone) field = {};
  if (text != SharedTexts::kNone) value = {};
  block_ = SmallBlock::Splice(block_, at, removed, head_size + field.size() + value.size());
  char* p = block_->data() + at;
  memcpy(p, head, head_size);
  p += head_size;
  if (!field.empty()) memcpy(p, field.data(), field.size());
  if (!value.empty()) memcpy(p + field.size(), value.data(), value.size());
}

// ---- forms ----

Hash::Hash()
    : block_(SmallBlock::New(static_cast<uint8_t>(Form::kPacked),
                             static_cast<uint8_t>(Encoding::kListpack))) {}

Hash::~Hash() { Replace(nullptr); }

void Hash::Replace(SmallBlock* block) {
  if (form() == Form::kTable) {
    delete static_cast<Large*>(block_);
  } else {
    free(block_);
  }
  block_ = block;
}

void Hash::ToTable(Encoding encoding) {
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
  ForEach(kNever, [&](std::string_view field, std::string_view value) {
    large->table.Insert(field, value);
  });
  Replace(large.release());
}

void Hash::Expect(size_t fields, size_t longest, const CollectionLimits& limits) {
  if (kind() == Encoding::kHashtable) return;
  if (fields > UpTo(limits.hash_max_listpack_entries)) {
    ToTable(Encoding::kHashtable);
  } else if (longest > limits.hash_max_listpack_value) {
    // A few fields are best packed, however long they are.
    block_->encoding = static_cast<uint8_t>(Encoding::kHashtable);
  }
}

// ---- fields ----

bool Hash::Find(std::string_view field, int64_t now, std::string_view* value) const {
  if (form() == Form::kPacked) {
    Pair pair;
    size_t end = 0;
    if (!FindPacked(field, &pair, &end)) return false;
    if (value != nullptr) *value = pair.value();
    return true;
  }
  if (!table().Find(field, value)) return false;
  return !has_expiries() || !Gone(*expiries(), field, now);
}

bool Hash::Set(std::string_view field, std::string_view value, int64_t now,
               const CollectionLimits& limits, bool keep_expiry) {
  Expect(0, std::max(field.size(), value.size()), limits);
  if (form() == Form::kPacked) {
    Pair pair;
    size_t end = 0;
    const bool found = FindPacked(field, &pair, &end);
    const size_t removed = found ? end - pair.begin : 0;
    const bool fits = block_->used - removed + field.size() + value.size() + 2 <= kMaxPacked &&
                      (found || block_->count < kMaxPackedFields);
    if (fits) {
      WritePacked(found ? pair.begin : block_->used, removed, field, value);
      block_->count += found ? 0 : 1;
      if (block_->count > UpTo(limits.hash_max_listpack_entries)) ToTable(Encoding::kHashtable);
      return !found;
    }
    ToTable(kind());
  }
  const bool drops = has_expiries() && (!keep_expiry || Gone(*expiries(), field, now));
  if (drops) table().BeforeChange(field);
  const bool added = table().Put(field, value);
  if (drops) expiries()->Remove(field);
  if (table().size() > UpTo(limits.hash_max_listpack_entries)) ToTable(Encoding::kHashtable);
  return added;
}

bool Hash::Remove(std::string_view field) {
  if (form() == Form::kTable) {
    if (!table().Erase(field)) return false;
    if (has_expiries()) expiries()->Remove(field);
    return true;
  }
  Pair pair;
  size_t end = 0;
  if (!FindPacked(field, &pair, &end)) return false;
  block_ = SmallBlock::Splice(block_, pair.begin, end - pair.begin, 0);
  --block_->count;
  return true;
}

int64_t Hash::ExpiryOf(std::string_view field) const {
  return has_expiries() ? expiries()->Of(field) : kNoExpiry;
}

void Hash::SetExpiry(std::string_view field, int64_t at) {
  if (at == kNoExpiry && !has_expiries()) return;
  if (kind() == Encoding::kListpack) {
    ToTable(Encoding::kListpackEx);
  } else if (form() == Form::kPacked) {
    ToTable(kind());
  }
  table().BeforeChange(field);
  if (at == kNoExpiry) {
    expiries()->Remove(field);
    return;
  }
  auto& times = static_cast<Large*>(block_)->expiries;
  if (times == nullptr) times = std::make_unique<FieldExpiries>();
  times->Set(field, at);
}

bool Hash::RemoveExpired(int64_t now, size_t budget, std::vector<std::string>* names) {
  if (!has_expiries()) return false;
  const auto before = static_cast<ptrdiff_t>(names->size());
  const bool more = expiries()->Due(now, budget, names);
  const auto gone = std::remove_if(names->begin() + before, names->end(),
                                   [this](const std::string& name) { return !Remove(name); });
  names->erase(gone, names->end());
  return more;
}

uint64_t Hash::Scan(uint64_t cursor, size_t count, int64_t now, const Visit& visit) const {
  if (form() == Form::kPacked) {
    ForEach(now, visit);
    return 0;
  }
  const FieldExpiries* times = has_expiries() ? expiries() : nullptr;
  return table().Scan(cursor, count, [&](const RecordTable::Record& record) {
    if (times == nullptr || !Gone(*times, record.key, now)) visit(record.key, record.payload);
  });
}

bool Hash::Random(const RandomBits& random, int64_t now, std::string_view* field,
                  std::string_view* value) const {
  if (size() == 0) return false;
  if (form() == Form::kPacked) {
    size_t at = 0;
    for (size_t skip = random() % block_->count; skip > 0; --skip) PairAt(&at);
    const Pair pair = PairAt(&at);
    *field = pair.field;
    *value = pair.value();
    return true;
  }
  const FieldExpiries* times = has_expiries() ? expiries() : nullptr;
  RecordTable::Record record;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    table().Random(random, &record);
    if (times == nullptr || !Gone(*times, record.key, now)) {
      *field = record.key;
      *value = record.payload;
      return true;
    }
  }
  // Most are past their time.
  uint64_t seen = 0;
  ForEach(now, [&](std::string_view each_field, std::string_view each_value) {
    if (random() % ++seen != 0) return;
    *field = each_field;
    *value = each_value;
  });
  return seen > 0;
}

// ---- the object ----

std::string_view Hash::encoding() const {
  switch (kind()) {
    case Encoding::kListpack:
      return "listpack";
    case Encoding::kListpackEx:
      return "listpackex";
    default:
      return "hashtable";
  }
}

size_t Hash::MemoryUsage(size_t /*samples*/) const {
  if (form() == Form::kPacked) return sizeof(*this) + SmallBlock::BlockFor(block_->used);
  return sizeof(*this) + sizeof(SmallBlock) + table().memory() +
         (expiries() == nullptr ? 0 : expiries()->memory());
}

std::unique_ptr<Object> Hash::Copy() const {
  auto copy = std::make_unique<Hash>();
  if (form() == Form::kPacked) {
    copy->Replace(SmallBlock::Copy(block_));
    return copy;
  }
  copy->ToTable(kind());
  copy->table().CopyFrom(table());
  if (has_expiries()) {
    auto& times = static_cast<Large*>(copy->block_)->expiries;
    times = std::make_unique<FieldExpiries>();
    times->CopyFrom(*expiries());
  }
  return copy;
}

void Hash::Digest(const std::function<void(std::string_view)>& add) const {
  std::vector<std::string> pairs;
  pairs.reserve(size());
  ForEach(kNever, [&](std::string_view field, std::string_view value) {
    std::string text = std::to_string(field.size()) + ":";
    text.append(field).append(value);
    if (const int64_t at = ExpiryOf(field); at != kNoExpiry) text += "@" + std::to_string(at);
    pairs.push_back(std::move(text));
  });
  std::sort(pairs.begin(), pairs.end());
  for (const std::string& pair : pairs) add(pair);
}

void Hash::DigestAsRedis(DigestSink& out) const {
  ForEach(kNever, [&out](std::string_view field, std::string_view value) {
    out.UnorderedPair(field, value);
  });
}

bool Hash::IsPartExpired(std::string_view part, int64_t now) const {
  return ExpiryOf(part) != kNoExpiry && !Find(part, now, nullptr);
}

StockForm Hash::stock_form(int64_t now) const {
  bool empty = true;
  ForEach(now, [&empty](std::string_view, std::string_view) { empty = false; });
  return {"hashes without times", kRdbStockHash, empty};
}

void Hash::SaveStockForm(Writer& out, int64_t now) const {
  uint64_t fields = 0;
  ForEach(now, [&fields](std::string_view, std::string_view) { ++fields; });
  out.Length(fields);
  ForEach(now, [&out](std::string_view field, std::string_view value) {
    out.String(field);
    out.String(value);
  });
}

}  // namespace sava::types
