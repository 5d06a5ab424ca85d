#include "cli/bench_load.h"

#include <algorithm>
#include <bit>

namespace sava::cli {
namespace {

constexpr size_t kGuidSize = 36;

// What a number is hashed for; different streams have nothing to do with each other.
enum class Stream : uint64_t { kOrder = 1, kAssociator, kMember, kRepetitions, kChoice };

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t StreamSeed(uint64_t seed, Stream stream) {
  return Mix(Mix(seed) + static_cast<uint64_t>(stream));
}

void AppendGuid(uint64_t seed, uint64_t index, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  // Version 4, variant 1: a random GUID.
  const uint64_t words[2] = {
      (Mix(seed + 2 * index) & ~uint64_t{0xf000}) | 0x4000,
      (Mix(seed + 2 * index + 1) & ~(uint64_t{3} << 62)) | uint64_t{2} << 62,
  };
  char text[kGuidSize];
  char* p = text;
  for (unsigned digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) *p++ = '-';
    *p++ = kDigits[(words[digit / 16] >> (60 - 4 * (digit % 16))) & 15];
  }
  out->append(text, kGuidSize);
}

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t seed)
    : size_(size),
      mask_(size < 2 ? 0 : ~uint64_t{0} >> (64 - std::bit_width(size - 1))),
      shift_(static_cast<unsigned>(std::bit_width(mask_) + 1) / 2) {
  for (uint64_t& key : keys_) key = (seed = Mix(seed)) | 1;
}

uint64_t Permutation::operator()(uint64_t i) const {
  // Each step can be undone within mask_'s bits; what falls outside [0, size) goes round again.
  do {
    for (const uint64_t key : keys_) {
      i = (i * key + (key >> 32)) & mask_;
      i ^= i >> shift_;
    }
  } while (i >= size_);
  return i;
}

AssociationLoad::AssociationLoad(const AssociationShape& shape)
    : shape_(shape), order_(slots(), StreamSeed(shape.seed, Stream::kOrder)) {
  shape_.distinct = std::max(shape_.distinct, shape_.associated);
}

uint64_t AssociationLoad::CountOperations() const {
  uint64_t total = 0;
  for (uint64_t a = 0; a < shape_.associators; ++a) {
    for (uint64_t j = 0; j < shape_.associated; ++j) total += Repetitions(a, j);
  }
  return total;
}

std::optional<AssociationLoad::Association> AssociationLoad::At(uint64_t i) const {
  const uint64_t slot = shape_.in_order ? i : order_(i);
  const uint64_t pair = slot / shape_.repetitions;
  const uint64_t associator = pair / shape_.associated;
  const uint64_t j = pair % shape_.associated;
  if (slot % shape_.repetitions >= Repetitions(associator, j)) return {};
  return Association{associator, Member(associator, j)};
}

uint64_t AssociationLoad::Member(uint64_t associator, uint64_t j) const {
  if (shape_.distinct == shape_.associated) return j;
  return Permutation(shape_.distinct, StreamSeed(shape_.seed, Stream::kChoice) + associator)(j);
}

uint64_t AssociationLoad::Repetitions(uint64_t associator, uint64_t j) const {
  const uint64_t pair = associator * shape_.associated + j;
  return 1 + Mix(StreamSeed(shape_.seed, Stream::kRepetitions) + pair) % shape_.repetitions;
}

void AssociationLoad::AppendAssociator(uint64_t associator, std::string* out) const {
  AppendGuid(StreamSeed(shape_.seed, Stream::kAssociator), associator, out);
}

void AssociationLoad::AppendMember(uint64_t member, std::string* out) const {
  AppendGuid(StreamSeed(shape_.seed, Stream::kMember), member, out);
}

std::string AssociationLoad::AssociatorText(uint64_t associator) const {
  std::string text;
  AppendAssociator(associator, &text);
  return text;
}

std::string AssociationLoad::MemberText(uint64_t member) const {
  std::string text;
  AppendMember(member, &text);
  return text;
}

}  // namespace sava::cli
