// The LIST family, second part: changes and searches inside a list (docs/types/lists.md).
#include <algorithm>
#include <span>

#include "base/text.h"
#include "commands/context.h"
#include "commands/redis/families.h"
#include "commands/redis/lists.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::List;
using types::PackedItem;

int64_t ListLimit(const Context& context) {
  return context.collection_limits().list_max_listpack_size;
}

// What follows a change: the key goes when the list is empty.
void ListEdited(Context& context, std::string_view key, const List& list, std::string_view event) {
  context.Notify(kNotifyList, event, key);
  if (list.size() > 0) return context.Touched(key);
  context.Delete(key);
  context.Notify(kNotifyGeneric, "del", key);
}

// An integer whose negative is one too.
bool SymmetricArg(Context& context, size_t i, int64_t* out) {
  if (!context.IntArg(i, out)) return false;
  if (*out != INT64_MIN) return true;
  context.Error(errors::kNoAbsolute);
  return false;
}

void Lset(Context& context) {
  const std::string_view key = context.arg(1);
  List* list = nullptr;
  if (!FindObject(context, key, Access::kWrite, &list)) return;
  if (list == nullptr) return context.Error(errors::kNoSuchKey);
  int64_t index = 0;
  if (!context.IntArg(2, &index)) return;
  const std::string_view value = context.arg(3);
  list->WillGrow(context.collection_limits(), value.size(), 1);
  const auto size = static_cast<int64_t>(list->size());
  if (index < 0) index += size;
  if (index < 0 || index >= size || value.size() > List::kMaxElement) {
    return context.Error("ERR index out of range");
  }
  list->Set(static_cast<size_t>(index), value);
  list->Shrunk(ListLimit(context));
  context.reply().Ok();
  context.Touched(key);
  context.Notify(kNotifyList, "lset", key);
  context.Changed();
}

void Linsert(Context& context) {
  const bool after = context.ArgIs(2, "AFTER");
  if (!after && !context.ArgIs(2, "BEFORE")) return context.Error(errors::kSyntax);
  const std::string_view key = context.arg(1);
  const std::string_view value = context.arg(4);
  List* list = nullptr;
  if (!FindObject(context, key, Access::kWrite, &list)) return;
  if (list == nullptr) return context.reply().Int(0);
  if (value.size() > List::kMaxElement) return context.Error(errors::kElementTooLarge);
  list->WillGrow(context.collection_limits(), value.size(), 1);
  const size_t pivot = list->Find(context.arg(3));
  if (pivot == list->size()) return context.reply().Int(-1);
  list->Insert(pivot + (after ? 1 : 0), value);
  context.Touched(key);
  context.Notify(kNotifyList, "linsert", key);
  context.Changed();
  context.reply().Int(static_cast<int64_t>(list->size()));
}

void Lrem(Context& context) {
  int64_t count = 0;
  if (!SymmetricArg(context, 2, &count)) return;
  const std::string_view key = context.arg(1);
  List* list = nullptr;
  if (!FindObject(context, key, Access::kWrite, &list)) return;
  if (list == nullptr) return context.reply().Int(0);
  const ListEnd from = count < 0 ? ListEnd::kTail : ListEnd::kHead;
  const size_t most = count == 0 ? SIZE_MAX : static_cast<size_t>(count < 0 ? -count : count);
  const size_t removed = list->Remove(context.arg(3), from, most);
  if (removed > 0) {
    list->Shrunk(ListLimit(context));
    ListEdited(context, key, *list, "lrem");
    context.Changed(static_cast<int64_t>(removed));
  }
  context.reply().Int(static_cast<int64_t>(removed));
}

void Ltrim(Context& context) {
  int64_t start = 0;
  int64_t stop = 0;
  if (!context.IntArg(2, &start) || !context.IntArg(3, &stop)) return;
  const std::string_view key = context.arg(1);
  List* list = nullptr;
  if (!FindObject(context, key, Access::kWrite, &list)) return;
  if (list != nullptr) {
    const auto size = static_cast<int64_t>(list->size());
    if (start < 0) start = std::max<int64_t>(start + size, 0);
    if (stop < 0) stop += size;
    stop = std::min(stop, size - 1);
    const bool some = start <= stop;
    list->Trim(some ? static_cast<size_t>(start) : 0,
               some ? static_cast<size_t>(stop - start + 1) : 0);
    list->Shrunk(ListLimit(context));
    const auto left = static_cast<int64_t>(list->size());
    // An event even if nothing went, as in Redis.
    ListEdited(context, key, *list, "ltrim");
    if (left < size) context.Changed(size - left);
  }
  context.reply().Ok();
}

// ---- LPOS ----

struct PositionOptions {
  int64_t rank = 1;
  int64_t count = -1;  // -1: not given
  int64_t most_compared = 0;
};

