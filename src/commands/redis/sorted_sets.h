// What the commands on sorted sets share: sorted_sets*.cc and geo*.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/context.h"
#include "commands/find_object.h"
#include "types/collections/sorted_set.h"

namespace sava::commands {

// A score as a RESP3 double, or as a bulk string in RESP2.
void ReplyScore(protocol::Reply& reply, double score);
// The header of a list of `count` members: in RESP2 flat with their scores, in RESP3 of pairs.
void ReplyMembersHead(protocol::Reply& reply, size_t count, bool with_scores);
// One of them.
void ReplyMember(protocol::Reply& reply, std::string_view member, double score, bool with_scores);

// A double as Redis reads it (no spaces around it, not NaN).
bool ParseScore(std::string_view text, double* out);
// The same of argument i; replies the error and returns false when it is none.
bool ScoreArg(Context& context, size_t i, double* out, std::string_view error = errors::kNotFloat);

// A score with the member it belongs to.
struct ScoredMember {
  std::string_view member;
  double score = 0;
};
// Makes `key` a sorted set of these members, as the STORE commands do: an expiry is dropped, with
// no members the key goes. Does the bookkeeping, and replies how many there are.
void StoreSortedSet(Context& context, std::string_view key,
                    const std::vector<ScoredMember>& members, std::string_view event);
// What every removal from the set at `key` ends with; `removed` may be 0.
void FinishRemoval(Context& context, std::string_view key, const types::SortedSet& set,
                   size_t removed, std::string_view event);

struct ZaddOptions {
  types::SortedSet::AddOptions add;
  bool reply_changed = false;  // CH
};
// ZADD's work from the options on: pairs of score and member in the order of `members`.
void AddToSortedSet(Context& context, std::string_view key, const ZaddOptions& options,
                    const std::vector<ScoredMember>& members);

}  // namespace sava::commands
