#include "engine/engine_context.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "base/glob.h"
#include "base/trim.h"
#include "engine/aging.h"
#include "engine/string_value.h"
#include "types/hash.h"

namespace sava::engine {

using commands::Access;
using commands::Value;
using keyspace::Displaced;
using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::NewValue;
using keyspace::Table;

namespace {

// Arguments at least this long are copied before the lock is taken.
constexpr size_t kPrebuild = 32 * 1024;
constexpr size_t kKeepRecord = 256 * 1024;
constexpr size_t kKeepNotices = 1024;

// A value on its way to a table: dropped unless the table has taken it over.
struct LooseValue {
  LooseValue() = default;
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

constinit thread_local const EngineContext* EngineContext::running_ = nullptr;

EngineContext::EngineContext(Lane* lane) : engine_(*lane->engine), lane_(*lane) {}

void EngineContext::Begin(Client& client, const commands::Command& command, commands::Args args,
                          std::span<const uint64_t> hashes) {
  client_ = &client;
  command_ = &command;
  command_name_ = command.full_name;
  args_ = args;
  hashes_ = hashes;
  next_hash_ = 0;
  last_key_ = nullptr;
  if (!in_group_) changes_ = false;
  db_ = client.db;
  now_ms_ = lane_.now_ms;
  past_ms_ = client.has(kClientReplay) ? INT64_MIN : now_ms_;
  dirty_ = 0;
  verbatim_ = true;
  blocked_ = false;
  waiter_ = nullptr;
  ready_key_.reset();
  shown_.clear();
  reply_.set_out(&client.out);
  reply_.set_resp(client.resp);
  reply_.ClearError();
}

void EngineContext::End() {
  if (dirty_ > 0) {
    lane_.stats.dirty.Add(static_cast<uint64_t>(dirty_));
    changes_ = true;
    if (verbatim_) Propagate(args_, db_);
  }
  if ((record_count_ > 0 || !notices_.empty()) && !in_group_) EndGroup();
}

void EngineContext::Abandon() {
  lane_.stats.dirty.Add(static_cast<uint64_t>(dirty_));
  if (in_group_) return;
  try {
    EndGroup();
  } catch (const std::bad_alloc&) {
    record_.Clear(kKeepRecord);
    record_count_ = 0;
    notices_.clear();
  }
}

void EngineContext::EndGroup() {
  in_group_ = false;
  if (record_count_ > 0) Record();
  if (!notices_.empty()) [[unlikely]]
    PostNotices();
}

void EngineContext::PostNotices() {
  // That something has expired is told by the clock.
  const uint64_t ticket = client_ == nullptr ? 0 : std::max(client_->wrote, client_->saw);
  for (const Notice& notice : notices_) {
    if (notice.line != nullptr) {
      engine_.PostToMonitors(notice.line, ticket);
    } else if (!notice.heard_by) {
      engine_.pubsub_->Publish(notice.channel, notice.text, notice.shard, ticket);
    } else {
      const auto deliver = [&](const std::shared_ptr<const Message>& message) {
        if (std::ranges::find(*notice.heard_by, message->subscription) == notice.heard_by->end()) {
          return;
        }
        lane_.mailbox.Post({Mail::Kind::kMessage, client_->id, message, 0, ticket});
      };
      engine_.pubsub_->Publish(notice.channel, notice.text, notice.shard, ticket, client_, deliver);
    }
  }
  base::ClearAndTrim(&notices_, kKeepNotices);
}

void EngineContext::TellFrom(const Client& publisher, std::string channel, std::string_view text,
                             bool shard) {
  std::vector<std::string> heard_by;
  if ((shard ? publisher.shard_channels : publisher.channels).contains(channel)) {
    heard_by.push_back(channel);
  }
  for (const std::string& pattern : publisher.patterns) {
    if (!shard && base::GlobMatch(pattern, channel)) heard_by.push_back(pattern);
  }
  Tell(std::move(channel), text, shard);
  notices_.back().heard_by = std::move(heard_by);
}

void EngineContext::Record() {
  journal::Journal& journal = engine_.journal_;
  lane_.seen = journal.Append(lane_.index, record_count_, record_.view(), lane_.seen);
  if (std::exchange(changes_, false) && client_ != nullptr) {
    client_->wrote = std::max(client_->wrote, lane_.seen + 1);
  }
  if (lane_.exclusive) journal.Cut();  // no stripe hands it on
  record_.Clear(kKeepRecord);
  record_count_ = 0;
}

void EngineContext::BeginUpkeep() {
  client_ = nullptr;
  command_ = nullptr;
  past_ms_ = now_ms_ = lane_.now_ms;
  hashes_ = {};
  next_hash_ = 0;
  last_key_ = nullptr;
  dirty_ = 0;
}

void EngineContext::EndUpkeep() { EndGroup(); }

void EngineContext::ExpectRecord(size_t bytes) {
  if (!engine_.journal_.enabled()) return;
  record_.Reserve(bytes);
  engine_.journal_.Reserve(lane_.index, bytes);
}

void EngineContext::WriteBack(std::string_view key, std::string_view text, bool number,
                              int64_t expire_at) {
  BeginUpkeep();
  db_ = 0;
  SetString(key, text, expire_at, number);
  lane_.stats.dirty.Add();
  char time[24];
  const std::string_view words[] = {
      "SET", key, text, "PXAT", {time, base::FormatInt(expire_at, time)}};
  Propagate(words, 0);
  if (!in_group_) EndGroup();
}

Value EngineContext::Glance(int db, std::string_view key) {
  const uint64_t hash = engine_.keyspace_.Hash(key);
  const Table* table = engine_.keyspace_.table(db, Keyspace::StripeOf(hash));
  Entry* entry = table == nullptr ? nullptr : table->Find(hash, key);
  if (entry == nullptr) return {};
  if (entry->has(keyspace::kHasExpiry) && entry->expire_at() < lane_.now_ms) return {};
  return Describe(entry);
}

void EngineContext::PrebuildLarge(commands::Args args) {
  for (const std::string_view arg : args) {
    if (arg.size() < kPrebuild) continue;
    try {
      prebuilt_.emplace_back(arg.data(), nullptr);
      prebuilt_.back().second = base::Blob::Copy(arg);
    } catch (const std::bad_alloc&) {
      return;  // the command itself will find no memory
    }
  }
}

void EngineContext::DropPrebuilt() {
  for (auto& [data, blob] : prebuilt_) {
    if (blob != nullptr) blob->Unref();
  }
  prebuilt_.clear();
}

// As the log has it: *N, then $length and bytes of each word.
void EngineContext::Propagate(std::span<const std::string_view> words, int db) {
  if (!engine_.journal_.enabled() || (client_ != nullptr && client_->has(kClientReplay))) return;
  size_t size = 24;
  for (const std::string_view word : words) size += word.size() + 28;
  char* const begin = record_.Reserve(size);
  char* p = begin + 8;
  const auto number = [&p](char mark, size_t value) {
    *p++ = mark;
    p += base::FormatInt(static_cast<int64_t>(value), p);
    *p++ = '\r';
    *p++ = '\n';
  };
  number('*', words.size());
  for (const std::string_view word : words) {
    number('$', word.size());
    memcpy(p, word.data(), word.size());
    p += word.size();
    *p++ = '\r';
    *p++ = '\n';
  }
  const auto database = static_cast<uint32_t>(db);
  const auto bytes = static_cast<uint32_t>(p - begin - 8);
  memcpy(begin, &database, 4);
  memcpy(begin + 4, &bytes, 4);
  record_.Grow(8 + bytes);
  ++record_count_;
}

void EngineContext::Effect(commands::Args words) {
  verbatim_ = false;
  changes_ = true;
  Propagate(words, db_);
}

// ---- finding ----

uint64_t EngineContext::HashOf(std::string_view key) {
  // Handlers open their keys in order, usually several times each: look at this one and the next.
  if (command_ != nullptr && command_->simple_keys) {
    for (size_t n = next_hash_; n < hashes_.size() && n < next_hash_ + 2; ++n) {
      const size_t index =
          static_cast<size_t>(command_->first_key) + n * static_cast<size_t>(command_->key_step);
      if (args_[index].data() == key.data()) {
        next_hash_ = n;
        return hashes_[n];
      }
    }
  }
  return engine_.keyspace_.Hash(key);
}

EngineContext::Located EngineContext::Locate(int db, std::string_view key) {
  if (key.data() == last_key_ && db == last_db_ && last_.entry != nullptr &&
      last_.entry->KeyIs(key)) {
    return last_;
  }
  Located at;
  at.hash = HashOf(key);
  at.stripe = Keyspace::StripeOf(at.hash);
  at.table = engine_.keyspace_.table(db, at.stripe);
  at.slot = at.table == nullptr ? nullptr : at.table->FindSlot(at.hash, key);
  at.entry = Table::EntryAt(at.slot);
  last_key_ = key.data();
  last_db_ = db;
  last_ = at;
  return at;
}

Table& EngineContext::TableOf(int db, const Located& at) {
  return at.table != nullptr ? *at.table : engine_.keyspace_.TableFor(db, at.stripe, now_ms_);
}

void EngineContext::Touch(Entry* entry) {
  if (client_ != nullptr && client_->has(kClientNoTouch) && command_->spec->name != "touch") return;
  const Settings& settings = *engine_.settings_;
  if (UsesLfu(settings.maxmemory_policy)) {
    entry->set_age(LfuTouched(entry->age(), now_ms_, settings, lane_.rng));
  } else if (entry->age() != lane_.lru_clock) {
    entry->set_age(lane_.lru_clock);
  }
}

Value EngineContext::Describe(Entry* entry) const {
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

Value EngineContext::Find(std::string_view key, Access access) { return FindIn(db_, key, access); }

Value EngineContext::FindIn(int db, std::string_view key, Access access) {
  if (access == Access::kWrite) ExpectDiscard();  // what is emptied can be deleted
  const Located at = Locate(db, key);
  Entry* entry = at.entry;
  if (entry != nullptr && entry->has(keyspace::kHasExpiry) && entry->expire_at() < past_ms_) {
    // While writes are paused it stays where it is.
    if (access == Access::kWrite || !engine_.paused(true, now_ms_)) {
      ExpireKey(db, *at.table, entry, at.hash);
    }
    entry = nullptr;
  }
  const bool counts = access == Access::kRead || access == Access::kReadQuiet;
  if (entry == nullptr) {
    if (counts) {
      lane_.stats.misses.Add();
      NotifyIn(db, commands::kNotifyKeyMiss, "keymiss", key);
    }
    return {};
  }
  if (access == Access::kWrite && entry->kind() == keyspace::Kind::kObject) {
    BeforeChange(*at.table, entry);
  }
  if (counts) lane_.stats.hits.Add();
  if (access == Access::kRead || access == Access::kWrite) Touch(entry);
  return Describe(entry);
}

bool EngineContext::IsExpired(int db, std::string_view key) {
  const uint64_t hash = engine_.keyspace_.Hash(key);
  const Table* table = engine_.keyspace_.table(db, Keyspace::StripeOf(hash));
  const Entry* entry = table == nullptr ? nullptr : table->Find(hash, key);
  return entry != nullptr && entry->has(keyspace::kHasExpiry) && entry->expire_at() < lane_.now_ms;
}

// ---- changing ----

// Before something may be displaced: Discard takes no memory.
void EngineContext::ExpectDiscard() {
  std::vector<Displaced>& garbage = lane_.garbage;
  constexpr size_t kExpected = 4;
  if (garbage.capacity() - garbage.size() >= kExpected) return;
  garbage.reserve(std::max<size_t>(16, 2 * garbage.capacity()));
}

void EngineContext::Discard(const Displaced& displaced) {
  if (displaced.object != nullptr && engine_.snapshot_.active() &&
      engine_.snapshot_.TakeObject(displaced.object)) {
    return;  // a value is an object or a blob
  }
  if (displaced.object != nullptr) engine_.NoteFreed(*displaced.object);
  if (displaced.blob != nullptr || displaced.object != nullptr) lane_.garbage.push_back(displaced);
}

void EngineContext::NoteChange(int db, size_t stripe, std::string_view key) {
  keyspace::WatchMap& watches = engine_.keyspace_.stripe(stripe).watches;
  if (!watches.empty()) watches.Touch(db, key);
  NoteReady(db, stripe, key, false);
}

void EngineContext::NoteReady(int db, size_t stripe, std::string_view key, bool gone) {
  if (!engine_.waits_.any()) [[likely]]
    return;
  if (client_ == nullptr || !client_->has(kClientReplay)) {
    engine_.MarkReady(lane_, db, stripe, key, gone);
  }
}

void EngineContext::Block(const BlockRequest& request) {
  if (waiter_ == nullptr) {
    engine_.Block(lane_, *client_, *command_, args_, request);
    blocked_ = true;
    return;
  }
  blocked_ = true;
  // It keeps its place and its deadline.
  const int64_t before = waiter_->wake_at_ms.exchange(request.wake_at_ms);
  if (request.wake_at_ms != 0 && (before == 0 || request.wake_at_ms < before)) {
    engine_.PostTo(lane_, *waiter_, Mail::Kind::kAlarm, nullptr);
  }
}

// What it has not taken over when it throws is dropped by the caller's LooseValue.
void EngineContext::PutValue(int db, std::string_view key, NewValue& value, int64_t expire_at) {
  ExpectDiscard();
  Located at = Locate(db, key);
  if (at.entry != nullptr && at.entry->has(keyspace::kHasExpiry) &&
      at.entry->expire_at() < past_ms_) {
    ExpireKey(db, *at.table, at.entry, at.hash);
    at = Locate(db, key);
  }
  Table& table = TableOf(db, at);
  if (expire_at == commands::kKeepExpiry) {
    expire_at = at.entry != nullptr ? at.entry->expire_at() : commands::kNoExpiry;
  }
  last_key_ = nullptr;
  if (at.entry != nullptr) BeforeChange(table, at.entry);
  Displaced displaced;
  Entry* entry = table.PutAt(at.slot, at.hash, key, value, expire_at, &displaced);
  value.blob = nullptr;
  value.object = nullptr;
  Discard(displaced);
  if (at.entry == nullptr) {
    entry->set_age(InitialAge(*engine_.settings_, now_ms_, lane_.lru_clock));
  } else {
    Touch(entry);
  }
  NoteChange(db, at.stripe, key);
  if (at.entry == nullptr) NotifyIn(db, commands::kNotifyNew, "new", key);
}

void EngineContext::CountAsNewIn(int db, std::string_view key) {
  const Located at = Locate(db, key);
  if (at.entry == nullptr) return;
  at.entry->set_age(InitialAge(*engine_.settings_, now_ms_, lane_.lru_clock));
  NotifyIn(db, commands::kNotifyNew, "new", key);
}

void EngineContext::SetString(std::string_view key, std::string_view text, int64_t expire_at,
                              bool as_number) {
  LooseValue loose{StringValue(text, as_number)};
  NewValue& value = loose.value;
  if (value.form != keyspace::Form::kInt) {
    if (!as_number && expire_at >= 0) {
      const Located at = Locate(db_, key);
      if (at.entry != nullptr && at.entry->expire_at() >= past_ms_) {
        BeforeChange(*at.table, at.entry);
        if (at.table->OverwriteInline(at.entry, value.form, text, expire_at)) {
          Touch(at.entry);
          NoteChange(db_, at.stripe, key);
          return;
        }
      }
    }
    if (KeptOutside(key, text)) {
      for (auto& [data, blob] : prebuilt_) {
        if (data == text.data() && blob != nullptr && blob->size() == text.size()) {
          value.blob = std::exchange(blob, nullptr);
        }
      }
      if (value.blob == nullptr) value.blob = base::Blob::Copy(text);
    }
  }
  PutValue(db_, key, value, expire_at);
}

void EngineContext::SetInteger(std::string_view key, int64_t number, int64_t expire_at) {
  const Located at = Locate(db_, key);
  if (at.entry != nullptr && at.entry->kind() == keyspace::Kind::kString &&
      at.entry->form() == keyspace::Form::kInt && expire_at == commands::kKeepExpiry) {
    BeforeChange(*at.table, at.entry);
    at.entry->StorePayload(number);
    NoteChange(db_, at.stripe, key);
    return;
  }
  NewValue value;
  value.form = keyspace::Form::kInt;
  value.integer = number;
  PutValue(db_, key, value, expire_at);
}

char* EngineContext::OpenString(std::string_view key, size_t size) {
  ExpectDiscard();
  const Located at = Locate(db_, key);
  if (at.entry != nullptr) BeforeChange(*at.table, at.entry);
  last_key_ = nullptr;
  Displaced displaced;
  char* data = TableOf(db_, at).Edit(at.hash, key, size, &displaced);
  Discard(displaced);
  if (at.entry == nullptr) {
    const Located made = Locate(db_, key);
    made.entry->set_age(InitialAge(*engine_.settings_, now_ms_, lane_.lru_clock));
    NotifyIn(db_, commands::kNotifyNew, "new", key);
  }
  return data;
}

char* EngineContext::EditString(std::string_view key, size_t size) {
  char* data = OpenString(key, size);
  Touched(key);
  return data;
}

void EngineContext::SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                              int64_t expire_at) {
  LooseValue loose;
  loose.value.kind = keyspace::Kind::kObject;
  loose.value.object = object.release();
  PutValue(db_, key, loose.value, expire_at);
}

void EngineContext::Touched(std::string_view key) {
  NoteChange(db_, Keyspace::StripeOf(HashOf(key)), key);
}

void EngineContext::DeadlineMoved(std::string_view key) {
  const Located at = Locate(db_, key);
  if (at.entry != nullptr) at.table->NoteDeadline(at.hash, at.entry);
}

void EngineContext::Remove(int db, Table& table, std::string_view key, uint64_t hash,
                           bool expired) {
  ExpectDiscard();
  if (engine_.snapshot_.active()) {
    if (Entry* entry = table.Find(hash, key); entry != nullptr) BeforeChange(table, entry);
  }
  keyspace::WatchMap& watches = engine_.keyspace_.stripe(Keyspace::StripeOf(hash)).watches;
  if (!watches.empty()) watches.Touch(db, key, expired);
  NoteReady(db, Keyspace::StripeOf(hash), key, true);
  last_key_ = nullptr;
  Displaced displaced;
  table.Remove(hash, key, &displaced);
  Discard(displaced);
}

bool EngineContext::Delete(std::string_view key) {
  const Located at = Locate(db_, key);
  if (at.entry == nullptr) return false;
  if (at.entry->has(keyspace::kHasExpiry) && at.entry->expire_at() < past_ms_) {
    ExpireKey(db_, *at.table, at.entry, at.hash);
    return false;
  }
  Remove(db_, *at.table, key, at.hash, false);
  return true;
}

void EngineContext::ExpireKey(int db, Table& table, Entry* entry, uint64_t hash) {
  const std::string key(entry->key());
  Remove(db, table, key, hash, true);
  lane_.stats.expired.Add();
  const std::string_view words[] = {"DEL", key};
  Propagate(words, db);
  NotifyIn(db, commands::kNotifyExpired, "expired", key);
}

void EngineContext::ExpireFields(std::string_view key, commands::Args fields) {
  const Located at = Locate(db_, key);
  if (at.entry == nullptr || at.entry->kind() != keyspace::Kind::kObject) return;
  if (fields.empty()) return ExpireParts(db_, *at.table, at.entry, at.hash, SIZE_MAX);
  if (&at.entry->object()->type() != &types::Hash::Type()) return;
  auto* hash = static_cast<types::Hash*>(at.entry->object());
  const std::string name(key);
  ExpectDiscard();
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const std::string_view field : fields) {
    if (hash->ExpiryOf(field) == types::Hash::kNoExpiry || hash->Find(field, now_ms_, nullptr)) {
      continue;
    }
    if (names.empty()) BeforeChange(*at.table, at.entry);
    std::string kept(field);
    if (hash->Remove(field)) names.push_back(std::move(kept));
  }
  if (!names.empty()) NotePartsExpired(db_, *at.table, at.entry, name, at.hash, names);
}

void EngineContext::ExpireParts(int db, Table& table, Entry* entry, uint64_t hash, size_t budget) {
  ExpectDiscard();
  BeforeChange(table, entry);
  const std::string key(entry->key());
  std::vector<std::string> names;
  entry->object()->RemoveExpired(now_ms_, budget, &names);
  NotePartsExpired(db, table, entry, key, hash, names);
}

void EngineContext::NotePartsExpired(int db, Table& table, Entry* entry, const std::string& key,
                                     uint64_t hash, const std::vector<std::string>& names) {
  const bool empty = entry->object()->size() == 0;
  if (!empty) table.NoteDeadline(hash, entry);
  if (names.empty()) return;
  lane_.stats.expired_parts.Add(names.size());
  // What is empty goes, also when there is no memory to tell of it.
  if (empty) {
    Remove(db, table, key, hash, false);
  } else {
    NoteChange(db, Keyspace::StripeOf(hash), key);
  }
  NotifyIn(db, commands::kNotifyHash, "hexpired", key);
  if (empty) NotifyIn(db, commands::kNotifyGeneric, "del", key);
  std::vector<std::string_view> words = {"HDEL", key};
  words.insert(words.end(), names.begin(), names.end());
  Propagate(words, db);
}

void EngineContext::EvictKey(int db, Table& table, Entry* entry, uint64_t hash) {
  const std::string key(entry->key());
  Remove(db, table, key, hash, false);
  lane_.stats.evicted.Add();
  const std::string_view words[] = {"DEL", key};
  Propagate(words, db);
  NotifyIn(db, commands::kNotifyEvicted, "evicted", key);
}

void EngineContext::SetExpiry(std::string_view key, int64_t expire_at) {
  const Located at = Locate(db_, key);
  if (at.entry == nullptr) return;
  BeforeChange(*at.table, at.entry);
  last_key_ = nullptr;
  // A log from elsewhere may have a time before 1970; below zero means none here.
  if (expire_at != commands::kNoExpiry) expire_at = std::max<int64_t>(expire_at, 0);
  at.table->SetExpiry(at.hash, at.entry, expire_at);
  NoteChange(db_, at.stripe, key);
}

// ---- whole keys ----

int EngineContext::database_count() const { return engine_.keyspace_.databases(); }

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

}  // namespace

void EngineContext::Rename(std::string_view src, std::string_view dst) {
  const Located from = Locate(db_, src);
  if (from.entry == nullptr) return;
  BeforeChange(*from.table, from.entry);
  types::Object* const object =
      from.entry->kind() == keyspace::Kind::kObject ? from.entry->object() : nullptr;
  const uint32_t age = from.entry->age();
  const bool replaced = static_cast<bool>(FindIn(db_, dst, Access::kPeek));
  MoveValue(db_, src, db_, dst);
  const Located to = Locate(db_, dst);
  to.entry->set_age(age);
  if (object != nullptr && engine_.snapshot_.active()) {
    engine_.snapshot_.MoveObject(object, to.stripe);
  }
  // As in Redis the destination is a new key, whether it was there or not.
  if (replaced) NotifyIn(db_, commands::kNotifyNew, "new", dst);
}

bool EngineContext::CopyKey(std::string_view src, int dst_db, std::string_view dst, bool replace) {
  const bool replaced = static_cast<bool>(FindIn(dst_db, dst, Access::kPeek));
  if (replaced && !replace) return false;
  const Located from = Locate(db_, src);
  if (from.entry == nullptr) return false;
  types::Object* object = from.entry->kind() == keyspace::Kind::kObject
                              ? from.entry->object()->Copy().release()
                              : nullptr;
  LooseValue loose{ValueOf(from.entry, object)};
  NewValue& value = loose.value;
  const std::string bytes(value.bytes);
  value.bytes = bytes;
  const int64_t expire_at = from.entry->expire_at();
  PutValue(dst_db, dst, value, expire_at);
  if (replaced) CountAsNewIn(dst_db, dst);
  return true;
}

bool EngineContext::MoveKey(std::string_view key, int dst_db) {
  if (FindIn(dst_db, key, Access::kPeek)) return false;
  const Located from = Locate(db_, key);
  if (from.entry == nullptr) return false;
  BeforeChange(*from.table, from.entry);
  MoveValue(db_, key, dst_db, key);
  return true;
}

// The value goes to another key, which is not there. Without memory it stays where it is.
void EngineContext::MoveValue(int db, std::string_view key, int dst_db, std::string_view dst) {
  ExpectDiscard();
  const Located from = Locate(db, key);
  types::Object* const object =
      from.entry->kind() == keyspace::Kind::kObject ? from.entry->object() : nullptr;
  LooseValue loose{ValueOf(from.entry, object)};
  // Both may live in one table, whose entries a Put may move.
  const std::string bytes(loose.value.bytes);
  loose.value.bytes = bytes;
  loose.borrowed = object != nullptr;
  PutValue(dst_db, dst, loose.value, from.entry->expire_at());
  keyspace::WatchMap& watches = engine_.keyspace_.stripe(from.stripe).watches;
  if (!watches.empty()) watches.Touch(db, key);
  NoteReady(db, from.stripe, key, true);
  last_key_ = nullptr;
  Displaced displaced;
  from.table->Remove(from.hash, key, &displaced);
  if (object == nullptr) Discard(displaced);
}

int64_t EngineContext::DbSize() { return static_cast<int64_t>(engine_.keyspace_.Size(db_)); }

// After a look at a stripe that the command has not locked as its own: keys that were found expired
// are logged before anybody can write them anew.
// A stripe that a command visits of its own accord. What it logged is recorded before the lock goes
// back, which it does also when there is no memory.
class EngineContext::Visit {
 public:
  Visit(EngineContext& context, size_t stripe) : context_(context), stripe_(stripe) {
    if (!context_.lane_.exclusive) Stripe().Lock(&context_.lane_.seen);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() {
    if (!context_.lane_.exclusive) Stripe().Unlock(context_.lane_.seen);
  }
  void Finish() {
    if (context_.lane_.exclusive) return;
    context_.EndGroup();
    context_.engine_.ServeReady(context_.lane_);
  }

 private:
  keyspace::Stripe& Stripe() { return context_.engine_.keyspace_.stripe(stripe_); }

  EngineContext& context_;
  const size_t stripe_;
};

bool EngineContext::RandomKey(std::string* key) {
  Keyspace& keyspace = engine_.keyspace_;
  for (int tries = 0; tries < 100; ++tries) {
    const size_t total = keyspace.Size(db_);
    if (total == 0) return false;
    uint64_t pick = lane_.rng.Below(total);
    size_t stripe = 0;
    for (; stripe < Keyspace::kStripes - 1; ++stripe) {
      const Table* table = keyspace.table(db_, stripe);
      const size_t size = table == nullptr ? 0 : table->size();
      if (pick < size) break;
      pick -= size;
    }
    Visit visit(*this, stripe);
    Table* table = keyspace.table(db_, stripe);
    Entry* entry = table == nullptr ? nullptr : table->Random(lane_.rng);
    bool found = false;
    if (entry != nullptr) {
      if (entry->has(keyspace::kHasExpiry) && entry->expire_at() < past_ms_) {
        if (!engine_.paused(true, now_ms_)) {
          ExpireKey(db_, *table, entry, keyspace.Hash(entry->key()));
        }
      } else {
        *key = entry->key();
        found = true;
      }
    }
    visit.Finish();
    if (found) return true;
  }
  return false;
}

uint64_t EngineContext::Scan(uint64_t cursor, int64_t count,
                             const std::function<void(std::string_view, std::string_view)>& visit) {
  Keyspace& keyspace = engine_.keyspace_;
  size_t stripe = cursor >> Table::kOrderBits;
  uint64_t order = cursor & ((uint64_t{1} << Table::kOrderBits) - 1);
  int64_t left = count;
  size_t empty_stripes = 0;
  while (stripe < Keyspace::kStripes) {
    if (keyspace.table(db_, stripe) != nullptr) {
      Visit visited(*this, stripe);
      if (Table* table = keyspace.table(db_, stripe); table != nullptr) {
        std::vector<std::string> expired;
        order = table->Scan(order, static_cast<size_t>(left), [&](Entry* entry) {
          --left;
          if (entry->has(keyspace::kHasExpiry) && entry->expire_at() < past_ms_) {
            if (!engine_.paused(true, now_ms_)) expired.emplace_back(entry->key());
            return;
          }
          visit(entry->key(), entry->kind() == keyspace::Kind::kObject
                                  ? entry->object()->type().name
                                  : std::string_view("string"));
        });
        for (const std::string& key : expired) {
          const uint64_t hash = keyspace.Hash(key);
          Entry* entry = table->Find(hash, key);
          if (entry != nullptr) ExpireKey(db_, *table, entry, hash);
        }
      } else {
        order = 0;
      }
      visited.Finish();
      if (order != 0) return (uint64_t{stripe} << Table::kOrderBits) | order;
    } else {
      ++empty_stripes;
    }
    order = 0;
    ++stripe;
    if (left <= 0 && stripe < Keyspace::kStripes) return uint64_t{stripe} << Table::kOrderBits;
  }
  return 0;
}

void EngineContext::ForEachKey(const std::function<void(std::string_view)>& visit) {
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    const Table* table = engine_.keyspace_.table(db_, stripe);
    if (table == nullptr) continue;
    table->ForEach([&](Entry* entry) {
      if (entry->has(keyspace::kHasExpiry) && entry->expire_at() < past_ms_) return;
      visit(entry->key());
    });
  }
}

void EngineContext::TouchAllWatched(int db, int other_db) {
  Keyspace& keyspace = engine_.keyspace_;
  const int64_t now = lane_.now_ms;
  const auto find = [&](int in, size_t stripe, std::string_view key) -> const Entry* {
    const Table* table = in < 0 ? nullptr : keyspace.table(in, stripe);
    return table == nullptr ? nullptr : table->Find(keyspace.Hash(key), key);
  };
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    keyspace::WatchMap& watches = keyspace.stripe(stripe).watches;
    if (watches.empty()) continue;
    watches.ForEach(db, [&](std::string_view key, keyspace::Watcher* watcher, bool* was_expired) {
      // What had expired when it was watched was missing, and so is what comes expired.
      const bool before = find(db, stripe, key) != nullptr && !*was_expired;
      const Entry* coming = find(other_db, stripe, key);
      *was_expired =
          coming != nullptr && coming->has(keyspace::kHasExpiry) && coming->expire_at() < now;
      const bool after = coming != nullptr && !*was_expired;
      if (before || after) watcher->dirty.store(true, std::memory_order_release);
    });
  }
}

