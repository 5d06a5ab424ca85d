// Saving and loading of Frontier: docs/formats/frontier.md describes the bytes.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/varint.h"
#include "types/filters/filter_pieces.h"
#include "types/frontier/frontier_core.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kRdbTypes[] = {kRdbModule};
constexpr uint64_t kVersion = 1;
constexpr size_t kLargeBytes = 64 << 10;

// Kinds of pieces.
constexpr uint64_t kHostPiece = 0;
constexpr uint64_t kItemPiece = 1;
constexpr uint64_t kArenaPiece = 2;
constexpr uint64_t kSetPiece = 3;
constexpr uint64_t kBloomPiece = 4;

// A host takes at least this many bytes, a block of the arena this many, even if all of it is the
// same byte; bytes that are compressed grow by at most this factor.
constexpr uint64_t kLeastHost = 7;
constexpr uint64_t kLeastArenaBlock = 160;
constexpr uint64_t kMostGrowth = 88;

std::string StartPiece(uint64_t kind) {
  std::string piece;
  base::AppendVarint(&piece, kind);
  return piece;
}

std::string WrittenPiece(uint64_t kind, std::string_view content) {
  std::string bytes;
  {
    Writer out(&bytes);
    WritePiece(out, StartPiece(kind).append(content));
  }
  return bytes;
}

// Reads what FieldReader does not: strings with their size.
bool TakeString(std::string_view* rest, size_t most, std::string_view* value) {
  FieldReader in(*rest);
  const uint64_t size = in.Number(most);
  if (!in.ok() || in.Rest().size() < size) return false;
  *value = in.Rest().substr(0, size);
  *rest = in.Rest().substr(size);
  return true;
}

}  // namespace

struct Frontier::Core::Loader {
  uint64_t hosts = 0;
  uint64_t arena_blocks = 0;
  uint64_t seen = 0;
  std::vector<std::string> host_blocks;
  std::vector<bool> arena_seen;
  std::vector<bool> used;  // units of the arena
  std::string bloom;
  std::vector<uint64_t> ids;
};

const TypeInfo& Frontier::Type() {
  static const TypeInfo kInfo{"frontier", kRdbTypes, 1, &Frontier::Load, ModuleId("savafront", 1)};
  return kInfo;
}

uint8_t Frontier::rdb_type() const { return kRdbModule; }

bool Frontier::large() const { return core_->bytes() > kLargeBytes; }

std::unique_ptr<Object> Frontier::Load(uint8_t /*rdb_type*/, Reader& in) {
  std::unique_ptr<Core> core = Core::Load(in);
  if (core == nullptr || !in.ok()) return nullptr;
  return std::unique_ptr<Frontier>(new Frontier(std::move(core)));
}

// ---- saving ----

std::string Frontier::Core::Head() const {
  std::string out;
  for (const uint64_t number : {kVersion,
                                static_cast<uint64_t>(options_.strategy),
                                static_cast<uint64_t>(options_.dedup),
                                uint64_t{options_.norm},
                                static_cast<uint64_t>(options_.delay_ms),
                                options_.max_per_host,
                                static_cast<uint64_t>(options_.lease_ms),
                                uint64_t{options_.retries},
                                static_cast<uint64_t>(now_),
                                next_id_,
                                uint64_t{cursor_},
                                uint64_t{hosts_.size()},
                                uint64_t{arena_.blocks()},
                                options_.dedup == Dedup::kSeen ? set_->size() : uint64_t{0},
                                counts_.added,
                                counts_.duplicates,
                                counts_.over_limit,
                                counts_.served,
                                counts_.acked,
                                counts_.failed,
                                counts_.expired}) {
    base::AppendVarint(&out, number);
  }
  AppendDouble(&out, options_.bloom_error);
  return out;
}

namespace {

template <typename Queue>
void AppendQueue(const Queue& queue, std::string* out) {
  base::AppendVarint(out, queue.depth);
  base::AppendSignedVarint(out, queue.priority);
  for (const uint32_t number :
       {queue.count, queue.head, uint32_t{queue.head_at}, queue.tail, uint32_t{queue.tail_at}}) {
    base::AppendVarint(out, number);
  }
}

}  // namespace

