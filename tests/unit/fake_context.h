// FakeContext: the Context that handlers are tested on. Each database is a std::map, nothing is
// locked, time stands where the test puts it, and all that a handler reports (changes,
// notifications, effects) is kept for the test to look at.
//
//   FakeContext context({StringCommands()});
//   EXPECT_EQ(context.Run({"SET", "k", "v"}), "+OK\r\n");
//   EXPECT_EQ(context.TakeEvents(), "set k");
//
// Run finds the command in the families it was given (subcommands too), checks the arity as the
// dispatcher does, and gives back the bytes of the reply.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "all_families.h"
#include "base/text.h"
#include "commands/context.h"
#include "commands/registry.h"
#include "protocol/out_buffer.h"
#include "types/value/object.h"

namespace sava::commands {

// A value that is no string, for WRONGTYPE.
class FakeObject final : public types::Object {
 public:
  const types::TypeInfo& type() const override {
    static constexpr uint8_t kRdbTypes[] = {1};
    static constexpr types::TypeInfo kInfo{"list", kRdbTypes, 1, nullptr};
    return kInfo;
  }
  std::string_view encoding() const override { return "listpack"; }
  size_t size() const override { return 1; }
  size_t MemoryUsage(size_t) const override { return sizeof(*this); }
  std::unique_ptr<types::Object> Copy() const override { return std::make_unique<FakeObject>(); }
  uint8_t rdb_type() const override { return 1; }
  void Save(types::Writer&) const override {}
  void Digest(const std::function<void(std::string_view)>& add) const override { add("fake"); }
};

class FakeContext final : public Context {
 public:
  static constexpr int kDatabases = 16;

  struct Event {
    int db = 0;
    NotifyClass cls = kNotifyGeneric;
    std::string name;
    std::string key;
  };

  explicit FakeContext(std::vector<std::span<const CommandSpec>> families)
      : families_(std::move(families)) {
    reply_.set_out(&out_);
    past_ms_ = now_ms_ = 1'700'000'000'000;
  }

  // ---- for tests ----

  // The reply's bytes; several calls in a row share the keyspace.
  std::string Run(std::vector<std::string> words) {
    words_ = std::move(words);
    views_.assign(words_.begin(), words_.end());
    args_ = views_;
    no_effect_ = false;
    reply_.ClearError();
    const CommandSpec* spec = FindSpec();
    if (spec == nullptr) {
      reply_.Error("ERR unknown command");
    } else if (!ArityOk(*spec)) {
      reply_.Error("ERR wrong number of arguments for '" + name_ + "' command");
    } else {
      spec->handler(*this);
    }
    args_ = {};
    return TakeReply();
  }

  void set_now_ms(int64_t now) { past_ms_ = now_ms_ = now; }
  void set_resp(int resp) { reply_.set_resp(resp); }
  void set_max_string_size(int64_t size) { max_string_size_ = size; }
  void set_lfu_policy(bool lfu) { lfu_ = lfu; }
  void set_command_table(const CommandTable* table) { table_ = table; }
  void set_type_registry(const types::TypeRegistry* types) { types_ = types; }
  void set_db(int db) { db_ = db; }
  void AddObject(std::string_view key) { SetObject(key, std::make_unique<FakeObject>()); }

  // The string at a key, or "(none)"; leaves no trace.
  std::string StringAt(std::string_view key) {
    const Value value = Find(key, Access::kPeek);
    if (!value.is_string()) return "(none)";
    std::string scratch;
    return std::string(value.Text(&scratch));
  }
  StringForm FormAt(std::string_view key) { return Find(key, Access::kPeek).form; }
  int64_t ExpiryAt(std::string_view key) { return Find(key, Access::kPeek).expire_at; }

