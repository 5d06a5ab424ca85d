#include "module/item_stream.h"

#include <bit>
#include <memory>

namespace sava::module {

using types::ModuleOpcode;
using types::Reader;

void ItemStream::Write(std::string_view bytes) {
  rest_.append(bytes);
  size_t done = 0;
  while (done < rest_.size()) {
    const size_t size = One(std::string_view(rest_).substr(done));
    if (size == 0) break;
    done += size;
  }
  rest_.erase(0, done);
}

size_t ItemStream::One(std::string_view bytes) {
  Reader in(bytes);
  if (!has_id_) {
    in.Length();
    has_id_ = in.ok();
    return in.ok() ? bytes.size() - in.remaining() : 0;
  }
  const auto opcode = static_cast<ModuleOpcode>(in.Length());
  uint64_t number = 0;
  double fraction = 0;
  std::string scratch;
  std::string_view text;
  switch (opcode) {
    case ModuleOpcode::kEnd:
      break;
    case ModuleOpcode::kSigned:
    case ModuleOpcode::kUnsigned:
      number = in.Length();
      break;
    case ModuleOpcode::kFloat:
      number = in.Fixed32();
      break;
    case ModuleOpcode::kDouble:
      fraction = in.Double();
      break;
    case ModuleOpcode::kString:
      text = in.StringView(&scratch);
      break;
  }
  if (!in.ok()) return 0;
  switch (opcode) {
    case ModuleOpcode::kEnd:
      break;
    case ModuleOpcode::kSigned:
      host::SaveSigned(io_, static_cast<int64_t>(number));
      break;
    case ModuleOpcode::kUnsigned:
      host::SaveUnsigned(io_, number);
      break;
    case ModuleOpcode::kFloat:
      host::SaveFloat(io_, std::bit_cast<float>(static_cast<uint32_t>(number)));
      break;
    case ModuleOpcode::kDouble:
      host::SaveDouble(io_, fraction);
      break;
    case ModuleOpcode::kString:
      host::SaveStringBuffer(io_, text.data(), text.size());
      break;
  }
  return bytes.size() - in.remaining();
}

bool HostItems::Read(int64_t* value) {
  *value = host::LoadSigned(io_);
  return good();
}

bool HostItems::Read(uint64_t* value) {
  *value = host::LoadUnsigned(io_);
  return good();
}

bool HostItems::Read(float* value) {
  *value = host::LoadFloat(io_);
  return good();
}

bool HostItems::Read(double* value) {
  *value = host::LoadDouble(io_);
  return good();
}

bool HostItems::Read(std::string* value) {
  size_t size = 0;
  char* const bytes = host::LoadStringBuffer(io_, &size);
  const std::unique_ptr<char, void (*)(void*)> owner(bytes, host::Free);
  if (bytes == nullptr || !good()) return false;
  value->assign(bytes, size);
  return true;
}

}  // namespace sava::module