bool ParsePositionOptions(Context& context, PositionOptions* options) {
  for (size_t i = 3; i < context.argc(); i += 2) {
    const bool more = i + 1 < context.argc();
    if (more && context.ArgIs(i, "RANK")) {
      if (!SymmetricArg(context, i + 1, &options->rank)) return false;
      if (options->rank == 0) {
        context.Error(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or "
            "use negative to start from the end of the list");
        return false;
      }
    } else if (more && (context.ArgIs(i, "COUNT") || context.ArgIs(i, "MAXLEN"))) {
      const bool count = context.ArgIs(i, "COUNT");
      int64_t* const out = count ? &options->count : &options->most_compared;
      if (!base::ParseInt(context.arg(i + 1), out) || *out < 0) {
        context.Error(count ? "ERR COUNT can't be negative" : "ERR MAXLEN can't be negative");
        return false;
      }
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

void Lpos(Context& context) {
  PositionOptions options;
  if (!ParsePositionOptions(context, &options)) return;
  List* list = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &list)) return;
  protocol::Reply& reply = context.reply();
  const bool many = options.count >= 0;
  if (list == nullptr) return many ? reply.Array(0) : reply.Null();

  const bool backwards = options.rank < 0;
  int64_t to_skip = (backwards ? -options.rank : options.rank) - 1;
  const int64_t most_found = many ? options.count : 1;
  const size_t size = list->size();
  const size_t compared = options.most_compared == 0
                              ? size
                              : std::min<size_t>(size, static_cast<size_t>(options.most_compared));
  int64_t number = 0;
  bool is_number = false;
  const std::string_view text = context.arg(2);
  is_number = base::ParseInt(text, &number);
  const size_t mark = reply.Mark();
  int64_t found = 0;
  size_t seen = 0;
  const auto visit = [&](const PackedItem& item) {
    const size_t at = seen++;
    const bool equal =
        item.is_number == is_number && (is_number ? item.number == number : item.text == text);
    if (!equal || to_skip-- > 0) return true;
    ++found;
    reply.Int(static_cast<int64_t>(backwards ? size - 1 - at : at));
    return found != most_found;
  };
  if (backwards) {
    list->ForWhileBack(size - 1, compared, visit);
  } else {
    list->ForWhile(0, compared, visit);
  }
  if (many) {
    reply.ArrayAt(mark, found);
  } else if (found == 0) {
    reply.Null();
  }
}

// ---- rows ----

const CommandSpec kEditRows[] = {
    {.name = "lset",
     .handler = Lset,
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "list",
     .summary = "Replaces the element at a position.",
     .complexity = "O(B+S) where B is the number of blocks to the nearer end and S the elements of "
                   "a block",
     .arguments = "key index:integer element:string",
     .reply = "OK",
     .example = "LSET tasks 0 write"},
    {.name = "linsert",
     .handler = Linsert,
     .arity = 5,
     .flags = kWrite | kDenyOom,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRw | kKeyInsert)},
     .group = "list",
     .since = "2.2.0",
     .summary = "Puts an element before or behind the first one that equals another.",
     .complexity = "O(N) where N is the number of elements before that one",
     .arguments = "key (where: BEFORE | AFTER) pivot:string element:string",
     .reply = "integer: the length of the list, 0 when there is none, -1 when nothing equals pivot",
     .example = "LINSERT tasks BEFORE write read"},
    {.name = "lrem",
     .handler = Lrem,
     .arity = 4,
     .flags = kWrite,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "list",
     .summary = "Removes elements that equal a value: all, or some from the beginning or the end.",
     .complexity = "O(N) where N is the length of the list",
     .arguments = "key count:integer element:string",
     .reply = "integer: how many were removed",
     .example = "LREM tasks -2 write"},
    {.name = "ltrim",
     .handler = Ltrim,
     .arity = 4,
     .flags = kWrite,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "list",
     .summary = "Keeps the elements from one position to another and removes the rest.",
     .complexity = "O(B) where B is the number of blocks removed",
     .arguments = "key start:integer stop:integer",
     .reply = "OK",
     .example = "LTRIM tasks 0 99"},
    {.name = "lpos",
     .handler = Lpos,
     .arity = -3,
     .flags = kReadonly,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "list",
     .since = "6.0.6",
     .summary = "Finds the positions of elements that equal a value.",
     .complexity = "O(N) where N is the number of elements compared",
     .arguments =
         "key element:string [RANK rank:integer] [COUNT num-matches:integer] [MAXLEN len:integer]",
     .reply = "integer or null; with COUNT an array of integers",
     .example = "LPOS tasks write COUNT 0"},
};

}  // namespace

std::span<const CommandSpec> ListEditCommands() { return kEditRows; }

}  // namespace sava::commands