  // What was reported since the last Take.
  int64_t TakeChanges() { return std::exchange(changes_, 0); }
  const std::vector<Event>& events() const { return events_; }
  // The keys that handlers have looked at or changed, whether they are there or not.
  std::set<std::string, std::less<>> TakeOpened() { return std::exchange(opened_, {}); }
  // "set k, expire k"
  std::string TakeEvents() {
    std::string text;
    for (const Event& event : std::exchange(events_, {})) {
      if (!text.empty()) text += ", ";
      text += event.name + " " + event.key;
    }
    return text;
  }
  // "SET k v PXAT 5, DEL k"; empty when the command would be logged as it came.
  std::string TakeEffects() {
    std::string text;
    for (const std::string& effect : std::exchange(effects_, {})) {
      if (!text.empty()) text += ", ";
      text += effect;
    }
    return text;
  }
  // Whether the last command asked not to be logged.
  bool no_effect() const { return no_effect_; }
  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

  // ---- Context ----

  Value Find(std::string_view key, Access access) override { return FindIn(db_, key, access); }

  void SetString(std::string_view key, std::string_view value, int64_t expire_at,
                 bool as_number) override {
    int64_t number = 0;
    if (as_number && base::ParseInt(value, &number)) {
      SetInteger(key, number, expire_at);
      return;
    }
    Entry& entry = Overwrite(key, expire_at);
    entry.form = value.size() <= kEmbstrLimit ? StringForm::kEmbstr : StringForm::kRaw;
    entry.bytes = value;
  }

  void SetInteger(std::string_view key, int64_t value, int64_t expire_at) override {
    Entry& entry = Overwrite(key, expire_at);
    entry.form = StringForm::kInt;
    entry.integer = value;
  }

  char* OpenString(std::string_view key, size_t size) override { return EditString(key, size); }

  char* EditString(std::string_view key, size_t size) override {
    Entry& entry = keys()[std::string(key)];
    if (entry.form == StringForm::kInt) entry.bytes = base::IntText(entry.integer);
    entry.form = StringForm::kRaw;
    if (entry.bytes.size() < size) entry.bytes.resize(size, '\0');
    return entry.bytes.data();
  }

  bool Delete(std::string_view key) override {
    if (!Find(key, Access::kPeek)) return false;
    keys().erase(std::string(key));
    return true;
  }

  void SetExpiry(std::string_view key, int64_t expire_at) override {
    keys().at(std::string(key)).expire_at = expire_at;
  }

  void SetObject(std::string_view key, std::unique_ptr<types::Object> object,
                 int64_t expire_at = kNoExpiry) override {
    Overwrite(key, expire_at).object = std::move(object);
  }

  void Touched(std::string_view) override {}

  int database_count() const override { return kDatabases; }

  Value FindIn(int db, std::string_view key, Access access) override {
    opened_.emplace(key);
    Database& database = databases_[static_cast<size_t>(db)];
    auto found = database.find(key);
    if (found != database.end() && Expired(found->second)) {
      NotifyIn(db, kNotifyExpired, "expired", key);
      database.erase(found);
      found = database.end();
    }
    const bool there = found != database.end();
    if (access == Access::kRead || access == Access::kReadQuiet) ++(there ? hits_ : misses_);
    if (there && (access == Access::kRead || access == Access::kWrite)) {
      found->second.idle_seconds = 0;
    }
    return there ? ValueOf(found->second) : Value{};
  }

  void Rename(std::string_view src, std::string_view dst) override {
    opened_.emplace(src);
    opened_.emplace(dst);
    if (src == dst) return;
    auto node = keys().extract(std::string(src));
    node.key() = std::string(dst);
    keys().erase(node.key());
    keys().insert(std::move(node));
  }

  bool CopyKey(std::string_view src, int dst_db, std::string_view dst, bool replace) override {
    Database& to = databases_[static_cast<size_t>(dst_db)];
    if (FindIn(dst_db, dst, Access::kPeek)) {
      if (!replace) return false;
      to.erase(std::string(dst));
    }
    const Entry& from = keys().at(std::string(src));
    Entry& entry = to[std::string(dst)];
    entry.form = from.form;
    entry.integer = from.integer;
    entry.bytes = from.bytes;
    entry.expire_at = from.expire_at;
    if (from.object) entry.object = from.object->Copy();
    return true;
  }

