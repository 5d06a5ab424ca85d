// StreamCut: what a snapshot in pieces of a stream has still to save.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "types/collections/stream_group.h"
#include "types/collections/stream_id.h"
#include "types/value/object.h"

namespace sava::types {

// Part of what stands behind the blocks: bytes, then the items of a list of pending entries.
struct StreamTailPiece {
  std::string bytes;
  std::vector<PendingList<PendingEntry>::SharedBlock> entries;
  std::vector<PendingList<PendingId>::SharedBlock> ids;
};

class StreamCut {
 public:
  Object::PieceSink sink;
  // Blocks from `next` to `last` have yet to be saved, but for those of `early`.
  bool blocks_left = false;
  StreamId next;
  StreamId last;
  std::set<StreamId> early;
  std::vector<StreamTailPiece> tail;
  size_t tail_piece = 0;
  size_t tail_block = 0;  // of that piece; 0: its bytes
};

}  // namespace sava::types
