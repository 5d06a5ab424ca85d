#include "types/counters/packed_counter.h"

#include <algorithm>
#include <new>
#include <string>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sava::types {

namespace {

// Blocks grow by an eighth, in steps of 16 bytes: what a general allocator rounds to anyway.
size_t Roomy(size_t bytes) { return (bytes + bytes / 8 + 15) & ~size_t{15}; }

uint32_t GetId(const uint8_t* p, uint8_t width) {
  uint32_t id = 0;
  memcpy(&id, p, width);
  return id;
}

// Brings the bytes [from, from + size) to `to`, what stood between moves behind them.
void MoveForward(uint8_t* to, uint8_t* from, size_t size) {
  uint8_t moved[512];
  if (size > sizeof(moved)) {
    std::rotate(to, from, from + size);
    return;
  }
  memcpy(moved, from, size);
  memmove(to + size, to, static_cast<size_t>(from - to));
  memcpy(to, moved, size);
}

// Where `id` stands among `bytes` bytes of ids of that width; `bytes` when it does not.
size_t ScanIds(const uint8_t* p, size_t bytes, uint32_t id, uint8_t width) {
  size_t at = 0;
#if defined(__SSE2__)
  // Compares 16 places at once, aligned to an id or not, then keeps those that are.
  __m128i wanted[4];
  for (unsigned i = 0; i < width; ++i) {
    wanted[i] = _mm_set1_epi8(static_cast<char>(id >> (8 * i)));
  }
  const size_t step = 16U / width * width;
  const unsigned aligned = width == 2 ? 0x5555 : width == 3 ? 0x1249 : 0x1111;
  for (; at + 16 + width <= bytes; at += step) {
    __m128i equal =
        _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at)), wanted[0]);
    for (unsigned i = 1; i < width; ++i) {
      equal = _mm_and_si128(
          equal,
          _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at + i)), wanted[i]));
    }
    const unsigned found = static_cast<unsigned>(_mm_movemask_epi8(equal)) & aligned;
    if (found != 0) return at + static_cast<unsigned>(__builtin_ctz(found));
  }
#endif
  for (; at < bytes; at += width) {
    if (GetId(p + at, width) == id) return at;
  }
  return bytes;
}

}  // namespace

uint8_t* PackedCounter::PutId(uint8_t* out, uint32_t id, uint8_t width) {
  memcpy(out, &id, width);
  return out + width;
}

PackedCounter::Place PackedCounter::Find(const KeptMember& member) const {
  if (size_ == 0) return {};
  const uint8_t* p = members();
  const uint8_t* const stop = end();
  uint8_t head[base::kMaxVarintBytes];
  const size_t head_size = base::PutVarint(head, member.header());
  const size_t wanted = head_size + member.bytes.size();
  for (uint32_t position = 0; p != stop; ++position) {
    uint64_t header = 0;
    const uint8_t* body = base::GetVarint(p, stop, &header);
    const uint8_t* next = body + (header == 0 ? kUuidBytes : header - 1);
    if (*p == head[0] && static_cast<size_t>(next - p) == wanted &&
        (member.bytes.empty() || memcmp(body, member.bytes.data(), member.bytes.size()) == 0)) {
      return {position, static_cast<uint32_t>(p - members()), static_cast<uint32_t>(wanted)};
    }
    p = next;
  }
  return {};
}

PackedCounter::Place PackedCounter::FindId(uint32_t id) const {
  if (width_ < 4 && (id >> (8 * width_)) != 0) return {};
  const size_t at = ScanIds(members(), member_bytes_, id, width_);
  if (at == member_bytes_) return {};
  return {static_cast<uint32_t>(at / width_), static_cast<uint32_t>(at), width_};
}

uint32_t PackedCounter::OffsetOf(uint32_t position) const {
  if (width_ != 0) return position * width_;
  const uint8_t* p = members();
  for (; position != 0; --position) {
    uint64_t header = 0;
    p = base::GetVarint(p, end(), &header);
    p += header == 0 ? kUuidBytes : header - 1;
  }
  return static_cast<uint32_t>(p - members());
}

PackedCounter::Place PackedCounter::Last() const {
  if (size_ == 0) return {};
  const auto position = static_cast<uint32_t>(size_ - 1);
  const uint32_t offset = OffsetOf(position);
  return {position, offset, member_bytes_ - offset};
}

