#include "module/module_context.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/text.h"
#include "module/module_types.h"
#include "module/reply_conversion.h"

namespace sava::module {

namespace {

using commands::Access;
using commands::kKeepExpiry;
using commands::kNoExpiry;
using commands::Value;

// What the host counts besides a value and a key's bytes (MEMORY USAGE): a dictionary entry, and
// what the key's string has before and behind it.
constexpr int64_t kKeyOverhead = 24 + 4;

// A value of the host's or of another module: anything but ours.
class ForeignObject final : public types::Object {
 public:
  const types::TypeInfo& type() const override {
    static const types::TypeInfo kInfo{
        .name = "foreign", .rdb_types = nullptr, .rdb_type_count = 0, .load = nullptr};
    return kInfo;
  }
  std::string_view encoding() const override { return "foreign"; }
  size_t size() const override { return 0; }
  size_t MemoryUsage(size_t /*samples*/) const override { return 0; }
  std::unique_ptr<Object> Copy() const override { return nullptr; }
  uint8_t rdb_type() const override { return 0; }
  void Save(types::Writer& /*out*/) const override {}
  void Digest(const std::function<void(std::string_view)>& /*add*/) const override {}
};

ForeignObject foreign;

// Runs nest when a notification makes another module call a command of ours.
constexpr size_t kSpareFrames = 4;
constexpr size_t kMostKept = 64 << 10;

Value StringValue(std::string_view bytes) {
  constexpr size_t kLongestNumber = 20;
  Value value;
  value.kind = Value::Kind::kString;
  value.bytes = bytes;
  if (bytes.size() <= kLongestNumber && base::ParseInt(bytes, &value.integer)) {
    value.form = commands::StringForm::kInt;
  }
  return value;
}

}  // namespace

int ModuleContext::waiters = 0;
std::vector<std::unique_ptr<ModuleContext::Frame>> ModuleContext::spare_frames;

struct ModuleContext::Frame {
  std::vector<std::string_view> words;
  protocol::OutBuffer out;
  std::vector<OpenedKey> keys;
};

std::unique_ptr<ModuleContext::Frame> ModuleContext::TakeFrame() {
  if (spare_frames.empty()) {
    spare_frames.reserve(kSpareFrames);  // so that giving one back needs no memory
    return std::make_unique<Frame>();
  }
  std::unique_ptr<Frame> frame = std::move(spare_frames.back());
  spare_frames.pop_back();
  return frame;
}

ModuleContext::ModuleContext(host::Ctx* ctx, host::String** argv, int argc,
                             std::string_view command)
    : ctx_(ctx), argv_(argv), flags_(host::GetContextFlags(ctx)), frame_(TakeFrame()) {
  std::vector<std::string_view>& words = frame_->words;
  for (int i = 0; i < argc; ++i) {
    size_t size = 0;
    const char* const bytes = host::StringPtrLen(argv[i], &size);
    words.emplace_back(bytes, size);
  }
  args_ = words;
  command_name_ = command;
  reply_.set_out(&frame_->out);
  reply_.set_resp((flags_ & host::kResp3) != 0 ? 3 : 2);
  now_ms_ = host::Milliseconds();
  const bool replays = (flags_ & (host::kReplicated | host::kLoading)) != 0;
  past_ms_ = replays ? std::numeric_limits<int64_t>::min() : now_ms_;
}

ModuleContext::~ModuleContext() {
  for (OpenedKey& opened : frame_->keys) {
    Close(&opened);
    if (opened.own_text) host::FreeString(ctx_, opened.text);
  }
  const size_t held = frame_->out.memory() + frame_->words.capacity() * sizeof(std::string_view) +
                      frame_->keys.capacity() * sizeof(OpenedKey);
  if (spare_frames.size() == kSpareFrames || held > kMostKept || frame_->out.over()) return;
  frame_->words.clear();
  frame_->keys.clear();
  frame_->out.TruncateTo(0);
  spare_frames.push_back(std::move(frame_));
}

void ModuleContext::Finish() {
  if (changed_ && verbatim_) host::ReplicateVerbatim(ctx_);
  ReplyWith(ctx_, frame_->out.Since(0));
}

// ---- keys ----

host::String* ModuleContext::TextOf(std::string_view key, bool* own) {
  *own = false;
  for (size_t i = 1; i < args_.size(); ++i) {
    if (args_[i].data() == key.data() && args_[i].size() == key.size()) return argv_[i];
  }
  *own = true;
  return host::CreateString(ctx_, key.data(), key.size());
}

void ModuleContext::Close(OpenedKey* opened) {
  if (opened->key != nullptr) host::CloseKey(opened->key);
  opened->key = nullptr;
}

ModuleContext::OpenedKey& ModuleContext::Open(std::string_view key, int mode) {
  const bool writable = (mode & host::kWrite) != 0;
  auto at = std::find_if(frame_->keys.begin(), frame_->keys.end(),
                         [key](const OpenedKey& opened) { return opened.name == key; });
  if (at != frame_->keys.end() && (at->writable || (!writable && at->key != nullptr))) return *at;
  if (at == frame_->keys.end()) {
    bool own = false;
    host::String* const text = TextOf(key, &own);
    frame_->keys.push_back({key, text, nullptr, false, own});
    at = frame_->keys.end() - 1;
    if (own) {  // the caller's bytes may go before this does
      size_t size = 0;
      const char* const bytes = host::StringPtrLen(text, &size);
      at->name = {bytes, size};
    }
  }
  Close(&*at);
  at->key = host::OpenKey(ctx_, at->text, mode);
  at->writable = writable;
  return *at;
}

Value ModuleContext::Find(std::string_view key, Access access) {
  int mode = host::kRead;
  if (access == Access::kWrite) mode |= host::kWrite;
  if (access == Access::kPeek || access == Access::kReadQuiet) mode |= host::kNoTouch;
  const OpenedKey& opened = Open(key, mode);
  if (opened.key == nullptr) return {};
  Value value;
  switch (host::KeyType(opened.key)) {
    case host::kEmptyKey:
      return {};
    case host::kStringKey: {
      size_t size = 0;
      const char* const bytes = host::StringDMA(opened.key, &size, host::kRead);
      value = StringValue({bytes, size});
      break;
    }
    case host::kModuleKey:
      value.kind = Value::Kind::kObject;
      value.object = IsOurs(host::ModuleTypeGetType(opened.key))
                         ? static_cast<types::Object*>(host::ModuleTypeGetValue(opened.key))
                         : &foreign;
      break;
    default:
      value.kind = Value::Kind::kObject;
      value.object = &foreign;
  }
  value.expire_at = host::GetAbsExpire(opened.key);
  return value;
}

void ModuleContext::SetString(std::string_view key, std::string_view value, int64_t expire_at,
                              bool /*as_number*/) {
  OpenedKey& opened = Open(key, host::kRead | host::kWrite);
  const int64_t before = expire_at == kKeepExpiry ? host::GetAbsExpire(opened.key) : kNoExpiry;
  if (host::KeyType(opened.key) == host::kStringKey && !value.empty()) {
    // In place: what it had before is written over, and its expiry stays.
    size_t size = 0;
    char* bytes = host::StringDMA(opened.key, &size, host::kWrite);
    if (size != value.size()) {
      host::StringTruncate(opened.key, value.size());
      bytes = host::StringDMA(opened.key, &size, host::kWrite);
    }
    memcpy(bytes, value.data(), value.size());
    if (expire_at != kKeepExpiry) SetExpiry(key, expire_at);
  } else {
    host::String* const text = host::CreateString(ctx_, value.data(), value.size());
    host::StringSet(opened.key, text);
    host::FreeString(ctx_, text);
    const int64_t wanted = expire_at == kKeepExpiry ? before : expire_at;
    if (wanted != kNoExpiry) SetExpiry(key, wanted);
  }
  host::SignalModifiedKey(ctx_, opened.text);
}

void ModuleContext::SetInteger(std::string_view key, int64_t value, int64_t expire_at) {
  char text[24];
  SetString(key, {text, base::FormatInt(value, text)}, expire_at, true);
}

void ModuleContext::Touched(std::string_view key) {
  const OpenedKey& opened = Open(key, host::kRead | host::kWrite);
  host::SignalModifiedKey(ctx_, opened.text);
  if (waiters > 0) host::SignalKeyAsReady(ctx_, opened.text);
}

bool ModuleContext::Delete(std::string_view key) {
  OpenedKey& opened = Open(key, host::kRead | host::kWrite);
  if (host::KeyType(opened.key) == host::kEmptyKey) return false;
  host::DeleteKey(opened.key);
  host::SignalModifiedKey(ctx_, opened.text);
  return true;
}

void ModuleContext::SetExpiry(std::string_view key, int64_t expire_at) {
  const OpenedKey& opened = Open(key, host::kRead | host::kWrite);
  host::SetAbsExpire(opened.key, expire_at == kNoExpiry ? host::kNoExpire : expire_at);
}

void ModuleContext::SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                              int64_t expire_at) {
  OpenedKey& opened = Open(key, host::kRead | host::kWrite);
  if (expire_at == kKeepExpiry) expire_at = host::GetAbsExpire(opened.key);
  host::Type* const type = HostTypeOf(object->type());
  host::ModuleTypeSetValue(opened.key, type, object.release());
  if (expire_at != kNoExpiry) SetExpiry(key, expire_at);
  Touched(key);
}

