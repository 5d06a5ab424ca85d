#include "types/sketches/hyperloglog.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace sava::types::hyperloglog {

namespace {

constexpr uint64_t kSeed = 0xadc83b19;
constexpr unsigned kRankBits = 64 - kIndexBits;
constexpr unsigned kMostRank = kRankBits + 1;
constexpr uint8_t kDense = 0;
constexpr uint8_t kSparse = 1;
constexpr size_t kFormAt = 4;
constexpr size_t kCountAt = 8;
constexpr size_t kCountEnd = 15;  // the byte whose top bit says that the count does not hold

// Runs: 00nnnnnn zeros (1-64), 01nnnnnn nnnnnnnn zeros (1-16384), 1rrrrrnn the rank r (1-32) n
// times (1-4); each number is stored less one.
constexpr size_t kShortZeros = 64;
constexpr unsigned kMostRunRank = 32;
constexpr size_t kMostRun = 4;

// MurmurHash64A.
uint64_t Murmur(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  constexpr unsigned kShift = 47;
  uint64_t hash = seed ^ (bytes.size() * kMultiplier);
  const char* p = bytes.data();
  for (size_t n = bytes.size() / 8; n > 0; --n, p += 8) {
    uint64_t word = 0;
    memcpy(&word, p, 8);
    word *= kMultiplier;
    word ^= word >> kShift;
    word *= kMultiplier;
    hash = (hash ^ word) * kMultiplier;
  }
  if (const size_t rest = bytes.size() % 8; rest != 0) {
    uint64_t word = 0;
    memcpy(&word, p, rest);
    hash = (hash ^ word) * kMultiplier;
  }
  hash ^= hash >> kShift;
  hash *= kMultiplier;
  return hash ^ (hash >> kShift);
}

struct Run {
  uint8_t rank;
  uint32_t length;
  uint32_t bytes;
};

// The run at `at`; bytes 0 when it is cut off.
Run RunAt(std::string_view bytes, size_t at) {
  const auto first = static_cast<uint8_t>(bytes[at]);
  if ((first & 0x80) != 0) {
    return {static_cast<uint8_t>(((first >> 2) & 31) + 1), (first & 3U) + 1, 1};
  }
  if ((first & 0x40) == 0) return {0, (first & 63U) + 1, 1};
  if (at + 1 >= bytes.size()) return {0, 0, 0};
  return {0, ((first & 63U) << 8 | static_cast<uint8_t>(bytes[at + 1])) + 1, 2};
}

// visit(run, first register) for every run of a sparse one; false when they do not add up.
template <typename Visit>
bool ForEachRun(std::string_view bytes, Visit&& visit) {
  size_t index = 0;
  for (size_t at = kHead; at < bytes.size();) {
    const Run run = RunAt(bytes, at);
    if (run.bytes == 0 || run.length > kRegisters - index) return false;
    visit(run, index);
    index += run.length;
    at += run.bytes;
  }
  return index == kRegisters;
}

// A sequence of runs that takes the place of one: at most 2 + 1 + 2 bytes.
struct Runs {
  void Zeros(size_t length) {
    if (length == 0) return;
    const size_t stored = length - 1;
    if (length > kShortZeros) bytes[size++] = static_cast<char>(0x40 | stored >> 8);
    bytes[size++] = static_cast<char>(stored);
  }
  void Ranks(unsigned rank, size_t length) {
    if (length == 0) return;
    bytes[size++] = static_cast<char>(0x80 | (rank - 1) << 2 | (length - 1));
  }

