// Object::Rebuild of the types that Redis has: the commands of their type, some elements each.
#include <string>
#include <vector>

#include "base/text.h"
#include "types/collections/hash.h"
#include "types/collections/list.h"
#include "types/collections/set.h"
#include "types/collections/sorted_set.h"
#include "types/collections/stream.h"

namespace sava::types {

namespace {

// As in Redis; less when elements are long.
constexpr size_t kItems = 64;
constexpr size_t kBytes = 1 << 20;

// A command that takes many elements, again and again.
class Batch {
 public:
  Batch(std::string_view name, std::string_view key, const Object::CommandSink& emit)
      : name_(name), key_(key), emit_(emit) {}
  ~Batch() { Flush(); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void Add(std::initializer_list<std::string_view> item) {
    for (const std::string_view word : item) {
      words_.emplace_back(word);
      bytes_ += word.size();
    }
    if (++items_ == kItems || bytes_ >= kBytes) Flush();
  }

 private:
  void Flush() {
    if (items_ == 0) return;
    std::vector<std::string_view> command{name_, key_};
    command.insert(command.end(), words_.begin(), words_.end());
    emit_(command);
    words_.clear();
    items_ = bytes_ = 0;
  }

  const std::string_view name_;
  const std::string_view key_;
  const Object::CommandSink& emit_;
  std::vector<std::string> words_;
  size_t items_ = 0;
  size_t bytes_ = 0;
};

void Emit(const Object::CommandSink& emit, std::initializer_list<std::string_view> words) {
  emit(std::span(words.begin(), words.size()));
}

bool AllPendingAreThere(const Stream& stream) {
  bool there = true;
  for (const auto& [name, group] : stream.groups()) {
    group->pending().ForEachFrom(kLeastStreamId, [&](const PendingEntry& entry) {
      there = stream.Contains(entry.id);
      return there;
    });
    if (!there) return false;
  }
  return true;
}

void RebuildEntries(const Stream& stream, std::string_view key, const Object::CommandSink& emit) {
  std::vector<std::string> texts;
  std::vector<std::string_view> words;
  stream.Range(kLeastStreamId, kGreatestStreamId, [&](const StreamEntry& entry) {
    const std::string id = entry.id.Text();
    texts.clear();
    entry.ForEachField([&](std::string_view field, std::string_view value) {
      texts.emplace_back(field);
      texts.emplace_back(value);
    });
    words = {"XADD", key, id};
    words.insert(words.end(), texts.begin(), texts.end());
    emit(words);
    return true;
  });
  // No other command makes an empty stream.
  if (stream.length() == 0) Emit(emit, {"XADD", key, "MAXLEN", "0", "0-1", "x", "y"});
  Emit(emit, {"XSETID", key, stream.last_id().Text(), "ENTRIESADDED",
              base::IntText(static_cast<int64_t>(stream.entries_added())), "MAXDELETEDID",
              stream.max_deleted_id().Text()});
}

void RebuildGroup(const StreamGroup& group, std::string_view key, std::string_view name,
                  const Object::CommandSink& emit) {
  Emit(emit, {"XGROUP", "CREATE", key, name, group.last_id.Text(), "ENTRIESREAD",
              base::IntText(group.entries_read)});
  for (const auto& [consumer, about] : group.consumers()) {
    Emit(emit, {"XGROUP", "CREATECONSUMER", key, name, consumer});
  }
  group.pending().ForEachFrom(kLeastStreamId, [&](const PendingEntry& entry) {
    Emit(emit, {"XCLAIM", key, name, entry.consumer->name, "0", entry.id.Text(), "TIME",
                base::IntText(entry.delivered_at), "RETRYCOUNT",
                base::IntText(static_cast<int64_t>(entry.deliveries)), "JUSTID", "FORCE"});
    return true;
  });
}

}  // namespace

bool List::Rebuild(std::string_view key, const CommandSink& emit) const {
  Batch batch("RPUSH", key, emit);
  PackedItem::Scratch scratch;
  ForRange(0, size(), [&](const PackedItem& item) { batch.Add({item.Text(scratch)}); });
  return true;
}

bool Set::Rebuild(std::string_view key, const CommandSink& emit) const {
  Batch batch("SADD", key, emit);
  ForEach([&](std::string_view member) { batch.Add({member}); });
  return true;
}

bool SortedSet::Rebuild(std::string_view key, const CommandSink& emit) const {
  Batch batch("ZADD", key, emit);
  for (Iterator at = At(0); at; at.Next()) batch.Add({ScoreText(at.score()), at.member()});
  return true;
}

bool Hash::Rebuild(std::string_view key, const CommandSink& emit) const {
  {
    Batch batch("HMSET", key, emit);
    ForEach(kNever, [&](std::string_view field, std::string_view value) {
      batch.Add({field, value});
    });
  }
  if (!has_expiries()) return true;
  ForEach(kNever, [&](std::string_view field, std::string_view /*value*/) {
    const int64_t at = ExpiryOf(field);
    if (at != kNoExpiry) Emit(emit, {"HPEXPIREAT", key, base::IntText(at), "FIELDS", "1", field});
  });
  return true;
}

// XCLAIM makes nothing pending that is not in the stream any more.
bool Stream::Rebuild(std::string_view key, const CommandSink& emit) const {
  if (!AllPendingAreThere(*this)) return false;
  RebuildEntries(*this, key, emit);
  for (const auto& [name, group] : groups_) RebuildGroup(*group, key, name, emit);
  return true;
}

}  // namespace sava::types
