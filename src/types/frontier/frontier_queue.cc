// The FIFOs of a Frontier's hosts, and the records in them.
#include <algorithm>
#include <cstring>
#include <new>

#include "base/if_memory.h"
#include "base/varint.h"
#include "types/frontier/frontier_core.h"

namespace sava::types {

namespace {

// Classes of the chunks of a FIFO with that many records: its last one grows from the least to the
// full one. From kSteady on it has that at once: what is unused is little beside the others.
constexpr unsigned kFull = 3;
constexpr unsigned kLargeFull = 5;
constexpr uint32_t kSteady = 32;
constexpr uint32_t kLong = 1024;

unsigned FullClass(uint32_t count) { return count < kLong ? kFull : kLargeFull; }
unsigned LeastClass(uint32_t count) { return count < kSteady ? 0 : FullClass(count); }

constexpr size_t kMaxHead = 3 * base::kMaxVarintBytes;

size_t RoomOfClass(unsigned cls) {
  return FrontierArena::kUnits[cls] * FrontierArena::kUnit - FrontierArena::kLink;
}

// The smallest chunk with that much room, or the largest one.
unsigned Fitting(size_t bytes) {
  unsigned cls = 0;
  while (cls < kLargeFull && RoomOfClass(cls) < bytes) ++cls;
  return cls;
}

}  // namespace

// ---- which FIFO ----

Frontier::Core::Queue Frontier::Core::GetQueue(const Host& host, Place place) const {
  if (place.chunk == Arena::kNone) return host.first;
  Queue queue;
  memcpy(&queue, arena_.Data(place.chunk) + place.index * sizeof queue, sizeof queue);
  return queue;
}

Frontier::Core::Queue& Frontier::Core::EditQueue(Host& host, Place place) {
  static_assert(Arena::kLink % alignof(Queue) == 0);
  if (place.chunk == Arena::kNone) return host.first;
  return reinterpret_cast<Queue*>(arena_.EditData(place.chunk))[place.index];
}

Frontier::Core::Place Frontier::Core::PushQueue(Host& host, const Queue& queue) {
  static_assert(kQueuesPerChunk * sizeof(Queue) + Arena::kLink <= Arena::kUnit);
  if (host.more_count % kQueuesPerChunk == 0) {
    const Ref chunk = arena_.Allocate(0);
    arena_.SetLink(chunk, host.more);
    host.more = chunk;
  }
  const Place place{host.more, host.more_count % kQueuesPerChunk};
  ++host.more_count;
  EditQueue(host, place) = queue;
  return place;
}

// The host's first FIFO is replaced by the lowest of the others, one of those by the last of them.
void Frontier::Core::RemoveQueue(Host& host, Place place) {
  if (host.more_count == 0) {
    host.first = Queue();
    return;
  }
  if (place.chunk == Arena::kNone) {
    Queue lowest;
    bool any = false;
    uint32_t left = host.more_count;
    uint32_t here = (left - 1) % kQueuesPerChunk + 1;
    for (Ref chunk = host.more; left != 0; chunk = arena_.Link(chunk)) {
      for (uint32_t i = 0; i < here; ++i) {
        const Queue queue = GetQueue(host, {chunk, i});
        if (any && !Before(queue, lowest)) continue;
        any = true;
        lowest = queue;
        place = {chunk, i};
      }
      left -= here;
      here = kQueuesPerChunk;
    }
    host.first = lowest;
  }
  const Place last{host.more, (host.more_count - 1) % kQueuesPerChunk};
  if (last.chunk != place.chunk || last.index != place.index) {
    EditQueue(host, place) = GetQueue(host, last);
  }
  --host.more_count;
  if (host.more_count % kQueuesPerChunk == 0) {
    const Ref empty = host.more;
    host.more = host.more_count == 0 ? Arena::kNone : arena_.Link(empty);
    arena_.Free(empty);
  }
}

template <typename Visit>
void Frontier::Core::ForEachQueue(const Host& host, const Visit& visit) const {
  if (host.queued == 0) return;
  visit(Place{}, host.first);
  uint32_t left = host.more_count;
  uint32_t here = left == 0 ? 0 : (left - 1) % kQueuesPerChunk + 1;
  for (Ref chunk = host.more; left != 0; chunk = arena_.Link(chunk)) {
    for (uint32_t i = 0; i < here; ++i) visit(Place{chunk, i}, GetQueue(host, {chunk, i}));
    left -= here;
    here = kQueuesPerChunk;
  }
}

Frontier::Core::Place Frontier::Core::FindQueue(uint32_t number, Host& host, uint16_t depth,
                                                int16_t priority) {
  Queue wanted;
  wanted.depth = depth;
  wanted.priority = priority;
  if (host.queued == 0) {
    host.first = wanted;
    return {};
  }
  const auto same = [&](const Queue& queue) {
    return queue.depth == depth && queue.priority == priority;
  };
  if (same(host.first)) return {};
  uint32_t left = host.more_count;
  uint32_t here = left == 0 ? 0 : (left - 1) % kQueuesPerChunk + 1;
  for (Ref chunk = host.more; left != 0; chunk = arena_.Link(chunk)) {
    Note(Part::kListCell, number, false, arena_.Look(chunk), Arena::kUnit);
    for (uint32_t i = 0; i < here; ++i) {
      if (same(GetQueue(host, {chunk, i}))) return {chunk, i};
    }
    left -= here;
    here = kQueuesPerChunk;
  }
  if (!Before(wanted, host.first)) return PushQueue(host, wanted);
  PushQueue(host, host.first);
  host.first = wanted;
  return {};
}

Frontier::Core::Place Frontier::Core::NextQueue(const Host& host, bool by_priority) const {
  if (!by_priority || host.more_count == 0) return {};
  Place best;
  Queue highest = host.first;
  ForEachQueue(host, [&](Place place, const Queue& queue) {
    if (queue.priority < highest.priority) return;
    if (queue.priority == highest.priority && queue.depth >= highest.depth) return;
    highest = queue;
    best = place;
  });
  return best;
}

int Frontier::Core::TopPriority(const Host& host) const {
  int top = host.first.priority;
  ForEachQueue(
      host, [&](Place /*place*/, const Queue& queue) { top = std::max<int>(top, queue.priority); });
  return top;
}

std::vector<Frontier::Core::Queue> Frontier::Core::SortedQueues(const Host& host) const {
  std::vector<Queue> queues;
  ForEachQueue(host, [&](Place /*place*/, const Queue& queue) { queues.push_back(queue); });
  std::sort(queues.begin(), queues.end(), Before);
  return queues;
}

// ---- records ----

size_t Frontier::Core::PutHead(const Record& record, char* head) {
  auto* const out = reinterpret_cast<uint8_t*>(head);
  const bool more = record.failures != 0 || !record.meta.empty();
  size_t size = base::PutVarint(out, record.rest.size() * 2 + (more ? 1 : 0));
  if (more) {
    size += base::PutVarint(out + size, record.failures);
    size += base::PutVarint(out + size, record.meta.size());
  }
  return size;
}

Frontier::Core::Record Frontier::Core::Read(Ref chunk, size_t at, std::string* scratch) const {
  const auto number = [&] {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at == Arena::Room(chunk)) {
        chunk = arena_.Link(chunk);
        at = 0;
      }
      const auto byte = static_cast<uint8_t>(arena_.Data(chunk)[at++]);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  };
  Record record;
  const uint64_t first = number();
  size_t meta = 0;
  if ((first & 1) != 0) {
    record.failures = static_cast<uint32_t>(number());
    meta = number();
  }
  size_t left = meta + first / 2;
  std::string_view body;
  if (left <= Arena::Room(chunk) - at) {
    body = {arena_.Data(chunk) + at, left};
    at += left;
  } else {
    scratch->clear();
    while (left != 0) {
      if (at == Arena::Room(chunk)) {
        chunk = arena_.Link(chunk);
        at = 0;
      }
      const size_t here = std::min(left, Arena::Room(chunk) - at);
      scratch->append(arena_.Data(chunk) + at, here);
      at += here;
      left -= here;
    }
    body = *scratch;
  }
  record.meta = body.substr(0, meta);
  record.rest = body.substr(meta);
  record.end = chunk;
  record.end_at = at;
  return record;
}

