// SORT and SORT_RO: the elements of a list, set or sorted set in the order of their values or of
// other keys' (docs/types/lists.md).
//
// The elements are copied out, weighed, sorted, and replied or stored as a list. With patterns any
// key may be looked at: those calls lock everything.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "commands/context.h"
#include "commands/find_object.h"
#include "commands/redis/families.h"
#include "commands/redis/hashes.h"
#include "commands/registry.h"
#include "types/collections/hash.h"
#include "types/collections/list.h"
#include "types/collections/set.h"
#include "types/collections/sorted_set.h"

namespace sava::commands {

namespace {

using types::List;

struct SortOptions {
  bool descending = false;
  bool alpha = false;
  bool by_given = false;
  bool unsorted = false;  // BY a pattern without *
  std::string_view by;
  std::vector<std::string_view> gets;
  int64_t offset = 0;
  int64_t count = -1;
  bool store = false;
  std::string_view destination;
};

struct Sortable {
  std::string text;
  double score = 0;
  std::string weight;
  bool weighed = false;
};
using Sortables = std::vector<Sortable>;

bool ParseSort(Context& context, bool may_store, SortOptions* options) {
  for (size_t i = 2; i < context.argc(); ++i) {
    const size_t left = context.argc() - i - 1;
    if (context.ArgIs(i, "ASC")) {
      options->descending = false;
    } else if (context.ArgIs(i, "DESC")) {
      options->descending = true;
    } else if (context.ArgIs(i, "ALPHA")) {
      options->alpha = true;
    } else if (context.ArgIs(i, "LIMIT") && left >= 2) {
      if (!context.IntArg(i + 1, &options->offset) || !context.IntArg(i + 2, &options->count)) {
        return false;
      }
      i += 2;
    } else if (may_store && context.ArgIs(i, "STORE") && left >= 1) {
      options->store = true;
      options->destination = context.arg(++i);
    } else if (context.ArgIs(i, "BY") && left >= 1) {
      options->by_given = true;
      options->by = context.arg(++i);
      options->unsorted = options->by.find('*') == std::string_view::npos;
      if (!options->unsorted && !context.MayReadEveryKey()) {
        context.Error("ERR BY option of SORT denied due to insufficient ACL permissions.");
        return false;
      }
    } else if (context.ArgIs(i, "GET") && left >= 1) {
      if (!context.MayReadEveryKey()) {
        context.Error("ERR GET option of SORT denied due to insufficient ACL permissions.");
        return false;
      }
      options->gets.push_back(context.arg(++i));
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

// ---- patterns ----

// Whether a pattern names other keys.
bool NamesKeys(std::string_view pattern) { return pattern != "#"; }

// What a pattern stands for with an element in the place of its first *: the element itself (#), a
// string, or a field of a hash (key->field). False when there is no such thing.
bool Follow(Context& context, std::string_view pattern, std::string_view element,
            std::string* out) {
  if (!NamesKeys(pattern)) {
    *out = element;
    return true;
  }
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return false;
  std::string_view rest = pattern.substr(star + 1);
  std::string_view field;
  const size_t arrow = rest.find("->");
  const bool of_hash = arrow != std::string_view::npos && arrow + 2 < rest.size();
  if (of_hash) {
    field = rest.substr(arrow + 2);
    rest = rest.substr(0, arrow);
  }
  std::string key(pattern.substr(0, star));
  key.append(element).append(rest);
  const Value value = context.Find(key, Access::kRead);
  if (of_hash) {
    const auto* hash = ObjectAs<types::Hash>(value);
    std::string_view found;
    if (hash == nullptr || !hash->Find(field, hashes::FieldTime(context), &found)) return false;
    *out = found;
    return true;
  }
  if (!value.is_string()) return false;
  std::string scratch;
  *out = value.Text(&scratch);
  return true;
}

// ---- loading ----

void LoadSortable(std::string_view text, Sortables* out) { out->emplace_back().text = text; }

// From `start` on, `count` elements of a list or sorted set in their order or the reverse.
void LoadRange(const Value& value, bool backwards, size_t start, size_t count, Sortables* out) {
  if (count == 0) return;
  if (const auto* list = ObjectAs<List>(value); list != nullptr) {
    const auto add = [out](const types::PackedItem& item) {
      types::PackedItem::Scratch scratch;
      LoadSortable(item.Text(scratch), out);
      return true;
    };
    backwards ? list->ForWhileBack(list->size() - 1 - start, count, add)
              : list->ForWhile(start, count, add);
    return;
  }
  const auto* set = ObjectAs<types::SortedSet>(value);
  auto at = set->At(backwards ? set->size() - 1 - start : start);
  for (; count > 0 && at; --count) {
    LoadSortable(at.member(), out);
    backwards ? at.Previous() : at.Next();
  }
}

// Weighs the elements; false when one is to be a number and is none.
bool Weigh(Context& context, const SortOptions& options, Sortables* all) {
  for (Sortable& one : *all) {
    if (options.by_given) {
      one.weighed = Follow(context, options.by, one.text, &one.weight);
      if (!one.weighed) continue;
    }
    if (options.alpha) continue;
    const char* const text = (options.by_given ? one.weight : one.text).c_str();
    char* end = nullptr;
    errno = 0;
    one.score = strtod(text, &end);
    if (*end != '\0' || errno == ERANGE || std::isnan(one.score)) return false;
  }
  return true;
}

int CompareSortables(const Sortable& a, const Sortable& b, const SortOptions& options) {
  if (!options.alpha) {
    if (a.score != b.score) return a.score < b.score ? -1 : 1;
    return a.text.compare(b.text);
  }
  if (!options.by_given) return a.text.compare(b.text);
  if (a.weighed != b.weighed) return a.weighed ? 1 : -1;
  return a.weight.compare(b.weight);
}

void SortThem(const SortOptions& options, Sortables* all) {
  std::stable_sort(all->begin(), all->end(), [&options](const Sortable& a, const Sortable& b) {
    const int order = CompareSortables(a, b, options);
    return options.descending ? order > 0 : order < 0;
  });
}

// ---- answering ----

void ReplySorted(Context& context, const SortOptions& options, const Sortables& sorted) {
  protocol::Reply& reply = context.reply();
  const size_t each = std::max<size_t>(options.gets.size(), 1);
  reply.Array(static_cast<int64_t>(sorted.size() * each));
  std::string found;
  for (const Sortable& one : sorted) {
    if (options.gets.empty()) reply.Bulk(one.text);
    for (const std::string_view pattern : options.gets) {
      Follow(context, pattern, one.text, &found) ? reply.Bulk(found) : reply.Null();
    }
  }
}

// Elements to an RPUSH in the log.
constexpr size_t kPushedAtOnce = 512;

// Logs the list as it is: what the command was made of (the order of a set, the time of a field)
// may be different when the log is replayed.
void LogStored(Context& context, std::string_view key, bool existed, const List& list) {
  context.NoEffect();
  if (!context.wants_effects()) return;
  if (existed) context.Effect({"DEL", key});
  std::vector<std::string> texts;
  std::vector<std::string_view> words;
  for (size_t at = 0; at < list.size(); at += kPushedAtOnce) {
    texts.clear();
    list.ForWhile(at, std::min(kPushedAtOnce, list.size() - at),
                  [&texts](const types::PackedItem& item) {
                    types::PackedItem::Scratch scratch;
                    texts.emplace_back(item.Text(scratch));
                    return true;
                  });
    words.assign({"RPUSH", key});
    words.insert(words.end(), texts.begin(), texts.end());
    context.Effect(Args(words));
  }
}

void StoreSorted(Context& context, const SortOptions& options, const Sortables& sorted) {
  auto list = std::make_unique<List>();
  list->set_encoding(context.collection_limits());
  std::string found;
  for (const Sortable& one : sorted) {
    if (options.gets.empty()) list->Push(List::End::kTail, one.text);
    for (const std::string_view pattern : options.gets) {
      if (!Follow(context, pattern, one.text, &found)) found.clear();
      list->Push(List::End::kTail, found);
    }
  }
  const auto size = static_cast<int64_t>(list->size());
  const std::string_view key = options.destination;
  if (size > 0) {
    list->Settle(context.collection_limits().list_max_listpack_size);
    LogStored(context, key, context.Exists(key), *list);
    context.SetObject(key, std::move(list));
    context.Notify(kNotifyList, "sortstore", key);
    context.Changed(size);
  } else if (context.Delete(key)) {
    context.Notify(kNotifyGeneric, "del", key);
    context.Effect({"DEL", key});
    context.Changed();
  }
  context.reply().Int(size);
}

void SortAny(Context& context, bool may_store) {
  SortOptions options;
  if (!ParseSort(context, may_store, &options)) return;
  const Value value = context.Find(context.arg(1), Access::kRead);
  const auto* set = ObjectAs<types::Set>(value);
  if (value && set == nullptr && ObjectAs<List>(value) == nullptr &&
      ObjectAs<types::SortedSet>(value) == nullptr) {
    return context.Error(errors::kWrongType);
  }
  // What is stored, or a script does, must not depend on the order of a set.
  if (options.unsorted && set != nullptr && (options.store || context.in_script())) {
    options.unsorted = false;
    options.by_given = false;
    options.alpha = true;
  }
  const size_t size = value ? value.object->size() : 0;
  const size_t start =
      std::min<size_t>(size, static_cast<size_t>(std::max<int64_t>(0, options.offset)));
  const size_t count = options.count < 0
                           ? size - start
                           : std::min<size_t>(size - start, static_cast<size_t>(options.count));
  Sortables all;
  if (set != nullptr) {
    all.reserve(size);
    set->ForEach([&all](std::string_view member) { LoadSortable(member, &all); });
  } else if (options.unsorted) {
    LoadRange(value, options.descending, start, count, &all);
  } else if (size > 0) {
    all.reserve(size);
    LoadRange(value, false, 0, size, &all);
  }
  if (!options.unsorted) {
    if (!Weigh(context, options, &all)) {
      return context.Error("ERR One or more scores can't be converted into double");
    }
    SortThem(options, &all);
  }
  if (all.size() > count) {
    all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(start));
    all.resize(count);
  }
  options.store ? StoreSorted(context, options, all) : ReplySorted(context, options, all);
}

void Sort(Context& context) { SortAny(context, true); }
void SortRo(Context& context) { SortAny(context, false); }

// ---- rows ----

// Steps over the options; calls visit(name, index of the first value).
template <typename Visit>
void ForEachOption(Args args, Visit&& visit) {
  for (size_t i = 2; i < args.size(); ++i) {
    const std::string_view word = args[i];
    if (base::EqualsNoCase(word, "LIMIT")) {
      i += 2;
    } else if (base::EqualsNoCase(word, "BY") || base::EqualsNoCase(word, "GET") ||
               base::EqualsNoCase(word, "STORE")) {
      if (++i < args.size()) visit(word, i);
    }
  }
}

bool SortKeys(Args args, std::vector<int>* indexes) {
  if (args.size() < 2) return false;
  indexes->push_back(1);
  int store = 0;
  ForEachOption(args, [&store](std::string_view word, size_t i) {
    if (base::EqualsNoCase(word, "STORE")) store = static_cast<int>(i);
  });
  if (store != 0) indexes->push_back(store);
  return true;
}

bool SortRoKeys(Args args, std::vector<int>* indexes) {
  if (args.size() < 2) return false;
  indexes->push_back(1);
  return true;
}

LockClass SortLock(Args args) {
  LockClass lock = LockClass::kKeys;
  ForEachOption(args, [&lock, args](std::string_view word, size_t i) {
    if (base::EqualsNoCase(word, "STORE")) return;
    if (NamesKeys(args[i])) lock = LockClass::kAll;
  });
  return lock;
}

constexpr std::string_view kSortCost =
    "O(N+M*log(M)) where N is the number of elements and M that of the elements returned";
constexpr std::string_view kPatternNote =
    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the "
    "content of the key we sort";
constexpr std::string_view kStoreNote =
    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear "
    "anywhere in the argument array";

const CommandSpec kSortRows[] = {
    {.name = "sort",
     .handler = Sort,
     .arity = -2,
     .flags = kWrite | kDenyOom | kMovableKeys,
     .acl = kAclSet | kAclSortedSet | kAclList | kAclDangerous,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess),
              {.flags = kKeyRo | kKeyAccess, .notes = kPatternNote},
              {.flags = kKeyOw | kKeyUpdate, .notes = kStoreNote}},
     .find_keys = SortKeys,
     .choose_lock = SortLock,
     .summary = "Sorts the elements of a list, set or sorted set, by their values or other keys'.",
     .complexity = kSortCost,
     .arguments = "key [BY pattern] [LIMIT offset:integer count:integer] [GET pattern [GET pattern "
                  "...]] [ASC|DESC] [ALPHA] [STORE destination:key]",
     .reply = "array of elements; with STORE an integer, how many were stored",
     .example = "SORT tasks LIMIT 0 10 ALPHA DESC"},
    {.name = "sort_ro",
     .handler = SortRo,
     .arity = -2,
     .flags = kReadonly | kMovableKeys,
     .acl = kAclSet | kAclSortedSet | kAclList | kAclDangerous,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess), {.flags = kKeyRo | kKeyAccess, .notes = kPatternNote}},
     .find_keys = SortRoKeys,
     .choose_lock = SortLock,
     .since = "7.0.0",
     .summary = "Sorts as SORT does, without STORE.",
     .complexity = kSortCost,
     .arguments = "key [BY pattern] [LIMIT offset:integer count:integer] [GET pattern [GET pattern "
                  "...]] [ASC|DESC] [ALPHA]",
     .reply = "array of elements",
     .example = "SORT_RO tasks ALPHA"},
};

}  // namespace

std::span<const CommandSpec> SortCommands() { return kSortRows; }

}  // namespace sava::commands
