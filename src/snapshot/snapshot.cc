#include "snapshot/snapshot.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/if_memory.h"
#include "base/prefetch.h"
#include "types/value/type_registry.h"

namespace sava::snapshot {

using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::Table;

namespace {

constexpr size_t kStepEntries = 128;
constexpr size_t kStepBytes = 64 * 1024;
constexpr size_t kChunkBytes = 8 * 1024;
constexpr size_t kPieceBytes = 64 * 1024;
// Images are fetched from all stripes when there are this many of them.
constexpr int64_t kDrainAt = 2 << 20;
constexpr uint32_t kAgeMask = (1U << 24) - 1;

}  // namespace

// Entries as they were: a header, the entry's block, and an object's bytes, one after another. A
// block that refers to a blob holds a reference to it.
class Snapshot::Images {
 public:
  struct Header {
    uint32_t size = 0;   // header included, a multiple of eight
    uint32_t block = 0;  // bytes of the entry
    uint64_t value = 0;  // bytes of the object
    int32_t db = 0;
    uint8_t rdb_type = 0;
  };
  static_assert(sizeof(Header) == 24);

  ~Images() { ReleaseBlobs(); }

  // The reference to a blob is the image's own.
  void Add(int db, const Entry* entry, std::string_view value, uint8_t rdb_type) {
    Header header;
    header.block = static_cast<uint32_t>(entry->BlockSize());
    header.value = value.size();
    header.db = db;
    header.rdb_type = rdb_type;
    header.size = static_cast<uint32_t>((sizeof header + header.block + value.size() + 7) & ~7ULL);
    char* p = Reserve(header.size);
    memcpy(p, &header, sizeof header);
    memcpy(p + sizeof header, static_cast<const void*>(entry), header.block);
    if (!value.empty()) memcpy(p + sizeof header + header.block, value.data(), value.size());
    bytes_ += header.size;
    if (entry->kind() == keyspace::Kind::kString && entry->has(keyspace::kExternal)) {
      bytes_ += entry->blob()->memory();
    }
    ++count_;
  }

  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Chunk& chunk : chunks_) {
      for (size_t at = 0; at < chunk.used;) {
        Header header;
        memcpy(&header, chunk.data.get() + at, sizeof header);
        const char* block = chunk.data.get() + at + sizeof header;
        visit(header, reinterpret_cast<const Entry*>(block),
              std::string_view(block + header.block, header.value));
        at += header.size;
      }
    }
  }
  // Forgets everything and keeps a chunk for the next use.
  void Clear() {
    ReleaseBlobs();
    if (chunks_.size() > 1) chunks_.resize(1);
    if (!chunks_.empty()) chunks_[0].used = 0;
    bytes_ = count_ = 0;
  }

  bool empty() const { return count_ == 0; }
  size_t bytes() const { return bytes_; }
  size_t count() const { return count_; }

 private:
  struct Chunk {
    std::unique_ptr<char[]> data;
    size_t capacity;
    size_t used;
  };

  void ReleaseBlobs() {
    ForEach([](const Header&, const Entry* entry, std::string_view) {
      if (entry->kind() == keyspace::Kind::kString && entry->has(keyspace::kExternal)) {
        entry->blob()->Unref();
      }
    });
  }
  char* Reserve(size_t size) {
    if (chunks_.empty() || chunks_.back().capacity - chunks_.back().used < size) {
      const size_t capacity = std::max(size, kChunkBytes);
      chunks_.push_back({std::make_unique_for_overwrite<char[]>(capacity), capacity, 0});
    }
    Chunk& chunk = chunks_.back();
    char* p = chunk.data.get() + chunk.used;
    chunk.used += size;
    return p;
  }

  std::vector<Chunk> chunks_;
  size_t bytes_ = 0;
  size_t count_ = 0;
};

struct Snapshot::Large {
  types::Object* object = nullptr;
  std::unique_ptr<types::Object> owned;  // it has left its key
  std::atomic<size_t> stripe{0};
  int db = 0;
  std::string key;
  CutKey about;  // its key is `key`
  uint8_t rdb_type = 0;
  // Pieces that have come and wait, in blocks that never move: a writer holds its stripe's lock.
  std::vector<std::string> pieces;

  void Append(std::string_view bytes) {
    if (pieces.empty() || pieces.back().capacity() - pieces.back().size() < bytes.size()) {
      pieces.emplace_back().reserve(std::max(bytes.size(), kPieceBytes));
    }
    pieces.back().append(bytes);
  }
};

