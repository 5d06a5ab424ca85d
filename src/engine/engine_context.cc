#include "engine/engine_context.h"

#include "base/slab.h"
#include "engine/aging.h"

namespace sava::engine {

// ---- keys ----

char* EngineContext::EditString(std::string_view key, size_t size) {
  char* data = keys_.OpenString(db_, key, size);
  keys_.Touched(db_, key);
  return data;
}

void EngineContext::SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                              int64_t expire_at) {
  keyspace::NewValue value;
  value.kind = keyspace::Kind::kObject;
  value.object = object.release();
  keys_.Put(db_, key, value, expire_at);
}

commands::KeyAge EngineContext::Age(std::string_view key) {
  const Keys::Located at = keys_.Locate(db_, key);
  commands::KeyAge age;
  const config::Settings& settings = engine_.settings();
  age.lfu = UsesLfu(settings.maxmemory_policy);
  if (at.entry == nullptr) return age;
  if (age.lfu) {
    age.frequency = LfuDecayed(at.entry->age(), now_ms_, settings);
  } else {
    age.idle_seconds = static_cast<int64_t>(LruIdleSeconds(at.entry->age(), lane_.batch.lru_clock));
  }
  return age;
}

void EngineContext::SetAge(std::string_view key, int64_t idle_seconds, int frequency) {
  const Keys::Located at = keys_.Locate(db_, key);
  if (at.entry == nullptr) return;
  const config::Settings& settings = engine_.settings();
  if (UsesLfu(settings.maxmemory_policy)) {
    if (frequency >= 0) at.entry->set_age(LfuPack(now_ms_, frequency));
  } else if (idle_seconds >= 0) {
    at.entry->set_age((lane_.batch.lru_clock - static_cast<uint32_t>(idle_seconds)) & kAgeMask);
  }
}

int64_t EngineContext::MemoryOf(std::string_view key, size_t samples) {
  const Keys::Located at = keys_.Locate(db_, key);
  if (at.entry == nullptr) return 0;
  size_t bytes = base::Slab::Rounded(at.entry->BlockSize()) + 8;  // the block and its slot
  if (at.entry->kind() == keyspace::Kind::kObject) {
    bytes += at.entry->object()->MemoryUsage(samples);
  } else if (at.entry->has(keyspace::kExternal)) {
    bytes += at.entry->blob()->memory();
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace sava::engine
