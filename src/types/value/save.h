// Writer and Reader: the primitives of Redis's RDB format, which snapshots, DUMP payloads and the
// full copy to a replica are made of. docs/formats/dump.md describes the bytes.
//
//   length    00xxxxxx | 01xxxxxx x | 0x80 + 4 bytes big-endian | 0x81 + 8 bytes big-endian
//   string    length, bytes | c0 i8 | c1 i16 | c2 i32 (little-endian) | c3 length length LZF bytes
//   double    8 bytes, IEEE 754, little-endian
//   module    each item behind an opcode written as a length (0 end, 1 signed, 2 unsigned, 3 float,
//             4 double, 5 string)
//
// A Reader never trusts a length: nothing is reserved before it is known that the bytes are there.
// Its first failure sticks: every later call gives zero or nothing, so that a caller may read a
// whole value and ask ok() once. Neither class is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "types/collections/collection_limits.h"

namespace sava::types {

// Value types of the format that this folder knows without a TypeInfo.
inline constexpr uint8_t kRdbString = 0;
// Native types are module values to Redis: the type byte, the module id, items, an end mark.
inline constexpr uint8_t kRdbModule = 7;
// The version DUMP writes (Redis 7.0), and the newest whose payloads are understood.
inline constexpr uint16_t kRdbVersion = 10;
inline constexpr uint16_t kRdbNewestVersion = 12;
// Hashes whose fields have times, which only the newest version knows.
inline constexpr uint8_t kRdbFirstTimedHash = 22;
inline constexpr uint8_t kRdbLastTimedHash = 25;

enum class ModuleOpcode : uint8_t {
  kEnd = 0,
  kSigned = 1,
  kUnsigned = 2,
  kFloat = 3,
  kDouble = 4,
  kString = 5,
};

// The byte before a compressed string.
inline constexpr uint8_t kLzfString = 0xc3;

// The id of a module type: nine characters and a version up to 1023.
// REQUIRES: name has nine characters of A-Z a-z 0-9 - _.
uint64_t ModuleId(std::string_view name, unsigned version);
// The nine characters of an id.
std::string ModuleName(uint64_t id);

class FileAux;

class Writer {
 public:
  using Sink = std::function<void(std::string_view bytes)>;

  // Appends to `out`.
  explicit Writer(std::string* out, bool compress = true);
  // Hands the bytes on in pieces of some 64 KB; the last ones at Flush or destruction.
  explicit Writer(Sink sink, bool compress = true);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { Flush(); }

  // Bytes written so far, those not handed on yet included.
  uint64_t written() const { return handed_on_ + out_->size() - start_; }
  void Flush();

  // Whether values may refer to what their type shares, which the file then holds once (AuxData).
  bool refers() const { return refers_; }
  void set_refers(bool refers) { refers_ = refers; }

  void Raw(std::string_view bytes);
  void Byte(uint8_t value);
  void Fixed32(uint32_t value);
  void Fixed64(uint64_t value);
  void Length(uint64_t value);
  // As a number when it is one of 32 bits in canonical form, compressed when longer than 20 bytes
  // and that saves something, else as it is.
  void String(std::string_view bytes);
  // The string that `value` is in decimal.
  void StringOf(int64_t value);
  void Double(double value);

  // The items of a module-type value; ModuleEnd closes it.
  void ModuleSigned(int64_t value);
  void ModuleUnsigned(uint64_t value);
  void ModuleFloat(float value);
  void ModuleDouble(double value);
  void ModuleString(std::string_view bytes);
  void ModuleEnd();

 private:
  bool SmallInteger(int64_t value);
  bool Compressed(std::string_view bytes);
  void Opcode(ModuleOpcode opcode) { Length(static_cast<uint64_t>(opcode)); }

  std::string own_;  // what waits for the sink
  std::string* out_;
  Sink sink_;
  size_t start_ = 0;
  uint64_t handed_on_ = 0;
  bool compress_;
  bool refers_ = false;
};

// The items of one module-type value as another host hands them out. Read is false when the next
// item is of another kind, or there is none.
class ItemSource {
 public:
  virtual ~ItemSource() = default;
  virtual bool Read(int64_t* value) = 0;
  virtual bool Read(uint64_t* value) = 0;
  virtual bool Read(float* value) = 0;
  virtual bool Read(double* value) = 0;
  virtual bool Read(std::string* value) = 0;
};

class Reader {
 public:
  // The bytes must outlive the reader and the views it gives.
  explicit Reader(std::string_view bytes) : rest_(bytes), size_(bytes.size()) {}
  // Only the module items may be read then.
  explicit Reader(ItemSource& items) : size_(0), items_(&items) {}

  bool ok() const { return ok_; }
  // For a caller who finds that what was read makes no sense; `check` says what, and is a constant.
  // Only the first failure counts. Always false.
  bool Fail(std::string_view check = "the whole value") {
    if (ok_) {
      failed_check_ = check;
      failed_at_ = size_ - rest_.size();
    }
    ok_ = false;
    rest_ = {};
    return false;
  }
  // After a failure: the check that failed, and how far the reading had come, in bytes.
  std::string_view failed_check() const { return failed_check_; }
  size_t failed_at() const { return failed_at_; }
  // Of items that another host reads nobody knows how many bytes are left.
  size_t remaining() const { return items_ == nullptr ? rest_.size() : kUnknownSize; }

  // What values of the file may refer to; nullptr: nothing.
  const FileAux* aux() const { return aux_; }
  void set_aux(const FileAux* aux) { aux_ = aux; }

  // What collections are measured by when their form is chosen.
  const CollectionLimits& limits() const { return *limits_; }
  void set_limits(const CollectionLimits& limits) { limits_ = &limits; }

  std::string_view Raw(size_t size);
  uint8_t Byte();
  uint32_t Fixed32();
  uint64_t Fixed64();
  // Fails on the marks c0…c3 of encoded strings.
  uint64_t Length();
  // A length that says how many elements follow, each of at least `least_bytes` bytes: fails when
  // they cannot all be there. So the result may be reserved for.
  uint64_t Count(size_t least_bytes = 1);
  std::string String();
  // Without a copy where the bytes stand as they are; else they are put into `scratch`.
  std::string_view StringView(std::string* scratch);
  // Passes over a string; what is compressed is not looked into.
  void SkipString();
  double Double();

  // Each fails when another item stands there.
  int64_t ModuleSigned();
  uint64_t ModuleUnsigned();
  float ModuleFloat();
  double ModuleDouble();
  std::string ModuleString();
  void ModuleEnd();
  // Passes over the items of a value whose module is not known, its end included.
  void SkipModule();

 private:
  static constexpr size_t kUnknownSize = size_t{1} << 40;

  template <typename T>
  T FromHost();
  // A length, or with *encoded the kind of an encoded string.
  uint64_t LengthOrKind(bool* encoded);
  bool Expect(ModuleOpcode opcode);
  std::string_view Decompressed(std::string* scratch);

  std::string_view rest_;
  size_t size_;  // of all bytes
  size_t failed_at_ = 0;
  std::string_view failed_check_;
  ItemSource* items_ = nullptr;
  const FileAux* aux_ = nullptr;
  const CollectionLimits* limits_ = &kDefaultCollectionLimits;
  bool ok_ = true;
};

// A DUMP payload is a type byte and a value, sealed with version and checksum.
void SealDump(std::string* body);
// The type byte and the value; false when the payload is newer than we know or damaged. `verify`:
// whether the checksum is compared. *fault says what is wrong, and where.
bool OpenDump(std::string_view payload, std::string_view* body, bool verify = true,
              std::string* fault = nullptr);

}  // namespace sava::types