int64_t ModuleContext::MemoryOf(std::string_view key, size_t samples) {
  const Value value = Find(key, Access::kPeek);
  if (!value) return 0;
  const size_t held = value.is_string() ? value.bytes.size() : value.object->MemoryUsage(samples);
  return static_cast<int64_t>(held + key.size()) + kKeyOverhead;
}

// What the host's own limit leaves, or the machine's memory.
bool ModuleContext::RoomFor(uint64_t bytes) const {
  if ((flags_ & (host::kReplicated | host::kLoading)) != 0) return true;
  host::ServerInfo* const info = host::GetServerInfo(ctx_, "memory");
  const auto field = [info](const char* name) {
    int error = 0;
    const unsigned long long value = host::ServerInfoGetFieldUnsigned(info, name, &error);
    return error == 0 ? uint64_t{value} : 0;
  };
  const uint64_t used = field("used_memory");
  const uint64_t limit = field("maxmemory");
  const uint64_t machine = field("total_system_memory");
  const char* const policy = host::ServerInfoGetFieldC(info, "maxmemory_policy");
  const bool evicts = policy != nullptr && std::string_view(policy) != "noeviction";
  host::FreeServerInfo(ctx_, info);
  if (limit > 0 && bytes > limit - (evicts ? 0 : std::min(limit, used))) return false;
  return machine == 0 || bytes <= machine - std::min(machine, used);
}

