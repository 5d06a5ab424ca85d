#include "module/module_types.h"

#include <array>
#include <exception>
#include <memory>
#include <utility>

#include "module/item_stream.h"
#include "types/counters/afc.h"
#include "types/filters/bloom.h"
#include "types/filters/cuckoo.h"
#include "types/frontier/frontier.h"
#include "types/sketches/count_min.h"
#include "types/sketches/simhash.h"
#include "types/sketches/top_k.h"
#include "types/value/aux_data.h"
#include "types/value/digest_sink.h"
#include "types/value/save.h"

namespace sava::module {

namespace {

using types::Object;
using types::TypeInfo;

struct Registered {
  std::string_view family;
  const TypeInfo& (*info)();
  host::Type* type = nullptr;
};

std::array<Registered, 7> registered = {{
    {"afc", types::Afc::Type},
    {"bf", types::Bloom::Type},
    {"cf", types::Cuckoo::Type},
    {"cms", types::CountMin::Type},
    {"topk", types::TopK::Type},
    {"simhash", types::SimHash::Type},
    {"fr", types::Frontier::Type},
}};

constexpr int kVersionBits = 10;

int EncodingVersion(const TypeInfo& info) {
  return static_cast<int>(info.module_id & ((1U << kVersionBits) - 1));
}

const Object& ObjectAt(const void* value) { return *static_cast<const Object*>(value); }

// What the values of the file that is being loaded may refer to: main thread only.
std::unique_ptr<types::FileAux> loading;

// ---- hooks ----

template <size_t I>
void* Load(host::Io* io, int version) {
  const TypeInfo& info = registered[I].info();
  if (version != EncodingVersion(info)) return nullptr;
  try {
    HostItems items(io);
    types::Reader reader(items);
    reader.set_aux(loading.get());
    return info.load(types::kRdbModule, reader).release();
  } catch (const std::bad_alloc&) {  // the host reports the value as damaged
    return nullptr;
  }
}

void Save(host::Io* io, void* value) {
  ItemStream items(io);
  types::Writer out([&items](std::string_view bytes) { items.Write(bytes); }, false);
  ObjectAt(value).Save(out);
}

// One RESTORE is the value exactly; the host writes the expiry behind it.
void RewriteLog(host::Io* io, host::String* key, void* value) {
  std::string payload(1, static_cast<char>(ObjectAt(value).rdb_type()));
  {
    types::Writer out(&payload, false);
    ObjectAt(value).Save(out);
  }
  types::SealDump(&payload);
  host::EmitAOF(io, "RESTORE", "slb", key, 0LL, payload.data(), payload.size());
}

class HostDigest final : public types::DigestSink {
 public:
  explicit HostDigest(host::Digest* digest) : digest_(digest) {}
  void Ordered(std::string_view text) override {
    host::DigestAddStringBuffer(digest_, text.data(), text.size());
  }
  void Unordered(std::string_view text) override {
    host::DigestEndSequence(digest_);
    Ordered(text);
    host::DigestEndSequence(digest_);
  }
  void UnorderedPair(std::string_view first, std::string_view second) override {
    host::DigestEndSequence(digest_);
    Ordered(first);
    Ordered(second);
    host::DigestEndSequence(digest_);
  }

 private:
  host::Digest* digest_;
};

void Digest(host::Digest* digest, void* value) {
  HostDigest sink(digest);
  ObjectAt(value).DigestAsRedis(sink);
  host::DigestEndSequence(digest);
}

void Free(void* value) { delete static_cast<Object*>(value); }

size_t Memory(host::KeyOptCtx* /*ctx*/, const void* value, size_t samples) {
  return ObjectAt(value).MemoryUsage(samples);
}

size_t FreeEffort(host::KeyOptCtx* /*ctx*/, const void* value) {
  return ObjectAt(value).size() + 1;  // 0 would mean: always in the background
}

void* Copy(host::KeyOptCtx* /*ctx*/, const void* value) {
  try {
    return ObjectAt(value).Copy().release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

template <size_t I>
int LoadShared(host::Io* io, int version, int /*when*/) {
  const TypeInfo& info = registered[I].info();
  if (info.aux == nullptr || version != EncodingVersion(info)) return host::kError;
  try {
    HostItems items(io);
    types::Reader reader(items);
    auto shared = info.aux()->Load(reader);
    if (shared == nullptr) return host::kError;
    if (loading == nullptr || loading->Find(info.module_id) != nullptr) {
      loading = std::make_unique<types::FileAux>();  // another file
    }
    loading->Put(info.module_id, std::move(shared));
    return host::kOk;
  } catch (const std::bad_alloc&) {
    return host::kError;
  }
}

template <size_t I>
host::TypeMethods MethodsOf() {
  host::TypeMethods methods{};
  methods.version = host::kTypeMethodsVersion;
  methods.rdb_load = Load<I>;
  methods.rdb_save = Save;
  methods.aof_rewrite = RewriteLog;
  methods.digest = Digest;
  methods.free = Free;
  methods.mem_usage2 = Memory;
  methods.free_effort2 = FreeEffort;
  methods.copy2 = Copy;
  if (registered[I].info().aux != nullptr) {
    // Nothing is written: a file without values of ours stays readable everywhere.
    methods.aux_load = LoadShared<I>;
    methods.aux_save_triggers = host::kBeforeKeys;
  }
  return methods;
}

template <size_t... I>
host::TypeMethods MethodsAt(size_t index, std::index_sequence<I...> /*all*/) {
  host::TypeMethods methods{};
  static_cast<void>(((index == I ? (methods = MethodsOf<I>(), true) : false) || ...));
  return methods;
}

void OnLoading(host::Ctx* /*ctx*/, host::Event event, uint64_t step, void* /*data*/) {
  const bool over = event.id == host::kLoadingEvent.id
                        ? step == host::kLoadingEnded || step == host::kLoadingFailed
                        : step == host::kAsyncLoadAborted || step == host::kAsyncLoadDone;
  if (over) loading.reset();
}

}  // namespace

const TypeInfo* TypeOfFamily(std::string_view family) {
  for (const Registered& one : registered) {
    if (one.family == family) return &one.info();
  }
  return nullptr;
}

bool RegisterType(host::Ctx* ctx, const TypeInfo& info) {
  for (size_t i = 0; i < registered.size(); ++i) {
    if (&registered[i].info() != &info) continue;
    host::TypeMethods methods = MethodsAt(i, std::make_index_sequence<registered.size()>());
    const std::string name = types::ModuleName(info.module_id);
    registered[i].type = host::CreateDataType(ctx, name.c_str(), EncodingVersion(info), &methods);
    return registered[i].type != nullptr;
  }
  return false;
}

host::Type* HostTypeOf(const TypeInfo& info) {
  for (const Registered& one : registered) {
    if (&one.info() == &info) return one.type;
  }
  return nullptr;
}

bool IsOurs(const host::Type* type) {
  for (const Registered& one : registered) {
    if (one.type == type && type != nullptr) return true;
  }
  return false;
}

void FollowLoading(host::Ctx* ctx) {
  host::SubscribeToServerEvent(ctx, host::kLoadingEvent, OnLoading);
  host::SubscribeToServerEvent(ctx, host::kAsyncLoadEvent, OnLoading);
}

}  // namespace sava::module
