// What the saved forms of filters have in common: docs/formats/filters.md describes the bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/varint.h"
#include "types/value/save.h"

namespace sava::types {

// Reads varints and doubles from a header; the first failure sticks.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool ok() const { return at_ != nullptr; }
  bool AtEnd() const { return at_ == end_; }
  void Fail() { at_ = nullptr; }
  uint64_t Number(uint64_t most = UINT64_MAX) {
    uint64_t value = 0;
    if (ok()) at_ = base::GetVarint(at_, end_, &value);
    if (value > most) Fail();
    return ok() ? value : 0;
  }
  double Double() {
    uint64_t bits = 0;
    if (!ok() || static_cast<size_t>(end_ - at_) < sizeof bits) {
      Fail();
      return 0;
    }
    memcpy(&bits, at_, sizeof bits);
    at_ += sizeof bits;
    return std::bit_cast<double>(bits);
  }
  // All that is left.
  std::string_view Rest() const {
    if (!ok()) return {};
    return {reinterpret_cast<const char*>(at_), static_cast<size_t>(end_ - at_)};
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

inline void AppendDouble(std::string* out, double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  out->append(reinterpret_cast<const char*>(&bits), sizeof bits);
}

// A piece as a module string: compressed where that may pay. Bits of a filter in use look random.
inline void WritePiece(Writer& out, std::string_view piece) {
  size_t zeros = 0;
  constexpr size_t kLook = 256;
  const size_t step = piece.size() / kLook + 1;
  for (size_t i = 0; i < piece.size(); i += step) zeros += piece[i] == 0 ? 1 : 0;
  if (zeros * step * 2 > piece.size()) {
    out.ModuleString(piece);
    return;
  }
  out.Length(static_cast<uint64_t>(ModuleOpcode::kString));
  out.Length(piece.size());
  out.Raw(piece);
}

// The empty piece behind the last one, and the end of the value.
inline void WriteLastPiece(Writer& out) {
  out.ModuleString({});
  out.ModuleEnd();
}

}  // namespace sava::types
