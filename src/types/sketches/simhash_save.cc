// Saving and loading of SimHash: docs/formats/sketches.md describes the bytes.
#include <string>
#include <utility>
#include <vector>

#include "base/varint.h"
#include "types/sketches/simhash.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbTypes[] = {kRdbModule};
constexpr uint64_t kVersion = 1;

}  // namespace

const TypeInfo& SimHash::Type() {
  static const TypeInfo kInfo{"simhash", kRdbTypes, 1, &SimHash::Load, ModuleId("sava-sim1", 1)};
  return kInfo;
}

uint8_t SimHash::rdb_type() const { return kRdbModule; }

void SimHash::SaveHead(Writer& out) const {
  out.Length(Type().module_id);
  out.ModuleUnsigned(kVersion);
  out.ModuleUnsigned(size_);
  out.ModuleUnsigned(blocks_.size());
}

// For each document: its fingerprint, 8 bytes little-endian, varint length and bytes of its id.
void SimHash::SaveBlock(size_t block, Writer& out) const {
  std::string bytes;
  const Block& from = blocks_[block];
  for (size_t i = 0; i < from.ids.size(); ++i) {
    if (from.ids[i] == nullptr) continue;
    const std::string_view id = TextOf(from.ids[i]);
    bytes.append(reinterpret_cast<const char*>(&from.fingerprints[i]), sizeof(uint64_t));
    base::AppendVarint(&bytes, id.size());
    bytes += id;
  }
  out.ModuleString(bytes);
}

void SimHash::Save(Writer& out) const {
  SaveHead(out);
  for (size_t block = 0; block < blocks_.size(); ++block) SaveBlock(block, out);
  out.ModuleEnd();
}

void SimHash::BeginCut(const PieceSink& sink, bool /*refer*/) {
  std::string head;
  {
    Writer out(&head);
    SaveHead(out);
  }
  cut_.Begin(sink, head, blocks_.size(),
             [this](size_t block, Writer& out) { SaveBlock(block, out); });
}

bool SimHash::LoadBlock(const std::string& bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = p + bytes.size();
  while (p != end) {
    uint64_t fingerprint = 0;
    if (static_cast<size_t>(end - p) < sizeof fingerprint) return false;
    __builtin_memcpy(&fingerprint, p, sizeof fingerprint);
    uint64_t length = 0;
    p = base::GetVarint(p + sizeof fingerprint, end, &length);
    if (p == nullptr || length > static_cast<size_t>(end - p)) return false;
    if (!Add({reinterpret_cast<const char*>(p), length}, fingerprint)) return false;
    p += length;
  }
  return true;
}

std::unique_ptr<Object> SimHash::Load(uint8_t /*rdb_type*/, Reader& in) {
  if (in.ModuleUnsigned() != kVersion) return nullptr;
  const uint64_t size = in.ModuleUnsigned();
  const uint64_t blocks = in.ModuleUnsigned();
  auto documents = std::make_unique<SimHash>();
  for (uint64_t i = 0; in.ok() && i < blocks; ++i) {
    const std::string bytes = in.ModuleString();
    if (!in.ok() || !documents->LoadBlock(bytes)) return nullptr;
  }
  in.ModuleEnd();
  return in.ok() && documents->size_ == size ? std::move(documents) : nullptr;
}

}  // namespace sava::types