void Frontier::Core::SaveHosts(size_t block, size_t end, std::string* out) const {
  base::AppendVarint(out, block);
  constexpr size_t kPerBlock = decltype(hosts_)::kPerBlock;
  for (size_t i = block * kPerBlock; i < std::min(end, (block + 1) * kPerBlock); ++i) {
    const Host& host = hosts_[i];
    const std::string_view name = names_.Get(host.name);
    base::AppendVarint(out, name.size());
    out->append(name);
    base::AppendVarint(out, static_cast<uint64_t>(int64_t{host.delay} + 1));
    base::AppendVarint(out, host.limit == kDefaultLimit ? 0 : uint64_t{host.limit} + 1);
    base::AppendVarint(out, static_cast<uint64_t>(host.next_at));
    base::AppendVarint(out, static_cast<uint64_t>(host.blocked_until));
    base::AppendVarint(out, host.queued);
    if (host.queued == 0) continue;
    AppendQueue(host.first, out);
    base::AppendVarint(out, host.more_count);
    if (host.more_count != 0) base::AppendVarint(out, host.more);
  }
}

void Frontier::Core::SaveItems(size_t block, size_t end, std::string* out) const {
  constexpr size_t kPerBlock = decltype(items_)::kPerBlock;
  for (size_t i = block * kPerBlock; i < std::min(end, (block + 1) * kPerBlock); ++i) {
    const Item& item = items_[i];
    if (item.state == ItemState::kFree) continue;
    for (const uint64_t number :
         {static_cast<uint64_t>(item.state), static_cast<uint64_t>(item.time), item.id,
          uint64_t{item.host}, uint64_t{item.depth}, base::ZigZag(item.priority),
          uint64_t{item.text}}) {
      base::AppendVarint(out, number);
    }
  }
}