int64_t EngineContext::Flush(int db, bool async) {
  static_cast<void>(async);  // both free in the background: nobody waits for it
  Keyspace& keyspace = engine_.keyspace_;
  int64_t removed = 0;
  for (int i = db < 0 ? 0 : db; i < (db < 0 ? keyspace.databases() : db + 1); ++i) {
    const auto size = static_cast<int64_t>(keyspace.Size(i));
    TouchAllWatched(i, -1);
    if (&lane_ != &engine_.house_lane()) engine_.MarkAllReady(lane_, i, true);
    auto detached = keyspace.Detach(i);
    if (i == 0) keyspace.MakeTables(i, now_ms_);
    if (engine_.snapshot_.active()) {
      detached = engine_.snapshot_.TakeTables(std::move(detached));
    }
    auto tables = std::make_shared<std::vector<std::unique_ptr<Table>>>(std::move(detached));
    if (!tables->empty()) {
      engine_.background_.Run([tables] { tables->clear(); }, size);
    }
    removed += size;
  }
  if (db < 0 && engine_.snapshot_.active()) engine_.snapshot_.Flushed();
  if (db < 0 && engine_.host_ != nullptr && &lane_ != &engine_.house_lane()) {
    // As Flushall counts it.
    const bool wait = engine_.host_->FlushedAll(static_cast<uint64_t>(removed) + 1);
    lane_.awaits_save = wait && !client_->has(kClientNeverBlocks);
  }
  return removed;
}

