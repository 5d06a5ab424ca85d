#include "base/dictionary_encoding.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "base/bit_packing.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/varint.h"

namespace sava::base {
namespace {

// Seeded, so that nobody can choose values that collide.
struct SeededHash {
  uint64_t seed;
  size_t operator()(std::string_view bytes) const { return HashBytes(bytes, seed); }
};

unsigned IdWidth(size_t distinct) { return distinct < 2 ? 0 : BitsFor(distinct - 1); }

size_t StringSize(std::string_view bytes) { return VarintSize(bytes.size()) + bytes.size(); }

void AppendString(std::string* out, std::string_view bytes) {
  AppendVarint(out, bytes.size());
  out->append(bytes);
}

// Reads `count` strings of at most `max_bytes` together. Each takes a byte or more, so the caller
// checks `count` against what is left first.
bool ReadStrings(const uint8_t** p, const uint8_t* end, uint64_t count, size_t max_bytes,
                 std::vector<std::string_view>* out) {
  out->reserve(static_cast<size_t>(count));
  const uint8_t* at = *p;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    at = GetVarint(at, end, &size);
    if (at == nullptr || size > static_cast<size_t>(end - at) || size > max_bytes) return false;
    max_bytes -= static_cast<size_t>(size);
    out->emplace_back(reinterpret_cast<const char*>(at), static_cast<size_t>(size));
    at += size;
  }
  *p = at;
  return true;
}

bool AllDiffer(std::vector<std::string_view> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

// Ids below `distinct`, each new one the next in turn, none missing.
bool InOrderOfAppearance(std::span<const uint32_t> ids, size_t distinct) {
  uint32_t next = 0;
  for (const uint32_t id : ids) {
    if (id > next) return false;
    if (id == next) ++next;
  }
  return next == distinct;
}

bool FitsTogether(const DictionaryValues& values, size_t max_bytes) {
  for (const uint32_t id : values.ids) {
    const size_t size = values.distinct[id].size();
    if (size > max_bytes) return false;
    max_bytes -= size;
  }
  return true;
}

}  // namespace

DictionaryEncoder::DictionaryEncoder(std::span<const std::string_view> values)
    : count_(values.size()), plain_size_(VarintSize(values.size())) {
  assert(values.size() <= UINT32_MAX);
  std::unordered_map<std::string_view, uint32_t, SeededHash> known(16,
                                                                   SeededHash{SecureRandom64()});
  std::vector<uint32_t> ids;
  ids.reserve(values.size());
  size_t dictionary_size = 0;
  for (const std::string_view value : values) {
    plain_size_ += StringSize(value);
    const auto [found, is_new] = known.try_emplace(value, static_cast<uint32_t>(distinct_.size()));
    if (is_new) {
      distinct_.push_back(value);
      dictionary_size += StringSize(value);
    }
    ids.push_back(found->second);
  }
  EncodeHybrid(std::span<const uint32_t>(ids), IdWidth(distinct_.size()), &ids_);
  encoded_size_ = VarintSize(count_) + VarintSize(distinct_.size()) + dictionary_size + ids_.size();
}

void DictionaryEncoder::AppendTo(std::string* out) const {
  out->reserve(out->size() + encoded_size_);
  AppendVarint(out, count_);
  AppendVarint(out, distinct_.size());
  for (const std::string_view value : distinct_) AppendString(out, value);
  out->append(ids_);
}

std::optional<DictionaryValues> DecodeDictionary(const uint8_t** p, const uint8_t* end,
                                                 const DictionaryLimits& limits) {
  uint64_t count = 0;
  uint64_t distinct = 0;
  const uint8_t* at = GetVarint(*p, end, &count);
  if (at == nullptr || count > limits.max_values || count > UINT32_MAX) return {};
  at = GetVarint(at, end, &distinct);
  if (at == nullptr || distinct > count || (distinct == 0) != (count == 0)) return {};
  if (distinct > static_cast<size_t>(end - at)) return {};

  DictionaryValues values;
  if (!ReadStrings(&at, end, distinct, limits.max_bytes, &values.distinct)) return {};
  if (!AllDiffer(values.distinct)) return {};
  values.ids.resize(static_cast<size_t>(count));
  at = DecodeHybrid(at, end, IdWidth(values.distinct.size()), std::span<uint32_t>(values.ids));
  if (at == nullptr) return {};
  if (!InOrderOfAppearance(values.ids, values.distinct.size())) return {};
  if (!FitsTogether(values, limits.max_bytes)) return {};
  *p = at;
  return values;
}

void AppendPlainStrings(std::string* out, std::span<const std::string_view> values) {
  AppendVarint(out, values.size());
  for (const std::string_view value : values) AppendString(out, value);
}

std::optional<std::vector<std::string_view>> DecodePlainStrings(const uint8_t** p,
                                                                const uint8_t* end,
                                                                const DictionaryLimits& limits) {
  uint64_t count = 0;
  const uint8_t* at = GetVarint(*p, end, &count);
  if (at == nullptr || count > limits.max_values || count > static_cast<size_t>(end - at)) {
    return {};
  }
  std::vector<std::string_view> values;
  if (!ReadStrings(&at, end, count, limits.max_bytes, &values)) return {};
  *p = at;
  return values;
}

}  // namespace sava::base