void Frontier::Core::SaveArena(size_t block, std::string* out) const {
  base::AppendVarint(out, block);
  std::string_view bytes(arena_.block(block), Arena::kBlock);
  const size_t last = bytes.find_last_not_of('\0');
  out->append(bytes.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

void Frontier::Core::Save(Writer& out) const {
  out.Length(Type().module_id);
  out.ModuleString(Head());
  for (size_t block = 0; block < hosts_.blocks(); ++block) {
    std::string piece = StartPiece(kHostPiece);
    SaveHosts(block, hosts_.size(), &piece);
    out.ModuleString(piece);
  }
  for (size_t block = 0; block < items_.blocks(); ++block) {
    std::string piece = StartPiece(kItemPiece);
    SaveItems(block, items_.size(), &piece);
    out.ModuleString(piece);
  }
  for (size_t block = 0; block < arena_.blocks(); ++block) {
    std::string piece = StartPiece(kArenaPiece);
    SaveArena(block, &piece);
    out.ModuleString(piece);
  }
  if (options_.dedup == Dedup::kSeen) {
    set_->SaveAll([&](std::string_view pages) { out.Raw(WrittenPiece(kSetPiece, pages)); });
  }
  if (bloom_ != nullptr) {
    Writer inner([&](std::string_view bytes) { out.Raw(WrittenPiece(kBloomPiece, bytes)); });
    bloom_->Save(inner);
  }
  WriteLastPiece(out);
}

// ---- in pieces, while it changes ----

void Frontier::Core::BeginCut(const PieceSink& sink) {
  AbortCut();
  cut_ = std::make_unique<PieceSink>(sink);
  std::string head;
  {
    Writer out(&head);
    out.Length(Type().module_id);
    out.ModuleString(Head());
  }
  hosts_.cut().Begin(
      sink, head, hosts_.blocks(),
      [this, end = hosts_.size()](size_t block, Writer& out) {
        std::string piece = StartPiece(kHostPiece);
        SaveHosts(block, end, &piece);
        out.ModuleString(piece);
      },
      false);
  items_.cut().Begin(
      sink, {}, items_.blocks(),
      [this, end = items_.size()](size_t block, Writer& out) {
        std::string piece = StartPiece(kItemPiece);
        SaveItems(block, end, &piece);
        out.ModuleString(piece);
      },
      false);
  arena_.cut().Begin(
      sink, {}, arena_.blocks(),
      [this](size_t block, Writer& out) {
        std::string piece = StartPiece(kArenaPiece);
        SaveArena(block, &piece);
        out.ModuleString(piece);
      },
      false);
  if (options_.dedup == Dedup::kSeen) {
    set_->BeginCut([this](std::string_view pages) { (*cut_)(WrittenPiece(kSetPiece, pages)); });
  }
  if (bloom_ != nullptr) {
    bloom_->BeginCut([this](std::string_view bytes) { (*cut_)(WrittenPiece(kBloomPiece, bytes)); },
                     false);
  }
}

bool Frontier::Core::SavePieces(size_t budget) {
  if (cut_ == nullptr) return true;
  if (!hosts_.cut().SaveSome(budget) || !items_.cut().SaveSome(budget) ||
      !arena_.cut().SaveSome(budget)) {
    return false;
  }
  if (set_ != nullptr && !set_->SavePieces(budget)) return false;
  if (bloom_ != nullptr && !bloom_->SavePieces(budget)) return false;
  std::string end;
  {
    Writer out(&end);
    WriteLastPiece(out);
  }
  const PieceSink sink = std::move(*cut_);
  cut_.reset();
  sink(end);
  return true;
}

void Frontier::Core::AbortCut() {
  hosts_.cut().Abort();
  items_.cut().Abort();
  arena_.cut().Abort();
  if (set_ != nullptr) set_->AbortCut();
  if (bloom_ != nullptr) bloom_->AbortCut();
  cut_.reset();
}

// ---- loading ----

bool Frontier::Core::LoadHead(std::string_view head, Loader* loader) {
  FieldReader in(head);
  constexpr uint64_t kMost = uint64_t{1} << 62;
  if (in.Number() != kVersion) return false;
  options_.strategy = static_cast<Strategy>(in.Number(3));
  options_.dedup = static_cast<Dedup>(in.Number(2));
  options_.norm = static_cast<uint8_t>(in.Number(UINT8_MAX));
  options_.delay_ms = static_cast<int64_t>(in.Number(kMaxDelay));
  options_.max_per_host = in.Number(kMaxPerHost);
  options_.lease_ms = static_cast<int64_t>(in.Number(kMaxDelay));
  options_.retries = static_cast<uint32_t>(in.Number(kMaxRetries));
  now_ = static_cast<int64_t>(in.Number(kMaxTime));
  next_id_ = in.Number(kMost);
  cursor_ = static_cast<uint32_t>(in.Number(kMaxHosts));
  loader->hosts = in.Number(kMaxHosts);
  loader->arena_blocks = in.Number(UINT32_MAX);
  loader->seen = in.Number(kMost);
  for (uint64_t* count : {&counts_.added, &counts_.duplicates, &counts_.over_limit, &counts_.served,
                          &counts_.acked, &counts_.failed, &counts_.expired}) {
    *count = in.Number(kMost);
  }
  options_.bloom_error = in.Double();
  if (!in.ok() || !in.AtEnd() || next_id_ == 0 || cursor_ > loader->hosts) return false;
  return options_.bloom_error > 0 && options_.bloom_error < 1;
}

bool Frontier::Core::LoadArena(std::string_view piece, Loader* loader) {
  FieldReader in(piece);
  const uint64_t block = in.Number();
  if (!in.ok() || block >= loader->arena_blocks || loader->arena_seen[block]) return false;
  if (in.Rest().size() > Arena::kBlock) return false;
  loader->arena_seen[block] = true;
  if (!in.Rest().empty()) memcpy(arena_.raw(block), in.Rest().data(), in.Rest().size());
  return true;
}

bool Frontier::Core::LoadItems(std::string_view piece, Loader* /*loader*/) {
  FieldReader in(piece);
  while (in.ok() && !in.AtEnd()) {
    Item item;
    item.state = static_cast<ItemState>(in.Number(3));
    item.time = static_cast<int64_t>(in.Number(kMaxTime));
    item.id = in.Number(next_id_ - 1);
    item.host = static_cast<uint32_t>(in.Number(kMaxHosts));
    item.depth = static_cast<uint16_t>(in.Number(UINT16_MAX));
    const int64_t priority = base::UnZigZag(in.Number(UINT16_MAX));
    item.priority = static_cast<int16_t>(priority);
    item.text = static_cast<Ref>(in.Number(UINT32_MAX));
    if (!in.ok() || item.state == ItemState::kFree || item.id == 0) return false;
    if (items_.size() >= UINT32_MAX - 1) return false;
    items_.Append() = item;
  }
  return in.ok();
}

bool Frontier::Core::LoadPiece(std::string_view piece, Loader* loader) {
  FieldReader in(piece);
  const uint64_t kind = in.Number(kBloomPiece);
  if (!in.ok()) return false;
  switch (kind) {
    case kHostPiece: {
      FieldReader fields(in.Rest());
      const uint64_t block = fields.Number();
      if (!fields.ok() || block >= loader->host_blocks.size()) return false;
      if (!loader->host_blocks[block].empty() || fields.Rest().empty()) return false;
      loader->host_blocks[block] = fields.Rest();
      return true;
    }
    case kItemPiece:
      return LoadItems(in.Rest(), loader);
    case kArenaPiece:
      return LoadArena(in.Rest(), loader);
    case kSetPiece:
      return options_.dedup == Dedup::kSeen && set_->Load(in.Rest());
    default:
      loader->bloom.append(in.Rest());
      return options_.dedup == Dedup::kBloom;
  }
}

bool Frontier::Core::AdoptQueue(uint32_t number, const Queue& queue, Loader* loader) {
  std::string bytes;
  Ref before = Arena::kNone;
  if (queue.count == 0) return false;
  for (Ref chunk = queue.head;; chunk = arena_.Link(chunk)) {
    if (!arena_.Valid(chunk) || !arena_.Claim(chunk, &loader->used)) return false;
    const size_t from = chunk == queue.head ? queue.head_at : 0;
    const size_t to = chunk == queue.tail ? queue.tail_at : Arena::Room(chunk);
    if (from > to || to > Arena::Room(chunk)) return false;
    bytes.append(arena_.Data(chunk) + from, to - from);
    if (chunk == queue.tail) break;
    before = chunk;
  }
  arena_.SetLink(queue.tail, before);
  std::string_view rest = bytes;
  for (uint32_t i = 0; i < queue.count; ++i) {
    Record record;
    if (!ParseRecord(&rest, &record)) return false;
    if (options_.dedup == Dedup::kPending && !set_->Insert(HashUrl(number, record.rest))) {
      return false;
    }
  }
  return rest.empty();
}

bool Frontier::Core::ParseRecord(std::string_view* bytes, Record* record) {
  FieldReader in(*bytes);
  const uint64_t first = in.Number(kMaxRest * 2 + 1);
  uint64_t meta = 0;
  if ((first & 1) != 0) {
    record->failures = static_cast<uint32_t>(in.Number(kMaxRetries + 1));
    meta = in.Number(kMaxMeta);
  }
  if (!in.ok() || in.Rest().size() < meta + first / 2) return false;
  record->meta = in.Rest().substr(0, meta);
  record->rest = in.Rest().substr(meta, first / 2);
  *bytes = in.Rest().substr(meta + first / 2);
  return true;
}

// The host's FIFOs: distinct, the first one lowest, as many URLs as it says.
bool Frontier::Core::AdoptHost(uint32_t number, Loader* loader) {
  const Host& host = hosts_[number];
  if (host.queued == 0) return true;
  uint32_t left = host.more_count;
  if (left >= host.queued) return false;
  Ref chunk = host.more;
  for (uint32_t here = left == 0 ? 0 : (left - 1) % kQueuesPerChunk + 1; left != 0;) {
    if (!arena_.Valid(chunk) || Arena::ClassOf(chunk) != 0 || !arena_.Claim(chunk, &loader->used)) {
      return false;
    }
    left -= here;
    here = kQueuesPerChunk;
    chunk = arena_.Link(chunk);
  }
  uint64_t count = 0;
  const std::vector<Queue> queues = SortedQueues(host);
  if (Before(queues[0], host.first)) return false;
  for (size_t i = 0; i < queues.size(); ++i) {
    if (i != 0 && !Before(queues[i - 1], queues[i])) return false;
    if (!AdoptQueue(number, queues[i], loader)) return false;
    count += queues[i].count;
  }
  queued_ += count;
  ++busy_hosts_;
  return count == host.queued;
}

bool Frontier::Core::AdoptItem(uint32_t slot, Loader* loader) {
  const Item& item = items_[slot];
  if (item.host >= hosts_.size()) return false;
  std::string bytes;
  for (Ref chunk = item.text; chunk != Arena::kNone; chunk = arena_.Link(chunk)) {
    if (!arena_.Valid(chunk) || !arena_.Claim(chunk, &loader->used)) return false;
    bytes.append(arena_.Data(chunk), Arena::Room(chunk));
  }
  std::string_view rest = bytes;
  Record record;
  if (!ParseRecord(&rest, &record)) return false;
  loader->ids.push_back(item.id);
  if (item.state == ItemState::kDead) {
    dead_.push_back(slot);
    return true;
  }
  if (options_.dedup == Dedup::kPending && !set_->Insert(HashUrl(item.host, record.rest))) {
    return false;
  }
  Host& host = hosts_.Edit(item.host);
  if (item.state == ItemState::kLeased) {
    leases_.emplace(item.id, slot);
    ++host.leased;
    ++leased_;
  } else {
    ++host.delayed;
    ++delayed_;
  }
  events_.push_back({item.time, item.id, slot});
  return true;
}

bool Frontier::Core::LoadHosts(std::string_view piece, Loader* loader) {
  while (!piece.empty()) {
    std::string_view name;
    if (!TakeString(&piece, kMaxHost, &name) || name.empty()) return false;
    const uint64_t hash = HashHost(name);
    if (FindHost(name, hash) != kNoHost || hosts_.size() >= loader->hosts) return false;
    const uint32_t number = NewHost(name, hash);
    Host& host = hosts_.Edit(number);
    FieldReader in(piece);
    host.delay = static_cast<int32_t>(static_cast<int64_t>(in.Number(kMaxDelay + 1)) - 1);
    const uint64_t limit = in.Number(kMaxPerHost + 1);
    host.limit = limit == 0 ? kDefaultLimit : static_cast<uint32_t>(limit - 1);
    host.next_at = static_cast<int64_t>(in.Number(kMaxTime));
    host.blocked_until = static_cast<int64_t>(in.Number(kMaxTime));
    host.queued = static_cast<uint32_t>(in.Number(kMaxPerHost));
    if (host.queued != 0) {
      Queue& first = host.first;
      first.depth = static_cast<uint16_t>(in.Number(UINT16_MAX));
      first.priority = static_cast<int16_t>(base::UnZigZag(in.Number(UINT16_MAX)));
      first.count = static_cast<uint32_t>(in.Number(UINT32_MAX));
      first.head = static_cast<Ref>(in.Number(UINT32_MAX));
      first.head_at = static_cast<uint16_t>(in.Number(UINT16_MAX));
      first.tail = static_cast<Ref>(in.Number(UINT32_MAX));
      first.tail_at = static_cast<uint16_t>(in.Number(UINT16_MAX));
      host.more_count = static_cast<uint32_t>(in.Number(kMaxPerHost));
      if (host.more_count != 0) host.more = static_cast<Ref>(in.Number(UINT32_MAX));
    }
    if (!in.ok() || !AdoptHost(number, loader)) return false;
    piece = in.Rest();
  }
  return true;
}

bool Frontier::Core::Assemble(Loader* loader) {
  for (const bool seen : loader->arena_seen) {
    if (!seen) return false;
  }
  loader->used.resize(loader->arena_blocks * Arena::kUnitsPerBlock);
  for (const std::string& block : loader->host_blocks) {
    if (!LoadHosts(block, loader)) return false;
  }
  if (hosts_.size() != loader->hosts) return false;
  for (uint32_t slot = 0; slot < items_.size(); ++slot) {
    if (!AdoptItem(slot, loader)) return false;
  }
  std::sort(loader->ids.begin(), loader->ids.end());
  if (std::adjacent_find(loader->ids.begin(), loader->ids.end()) != loader->ids.end()) return false;
  std::sort(dead_.begin(), dead_.end(),
            [this](uint32_t a, uint32_t b) { return items_[a].id < items_[b].id; });
  std::make_heap(events_.begin(), events_.end(), std::greater<>());
  arena_.Adopt(loader->used);
  for (uint32_t i = 0; i < hosts_.size(); ++i) Refresh(i, true);
  if (options_.dedup == Dedup::kSeen && set_->size() != loader->seen) return false;
  if (options_.dedup != Dedup::kBloom) return true;
  Reader in(loader->bloom);
  if (in.Length() != Bloom::Type().module_id) return false;
  std::unique_ptr<Object> object = Bloom::Type().load(kRdbModule, in);
  if (object == nullptr || !in.ok() || in.remaining() != 0) return false;
  bloom_.reset(static_cast<Bloom*>(object.release()));
  return !bloom_->options().deletable && bloom_->options().expansion != 0;
}

std::unique_ptr<Frontier::Core> Frontier::Core::Load(Reader& in) {
  const std::string head = in.ModuleString();
  Core read{Options{}};
  Loader loader;
  if (!in.ok() || !read.LoadHead(head, &loader)) return nullptr;
  if (loader.hosts > in.remaining() * kMostGrowth / kLeastHost ||
      loader.arena_blocks > in.remaining() / kLeastArenaBlock + 1) {
    return nullptr;
  }
  auto core = std::make_unique<Core>(read.options_);
  core->LoadHead(head, &loader);
  constexpr size_t kPerBlock = decltype(hosts_)::kPerBlock;
  loader.host_blocks.resize((loader.hosts + kPerBlock - 1) / kPerBlock);
  loader.arena_seen.resize(loader.arena_blocks);
  core->arena_.Reserve(loader.arena_blocks);
  for (std::string piece = in.ModuleString(); !piece.empty(); piece = in.ModuleString()) {
    if (!core->LoadPiece(piece, &loader)) return nullptr;
  }
  in.ModuleEnd();
  return in.ok() && core->Assemble(&loader) ? std::move(core) : nullptr;
}

}  // namespace sava::types
