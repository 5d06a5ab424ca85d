// Snapshot: the data set as it was at one instant (the cut), written while it changes.
//
// Begin flips the version under a closed gate: every earlier entry is now unsaved, every entry
// made later is not part of it. Walk goes over the tables in small steps, copies unsaved entries
// under their stripe's lock, marks them, and encodes them outside. A writer about to change an
// unsaved entry hands it over first (Preserve): a copy of its block, a reference to its blob, the
// object's bytes when it is small, or the beginning of a save in pieces when it is large.
//
// Invariants: without an active cut all entries carry the current version. A cut that is aborted is
// walked to its end without output. Images waiting for the walker are counted; over the limit
// writers are to wait before they lock (congested), and when that lasts the cut is given up.
//
// Thread safety: Begin and TakeTables with the gate closed; Walk on one thread, the owner of
// `lane`; Preserve and the others that say so under the lock of the entry's stripe (or a closed
// gate); the rest from any thread. Locks: stripe, then large_mutex_.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "keyspace/keyspace.h"
#include "snapshot/cut_writer.h"

namespace sava::snapshot {

class Snapshot {
 public:
  // Bytes of images that may wait for the walker.
  static constexpr int64_t kImageLimit = 40 << 20;
  // How long writers wait for a walker that does not get on.
  static constexpr int64_t kPatienceMs = 10000;

  struct Options {
    bool abort_on_flush = true;  // FLUSHALL makes it pointless
    // What is saved of a key's age, as Redis does with the policies that use it.
    enum class Ages : uint8_t { kNone, kIdle, kFrequency } ages = Ages::kNone;
    uint32_t lru_clock = 0;
    int64_t key_delay_us = 0;     // rdb-key-save-delay
    bool self_contained = false;  // values do not refer to what their type shares
  };

  // `lane`: the gate's lane of the thread that walks.
  Snapshot(keyspace::Keyspace* keyspace, size_t lane);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // ---- by the keeper ----
  // REQUIRES: the gate is closed, no cut is active.
  void Begin(const Options& options);
  // Whether values refer to what their type shares, which the file then has to hold.
  bool refers() const { return refers_; }
  // Writes every key of the cut: databases and keys, not the file's beginning and end. True when
  // all was written, false when it was aborted, or there was no memory for it. With `exclusive` the
  // caller holds the gate closed.
  bool Walk(CutWriter& out, bool exclusive);
  // Makes Walk end soon, without further output.
  void Abort() { aborted_.store(true, std::memory_order_relaxed); }
  // Whether that is why it was aborted.
  bool out_of_memory() const { return out_of_memory_.load(std::memory_order_relaxed); }
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }

  bool active() const { return active_.load(std::memory_order_relaxed); }
  // Too many images wait: writers are to wait before locking.
  bool congested(int64_t now_ms) {
    return image_bytes_.load(std::memory_order_relaxed) > kImageLimit && StillPatient(now_ms);
  }
  uint64_t keys_total() const { return keys_total_.load(std::memory_order_relaxed); }
  uint64_t keys_done() const { return keys_done_.load(std::memory_order_relaxed); }
  // Bytes of images now (blobs they keep alive included), and the most there were in this cut or
  // the last (what Redis calls copy-on-write).
  int64_t image_bytes() const { return image_bytes_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }

  // ---- by writers, only while active() ----
  // The entry is about to change, or to go: hands it over unless that was done.
  void Preserve(keyspace::Table& table, keyspace::Entry* entry) {
    if (entry->has(keyspace::kVersion) != keyspace_->version()) PreserveNow(table, entry);
  }
  // An object leaves its key for good: true when the snapshot still needs it and takes it over.
  // After Preserve.
  bool TakeObject(types::Object* object);
  // An object goes to a key of another stripe. After Preserve. REQUIRES: both stripes' locks.
  void MoveObject(types::Object* object, size_t stripe);
  // The tables of a database that is flushed: returns those that are not needed any more, the
  // others live until the walk ends. REQUIRES: the gate is closed.
  using Tables = std::vector<std::unique_ptr<keyspace::Table>>;
  Tables TakeTables(Tables tables);
  // Everything is flushed. REQUIRES: the gate is closed.
  void Flushed() {
    if (options_.abort_on_flush) Abort();
  }

 private:
  class Images;
  // A large value that is being saved in pieces. Guarded by the lock of its stripe.
  struct Large;

  void OutOfMemory() {
    out_of_memory_.store(true, std::memory_order_relaxed);
    Abort();
  }
  bool StillPatient(int64_t now_ms);
  void PreserveNow(keyspace::Table& table, keyspace::Entry* entry);
  // Marks the entry as saved and puts what must be written into `images`, or among the large.
  void Take(size_t stripe, int db, keyspace::Entry* entry, Images* images);
  void BeginLarge(size_t stripe, int db, const keyspace::Entry* entry);
  CutKey KeyOf(const keyspace::Entry* entry) const;
  void Charge(int64_t bytes);

  class Step;  // of the walker: inside the gate, with a stripe's lock
  template <typename Work>
  bool Done(const Work& work);
  void WalkTable(CutWriter& out, keyspace::Table& table, size_t stripe, bool exclusive);
  bool TakeStep(keyspace::Table& table, size_t stripe, uint64_t* order,
                std::vector<keyspace::Entry*>* entries, Images* step);
  void DrainImages(CutWriter& out, bool exclusive);
  void DrainLarge(CutWriter& out, bool exclusive);
  void WriteLarge(CutWriter& out, Large& large, bool exclusive);
  void WriteImages(CutWriter& out, Images& images);
  void Select(CutWriter& out, int db);
  void Delay();
  Tables Finish();

  keyspace::Keyspace* const keyspace_;
  const size_t lane_;
  Options options_;
  bool refers_ = false;
  std::atomic<bool> active_{false};
  std::atomic<bool> aborted_{false};
  std::atomic<bool> out_of_memory_{false};
  std::atomic<int64_t> image_bytes_{0};
  std::atomic<int64_t> peak_bytes_{0};
  std::atomic<int64_t> congested_since_{0};  // ms, 0: it is not
  std::atomic<uint64_t> keys_total_{0};
  std::atomic<uint64_t> keys_done_{0};

  // What the cut consists of, in the order in which it is walked; changed with the gate closed.
  struct Part {
    keyspace::Table* table;
    size_t stripe;
  };
  std::vector<Part> parts_;
  size_t next_part_ = 0;  // the walker's; read with the gate closed
  Tables detached_;
  struct Counts {
    uint64_t keys = 0;
    uint64_t expiring = 0;
  };
  std::vector<Counts> counts_;  // by database
  std::vector<bool> selected_;  // databases the file has had already
  int selected_db_ = -1;

  std::array<std::unique_ptr<Images>, keyspace::Keyspace::kStripes> images_;
  std::mutex large_mutex_;
  std::unordered_map<types::Object*, std::shared_ptr<Large>> large_;  // guarded by large_mutex_
};

}  // namespace sava::snapshot
