// What the commands on lists share: lists.cc, lists_edit.cc, lists_move.cc and the blocking forms.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/context.h"
#include "commands/find_object.h"
#include "types/collections/list.h"

namespace sava::commands {

using ListEnd = types::List::End;

// An element as a bulk string.
inline void ReplyElement(protocol::Reply& reply, const types::PackedItem& item) {
  if (item.is_number) {
    reply.BulkInt(item.number);
  } else {
    reply.Bulk(item.text);
  }
}

// LEFT or RIGHT at argument i; replies a syntax error and returns false for anything else.
bool ListEndArg(Context& context, size_t i, ListEnd* end);
// The names of the events and of the commands in the log.
inline std::string_view PopEvent(ListEnd end) { return end == ListEnd::kHead ? "lpop" : "rpop"; }
inline std::string_view PushEvent(ListEnd end) { return end == ListEnd::kHead ? "lpush" : "rpush"; }
inline std::string_view PopCommand(ListEnd end) { return end == ListEnd::kHead ? "LPOP" : "RPOP"; }
inline std::string_view EndWord(ListEnd end) { return end == ListEnd::kHead ? "LEFT" : "RIGHT"; }

// Each of the following does the whole bookkeeping of its change (watchers, the counter of changes,
// notifications, the key that goes when the list is empty) except Effect: without one, the command
// is logged as it was sent.

// Takes an element and replies it as a bulk string. REQUIRES: the list stands at `key`, not empty.
void PopOne(Context& context, std::string_view key, types::List& list, ListEnd end);
// Takes up to `count` elements, replies [key, [elements]]; how many. REQUIRES: as before, count >
// 0.
int64_t PopSome(Context& context, std::string_view key, types::List& list, ListEnd end,
                int64_t count);
// LMOVE: takes an element here, puts it there and replies it as a bulk string; replies WRONGTYPE,
// having changed nothing, and returns false when `to` holds something else.
// REQUIRES: the list stands at `from`, not empty; both keys are locked.
bool MoveOne(Context& context, std::string_view from, types::List& list, ListEnd from_end,
             std::string_view to, ListEnd to_end);

// The arguments of LMPOP from `from` on (BLMPOP's have a timeout before them):
// numkeys key [key ...] LEFT|RIGHT [COUNT count].
struct PopManyArgs {
  size_t first_key = 0;
  size_t keys = 0;
  ListEnd end = ListEnd::kHead;
  int64_t count = 1;
};
// Replies the error and returns false when they are wrong.
bool ParsePopMany(Context& context, size_t from, PopManyArgs* args);

}  // namespace sava::commands
