// WriteSnapshotFile: writes a snapshot as an RDB file, or as commands, so that a crash or a failure
// leaves the last good file: a temporary file, fsync, rename, fsync of the directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "snapshot/rdb_aux.h"
#include "snapshot/snapshot.h"
#include "storage/command_writer.h"
#include "storage/file_system.h"
#include "storage/rdb_writer.h"

namespace sava::storage {

struct SnapshotFile {
  FileSystem* files = &FileSystem::Real();
  // Where the bytes go instead of to a file; an error gives the snapshot up.
  std::function<base::Status(std::string_view)> sink;
  std::string temporary;
  std::string path;            // its final name; empty: it stays `temporary`
  std::string aside;           // an existing file gets this name; empty: it is replaced
  bool commands = false;       // the snapshot must be self_contained
  RdbWriter::Options options;  // of an RDB file, as `origin`
  RdbWriter::Origin origin;
  snapshot::RdbAuxes aux;  // they go in front of the keys
  bool keys = true;        // else only `aux`; there is no snapshot then
  // For a stock server: keys that it cannot read are left out, and counted here. Without `natives`
  // those are all of native types, and the snapshot must be self_contained.
  bool stock = false;
  bool natives = true;
  uint64_t* left_out = nullptr;
  uint64_t max_rate = 0;  // bytes a second, 0: as fast as it goes
  // Begins the snapshot, once everything is written that need not be of the same instant; it is
  // called in any case. Empty: it has begun.
  std::function<void()> begin;
};

// Returns the file's size. When it fails the temporary file is gone, and the snapshot is over.
// On the walker's thread; with `exclusive` the caller holds
// the gate closed.
base::Result<uint64_t> WriteSnapshotFile(snapshot::Snapshot& snapshot, const SnapshotFile& file,
                                         bool exclusive);

}  // namespace sava::storage
