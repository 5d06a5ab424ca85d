#include "engine/keys.h"

#include <algorithm>
#include <utility>

#include "engine/aging.h"
#include "engine/string_value.h"

namespace sava::engine {

using commands::Access;
using commands::Value;
using keyspace::Displaced;
using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::NewValue;
using keyspace::Table;

namespace {

// A value on its way to a table: dropped unless the table has taken it over.
struct LooseValue {
  explicit LooseValue(const NewValue& loose) : value(loose) {}
  LooseValue(const LooseValue&) = delete;
  LooseValue& operator=(const LooseValue&) = delete;
  ~LooseValue() {
    if (value.blob != nullptr) value.blob->Unref();
    if (!borrowed) delete value.object;
  }

  NewValue value;
  bool borrowed = false;  // the object belongs to another entry meanwhile
};

}  // namespace

Keys::Keys(Invocation& invocation)
    : invocation_(invocation),
      engine_(invocation.engine()),
      lane_(invocation.lane()),
      past_ms_(invocation.past_ms()) {}

// ---- finding ----

uint64_t Keys::HashOf(std::string_view key) {
  // Handlers open their keys in order, usually several times each: look at this one and the next.
  const Work& work = invocation_.work();
  if (work.command != nullptr && work.command->simple_keys) {
    for (size_t n = next_hash_; n < work.hashes.size() && n < next_hash_ + 2; ++n) {
      if (work.args[work.command->SimpleKey(n)].data() == key.data()) {
        next_hash_ = n;
        return work.hashes[n];
      }
    }
  }
  return engine_.keyspace().Hash(key);
}

Keys::Located Keys::Locate(int db, std::string_view key) {
  if (key.data() == last_key_ && db == last_db_ && last_.entry != nullptr &&
      last_.entry->KeyIs(key)) {
    return last_;
  }
  Located at;
  at.hash = HashOf(key);
  at.stripe = Keyspace::StripeOf(at.hash);
  at.table = engine_.keyspace().table(db, at.stripe);
  at.slot = at.table == nullptr ? nullptr : at.table->FindSlot(at.hash, key);
  at.entry = Table::EntryAt(at.slot);
  last_key_ = key.data();
  last_db_ = db;
  last_ = at;
  return at;
}

Table& Keys::TableOf(int db, const Located& at) {
  return at.table != nullptr ? *at.table
                             : engine_.keyspace().TableFor(db, at.stripe, invocation_.now_ms());
}

Value Keys::Find(int db, std::string_view key, Access access) {
  if (access == Access::kWrite) ExpectDiscard();  // what is emptied can be deleted
  const Located at = Locate(db, key);
  Entry* entry = at.entry;
  if (entry != nullptr && Expired(*entry)) {
    if (access == Access::kWrite || engine_.admission().MayRemoveExpired(invocation_.now_ms())) {
      Expire(db, *at.table, entry, at.hash);
    }
    entry = nullptr;
  }
  const bool counts = access == Access::kRead || access == Access::kReadQuiet;
  if (entry == nullptr) {
    if (counts) {
      lane_.stats.keys.misses.Add();
      invocation_.Notify(db, commands::kNotifyKeyMiss, "keymiss", key);
    }
    return {};
  }
  if (access == Access::kWrite && entry->kind() == keyspace::Kind::kObject) {
    BeforeChange(*at.table, entry);
  }
  if (counts) lane_.stats.keys.hits.Add();
  if (access == Access::kRead || access == Access::kWrite) Touch(entry);
  return Describe(entry);
}

Value Describe(Entry* entry) {
  Value value;
  value.expire_at = entry->expire_at();
  if (entry->kind() == keyspace::Kind::kObject) {
    value.kind = Value::Kind::kObject;
    value.object = entry->object();
    return value;
  }
  value.kind = Value::Kind::kString;
  value.form = static_cast<commands::StringForm>(entry->form());
  if (entry->form() == keyspace::Form::kInt) {
    value.integer = entry->integer();
  } else if (entry->has(keyspace::kExternal)) {
    value.blob = entry->blob();
    value.bytes = value.blob->view();
  } else {
    value.bytes = entry->inline_bytes();
  }
  return value;
}

namespace {

Entry* Look(const Keyspace& keyspace, int db, std::string_view key) {
  const uint64_t hash = keyspace.Hash(key);
  const Table* table = keyspace.table(db, Keyspace::StripeOf(hash));
  return table == nullptr ? nullptr : table->Find(hash, key);
}

bool IsOver(const Entry& entry, int64_t now_ms) {
  return entry.has(keyspace::kHasExpiry) && entry.expire_at() < now_ms;
}

}  // namespace

Value Glance(const Keyspace& keyspace, int64_t now_ms, int db, std::string_view key) {
  Entry* const entry = Look(keyspace, db, key);
  return entry == nullptr || IsOver(*entry, now_ms) ? Value{} : Describe(entry);
}

bool IsExpired(const Keyspace& keyspace, int64_t now_ms, int db, std::string_view key) {
  const Entry* const entry = Look(keyspace, db, key);
  return entry != nullptr && IsOver(*entry, now_ms);
}

// ---- what follows from a change ----

void Keys::Touch(Entry* entry) {
  const Work& work = invocation_.work();
  if (work.client != nullptr && work.client->has(kClientNoTouch) &&
      !work.command->is(commands::kAlwaysTouches)) {
    return;
  }
  const config::Settings& settings = engine_.settings();
  if (UsesLfu(settings.maxmemory_policy)) {
    entry->set_age(LfuTouched(entry->age(), invocation_.now_ms(), settings, lane_.rng));
  } else if (entry->age() != lane_.batch.lru_clock) {
    entry->set_age(lane_.batch.lru_clock);
  }
}

void Keys::SetInitialAge(Entry* entry) {
  entry->set_age(InitialAge(engine_.settings(), invocation_.now_ms(), lane_.batch.lru_clock));
}

void Keys::ExpectDiscard() {
  std::vector<Displaced>& garbage = lane_.memory.garbage;
  constexpr size_t kExpected = 4;
  if (garbage.capacity() - garbage.size() >= kExpected) return;
  garbage.reserve(std::max<size_t>(16, 2 * garbage.capacity()));
}

void Keys::Discard(const Displaced& displaced) {
  if (displaced.object != nullptr && engine_.snapshot().active() &&
      engine_.snapshot().TakeObject(displaced.object)) {
    return;  // a value is an object or a blob
  }
  if (displaced.object != nullptr) engine_.memory().NoteFreed(*displaced.object);
  if (displaced.blob != nullptr || displaced.object != nullptr)
    lane_.memory.garbage.push_back(displaced);
}

void Keys::NoteChange(int db, size_t stripe, std::string_view key) {
  keyspace::WatchMap& watches = engine_.keyspace().stripe(stripe).watches;
  if (!watches.empty()) watches.Touch(db, key);
  if (engine_.waiting().any() && invocation_.origin().wakes) [[unlikely]]
    engine_.waiting().MarkReady(lane_, db, stripe, key, false);
  if (engine_.tracking().any()) [[unlikely]]
    engine_.tracking().NoteChange(lane_, stripe, key, invocation_.work().client);
}

void Keys::NoteGone(int db, size_t stripe, std::string_view key, bool expired) {
  keyspace::WatchMap& watches = engine_.keyspace().stripe(stripe).watches;
  if (!watches.empty()) watches.Touch(db, key, expired);
  if (engine_.waiting().any() && invocation_.origin().wakes) [[unlikely]]
    engine_.waiting().MarkReady(lane_, db, stripe, key, true);
  if (engine_.tracking().any()) [[unlikely]]
    engine_.tracking().NoteChange(lane_, stripe, key, invocation_.work().client);
}

// ---- changing ----

void Keys::Put(int db, std::string_view key, NewValue value, int64_t expire_at) {
  LooseValue loose(value);
  PutValue(db, key, loose.value, expire_at);
}

void Keys::PutValue(int db, std::string_view key, NewValue& value, int64_t expire_at) {
  ExpectDiscard();
  Located at = Locate(db, key);
  if (at.entry != nullptr && Expired(*at.entry)) {
    Expire(db, *at.table, at.entry, at.hash);
    at = Locate(db, key);
  }
  Table& table = TableOf(db, at);
  if (expire_at == commands::kKeepExpiry) {
    expire_at = at.entry != nullptr ? at.entry->expire_at() : commands::kNoExpiry;
  }
  Forget();
  if (at.entry != nullptr) BeforeChange(table, at.entry);
  Displaced displaced;
  Entry* entry = table.PutAt(at.slot, at.hash, key, value, expire_at, &displaced);
  value.blob = nullptr;
  value.object = nullptr;
  Discard(displaced);
  if (at.entry == nullptr) {
    SetInitialAge(entry);
  } else {
    Touch(entry);
  }
  NoteChange(db, at.stripe, key);
  if (at.entry == nullptr) invocation_.Notify(db, commands::kNotifyNew, "new", key);
}

void Keys::CountAsNew(int db, std::string_view key) {
  const Located at = Locate(db, key);
  if (at.entry == nullptr) return;
  SetInitialAge(at.entry);
  invocation_.Notify(db, commands::kNotifyNew, "new", key);
}

void Keys::SetString(int db, std::string_view key, std::string_view text, int64_t expire_at,
                     bool as_number) {
  LooseValue loose{StringValue(text, as_number)};
  NewValue& value = loose.value;
  if (value.form != keyspace::Form::kInt) {
    if (!as_number && expire_at >= 0) {
      const Located at = Locate(db, key);
      if (at.entry != nullptr && at.entry->expire_at() >= past_ms_) {
        BeforeChange(*at.table, at.entry);
        if (at.table->OverwriteInline(at.entry, value.form, text, expire_at)) {
          Touch(at.entry);
          NoteChange(db, at.stripe, key);
          return;
        }
      }
    }
    if (KeptOutside(key, text)) {
      LargeArguments* const large = invocation_.work().large;
      if (large != nullptr) value.blob = large->Take(text);
      if (value.blob == nullptr) value.blob = base::Blob::Copy(text);
    }
  }
  PutValue(db, key, value, expire_at);
}

void Keys::SetInteger(int db, std::string_view key, int64_t number, int64_t expire_at) {
  const Located at = Locate(db, key);
  if (at.entry != nullptr && at.entry->kind() == keyspace::Kind::kString &&
      at.entry->form() == keyspace::Form::kInt && expire_at == commands::kKeepExpiry) {
    BeforeChange(*at.table, at.entry);
    at.entry->StorePayload(number);
    NoteChange(db, at.stripe, key);
    return;
  }
  NewValue value;
  value.form = keyspace::Form::kInt;
  value.integer = number;
  Put(db, key, value, expire_at);
}

char* Keys::OpenString(int db, std::string_view key, size_t size) {
  ExpectDiscard();
  const Located at = Locate(db, key);
  if (at.entry != nullptr) BeforeChange(*at.table, at.entry);
  Forget();
  Displaced displaced;
  char* data = TableOf(db, at).Edit(at.hash, key, size, &displaced);
  Discard(displaced);
  if (at.entry == nullptr) {
    SetInitialAge(Locate(db, key).entry);
    invocation_.Notify(db, commands::kNotifyNew, "new", key);
  }
  return data;
}

void Keys::Touched(int db, std::string_view key) {
  NoteChange(db, Keyspace::StripeOf(HashOf(key)), key);
}

void Keys::DeadlineMoved(int db, std::string_view key) {
  const Located at = Locate(db, key);
  if (at.entry != nullptr) at.table->NoteDeadline(at.hash, at.entry);
}

void Keys::Remove(int db, Table& table, std::string_view key, uint64_t hash, bool expired) {
  ExpectDiscard();
  if (engine_.snapshot().active()) {
    if (Entry* entry = table.Find(hash, key); entry != nullptr) BeforeChange(table, entry);
  }
  NoteGone(db, Keyspace::StripeOf(hash), key, expired);
  Forget();
  Displaced displaced;
  table.Remove(hash, key, &displaced);
  Discard(displaced);
}

bool Keys::Delete(int db, std::string_view key) {
  const Located at = Locate(db, key);
  if (at.entry == nullptr) return false;
  if (Expired(*at.entry)) {
    Expire(db, *at.table, at.entry, at.hash);
    return false;
  }
  Remove(db, *at.table, key, at.hash, false);
  return true;
}

void Keys::SetExpiry(int db, std::string_view key, int64_t expire_at) {
  const Located at = Locate(db, key);
  if (at.entry == nullptr) return;
  BeforeChange(*at.table, at.entry);
  Forget();
  // A log from elsewhere may have a time before 1970; below zero means none here.
  if (expire_at != commands::kNoExpiry) expire_at = std::max<int64_t>(expire_at, 0);
  at.table->SetExpiry(at.hash, at.entry, expire_at);
  NoteChange(db, at.stripe, key);
}

// ---- whole keys ----

namespace {

// The entry's value for another entry: blobs are shared, objects as told.
NewValue ValueOf(Entry* entry, types::Object* object) {
  NewValue value;
  value.kind = entry->kind();
  value.form = entry->form();
  if (entry->kind() == keyspace::Kind::kObject) {
    value.object = object;
  } else if (entry->form() == keyspace::Form::kInt) {
    value.integer = entry->integer();
  } else if (entry->has(keyspace::kExternal)) {
    value.blob = entry->blob();
    value.blob->Ref();
  } else {
    value.bytes = entry->inline_bytes();
  }
  return value;
}

types::Object* ObjectOf(const Entry& entry) {
  return entry.kind() == keyspace::Kind::kObject ? entry.object() : nullptr;
}

}  // namespace

void Keys::Rename(int db, std::string_view src, std::string_view dst) {
  const Located from = Locate(db, src);
  if (from.entry == nullptr) return;
  BeforeChange(*from.table, from.entry);
  types::Object* const object = ObjectOf(*from.entry);
  const uint32_t age = from.entry->age();
  const bool replaced = static_cast<bool>(Find(db, dst, Access::kPeek));
  MoveValue(db, src, db, dst);
  const Located to = Locate(db, dst);
  to.entry->set_age(age);
  if (object != nullptr && engine_.snapshot().active()) {
    engine_.snapshot().MoveObject(object, to.stripe);
  }
  // As in Redis the destination is a new key, whether it was there or not.
  if (replaced) invocation_.Notify(db, commands::kNotifyNew, "new", dst);
}

bool Keys::Copy(int db, std::string_view src, int dst_db, std::string_view dst, bool replace) {
  const bool replaced = static_cast<bool>(Find(dst_db, dst, Access::kPeek));
  if (replaced && !replace) return false;
  const Located from = Locate(db, src);
  if (from.entry == nullptr) return false;
  const types::Object* object = ObjectOf(*from.entry);
  LooseValue loose{ValueOf(from.entry, object == nullptr ? nullptr : object->Copy().release())};
  const std::string bytes(loose.value.bytes);
  loose.value.bytes = bytes;
  PutValue(dst_db, dst, loose.value, from.entry->expire_at());
  if (replaced) CountAsNew(dst_db, dst);
  return true;
}

bool Keys::Move(int db, std::string_view key, int dst_db) {
  if (Find(dst_db, key, Access::kPeek)) return false;
  const Located from = Locate(db, key);
  if (from.entry == nullptr) return false;
  BeforeChange(*from.table, from.entry);
  MoveValue(db, key, dst_db, key);
  return true;
}

void Keys::MoveValue(int db, std::string_view key, int dst_db, std::string_view dst) {
  ExpectDiscard();
  const Located from = Locate(db, key);
  types::Object* const object = ObjectOf(*from.entry);
  LooseValue loose{ValueOf(from.entry, object)};
  // Both may live in one table, whose entries a Put may move.
  const std::string bytes(loose.value.bytes);
  loose.value.bytes = bytes;
  loose.borrowed = object != nullptr;
  PutValue(dst_db, dst, loose.value, from.entry->expire_at());
  NoteGone(db, from.stripe, key, false);
  Forget();
  Displaced displaced;
  from.table->Remove(from.hash, key, &displaced);
  if (object == nullptr) Discard(displaced);
}

}  // namespace sava::engine
