// The compressed strings of Writer and Reader. They stand by themselves because a host of ours may
// compress on its own: sava.so is built without this file, and without the library.
#include <liblzf/lzf.h>

#include <memory>

#include "types/value/save.h"

namespace sava::types {

namespace {

// Compression must save at least this.
constexpr size_t kLeastGain = 4;
// Three bytes of LZF stand for 264 at most, so no honest string is longer than this many times its
// compressed form.
constexpr uint64_t kLzfMostGrowth = 88;

}  // namespace

bool Writer::Compressed(std::string_view bytes) {
  if (bytes.size() > UINT32_MAX) return false;
  const auto size = static_cast<unsigned>(bytes.size());
  const std::unique_ptr<char[]> packed(new char[size - kLeastGain]);
  const unsigned packed_size = lzf_compress(bytes.data(), size, packed.get(), size - kLeastGain);
  if (packed_size == 0) return false;
  Byte(kLzfString);
  Length(packed_size);
  Length(size);
  Raw({packed.get(), packed_size});
  return true;
}

std::string_view Reader::Decompressed(std::string* scratch) {
  const uint64_t packed_size = Length();
  const uint64_t size = Length();
  const std::string_view packed = Raw(packed_size);
  if (!ok_ || size == 0 || size > UINT32_MAX || packed.size() > UINT32_MAX ||
      size > packed.size() * kLzfMostGrowth) {
    Fail("the sizes of a compressed string");
    return {};
  }
  scratch->resize(size);
  const unsigned made = lzf_decompress(packed.data(), static_cast<unsigned>(packed.size()),
                                       scratch->data(), static_cast<unsigned>(size));
  if (made != size) {
    Fail("a compressed string");
    return {};
  }
  return *scratch;
}

}  // namespace sava::types