  char bytes[5];
  size_t size = 0;
};

// Joins runs of the same rank, looking at five of them from `at` on.
void JoinRuns(std::string* bytes, size_t at) {
  for (int looked = 0; looked < 5 && at < bytes->size(); ++looked) {
    const Run run = RunAt(*bytes, at);
    if (run.rank == 0) {
      at += std::max<uint32_t>(run.bytes, 1);
      continue;
    }
    if (at + 1 < bytes->size()) {
      const Run next = RunAt(*bytes, at + 1);
      if (next.rank == run.rank && run.length + next.length <= kMostRun) {
        Runs joined;
        joined.Ranks(run.rank, run.length + next.length);
        (*bytes)[at] = joined.bytes[0];
        bytes->erase(at + 1, 1);
        continue;
      }
    }
    ++at;
  }
}

Change SetInDense(std::string* bytes, Mark mark) {
  if (DenseAt(bytes->data(), mark.index) >= mark.rank) return Change::kNone;
  SetDenseAt(bytes->data(), mark.index, mark.rank);
  return Change::kChanged;
}

Change Promote(std::string* bytes, Mark mark) {
  if (!MakeDense(bytes)) return Change::kDamaged;
  SetInDense(bytes, mark);
  return Change::kChanged;
}

// Four registers in three bytes.
void Unpack(const char* dense, Registers* registers) {
  const auto* p = reinterpret_cast<const uint8_t*>(dense + kHead);
  uint8_t* out = registers->data();
  for (size_t i = 0; i < kRegisters; i += 4, p += 3, out += 4) {
    const uint32_t bits =
        p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16;
    out[0] = bits & 63;
    out[1] = (bits >> 6) & 63;
    out[2] = (bits >> 12) & 63;
    out[3] = static_cast<uint8_t>(bits >> 18);
  }
}

using Histogram = std::array<uint32_t, 64>;

// ---- the estimator (O. Ertl, 2017) ----

double Sigma(double x) {
  if (x == 1.0) return std::numeric_limits<double>::infinity();
  double y = 1;
  double z = x;
  double last = 0;
  do {
    x *= x;
    last = z;
    z += x * y;
    y += y;
  } while (last != z);
  return z;
}

double Tau(double x) {
  if (x == 0.0 || x == 1.0) return 0.0;
  double y = 1.0;
  double z = 1 - x;
  double last = 0;
  do {
    x = std::sqrt(x);
    last = z;
    y *= 0.5;
    z -= std::pow(1 - x, 2) * y;
  } while (last != z);
  return z / 3;
}

uint64_t Estimate(const Histogram& histogram) {
  constexpr double kAlpha = 0.721347520444481703680;  // 0.5 / ln 2
  constexpr double kAll = kRegisters;
  double z = kAll * Tau((kAll - histogram[kMostRank]) / kAll);
  for (unsigned rank = kRankBits; rank >= 1; --rank) {
    z += histogram[rank];
    z *= 0.5;
  }
  z += kAll * Sigma(histogram[0] / kAll);
  return static_cast<uint64_t>(llroundl(kAlpha * kAll * kAll / z));
}

}  // namespace

Mark MarkOf(std::string_view element) {
  const uint64_t hash = Murmur(element, kSeed);
  const uint64_t rest = hash >> kIndexBits | uint64_t{1} << kRankBits;
  return {static_cast<uint32_t>(hash & (kRegisters - 1)),
          static_cast<uint8_t>(std::countr_zero(rest) + 1)};
}

bool Valid(std::string_view bytes) {
  if (bytes.size() < kHead || bytes.substr(0, 4) != "HYLL") return false;
  const auto form = static_cast<uint8_t>(bytes[kFormAt]);
  return form == kSparse || (form == kDense && bytes.size() == kDenseSize);
}

bool IsDense(std::string_view bytes) { return bytes[kFormAt] == kDense; }

std::string New() {
  std::string bytes(kHead, '\0');
  bytes.replace(0, 4, "HYLL");
  bytes[kFormAt] = kSparse;
  Runs all;
  all.Zeros(kRegisters);
  return bytes.append(all.bytes, all.size);
}

Change Set(std::string* bytes, Mark mark, uint64_t most) {
  if (IsDense(*bytes)) return SetInDense(bytes, mark);
  if (mark.rank > kMostRunRank) return Promote(bytes, mark);
  // The run that the register is in.
  size_t at = kHead;
  size_t before = kHead;  // where the run before it begins
  uint32_t first = 0;
  Run run{};
  for (;;) {
    if (at >= bytes->size()) return Change::kDamaged;
    run = RunAt(*bytes, at);
    if (run.bytes == 0 || run.length > kRegisters - first) return Change::kDamaged;
    if (mark.index < first + run.length) break;
    before = at;
    at += run.bytes;
    first += run.length;
  }
  if (run.rank >= mark.rank) return Change::kNone;
  Runs changed;
  if (run.length == 1 && run.bytes == 1) {
    changed.Ranks(mark.rank, 1);
  } else {
    const size_t left = mark.index - first;
    const size_t right = run.length - left - 1;
    run.rank == 0 ? changed.Zeros(left) : changed.Ranks(run.rank, left);
    changed.Ranks(mark.rank, 1);
    run.rank == 0 ? changed.Zeros(right) : changed.Ranks(run.rank, right);
    if (changed.size > run.bytes && bytes->size() + changed.size - run.bytes > most) {
      return Promote(bytes, mark);
    }
  }
  bytes->replace(at, run.bytes, changed.bytes, changed.size);
  JoinRuns(bytes, before);
  ForgetCount(bytes->data());
  return Change::kChanged;
}

