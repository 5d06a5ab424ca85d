#include "types/sketches/hyperloglog.h"

#include <sava/hyperloglog.h>

#include <memory>

namespace sava {

namespace {

namespace hll = types::hyperloglog;

// As hll-sparse-max-bytes is when nothing is said.
constexpr std::uint64_t kSparseBytes = 3000;

}  // namespace

HyperLogLog::HyperLogLog() : bytes_(hll::New()) {}

bool HyperLogLog::Add(std::string_view element) {
  const bool changed =
      hll::Set(&bytes_, hll::MarkOf(element), kSparseBytes) == hll::Change::kChanged;
  if (changed) hll::ForgetCount(bytes_.data());
  return changed;
}

std::uint64_t HyperLogLog::Count() const {
  std::uint64_t count = 0;
  if (!hll::KeptCount(bytes_, &count)) hll::Count(bytes_, &count);
  return count;
}

void HyperLogLog::Merge(const HyperLogLog& other) {
  const auto registers = std::make_unique<hll::Registers>();
  hll::MergeInto(registers.get(), bytes_);
  hll::MergeInto(registers.get(), other.bytes_);
  if (hll::IsDense(other.bytes_)) hll::MakeDense(&bytes_);
  for (std::uint32_t i = 0; i < hll::kRegisters; ++i) {
    if ((*registers)[i] != 0) hll::Set(&bytes_, {i, (*registers)[i]}, kSparseBytes);
  }
  hll::ForgetCount(bytes_.data());
}

std::optional<HyperLogLog> HyperLogLog::FromBytes(std::string_view bytes) {
  const auto registers = std::make_unique<hll::Registers>();
  if (!hll::Valid(bytes) || !hll::MergeInto(registers.get(), bytes)) return std::nullopt;
  HyperLogLog loaded;
  loaded.bytes_ = bytes;
  return loaded;
}

}  // namespace sava