// ---- bookkeeping ----

void ModuleContext::NotifyIn(int /*db*/, commands::NotifyClass cls, std::string_view event,
                             std::string_view key) {
  const std::string name(event);
  bool own = false;
  host::String* const text = TextOf(key, &own);
  host::NotifyKeyspaceEvent(ctx_, static_cast<int>(cls), name.c_str(), text);
  if (own) host::FreeString(ctx_, text);
}

void ModuleContext::Effect(commands::Args words) {
  verbatim_ = false;
  std::vector<host::String*> texts;
  texts.reserve(words.size());
  for (size_t i = 1; i < words.size(); ++i) {
    texts.push_back(host::CreateString(ctx_, words[i].data(), words[i].size()));
  }
  const std::string command(words[0]);
  host::Replicate(ctx_, command.c_str(), "v", texts.data(), texts.size());
  for (host::String* const text : texts) host::FreeString(ctx_, text);
}

bool ModuleContext::can_block() const {
  constexpr int kNobodyWaits =
      host::kInMulti | host::kInLua | host::kDenyBlocking | host::kReplicated | host::kLoading;
  return (flags_ & kNobodyWaits) == 0;
}

void ModuleContext::Block(const BlockRequest& request) {
  waiting_ = std::make_unique<Waiting>();
  waiting_->keys.assign(request.keys.begin(), request.keys.end());
  waiting_->deadline_ms = request.deadline_ms;
  waiting_->wake_at_ms = request.wake_at_ms;
  waiting_->reply = request.reply;
  waiting_->type = request.type;
}

uint64_t ModuleContext::Random() {
  uint64_t number = 0;
  host::GetRandomBytes(reinterpret_cast<unsigned char*>(&number), sizeof number);
  return number;
}

}  // namespace sava::module