size_t PackedCounter::ReadRuns(Run* runs) const {
  const uint8_t* p = data_;
  const uint8_t* const stop = data_ + run_bytes_;
  uint64_t count = 0;
  size_t n = 0;
  while (p != stop) {
    uint64_t value = 0;
    p = base::GetVarint(p, stop, &value);
    count = n == 0 ? value : count - value;
    runs[n].count = count;
    p = base::GetVarint(p, stop, &runs[n].members);
    ++n;
  }
  return n;
}

void PackedCounter::WriteRuns(const Run* runs, size_t count, size_t extra) {
  uint8_t bytes[kMaxMembers * (base::kMaxVarintBytes + 2)];
  uint8_t* p = bytes;
  for (size_t i = 0; i < count; ++i) {
    p += base::PutVarint(p, i == 0 ? runs[0].count : runs[i - 1].count - runs[i].count);
    p += base::PutVarint(p, runs[i].members);
  }
  const auto run_bytes = static_cast<uint32_t>(p - bytes);
  const size_t needed = run_bytes + member_bytes_ + extra;
  if (needed > capacity_) {
    const size_t capacity = Roomy(needed);
    auto* bigger = static_cast<uint8_t*>(realloc(data_, capacity));
    if (bigger == nullptr) throw std::bad_alloc();
    data_ = bigger;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  if (run_bytes != run_bytes_ && member_bytes_ != 0) {
    memmove(data_ + run_bytes, data_ + run_bytes_, member_bytes_);
  }
  run_bytes_ = run_bytes;
  memcpy(data_, bytes, run_bytes);
}

uint64_t PackedCounter::CountAt(uint32_t position) const {
  const uint8_t* p = data_;
  const uint8_t* const stop = data_ + run_bytes_;
  uint64_t count = 0;
  uint64_t passed = 0;
  while (p != stop) {
    uint64_t value = 0;
    uint64_t in_run = 0;
    const bool first = p == data_;
    p = base::GetVarint(p, stop, &value);
    p = base::GetVarint(p, stop, &in_run);
    count = first ? value : count - value;
    passed += in_run;
    if (position < passed) break;
  }
  return count;
}

void PackedCounter::Move(const Place& place, uint64_t count) {
  Run runs[kMaxMembers + 1];
  size_t n = ReadRuns(runs);
  // The first group that does not stand above `count`, and where it begins.
  size_t target = 0;
  uint32_t target_position = 0;
  while (runs[target].count > count) {
    target_position += static_cast<uint32_t>(runs[target].members);
    ++target;
  }
  size_t from = target;
  uint64_t passed = target_position;
  while (passed + runs[from].members <= place.position) passed += runs[from++].members;

  MoveForward(members() + OffsetOf(target_position), members() + place.offset, place.size);
  if (runs[from].count == count) return;

  if (runs[target].count == count) {
    ++runs[target].members;
  } else {
    std::copy_backward(runs + target, runs + n, runs + n + 1);
    runs[target] = {count, 1};
    ++n;
    ++from;
  }
  if (--runs[from].members == 0) {
    std::copy(runs + from + 1, runs + n, runs + from);
    --n;
  }
  WriteRuns(runs, n, 0);
}

void PackedCounter::Erase(const Place& place) {
  Run runs[kMaxMembers + 1];
  size_t n = ReadRuns(runs);
  size_t from = 0;
  uint64_t passed = 0;
  while (passed + runs[from].members <= place.position) passed += runs[from++].members;
  if (--runs[from].members == 0) {
    std::copy(runs + from + 1, runs + n, runs + from);
    --n;
  }
  uint8_t* at = members() + place.offset;
  memmove(at, at + place.size, member_bytes_ - place.offset - place.size);
  member_bytes_ -= place.size;
  --size_;
  WriteRuns(runs, n, 0);
}

void PackedCounter::InsertBytes(const uint8_t* bytes, uint32_t size, uint64_t count, bool at_end) {
  Run runs[kMaxMembers + 1];
  size_t n = ReadRuns(runs);
  size_t target = 0;
  uint32_t position = 0;
  while (target < n && runs[target].count > count) {
    position += static_cast<uint32_t>(runs[target++].members);
  }
  if (target < n && runs[target].count == count) {
    if (at_end) position += static_cast<uint32_t>(runs[target].members);
    ++runs[target].members;
  } else {
    std::copy_backward(runs + target, runs + n, runs + n + 1);
    runs[target] = {count, 1};
    ++n;
  }
  const uint32_t offset = position == size_ ? member_bytes_ : OffsetOf(position);
  WriteRuns(runs, n, size);
  uint8_t* at = members() + offset;
  memmove(at + size, at, member_bytes_ - offset);
  memcpy(at, bytes, size);
  member_bytes_ += size;
  ++size_;
}

void PackedCounter::Insert(const KeptMember& member, uint64_t count, bool at_end) {
  uint8_t small[64];
  const size_t size = member.record_size();
  if (size <= sizeof(small)) {
    member.Write(small);
    return InsertBytes(small, static_cast<uint32_t>(size), count, at_end);
  }
  std::string record(size, '\0');
  auto* bytes = reinterpret_cast<uint8_t*>(record.data());
  member.Write(bytes);
  InsertBytes(bytes, static_cast<uint32_t>(size), count, at_end);
}

void PackedCounter::InsertId(uint32_t id, uint64_t count, bool at_end) {
  uint8_t bytes[4];
  PutId(bytes, id, width_);
  InsertBytes(bytes, width_, count, at_end);
}

PackedCounter PackedCounter::Of(uint8_t width, std::span<const uint32_t> ids,
                                std::span<const uint64_t> counts) {
  PackedCounter list(width);
  Run runs[kMaxMembers];
  size_t n = 0;
  for (const uint64_t count : counts) {
    if (n == 0 || runs[n - 1].count != count) runs[n++] = {count, 0};
    ++runs[n - 1].members;
  }
  list.WriteRuns(runs, n, ids.size() * width);
  uint8_t* at = list.members();
  for (const uint32_t id : ids) at = PutId(at, id, width);
  list.member_bytes_ = static_cast<uint32_t>(ids.size() * width);
  list.size_ = static_cast<uint16_t>(ids.size());
  return list;
}

void PackedCounter::ShrinkToFit() {
  const size_t needed = run_bytes_ + member_bytes_;
  if (Roomy(needed) >= capacity_) return;
  if (needed == 0) {
    free(data_);
    data_ = nullptr;
    capacity_ = 0;
    return;
  }
  auto* smaller = static_cast<uint8_t*>(realloc(data_, Roomy(needed)));
  if (smaller == nullptr) return;
  data_ = smaller;
  capacity_ = static_cast<uint32_t>(Roomy(needed));
}

PackedCounter PackedCounter::Clone() const {
  PackedCounter copy(width_);
  copy.run_bytes_ = run_bytes_;
  copy.member_bytes_ = member_bytes_;
  copy.size_ = size_;
  const size_t needed = run_bytes_ + member_bytes_;
  if (needed == 0) return copy;
  copy.data_ = static_cast<uint8_t*>(malloc(Roomy(needed)));
  if (copy.data_ == nullptr) throw std::bad_alloc();
  copy.capacity_ = static_cast<uint32_t>(Roomy(needed));
  memcpy(copy.data_, data_, needed);
  return copy;
}

PackedCounter::Cursor::Cursor(const PackedCounter& list)
    : list_(&list), run_(list.data_), member_(list.members()), left_(list.size_) {
  if (left_ != 0) NextRun();
}

void PackedCounter::Cursor::NextRun() {
  const bool first = run_ == list_->data_;
  const uint8_t* const stop = list_->members();
  uint64_t value = 0;
  run_ = base::GetVarint(run_, stop, &value);
  run_ = base::GetVarint(run_, stop, &in_run_);
  count_ = first ? value : count_ - value;
}

KeptMember PackedCounter::Cursor::member() const {
  KeptMember member;
  ReadRecord(member_, list_->end(), &member);
  return member;
}

uint32_t PackedCounter::Cursor::id() const { return GetId(member_, list_->width_); }

void PackedCounter::Cursor::Next() {
  if (list_->width_ != 0) {
    member_ += list_->width_;
  } else {
    KeptMember member;
    member_ = ReadRecord(member_, list_->end(), &member);
  }
  if (--left_ != 0 && --in_run_ == 0) NextRun();
}

}  // namespace sava::types