// The walker's time inside: the gate and a stripe, or nothing when it is alone anyway.
class Snapshot::Step {
 public:
  Step(Snapshot& snapshot, size_t stripe, bool exclusive)
      : keyspace_(*snapshot.keyspace_),
        lane_(snapshot.lane_),
        stripe_(stripe),
        exclusive_(exclusive) {
    if (exclusive_) return;
    keyspace_.gate().Enter(lane_);
    keyspace_.stripe(stripe_).lock.Lock();
  }
  ~Step() {
    if (exclusive_) return;
    keyspace_.stripe(stripe_).lock.Unlock();
    keyspace_.gate().Leave(lane_);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  Keyspace& keyspace_;
  const size_t lane_;
  const size_t stripe_;
  const bool exclusive_;
};

Snapshot::Snapshot(Keyspace* keyspace, size_t lane) : keyspace_(keyspace), lane_(lane) {
  for (auto& images : images_) images = std::make_unique<Images>();
}

Snapshot::~Snapshot() = default;

// ---- the cut ----

void Snapshot::Begin(const Options& options) {
  options_ = options;
  aborted_.store(false, std::memory_order_relaxed);
  out_of_memory_.store(false, std::memory_order_relaxed);
  image_bytes_.store(0, std::memory_order_relaxed);
  peak_bytes_.store(0, std::memory_order_relaxed);
  congested_since_.store(0, std::memory_order_relaxed);
  keys_done_.store(0, std::memory_order_relaxed);
  parts_.clear();
  next_part_ = 0;
  selected_db_ = -1;
  const auto databases = static_cast<size_t>(keyspace_->databases());
  selected_.assign(databases, false);
  counts_.assign(databases, {});
  uint64_t total = 0;
  for (int db = 0; db < keyspace_->databases(); ++db) {
    Counts& counts = counts_[static_cast<size_t>(db)];
    for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
      Table* table = keyspace_->table(db, stripe);
      if (table == nullptr) continue;
      table->set_cut_db(db);
      counts.keys += table->size();
      counts.expiring += table->expiring();
      parts_.push_back({table, stripe});
    }
    total += counts.keys;
  }
  keys_total_.store(total, std::memory_order_relaxed);
  types::AllTypes().PinAux();
  refers_ = !options.self_contained && types::AllTypes().has_aux();
  keyspace_->FlipVersion();
  active_.store(true, std::memory_order_release);
}

// The flushed tables, to be freed outside the gate.
Snapshot::Tables Snapshot::Finish() {
  active_.store(false, std::memory_order_release);
  types::AllTypes().UnpinAux();
  parts_.clear();
  return std::exchange(detached_, {});
}

void Snapshot::Charge(int64_t bytes) {
  const int64_t now = image_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > peak_bytes_.load(std::memory_order_relaxed)) {
    peak_bytes_.store(now, std::memory_order_relaxed);
  }
  if (now <= kImageLimit && congested_since_.load(std::memory_order_relaxed) != 0) {
    congested_since_.store(0, std::memory_order_relaxed);
  }
}

bool Snapshot::StillPatient(int64_t now_ms) {
  if (aborted()) return false;
  int64_t since = 0;
  if (congested_since_.compare_exchange_strong(since, now_ms, std::memory_order_relaxed)) {
    return true;
  }
  if (now_ms - since < kPatienceMs) return true;
  Abort();
  return false;
}

// ---- by writers ----

void Snapshot::PreserveNow(Table& table, Entry* entry) {
  const size_t stripe = Keyspace::StripeOf(keyspace_->Hash(entry->key()));
  Images& images = *images_[stripe];
  const auto before = static_cast<int64_t>(images.bytes());
  try {
    Take(stripe, table.cut_db(), entry, &images);
  } catch (const std::bad_alloc&) {
    OutOfMemory();  // the entry counts as saved and is not
    throw;
  }
  const auto bytes = static_cast<int64_t>(images.bytes()) - before;
  if (bytes > 0) Charge(bytes);
}

void Snapshot::Take(size_t stripe, int db, Entry* entry, Images* images) {
  entry->set_flag(keyspace::kVersion, keyspace_->version());
  if (aborted()) return;
  if (entry->kind() == keyspace::Kind::kString) {
    images->Add(db, entry, {}, types::kRdbString);
    if (entry->has(keyspace::kExternal)) entry->blob()->Ref();
    return;
  }
  types::Object* object = entry->object();
  if (object->large()) {
    BeginLarge(stripe, db, entry);
    return;
  }
  std::string bytes;
  {
    types::Writer writer(&bytes);
    writer.set_refers(refers_);
    object->Save(writer);
  }
  images->Add(db, entry, bytes, object->rdb_type());
}