// ---- first in, first out ----

void Frontier::Core::MakeRoom(Queue* queue, size_t bytes) {
  if (queue->head == Arena::kNone) {
    queue->head = queue->tail = arena_.Allocate(Fitting(bytes));
    arena_.SetLink(queue->head, Arena::kNone);
    queue->head_at = queue->tail_at = 0;
    return;
  }
  const bool only = queue->head == queue->tail;
  const size_t from = only ? queue->head_at : 0;
  const size_t live = queue->tail_at - from;
  const size_t room = Arena::Room(queue->tail);
  if (room - queue->tail_at >= bytes) return;
  if (from != 0 && room - live >= bytes) {
    char* const data = arena_.EditData(queue->tail);
    memmove(data, data + from, live);
  } else {
    const unsigned most = FullClass(queue->count);
    unsigned cls = Arena::ClassOf(queue->tail);
    if (cls >= most) return;
    cls = std::max(cls + 1, LeastClass(queue->count));
    while (cls < most && RoomOfClass(cls) < live + bytes) ++cls;
    const Ref wider = arena_.Allocate(cls);
    const Ref before = arena_.Link(queue->tail);
    arena_.SetLink(wider, before);
    memcpy(arena_.EditData(wider), arena_.Data(queue->tail) + from, live);
    if (only) {
      queue->head = wider;
    } else {
      arena_.SetLink(before, wider);
    }
    arena_.Free(queue->tail);
    queue->tail = wider;
  }
  queue->tail_at = static_cast<uint16_t>(live);
  if (only) queue->head_at = 0;
}