  bool MoveKey(std::string_view key, int dst_db) override {
    if (!Find(key, Access::kPeek) || FindIn(dst_db, key, Access::kPeek)) return false;
    databases_[static_cast<size_t>(dst_db)].insert(keys().extract(std::string(key)));
    return true;
  }

  int64_t DbSize() override { return static_cast<int64_t>(keys().size()); }

  bool RandomKey(std::string* key) override {
    std::vector<std::string> live = LiveKeys();
    if (live.empty()) return false;
    *key = live[Random() % live.size()];
    return true;
  }

  // The cursor is the rank of the next key: enough for a keyspace that stands still.
  uint64_t Scan(uint64_t cursor, int64_t count,
                const std::function<void(std::string_view, std::string_view)>& visit) override {
    if (cursor >= keys().size()) return 0;
    auto it = std::next(keys().begin(), static_cast<ptrdiff_t>(cursor));
    for (; count > 0 && it != keys().end(); --count, ++it, ++cursor) {
      if (!Expired(it->second)) visit(it->first, TypeName(it->second));
    }
    return it == keys().end() ? 0 : cursor;
  }

  void ForEachKey(const std::function<void(std::string_view)>& visit) override {
    for (const std::string& key : LiveKeys()) visit(key);
  }

  int64_t Flush(int db, bool) override {
    int64_t gone = 0;
    for (int i = 0; i < kDatabases; ++i) {
      if (db != -1 && db != i) continue;
      gone += static_cast<int64_t>(databases_[static_cast<size_t>(i)].size());
      databases_[static_cast<size_t>(i)].clear();
    }
    return gone;
  }

  void SwapDb(int a, int b) override {
    databases_[static_cast<size_t>(a)].swap(databases_[static_cast<size_t>(b)]);
  }

  bool SelectDb(int db) override {
    if (db < 0 || db >= kDatabases) return false;
    db_ = db;
    return true;
  }

  KeyAge Age(std::string_view key) override {
    const Entry& entry = keys().at(std::string(key));
    return {.lfu = lfu_, .idle_seconds = entry.idle_seconds, .frequency = entry.frequency};
  }

  void SetAge(std::string_view key, int64_t idle_seconds, int frequency) override {
    Entry& entry = keys().at(std::string(key));
    if (idle_seconds >= 0) entry.idle_seconds = idle_seconds;
    if (frequency >= 0) entry.frequency = frequency;
  }

  int64_t MemoryOf(std::string_view key, size_t samples) override {
    const Entry& entry = keys().at(std::string(key));
    const size_t value = entry.object ? entry.object->MemoryUsage(samples) : entry.bytes.size();
    return static_cast<int64_t>(sizeof(Entry) + key.size() + value);
  }

  void Changed(int64_t changes = 1) override { changes_ += changes; }

  void NotifyIn(int db, NotifyClass cls, std::string_view event, std::string_view key) override {
    events_.push_back({db, cls, std::string(event), std::string(key)});
  }

  using Context::Effect;
  void Effect(Args words) override {
    std::string text;
    for (const std::string_view word : words) {
      if (!text.empty()) text += ' ';
      text += word;
    }
    effects_.push_back(std::move(text));
  }

  void NoEffect() override { no_effect_ = true; }

  int64_t max_string_size() const override { return max_string_size_; }
  bool shares_numbers() const override { return !lfu_; }
  bool lazy_user_flush() const override { return false; }
  uint64_t Random() override {
    return random_ = random_ * 6364136223846793005U + 1442695040888963407U;
  }
  const CommandTable& command_table() const override { return *table_; }
  const types::TypeRegistry* type_registry() const override { return types_; }

