#include "types/value/save.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/crc.h"
#include "base/text.h"

namespace sava::types {

namespace {

static_assert(std::endian::native == std::endian::little,
              "the format's numbers are copied as such");

constexpr size_t kPiece = 64 * 1024;

constexpr uint8_t kLength14 = 0x40;
constexpr uint8_t kLength32 = 0x80;
constexpr uint8_t kLength64 = 0x81;
constexpr uint8_t kEncoded = 0xc0;

enum StringKind : uint8_t { kInt8 = 0, kInt16 = 1, kInt32 = 2, kLzf = 3 };

// Strings up to this length may be numbers of 32 bits, longer than that may be worth compressing.
constexpr size_t kLongestNumber = 11;
constexpr size_t kShortestCompressed = 21;

constexpr size_t kFooter = 10;  // version, checksum

constexpr std::string_view kModuleAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T>
T NumberFrom(std::string_view bytes) {
  T value{};
  if (bytes.size() == sizeof value) memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

// ---- Writer ----

uint64_t ModuleId(std::string_view name, unsigned version) {
  uint64_t id = 0;
  for (const char c : name) id = (id << 6) | kModuleAlphabet.find(c);
  return (id << 10) | version;
}

std::string ModuleName(uint64_t id) {
  std::string name;
  for (int shift = 58; shift >= 10; shift -= 6) name += kModuleAlphabet[(id >> shift) & 63];
  return name;
}

Writer::Writer(std::string* out, bool compress)
    : out_(out), start_(out->size()), compress_(compress) {}

Writer::Writer(Sink sink, bool compress)
    : out_(&own_), sink_(std::move(sink)), compress_(compress) {
  own_.reserve(kPiece);
}

void Writer::Flush() {
  if (!sink_ || own_.empty()) return;
  handed_on_ += own_.size();
  sink_(own_);
  own_.clear();
}

void Writer::Raw(std::string_view bytes) {
  if (sink_ && own_.size() + bytes.size() > kPiece) {
    Flush();
    if (bytes.size() > kPiece) {
      handed_on_ += bytes.size();
      sink_(bytes);
      return;
    }
  }
  out_->append(bytes);
}

void Writer::Byte(uint8_t value) { Raw(BytesOf(value)); }
void Writer::Fixed32(uint32_t value) { Raw(BytesOf(value)); }
void Writer::Fixed64(uint64_t value) { Raw(BytesOf(value)); }
void Writer::Double(double value) { Raw(BytesOf(value)); }

void Writer::Length(uint64_t value) {
  if (value < (1U << 6)) {
    Byte(static_cast<uint8_t>(value));
  } else if (value < (1U << 14)) {
    Byte(static_cast<uint8_t>(kLength14 | (value >> 8)));
    Byte(static_cast<uint8_t>(value));
  } else if (value <= UINT32_MAX) {
    Byte(kLength32);
    Fixed32(__builtin_bswap32(static_cast<uint32_t>(value)));
  } else {
    Byte(kLength64);
    Fixed64(__builtin_bswap64(value));
  }
}

bool Writer::SmallInteger(int64_t value) {
  if (value >= INT8_MIN && value <= INT8_MAX) {
    Byte(kEncoded | kInt8);
    Raw(BytesOf(static_cast<int8_t>(value)));
  } else if (value >= INT16_MIN && value <= INT16_MAX) {
    Byte(kEncoded | kInt16);
    Raw(BytesOf(static_cast<int16_t>(value)));
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    Byte(kEncoded | kInt32);
    Raw(BytesOf(static_cast<int32_t>(value)));
  } else {
    return false;
  }
  return true;
}

void Writer::String(std::string_view bytes) {
  int64_t number = 0;
  if (bytes.size() <= kLongestNumber && base::ParseInt(bytes, &number) && SmallInteger(number)) {
    return;
  }
  if (compress_ && bytes.size() >= kShortestCompressed && Compressed(bytes)) return;
  Length(bytes.size());
  Raw(bytes);
}

void Writer::StringOf(int64_t value) {
  if (SmallInteger(value)) return;
  char text[24];
  const size_t size = base::FormatInt(value, text);
  Length(size);
  Raw({text, size});
}

void Writer::ModuleSigned(int64_t value) {
  Opcode(ModuleOpcode::kSigned);
  Length(static_cast<uint64_t>(value));
}

void Writer::ModuleUnsigned(uint64_t value) {
  Opcode(ModuleOpcode::kUnsigned);
  Length(value);
}

void Writer::ModuleFloat(float value) {
  Opcode(ModuleOpcode::kFloat);
  Raw(BytesOf(value));
}

void Writer::ModuleDouble(double value) {
  Opcode(ModuleOpcode::kDouble);
  Double(value);
}

void Writer::ModuleString(std::string_view bytes) {
  Opcode(ModuleOpcode::kString);
  String(bytes);
}

void Writer::ModuleEnd() { Opcode(ModuleOpcode::kEnd); }

// ---- Reader ----

std::string_view Reader::Raw(size_t size) {
  if (size > rest_.size()) {
    Fail("the bytes end early");
    return {};
  }
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

uint8_t Reader::Byte() { return NumberFrom<uint8_t>(Raw(1)); }
uint32_t Reader::Fixed32() { return NumberFrom<uint32_t>(Raw(4)); }
uint64_t Reader::Fixed64() { return NumberFrom<uint64_t>(Raw(8)); }
double Reader::Double() { return NumberFrom<double>(Raw(8)); }

uint64_t Reader::LengthOrKind(bool* encoded) {
  *encoded = false;
  const uint8_t first = Byte();
  switch (first >> 6) {
    case 0:
      return first;
    case 1:
      return (static_cast<uint64_t>(first & 0x3f) << 8) | Byte();
    case 2:
      if (first == kLength32) return __builtin_bswap32(Fixed32());
      if (first == kLength64) return __builtin_bswap64(Fixed64());
      Fail("the form of a length");
      return 0;
    default:
      *encoded = true;
      return first & 0x3f;
  }
}

uint64_t Reader::Length() {
  bool encoded = false;
  const uint64_t length = LengthOrKind(&encoded);
  if (encoded) Fail("a length where an encoded string stands");
  return ok_ ? length : 0;
}

uint64_t Reader::Count(size_t least_bytes) {
  const uint64_t count = Length();
  if (count > rest_.size() / least_bytes) Fail("as many elements as are stated");
  return ok_ ? count : 0;
}

std::string_view Reader::StringView(std::string* scratch) {
  bool encoded = false;
  const uint64_t length = LengthOrKind(&encoded);
  if (!encoded) return Raw(length);
  int64_t number = 0;
  switch (length) {
    case kInt8:
      number = Byte();
      if (number > INT8_MAX) number -= 256;
      break;
    case kInt16:
      number = NumberFrom<int16_t>(Raw(2));
      break;
    case kInt32:
      number = NumberFrom<int32_t>(Raw(4));
      break;
    case kLzf:
      return Decompressed(scratch);
    default:
      Fail("the form of a string");
  }
  if (!ok_) return {};
  *scratch = base::IntText(number);
  return *scratch;
}

void Reader::SkipString() {
  bool encoded = false;
  uint64_t size = LengthOrKind(&encoded);
  if (encoded) {
    switch (size) {
      case kInt8:
      case kInt16:
      case kInt32:
        size = uint64_t{1} << size;
        break;
      case kLzf:
        size = Length();
        Length();
        break;
      default:
        Fail("the form of a string");
    }
  }
  Raw(size);
}

std::string Reader::String() {
  std::string scratch;
  const std::string_view bytes = StringView(&scratch);
  return bytes.data() == scratch.data() ? std::move(scratch) : std::string(bytes);
}

bool Reader::Expect(ModuleOpcode opcode) {
  if (Length() != static_cast<uint64_t>(opcode)) Fail("the kind of a module's item");
  return ok_;
}

template <typename T>
T Reader::FromHost() {
  T value{};
  if (ok_ && !items_->Read(&value)) Fail("an item as the host has it");
  return ok_ ? std::move(value) : T{};
}

int64_t Reader::ModuleSigned() {
  if (items_ != nullptr) return FromHost<int64_t>();
  return Expect(ModuleOpcode::kSigned) ? static_cast<int64_t>(Length()) : 0;
}

uint64_t Reader::ModuleUnsigned() {
  if (items_ != nullptr) return FromHost<uint64_t>();
  return Expect(ModuleOpcode::kUnsigned) ? Length() : 0;
}

float Reader::ModuleFloat() {
  if (items_ != nullptr) return FromHost<float>();
  return Expect(ModuleOpcode::kFloat) ? NumberFrom<float>(Raw(4)) : 0;
}

double Reader::ModuleDouble() {
  if (items_ != nullptr) return FromHost<double>();
  return Expect(ModuleOpcode::kDouble) ? Double() : 0;
}

std::string Reader::ModuleString() {
  if (items_ != nullptr) return FromHost<std::string>();
  return Expect(ModuleOpcode::kString) ? String() : std::string();
}

void Reader::ModuleEnd() {
  if (items_ == nullptr) Expect(ModuleOpcode::kEnd);  // else the host reads it
}

void Reader::SkipModule() {
  while (ok_) {
    const uint64_t opcode = Length();
    if (!ok_) return;
    switch (static_cast<ModuleOpcode>(opcode)) {
      case ModuleOpcode::kEnd:
        return;
      case ModuleOpcode::kSigned:
      case ModuleOpcode::kUnsigned:
        Length();
        break;
      case ModuleOpcode::kFloat:
        Raw(4);
        break;
      case ModuleOpcode::kDouble:
        Raw(8);
        break;
      case ModuleOpcode::kString:
        SkipString();
        break;
      default:
        Fail("the kind of a module's item");
    }
  }
}

// ---- the seal of DUMP ----

void SealDump(std::string* body) {
  const auto type = static_cast<uint8_t>(body->empty() ? 0 : body->front());
  const bool newer = type >= kRdbFirstTimedHash && type <= kRdbLastTimedHash;
  body->append(BytesOf(newer ? kRdbNewestVersion : kRdbVersion));
  const uint64_t crc = base::Crc64(0, *body);
  body->append(BytesOf(crc));
}

bool OpenDump(std::string_view payload, std::string_view* body, bool verify, std::string* fault) {
  const auto fail = [&](std::string text) {
    if (fault != nullptr) *fault = std::move(text);
    return false;
  };
  if (payload.size() < kFooter) {
    return fail(fmt::format("{} bytes are less than version and checksum", payload.size()));
  }
  const size_t size = payload.size() - kFooter;
  const auto version = NumberFrom<uint16_t>(payload.substr(size, 2));
  if (version > kRdbNewestVersion) {
    return fail(fmt::format("at byte {}: RDB version {} is newer than {}", size, version,
                            kRdbNewestVersion));
  }
  const auto crc = NumberFrom<uint64_t>(payload.substr(size + 2));
  if (verify && crc != base::Crc64(0, payload.substr(0, size + 2))) {
    return fail(fmt::format("at byte {}: the checksum is wrong", size + 2));
  }
  *body = payload.substr(0, size);
  return true;
}

}  // namespace sava::types
