// The LIST family, first part: pushing, popping and reading (docs/types/lists.md).
#include "commands/redis/lists.h"

#include <algorithm>
#include <memory>
#include <span>

#include "base/text.h"
#include "commands/context.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::List;
using types::PackedItem;

// ---- pushing ----

// The bytes of the values from argument 2 on; false when one of them is too large, which is
// replied.
bool MeasureValues(Context& context, size_t* bytes) {
  for (const std::string_view value : context.args().subspan(2)) {
    if (value.size() > List::kMaxElement) {
      context.Error(errors::kElementTooLarge);
      return false;
    }
    *bytes += value.size();
  }
  return true;
}

void PushAll(Context& context, ListEnd end, bool create) {
  const std::string_view key = context.arg(1);
  List* list = nullptr;
  size_t bytes = 0;
  if (!FindObject(context, key, Access::kWrite, &list) || !MeasureValues(context, &bytes)) return;
  std::unique_ptr<List> fresh;
  if (list == nullptr) {
    if (!create) return context.reply().Int(0);
    fresh = std::make_unique<List>();
    list = fresh.get();
  }
  const Args values = context.args().subspan(2);
  list->WillGrow(context.collection_limits(), bytes, values.size());
  for (const std::string_view value : values) list->Push(end, value);
  context.reply().Int(static_cast<int64_t>(list->size()));
  if (fresh != nullptr) {
    context.SetObject(key, std::move(fresh));
  } else {
    context.Touched(key);
  }
  context.Changed(static_cast<int64_t>(values.size()));
  context.Notify(kNotifyList, PushEvent(end), key);
}

void Lpush(Context& context) { PushAll(context, ListEnd::kHead, true); }
void Rpush(Context& context) { PushAll(context, ListEnd::kTail, true); }
void Lpushx(Context& context) { PushAll(context, ListEnd::kHead, false); }
void Rpushx(Context& context) { PushAll(context, ListEnd::kTail, false); }

// ---- elements as replies ----

void CopyShort(char* to, const char* from, size_t n) {
  if (n >= 8) {
    memcpy(to, from, 8);
    memcpy(to + n - 8, from + n - 8, 8);
  } else if (n >= 4) {
    memcpy(to, from, 4);
    memcpy(to + n - 4, from + n - 4, 4);
  } else {
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// As ReplyElement, for many: without a call for a short element.
inline void WriteElement(protocol::Reply& reply, const PackedItem& item) {
  if (item.is_number || item.text.size() > 16) return ReplyElement(reply, item);
  const size_t n = item.text.size();
  char* p = reply.out().Reserve(24);
  char* const begin = p;
  *p++ = '$';
  if (n >= 10) *p++ = '1';
  *p++ = static_cast<char>('0' + n % 10);
  *p++ = '\r';
  *p++ = '\n';
  CopyShort(p, item.text.data(), n);
  p += n;
  *p++ = '\r';
  *p++ = '\n';
  reply.out().Advance(static_cast<size_t>(p - begin));
}

// `count` elements from an end, in the order in which they would be popped.
void WriteFrom(Context& context, const List& list, ListEnd end, size_t count) {
  protocol::Reply& reply = context.reply();
  reply.Array(static_cast<int64_t>(count));
  const auto write = [&reply](const PackedItem& item) {
    WriteElement(reply, item);
    return true;
  };
  if (end == ListEnd::kHead) {
    list.ForWhile(0, count, write);
  } else if (count > 0) {
    list.ForWhileBack(list.size() - 1, count, write);
  }
}

// ---- popping ----

// What follows when `count` elements were taken from an end.
void Popped(Context& context, std::string_view key, List& list, ListEnd end, int64_t count) {
  context.Notify(kNotifyList, PopEvent(end), key);
  if (list.size() == 0) {
    context.Delete(key);
    context.Notify(kNotifyGeneric, "del", key);
  } else {
    list.Shrunk(context.collection_limits().list_max_listpack_size);
    context.Touched(key);
  }
  context.Changed(count);
}

void Pop(Context& context, ListEnd end) {
  if (context.argc() > 3) return context.ArityError();
  const std::string_view key = context.arg(1);
  const bool counted = context.argc() == 3;
  int64_t count = 0;
  if (counted && (!base::ParseInt(context.arg(2), &count) || count < 0)) {
    return context.Error(errors::kMustBePositive);
  }
  List* list = nullptr;
  if (!FindObject(context, key, Access::kWrite, &list)) return;
  if (list == nullptr) {
    return counted ? context.reply().NullArray() : context.reply().Null();
  }
  if (!counted) return PopOne(context, key, *list, end);
  if (count == 0) return context.reply().Array(0);
  const size_t taken = std::min<size_t>(static_cast<size_t>(count), list->size());
  WriteFrom(context, *list, end, taken);
  list->Drop(end, taken);
  Popped(context, key, *list, end, static_cast<int64_t>(taken));
}

void Lpop(Context& context) { Pop(context, ListEnd::kHead); }
void Rpop(Context& context) { Pop(context, ListEnd::kTail); }

// ---- reading ----

void Llen(Context& context) {
  List* list = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &list)) return;
  context.reply().Int(list == nullptr ? 0 : static_cast<int64_t>(list->size()));
}