CutKey Snapshot::KeyOf(const Entry* entry) const {
  CutKey key{entry->key(), entry->expire_at(), -1, -1};
  if (options_.ages == Options::Ages::kIdle) {
    key.idle_seconds = (options_.lru_clock - entry->age()) & kAgeMask;
  } else if (options_.ages == Options::Ages::kFrequency) {
    key.frequency = static_cast<int>(entry->age() & 255);
  }
  return key;
}

void Snapshot::BeginLarge(size_t stripe, int db, const Entry* entry) {
  auto large = std::make_shared<Large>();
  large->object = entry->object();
  large->stripe = stripe;
  large->db = db;
  large->key = entry->key();
  large->about = KeyOf(entry);
  large->about.key = large->key;
  large->rdb_type = large->object->rdb_type();
  {
    std::lock_guard lock(large_mutex_);
    large_.emplace(large->object, large);
  }
  large->object->BeginCut(
      [this, large](std::string_view bytes) {
        try {
          large->Append(bytes);
        } catch (const std::bad_alloc&) {
          return OutOfMemory();  // the writer goes on, without this snapshot
        }
        Charge(static_cast<int64_t>(bytes.size()));
      },
      refers_);
}

bool Snapshot::TakeObject(types::Object* object) {
  std::lock_guard lock(large_mutex_);
  const auto found = large_.find(object);
  if (found == large_.end()) return false;
  found->second->owned.reset(object);
  return true;
}

void Snapshot::MoveObject(types::Object* object, size_t stripe) {
  std::lock_guard lock(large_mutex_);
  const auto found = large_.find(object);
  if (found != large_.end()) found->second->stripe = stripe;
}

Snapshot::Tables Snapshot::TakeTables(Tables tables) {
  bool large;
  {
    std::lock_guard lock(large_mutex_);
    large = !large_.empty();
  }
  Tables free;
  for (auto& table : tables) {
    const bool needed =
        large || std::any_of(parts_.begin() + static_cast<ptrdiff_t>(next_part_), parts_.end(),
                             [&](const Part& part) { return part.table == table.get(); });
    (needed ? detached_ : free).push_back(std::move(table));
  }
  return free;
}

// ---- by the walker ----

void Snapshot::Select(CutWriter& out, int db) {
  if (db == selected_db_) return;
  selected_db_ = db;
  const auto index = static_cast<size_t>(db);
  if (selected_[index]) {
    out.SwitchDb(index);
  } else {
    out.SelectDb(index, counts_[index].keys, counts_[index].expiring);
    selected_[index] = true;
  }
}

// As Redis does for its tests. A snapshot that is given up does not go on sleeping.
void Snapshot::Delay() {
  using std::chrono::microseconds;
  microseconds left(options_.key_delay_us);
  if (left.count() < 0) {
    const auto every = static_cast<uint64_t>(-options_.key_delay_us);
    left = microseconds(keys_done() % every == 0 ? 1 : 0);
  }
  while (left.count() > 0 && !aborted()) {
    const microseconds part = std::min(left, microseconds(10000));
    std::this_thread::sleep_for(part);
    left -= part;
  }
}

void Snapshot::WriteImages(CutWriter& out, Images& images) {
  uint64_t keys = 0;
  images.ForEach([&](const Images::Header& header, const Entry* entry, std::string_view value) {
    ++keys;
    if (!aborted()) {
      Select(out, header.db);
      const CutKey key = KeyOf(entry);
      if (header.rdb_type != types::kRdbString || entry->kind() == keyspace::Kind::kObject) {
        out.OpenValue(key, header.rdb_type).Raw(value);
        out.CloseValue();
      } else if (entry->form() == keyspace::Form::kInt) {
        out.Number(key, entry->integer());
      } else if (entry->has(keyspace::kExternal)) {
        out.String(key, entry->blob()->view());
      } else {
        out.String(key, entry->inline_bytes());
      }
    }
    if (options_.key_delay_us == 0) return;
    keys_done_.fetch_add(std::exchange(keys, 0), std::memory_order_relaxed);
    Delay();
  });
  keys_done_.fetch_add(keys, std::memory_order_relaxed);
  images.Clear();
}

// Whether a part of the walk came to its end. Without memory the cut is given up, and the same part
// is walked again, which then takes none.
template <typename Work>
bool Snapshot::Done(const Work& work) {
  if (base::IfMemory(work)) return true;
  OutOfMemory();
  return false;
}