void EngineContext::SwapDb(int a, int b) {
  if (a == b) return;
  TouchAllWatched(a, b);
  TouchAllWatched(b, a);
  engine_.keyspace_.Swap(a, b);
  engine_.MarkAllReady(lane_, a, false);
  engine_.MarkAllReady(lane_, b, false);
}

// What is in the log had room once.
bool EngineContext::RoomFor(uint64_t bytes) const {
  return (client_ != nullptr && client_->has(kClientReplay)) || engine_.RoomFor(bytes);
}

bool EngineContext::SelectDb(int db) {
  if (db < 0 || db >= engine_.keyspace_.databases()) return false;
  client_->db = db;
  return true;
}

commands::KeyAge EngineContext::Age(std::string_view key) {
  const Located at = Locate(db_, key);
  commands::KeyAge age;
  const Settings& settings = *engine_.settings_;
  age.lfu = UsesLfu(settings.maxmemory_policy);
  if (at.entry == nullptr) return age;
  if (age.lfu) {
    age.frequency = LfuDecayed(at.entry->age(), now_ms_, settings);
  } else {
    age.idle_seconds = static_cast<int64_t>(LruIdleSeconds(at.entry->age(), lane_.lru_clock));
  }
  return age;
}

void EngineContext::SetAge(std::string_view key, int64_t idle_seconds, int frequency) {
  const Located at = Locate(db_, key);
  if (at.entry == nullptr) return;
  const Settings& settings = *engine_.settings_;
  if (UsesLfu(settings.maxmemory_policy)) {
    if (frequency >= 0) at.entry->set_age(LfuPack(now_ms_, frequency));
  } else if (idle_seconds >= 0) {
    at.entry->set_age((lane_.lru_clock - static_cast<uint32_t>(idle_seconds)) & kAgeMask);
  }
}