void Lrange(Context& context) {
  int64_t start = 0;
  int64_t stop = 0;
  if (!context.IntArg(2, &start) || !context.IntArg(3, &stop)) return;
  List* list = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &list)) return;
  protocol::Reply& reply = context.reply();
  if (list == nullptr) return reply.Array(0);
  const auto size = static_cast<int64_t>(list->size());
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop += size;
  stop = std::min(stop, size - 1);
  if (start > stop) return reply.Array(0);
  const auto count = static_cast<size_t>(stop - start + 1);
  reply.Array(static_cast<int64_t>(count));
  list->ForRange(static_cast<size_t>(start), count,
                 [&reply](const PackedItem& item) { WriteElement(reply, item); });
}

void Lindex(Context& context) {
  List* list = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &list)) return;
  if (list == nullptr) return context.reply().Null();
  int64_t index = 0;
  if (!context.IntArg(2, &index)) return;
  const auto size = static_cast<int64_t>(list->size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) return context.reply().Null();
  ReplyElement(context.reply(), list->At(static_cast<size_t>(index)));
}

// ---- rows ----

constexpr KeySpec kPushKey = KeyAt(1, kKeyRw | kKeyInsert);
constexpr KeySpec kPopKey = KeyAt(1, kKeyRw | kKeyAccess | kKeyDelete);
constexpr std::string_view kPushCost = "O(N) where N is the number of elements given";

const CommandSpec kRows[] = {
    {.name = "lpush",
     .handler = Lpush,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclList,
     .keys = {kPushKey},
     .group = "list",
     .summary = "Puts elements before the first one of a list, one after the other.",
     .complexity = kPushCost,
     .arguments = "key element:string [element:string ...]",
     .reply = "integer: the length of the list",
     .example = "LPUSH tasks write"},
    {.name = "rpush",
     .handler = Rpush,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclList,
     .keys = {kPushKey},
     .group = "list",
     .summary = "Puts elements behind the last one of a list.",
     .complexity = kPushCost,
     .arguments = "key element:string [element:string ...]",
     .reply = "integer: the length of the list",
     .example = "RPUSH tasks read write"},
    {.name = "lpushx",
     .handler = Lpushx,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclList,
     .keys = {kPushKey},
     .group = "list",
     .since = "2.2.0",
     .summary = "Puts elements before the first one of a list if there is a list.",
     .complexity = kPushCost,
     .arguments = "key element:string [element:string ...]",
     .reply = "integer: the length of the list, 0 if there is none",
     .example = "LPUSHX tasks write"},
    {.name = "rpushx",
     .handler = Rpushx,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclList,
     .keys = {kPushKey},
     .group = "list",
     .since = "2.2.0",
     .summary = "Puts elements behind the last one of a list if there is a list.",
     .complexity = kPushCost,
     .arguments = "key element:string [element:string ...]",
     .reply = "integer: the length of the list, 0 if there is none",
     .example = "RPUSHX tasks write"},
    {.name = "lpop",
     .handler = Lpop,
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclList,
     .keys = {kPopKey},
     .group = "list",
     .summary = "Takes elements from the beginning of a list.",
     .complexity = "O(N) where N is the number of elements taken",
     .arguments = "key [count:integer]",
     .reply = "the element, or with count an array; null when there is no list",
     .example = "LPOP tasks"},
    {.name = "rpop",
     .handler = Rpop,
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclList,
     .keys = {kPopKey},
     .group = "list",
     .summary = "Takes elements from the end of a list, the last one first.",
     .complexity = "O(N) where N is the number of elements taken",
     .arguments = "key [count:integer]",
     .reply = "the element, or with count an array; null when there is no list",
     .example = "RPOP tasks 2"},
    {.name = "llen",
     .handler = Llen,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "list",
     .summary = "Gets the length of a list.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer, 0 when there is no list",
     .example = "LLEN tasks"},
    {.name = "lrange",
     .handler = Lrange,
     .arity = 4,
     .flags = kReadonly,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "list",
     .summary = "Gets the elements from one position to another; negative ones count from the end.",
     .complexity =
         "O(B+S+N) where B is the number of blocks to the nearer end, S the elements of a "
         "block and N the elements returned",
     .arguments = "key start:integer stop:integer",
     .reply = "array of elements",
     .example = "LRANGE tasks 0 -1"},
    {.name = "lindex",
     .handler = Lindex,
     .arity = 3,
     .flags = kReadonly,
     .acl = kAclList,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "list",
     .summary = "Gets the element at a position; a negative one counts from the end.",
     .complexity = "O(B+S) where B is the number of blocks to the nearer end and S the elements of "
                   "a block",
     .arguments = "key index:integer",
     .reply = "the element, or null",
     .example = "LINDEX tasks -1"},
};

}  // namespace

void PopOne(Context& context, std::string_view key, List& list, ListEnd end) {
  ReplyElement(context.reply(), list.Peek(end));
  list.Drop(end, 1);
  Popped(context, key, list, end, 1);
}

int64_t PopSome(Context& context, std::string_view key, List& list, ListEnd end, int64_t count) {
  const size_t taken = std::min<size_t>(static_cast<size_t>(count), list.size());
  context.reply().Array(2);
  context.reply().Bulk(key);
  WriteFrom(context, list, end, taken);
  list.Drop(end, taken);
  Popped(context, key, list, end, static_cast<int64_t>(taken));
  return static_cast<int64_t>(taken);
}

std::span<const CommandSpec> ListCommands() { return kRows; }

}  // namespace sava::commands