// One table, step by step. An entry that changes between two steps was handed over by its writer;
// one that is met again carries the version already.
void Snapshot::WalkTable(CutWriter& out, Table& table, size_t stripe, bool exclusive) {
  Images step;
  std::vector<Entry*> entries;
  uint64_t order = 0;
  bool more = true;
  while (more) {
    const bool done = Done([&] {
      {
        const Step inside(*this, stripe, exclusive);
        more = TakeStep(table, stripe, &order, &entries, &step);
      }
      WriteImages(out, step);
      if (image_bytes() > kDrainAt) DrainImages(out, exclusive);
      DrainLarge(out, exclusive);
    });
    more = more || !done;
    step.Clear();
  }
}

// True when the table has more. Under the stripe's lock.
bool Snapshot::TakeStep(Table& table, size_t stripe, uint64_t* order, std::vector<Entry*>* entries,
                        Images* step) {
  entries->clear();
  if (aborted()) {
    *order = table.Scan(*order, kStepEntries, [this](Entry* entry) {
      entry->set_flag(keyspace::kVersion, keyspace_->version());
    });
    return *order != 0;
  }
  const uint64_t next = table.Scan(*order, kStepEntries, [entries](Entry* entry) {
    base::Prefetch(entry);
    entries->push_back(entry);
  });
  for (Entry* entry : *entries) {
    if (entry->has(keyspace::kVersion) == keyspace_->version()) continue;
    if (step->bytes() > kStepBytes) return true;  // the rest of these comes with the next step
    Take(stripe, table.cut_db(), entry, step);
  }
  *order = next;
  return next != 0;
}

void Snapshot::DrainImages(CutWriter& out, bool exclusive) {
  auto taken = aborted() ? nullptr : std::make_unique<Images>();
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    int64_t bytes = 0;
    {
      const Step inside(*this, stripe, exclusive);
      bytes = static_cast<int64_t>(images_[stripe]->bytes());
      if (bytes == 0) continue;
      if (taken == nullptr) {
        images_[stripe]->Clear();
      } else {
        images_[stripe].swap(taken);
      }
    }
    Charge(-bytes);
    if (taken != nullptr) WriteImages(out, *taken);
  }
}

void Snapshot::DrainLarge(CutWriter& out, bool exclusive) {
  while (true) {
    std::shared_ptr<Large> large;
    {
      std::lock_guard lock(large_mutex_);
      if (large_.empty()) return;
      large = large_.begin()->second;
    }
    WriteLarge(out, *large, exclusive);
    keys_done_.fetch_add(1, std::memory_order_relaxed);
    if (options_.key_delay_us != 0) Delay();
  }
}

void Snapshot::WriteLarge(CutWriter& out, Large& large, bool exclusive) {
  types::Writer* value = nullptr;
  for (bool done = false; !done;) {
    std::vector<std::string> pieces;
    std::unique_ptr<types::Object> orphan;
    const size_t stripe = large.stripe;
    {
      const Step inside(*this, stripe, exclusive);
      if (large.stripe != stripe) continue;  // it was renamed meanwhile
      if (aborted()) {
        large.object->AbortCut();
        done = true;
      } else {
        done = large.object->SavePieces(kStepBytes);
      }
      pieces.swap(large.pieces);
      if (done) {
        std::lock_guard lock(large_mutex_);
        orphan = std::move(large.owned);
        large_.erase(large.object);
      }
    }
    for (const std::string& piece : pieces) Charge(-static_cast<int64_t>(piece.size()));
    if (aborted()) continue;
    if (value == nullptr) {
      Select(out, large.db);
      value = &out.OpenValue(large.about, large.rdb_type);
    }
    for (const std::string& piece : pieces) value->Raw(piece);
    if (done) out.CloseValue();
  }
}

bool Snapshot::Walk(CutWriter& out, bool exclusive) {
  while (true) {
    Part part;
    {
      // Tables change hands only while the gate is closed.
      if (!exclusive) keyspace_->gate().Enter(lane_);
      const bool end = next_part_ == parts_.size();
      if (!end) part = parts_[next_part_];
      if (!exclusive) keyspace_->gate().Leave(lane_);
      if (end) break;
    }
    WalkTable(out, *part.table, part.stripe, exclusive);
    if (!exclusive) keyspace_->gate().Enter(lane_);
    ++next_part_;
    if (!exclusive) keyspace_->gate().Leave(lane_);
  }
  // Every entry is marked by now: no more images come.
  const auto drain = [&] {
    DrainImages(out, exclusive);
    DrainLarge(out, exclusive);
  };
  while (!Done(drain)) {
  }
  if (!exclusive) keyspace_->gate().Enter(lane_);
  const Tables flushed = Finish();
  if (!exclusive) keyspace_->gate().Leave(lane_);
  return !aborted();
}

}  // namespace sava::snapshot