void Frontier::Core::Write(Queue* queue, std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t room = Arena::Room(queue->tail) - queue->tail_at;
    if (room == 0) {
      const Ref chunk = arena_.Allocate(std::max(LeastClass(queue->count), Fitting(bytes.size())));
      arena_.SetLink(chunk, queue->tail);
      arena_.SetLink(queue->tail, chunk);
      queue->tail = chunk;
      queue->tail_at = 0;
      continue;
    }
    const size_t here = std::min(room, bytes.size());
    memcpy(arena_.EditData(queue->tail) + queue->tail_at, bytes.data(), here);
    queue->tail_at = static_cast<uint16_t>(queue->tail_at + here);
    bytes.remove_prefix(here);
  }
}

void Frontier::Core::Push(uint32_t number, uint16_t depth, int16_t priority, const Record& record) {
  Host& host = hosts_.Edit(number);
  Note(Part::kHost, number, true, &host, sizeof host);
  ReserveWaiting();
  const Place place = FindQueue(number, host, depth, priority);
  Queue& queue = EditQueue(host, place);
  char head[kMaxHead];
  const size_t head_size = PutHead(record, head);
  const size_t size = head_size + record.meta.size() + record.rest.size();
  if (!base::IfMemory([&] { MakeRoom(&queue, size); })) {
    DropEmptyQueue(host, place);
    throw std::bad_alloc();
  }
  Note(Part::kListCell, number, true, arena_.Look(queue.tail), Arena::kLink);
  Note(Part::kUrl, number, true, arena_.Data(queue.tail) + queue.tail_at, size);
  const Queue before = queue;
  const Ref link = arena_.Link(queue.tail);
  const bool written = base::IfMemory([&] {
    Write(&queue, {head, head_size});
    Write(&queue, record.meta);
    Write(&queue, record.rest);
  });
  if (!written) {
    Cut(&queue, before, link);
    DropEmptyQueue(host, place);
    throw std::bad_alloc();
  }
  ++queue.count;
  ++queued_;
  if (host.queued++ == 0) {
    ++busy_hosts_;
    Refresh(number, true);
  } else {
    Rank(number);
  }
}

// Takes back what was written to a FIFO since it was `before`, with that link of its last chunk.
void Frontier::Core::Cut(Queue* queue, const Queue& before, Ref link) {
  for (Ref chunk = queue->tail; chunk != before.tail;) {
    Ref last = before.tail;  // the chunk before this one
    while (arena_.Link(last) != chunk) last = arena_.Link(last);
    arena_.Free(chunk);
    chunk = last;
  }
  *queue = before;
  arena_.SetLink(queue->tail, link);
}

// A FIFO that was made for a record for which there was no memory.
void Frontier::Core::DropEmptyQueue(Host& host, Place place) {
  const Queue queue = GetQueue(host, place);
  if (queue.count != 0) return;
  if (queue.head != Arena::kNone) arena_.Free(queue.head);
  RemoveQueue(host, place);
}

void Frontier::Core::Pop(uint32_t number, Host& host, Place place, Queue queue,
                         const Record& record) {
  while (queue.head != record.end) {
    const Ref next = arena_.Link(queue.head);
    Note(Part::kListCell, number, true, arena_.Look(queue.head), Arena::kLink);
    arena_.Free(queue.head);
    queue.head = next;
  }
  queue.head_at = static_cast<uint16_t>(record.end_at);
  --host.queued;
  --queued_;
  if (--queue.count != 0) {
    EditQueue(host, place) = queue;
  } else {
    arena_.Free(queue.head);
    RemoveQueue(host, place);
  }
  if (host.queued == 0) --busy_hosts_;
  if (queued_ == 0) cursor_ = 0;
}

void Frontier::Core::FreeQueue(const Queue& queue) {
  for (Ref chunk = queue.head;;) {
    const bool last = chunk == queue.tail;
    const Ref next = arena_.Link(chunk);
    arena_.Free(chunk);
    if (last) return;
    chunk = next;
  }
}

// ---- records of items ----

Frontier::Core::Ref Frontier::Core::StoreText(const Record& record) {
  Queue text;
  char head[kMaxHead];
  const size_t head_size = PutHead(record, head);
  MakeRoom(&text, head_size + record.meta.size() + record.rest.size());
  const Queue empty = text;
  const bool written = base::IfMemory([&] {
    Write(&text, {head, head_size});
    Write(&text, record.meta);
    Write(&text, record.rest);
  });
  if (!written) {
    Cut(&text, empty, Arena::kNone);
    arena_.Free(text.head);
    throw std::bad_alloc();
  }
  arena_.SetLink(text.tail, Arena::kNone);
  return text.head;
}

void Frontier::Core::FreeText(Ref text) {
  while (text != Arena::kNone) {
    const Ref next = arena_.Link(text);
    arena_.Free(text);
    text = next;
  }
}

}  // namespace sava::types