 private:
  static constexpr size_t kEmbstrLimit = 44;

  struct Entry {
    StringForm form = StringForm::kRaw;
    int64_t integer = 0;
    std::string bytes;
    std::unique_ptr<types::Object> object;
    int64_t expire_at = kNoExpiry;
    int64_t idle_seconds = 0;
    int frequency = 5;
  };
  using Database = std::map<std::string, Entry, std::less<>>;

  Database& keys() { return databases_[static_cast<size_t>(db_)]; }

  bool Expired(const Entry& entry) const {
    return entry.expire_at != kNoExpiry && entry.expire_at <= now_ms_;
  }

  static std::string_view TypeName(const Entry& entry) {
    return entry.object ? entry.object->type().name : "string";
  }

  static Value ValueOf(Entry& entry) {
    Value value;
    value.expire_at = entry.expire_at;
    if (entry.object) {
      value.kind = Value::Kind::kObject;
      value.object = entry.object.get();
      return value;
    }
    value.kind = Value::Kind::kString;
    value.form = entry.form;
    if (entry.form == StringForm::kInt) {
      value.integer = entry.integer;
    } else {
      value.bytes = entry.bytes;
    }
    return value;
  }

  // A fresh entry in place of whatever was there.
  Entry& Overwrite(std::string_view key, int64_t expire_at) {
    opened_.emplace(key);
    Entry& entry = keys()[std::string(key)];
    const int64_t kept = entry.expire_at;
    entry = Entry{};
    entry.expire_at = expire_at == kKeepExpiry ? kept : expire_at;
    return entry;
  }

  std::vector<std::string> LiveKeys() {
    std::vector<std::string> live;
    for (const auto& [key, entry] : keys()) {
      if (!Expired(entry)) live.push_back(key);
    }
    return live;
  }

  // The row of the words, a container's subcommand where there is one; sets the name to blame.
  const CommandSpec* FindSpec() {
    name_ = base::ToLower(words_.at(0));
    const CommandSpec* spec = nullptr;
    for (const std::span<const CommandSpec> family : families_) {
      for (const CommandSpec& row : family) {
        if (row.name == name_) spec = &row;
      }
    }
    if (spec != nullptr && words_.size() > 1) {
      for (const CommandSpec& row : spec->subcommands) {
        if (!base::EqualsNoCase(row.name, words_[1])) continue;
        name_ += '|';
        name_ += row.name;
        spec = &row;
        break;
      }
    }
    command_name_ = name_;
    return spec;
  }

  bool ArityOk(const CommandSpec& spec) const {
    const auto count = static_cast<int>(argc());
    return spec.arity >= 0 ? count == spec.arity : count >= -spec.arity;
  }

  std::string TakeReply() {
    std::string bytes;
    iovec vectors[16];
    while (!out_.empty()) {
      const size_t n = out_.Gather(vectors, std::size(vectors));
      size_t taken = 0;
      for (size_t i = 0; i < n; ++i) {
        bytes.append(static_cast<const char*>(vectors[i].iov_base), vectors[i].iov_len);
        taken += vectors[i].iov_len;
      }
      out_.Consume(taken);
    }
    return bytes;
  }

  std::vector<std::span<const CommandSpec>> families_;
  Database databases_[kDatabases];
  protocol::OutBuffer out_;
  std::vector<std::string> words_;
  std::vector<std::string_view> views_;
  std::string name_;
  std::set<std::string, std::less<>> opened_;
  std::vector<Event> events_;
  std::vector<std::string> effects_;
  const CommandTable* table_ = nullptr;
  const types::TypeRegistry* types_ = nullptr;
  int64_t changes_ = 0;
  int64_t hits_ = 0;
  int64_t misses_ = 0;
  int64_t max_string_size_ = 512LL * 1024 * 1024;
  uint64_t random_ = 1;
  bool lfu_ = false;
  bool no_effect_ = false;
};

}  // namespace sava::commands
