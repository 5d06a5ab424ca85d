// Entry: one key with its value, in one block of memory.
//
//   byte 0      kind (low nibble) and string form (high nibble)
//   byte 1      flags: see EntryFlag
//   bytes 2-4   LRU clock, or LFU minutes + counter
//   byte 5      key length; 255: a 32-bit length follows the expiry
//   bytes 6-7   length of an inline value
//   [8 bytes]   expiry, Unix milliseconds, when kHasExpiry
//   [4 bytes]   key length, when byte 5 is 255
//   key bytes
//   value: inline bytes, or 8 bytes: the number (form kInt), Blob* or Object* (kExternal)
//
// Invariant: the block's size follows from its fields (BlockSize), so nothing else stores it.
// Nothing outside this folder keeps an Entry pointer beyond the lock of its stripe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/blob.h"
#include "types/value/object.h"

namespace sava::keyspace {

enum class Kind : uint8_t { kString = 0, kObject = 1 };
enum class Form : uint8_t { kInt = 0, kEmbstr = 1, kRaw = 2 };

enum EntryFlag : uint8_t {
  kHasExpiry = 1 << 0,
  kInWheel = 1 << 1,    // a wheel item exists at or before its expiry
  kExternal = 1 << 2,   // the value is a pointer to a Blob or Object
  kVersion = 1 << 3,    // snapshot version this entry was last saved or made in
  kWheelTag = 15 << 4,  // see wheel_tag
};

class Entry {
 public:
  Kind kind() const { return static_cast<Kind>(kind_form_ & 15); }
  Form form() const { return static_cast<Form>(kind_form_ >> 4); }
  bool has(EntryFlag flag) const { return (flags_ & flag) != 0; }
  void set_flag(EntryFlag flag, bool on) {
    flags_ = static_cast<uint8_t>(on ? flags_ | flag : flags_ & ~flag);
  }

  uint32_t age() const { return static_cast<uint32_t>(age_[0] | (age_[1] << 8) | (age_[2] << 16)); }
  void set_age(uint32_t value) {
    age_[0] = static_cast<uint8_t>(value);
    age_[1] = static_cast<uint8_t>(value >> 8);
    age_[2] = static_cast<uint8_t>(value >> 16);
  }

  std::string_view key() const {
    const char* p = body();
    if (key_length_ != 255) return {p, key_length_};
    uint32_t length;
    memcpy(&length, p, 4);
    return {p + 4, length};
  }
  bool KeyIs(std::string_view wanted) const {
    const std::string_view mine = key();
    return mine.size() == wanted.size() && memcmp(mine.data(), wanted.data(), mine.size()) == 0;
  }

  int64_t expire_at() const { return has(kHasExpiry) ? ReadExpiry() : -1; }
  // REQUIRES: has(kHasExpiry).
  void set_expire_at(int64_t at) { memcpy(reinterpret_cast<char*>(this) + 8, &at, 8); }

  // Inline bytes. REQUIRES: not external, form not kInt.
  std::string_view inline_bytes() const { return {payload(), value_length_}; }
  char* mutable_payload() { return const_cast<char*>(payload()); }
  int64_t integer() const { return Load<int64_t>(); }
  base::Blob* blob() const { return Load<base::Blob*>(); }
  types::Object* object() const { return Load<types::Object*>(); }
  template <typename T>
  void StorePayload(T value) {
    memcpy(mutable_payload(), &value, sizeof(T));  // NOLINT(bugprone-sizeof-expression)
  }

  // The largest block with a string inside; a longer string is a Blob.
  static constexpr size_t kMaxInline = 448;
  // The size of the block holding such an entry.
  static size_t SizeFor(size_t key_length, bool expiry, size_t payload_size) {
    return 8 + (expiry ? 8 : 0) + (key_length >= 255 ? 4 : 0) + key_length + payload_size;
  }
  size_t BlockSize() const {
    return static_cast<size_t>(payload() - reinterpret_cast<const char*>(this)) + payload_size();
  }
  size_t payload_size() const {
    return has(kExternal) || (kind() == Kind::kString && form() == Form::kInt) ? 8 : value_length_;
  }

  // Writes header and key; the caller stores the payload.
  void Init(Kind kind, Form form, uint8_t flags, std::string_view key, size_t value_length,
            int64_t expire_at) {
    SetShape(kind, form, flags, value_length);
    key_length_ = static_cast<uint8_t>(key.size() < 255 ? key.size() : 255);
    if (has(kHasExpiry)) set_expire_at(expire_at);
    char* p = const_cast<char*>(body());
    if (key_length_ == 255) {
      const auto length = static_cast<uint32_t>(key.size());
      memcpy(p, &length, 4);
      p += 4;
    }
    memcpy(p, key.data(), key.size());
  }
  // Changes the kind of the payload. REQUIRES: kHasExpiry stays as it was.
  void SetShape(Kind kind, Form form, uint8_t flags, size_t value_length) {
    kind_form_ =
        static_cast<uint8_t>(static_cast<uint8_t>(kind) | (static_cast<uint8_t>(form) << 4));
    flags_ = flags;
    value_length_ = static_cast<uint16_t>(value_length);
  }
  uint8_t flags() const { return flags_; }

  // Which of the wheel's items is this entry's current one (four bits, changed with every filing).
  uint8_t wheel_tag() const { return flags_ >> 4; }
  void set_wheel_tag(uint8_t tag) { flags_ = static_cast<uint8_t>((flags_ & 15) | (tag << 4)); }

 private:
  const char* body() const {
    return reinterpret_cast<const char*>(this) + 8 + (has(kHasExpiry) ? 8 : 0);
  }
  const char* payload() const {
    const std::string_view k = key();
    return k.data() + k.size();
  }
  int64_t ReadExpiry() const {
    int64_t at;
    memcpy(&at, reinterpret_cast<const char*>(this) + 8, 8);
    return at;
  }
  template <typename T>
  T Load() const {
    T value;
    memcpy(&value, payload(), sizeof(T));  // NOLINT(bugprone-sizeof-expression)
    return value;
  }

  uint8_t kind_form_;
  uint8_t flags_;
  uint8_t age_[3];
  uint8_t key_length_;
  uint16_t value_length_;
};
static_assert(sizeof(Entry) == 8);

}  // namespace sava::keyspace
