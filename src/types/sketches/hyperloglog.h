// HyperLogLog: estimates how many different elements were seen, in the bytes of a string that Redis
// reads and writes too (docs/types/hyperloglog.md).
//
// 2^14 registers of 6 bits keep, each for the elements whose hash chooses it, the longest run of
// zero bits seen plus one. The string is a head of 16 bytes (magic, form, the last estimate and
// whether it still holds) and either all registers ("dense") or runs of equal ones ("sparse"),
// which is turned into dense when it gets too long or a register exceeds what a run can say.
// The same calls give the same bytes as Redis's.
//
// Strings come from users: every function is safe on any bytes that pass Valid.
// Thread safety: no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sava::types::hyperloglog {

inline constexpr unsigned kIndexBits = 14;
inline constexpr size_t kRegisters = size_t{1} << kIndexBits;
inline constexpr size_t kHead = 16;
inline constexpr size_t kDenseSize = kHead + kRegisters * 6 / 8;

// One byte for each register.
using Registers = std::array<uint8_t, kRegisters>;

// What an element does: it raises a register to a rank, from 1 to 51.
struct Mark {
  uint32_t index;
  uint8_t rank;
};
Mark MarkOf(std::string_view element);

// Whether the bytes have the head and, if dense, the size of an estimator.
bool Valid(std::string_view bytes);
// REQUIRES: Valid, of this and all that follow.
bool IsDense(std::string_view bytes);

// One that has seen nothing.
std::string New();
enum class Change : int8_t { kDamaged = -1, kNone = 0, kChanged = 1 };
// A mark in a sparse one, which becomes dense when it would be longer than `most` bytes.
Change Set(std::string* bytes, Mark mark, uint64_t most);
// A register of a dense one.
uint8_t DenseAt(const char* bytes, uint32_t index);
void SetDenseAt(char* bytes, uint32_t index, uint8_t rank);
// False when a sparse one is damaged; a dense one stays as it is.
bool MakeDense(std::string* bytes);

// Raises registers to those of an estimator; false when it is damaged.
bool MergeInto(Registers* registers, std::string_view bytes);
// The estimate; false when it is damaged.
bool Count(std::string_view bytes, uint64_t* count);
uint64_t Count(const Registers& registers);

// The estimate kept in the head; false when it does not hold any more.
bool KeptCount(std::string_view bytes, uint64_t* count);
void KeepCount(char* bytes, uint64_t count);
void ForgetCount(char* bytes);

// The runs of a sparse one, as PFDEBUG DECODE shows them.
std::string Describe(std::string_view bytes);

}  // namespace sava::types::hyperloglog