int64_t EngineContext::MemoryOf(std::string_view key, size_t samples) {
  const Located at = Locate(db_, key);
  if (at.entry == nullptr) return 0;
  size_t bytes = base::Slab::Rounded(at.entry->BlockSize()) + 8;  // the block and its slot
  if (at.entry->kind() == keyspace::Kind::kObject) {
    bytes += at.entry->object()->MemoryUsage(samples);
  } else if (at.entry->has(keyspace::kExternal)) {
    bytes += at.entry->blob()->memory();
  }
  return static_cast<int64_t>(bytes);
}

// ---- bookkeeping ----

void EngineContext::NotifyIn(int db, commands::NotifyClass cls, std::string_view event,
                             std::string_view key) {
  const uint32_t wanted = engine_.settings_->notify_keyspace_events;
  if ((wanted & cls) == 0 || !engine_.pubsub_->anyone()) return;
  // Nobody is told of what there is no memory to tell of.
  base::IfMemory([&] {
    const std::string number = base::IntText(db);
    if ((wanted & commands::kNotifyKeyspace) != 0) {
      std::string channel = "__keyspace@" + number + "__:";
      channel += key;
      Tell(std::move(channel), event, false);
    }
    if ((wanted & commands::kNotifyKeyevent) != 0) {
      std::string channel = "__keyevent@" + number + "__:";
      channel += event;
      Tell(std::move(channel), key, false);
    }
  });
}

int64_t EngineContext::max_string_size() const {
  return static_cast<int64_t>(engine_.settings_->proto_max_bulk_len);
}
const types::CollectionLimits& EngineContext::collection_limits() const {
  return *engine_.settings_;
}
void EngineContext::Warn(const std::string& text) { spdlog::warn("{}", text); }

bool EngineContext::skips_checksums() const {
  return engine_.skip_checksums().load(std::memory_order_relaxed);
}

bool EngineContext::shares_numbers() const {
  const Settings& settings = *engine_.settings_;
  return settings.maxmemory == 0 || !(UsesLfu(settings.maxmemory_policy) ||
                                      settings.maxmemory_policy == MaxmemoryPolicy::kAllkeysLru ||
                                      settings.maxmemory_policy == MaxmemoryPolicy::kVolatileLru);
}
bool EngineContext::lazy_user_del() const { return engine_.settings_->lazyfree_lazy_user_del; }
bool EngineContext::lazy_user_flush() const { return engine_.settings_->lazyfree_lazy_user_flush; }
const commands::CommandTable& EngineContext::command_table() const { return *engine_.table_; }

}  // namespace sava::engine
