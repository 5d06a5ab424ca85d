// Loader: fills the engine's keyspace from files at start, or again while the gate is closed.
// RDB files are read by one thread and inserted by several, each with stripes of its own; the
// commands of an append-only file are run one batch after another.
//
// Nothing that is loaded is journaled. Keys past their time are left out of an RDB file, while what
// a log says of a key is done whatever its time. The first thing that is wrong ends the loading;
// what was loaded before stays, so the caller flushes or exits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"
#include "engine/engine.h"
#include "snapshot/rdb_aux.h"
#include "storage/aof_reader.h"

namespace sava::persistence {

// How far a load is; written by the loader, read by anybody (INFO, the progress line).
struct LoadProgress {
  std::atomic<uint64_t> total_bytes{0};
  std::atomic<uint64_t> loaded_bytes{0};
  std::atomic<uint64_t> keys_loaded{0};
  std::atomic<uint64_t> keys_expired{0};
};

struct LoadOptions {
  bool exclusive = false;  // the caller holds the gate closed: nothing is locked
  bool verify_checksum = true;
  // Keys of an RDB file that are past their time are kept: commands that follow may want them. The
  // base of an append-only log is loaded so; an RDB file at the beginning of a log always is.
  bool keep_expired = false;
  bool replace = false;        // a key that is there already is replaced, else it is an error
  bool new_libraries = false;  // a function library that is there already is an error
  int64_t key_delay_us = 0;    // for tests: key-load-delay
  size_t threads = 0;          // that insert; 0: as many as cores
  // A copy that outlives the load, where the engine's own may change meanwhile; nullptr: those.
  const config::Settings* settings = nullptr;
  LoadProgress* progress = nullptr;
  snapshot::RdbAuxes aux;  // they take what files have besides keys
  // What is odd but no reason to stop.
  std::function<void(const std::string& text)> warn;
};

class Loader {
 public:
  // REQUIRES: the calling thread owns engine->house_lane().
  Loader(engine::Engine* engine, const LoadOptions& options);

  // A whole RDB file. The error has path and offset.
  base::Status LoadRdb(const std::string& path);
  // One file of an append-only log; one that begins as an RDB file is loaded as that, then its
  // commands. Returns how it ends, and how far it is whole: all of that was loaded. kRefused: an
  // RDB file that is damaged, or a command that is not known; the text names the file. `path` is
  // for what is said of it.
  storage::AofEnd LoadAof(const std::string& path, const base::MappedFile& file);

 private:
  // *size is where the RDB file ends.
  base::Status LoadRdbBytes(const std::string& path, const base::MappedFile& file,
                            bool keep_expired, uint64_t* size);

  engine::Engine& engine_;
  const LoadOptions options_;
};

}  // namespace sava::persistence