uint8_t DenseAt(const char* bytes, uint32_t index) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes) + kHead + index / 4 * 3;
  const uint32_t bits = p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16;
  return bits >> (index % 4 * 6) & 63;
}

void SetDenseAt(char* bytes, uint32_t index, uint8_t rank) {
  auto* p = reinterpret_cast<uint8_t*>(bytes) + kHead + index / 4 * 3;
  uint32_t bits = p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16;
  const unsigned shift = index % 4 * 6;
  bits = (bits & ~(63U << shift)) | static_cast<uint32_t>(rank) << shift;
  p[0] = static_cast<uint8_t>(bits);
  p[1] = static_cast<uint8_t>(bits >> 8);
  p[2] = static_cast<uint8_t>(bits >> 16);
}

bool MakeDense(std::string* bytes) {
  if (IsDense(*bytes)) return true;
  std::string dense(kDenseSize, '\0');
  memcpy(dense.data(), bytes->data(), kHead);
  dense[kFormAt] = kDense;
  const bool whole = ForEachRun(*bytes, [&dense](const Run& run, size_t index) {
    for (uint32_t i = 0; run.rank != 0 && i < run.length; ++i) {
      SetDenseAt(dense.data(), static_cast<uint32_t>(index + i), run.rank);
    }
  });
  if (whole) *bytes = std::move(dense);
  return whole;
}

bool MergeInto(Registers* registers, std::string_view bytes) {
  if (IsDense(bytes)) {
    Registers other;
    Unpack(bytes.data(), &other);
    for (size_t i = 0; i < kRegisters; ++i) {
      (*registers)[i] = std::max((*registers)[i], other[i]);
    }
    return true;
  }
  return ForEachRun(bytes, [registers](const Run& run, size_t index) {
    if (run.rank == 0) return;
    for (size_t i = index; i < index + run.length; ++i) {
      (*registers)[i] = std::max((*registers)[i], run.rank);
    }
  });
}

bool Count(std::string_view bytes, uint64_t* count) {
  if (IsDense(bytes)) {
    Registers registers;
    Unpack(bytes.data(), &registers);
    *count = Count(registers);
    return true;
  }
  Histogram histogram{};
  const auto add = [&histogram](const Run& run, size_t) { histogram[run.rank] += run.length; };
  if (!ForEachRun(bytes, add)) return false;
  *count = Estimate(histogram);
  return true;
}

uint64_t Count(const Registers& registers) {
  // Several, so that equal registers in a row do not wait for each other.
  Histogram part[4]{};
  for (size_t i = 0; i < kRegisters; i += 4) {
    for (size_t j = 0; j < 4; ++j) ++part[j][registers[i + j] & 63];
  }
  Histogram all{};
  for (size_t rank = 0; rank < all.size(); ++rank) {
    all[rank] = part[0][rank] + part[1][rank] + part[2][rank] + part[3][rank];
  }
  return Estimate(all);
}

bool KeptCount(std::string_view bytes, uint64_t* count) {
  memcpy(count, bytes.data() + kCountAt, sizeof *count);
  return (bytes[kCountEnd] & 0x80) == 0;
}

void KeepCount(char* bytes, uint64_t count) { memcpy(bytes + kCountAt, &count, sizeof count); }

void ForgetCount(char* bytes) { bytes[kCountEnd] = static_cast<char>(bytes[kCountEnd] | 0x80); }

std::string Describe(std::string_view bytes) {
  std::string text;
  ForEachRun(bytes, [&text](const Run& run, size_t) {
    if (!text.empty()) text += ' ';
    if (run.rank != 0) {
      text += fmt::format("v:{},{}", run.rank, run.length);
    } else {
      text += fmt::format("{}:{}", run.bytes == 1 ? 'z' : 'Z', run.length);
    }
  });
  return text;
}

}  // namespace sava::types::hyperloglog
