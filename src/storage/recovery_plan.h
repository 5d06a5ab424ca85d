// RecoveryPlan: how a start uses the files of a data directory: which of them it loads and in
// which order, which bytes the log gets back from its ring, where it is cut off, and what is
// refused. All of that is decided here and nowhere else. A server carries the plan out, `sava
// check` prints it and, with --repair, carries out what a server would not.
//
// A plan is made in two steps. PlanStart and PlanLog look at names, sizes and beginnings. Where a
// log ends is known only once it was read, so ReadParts has every part read by a PartReader (which
// loads it, or prints what is in it) and decides at its end whether the log goes on. Neither writes
// anything. RestoreLog and RepairLog write; a server calls them when everything was found good.
//
// Thread safety: none needed; the functions keep nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "storage/aof_manifest.h"
#include "storage/aof_reader.h"
#include "storage/aof_ring.h"
#include "storage/file_system.h"

namespace sava::storage {

// Where the files of a data set are, whether or not they exist.
struct DataPlaces {
  std::string dump;       // the RDB file
  std::string old_log;    // a log of one file, as before Redis 7
  std::string directory;  // the log's
  std::string log;        // its name, e.g. "appendonly.aof"
};

struct RecoveryPlan {
  enum class Source : uint8_t {
    kNothing,  // a new, empty data set begins
    kDump,     // the RDB file
    kOldLog,   // the log of one file, which then becomes the base of one with a manifest
    kLog,
  };

  // A file of the log.
  struct Part {
    std::string path;
    AofFile file;
    uint64_t size = 0;     // with what the ring has for it
    uint64_t had = 0;      // a later part says that it had that many bytes; 0: none says so
    bool may_end = false;  // a crash may have cut it off: nothing after it counts then
    std::string trouble;   // why it cannot be opened
  };

  // Bytes of a file to cut off.
  struct Cut {
    std::string path;
    uint64_t kept = 0;
    uint64_t size = 0;
    std::string_view why;
  };

  enum class Cure : uint8_t {
    kCut,     // a start cuts it off, with aof-load-truncated, and leaves out the parts after it
    kRepair,  // a start refuses it; a repair may cut it off
    kAlone,   // the same, but later parts build on it: a repair of this file alone
    kNone,
  };

  // A part that is not good to its end.
  struct Finding {
    size_t part = 0;
    AofEnd end;
    bool lost = false;  // it had more bytes once
    Cure cure = Cure::kNone;
    std::vector<Cut> cuts;  // the cure
  };

  Source source = Source::kNothing;
  std::string refused;   // why nothing is loaded
  std::string data_set;  // the id of the data set that is loaded; empty: it has none
  // A dump lies beside the log and is not of the same data set, but of `dump_data_set` (empty: it
  // does not say): it is not loaded, and must not be overwritten.
  bool foreign_dump = false;
  std::string dump_data_set;

  AofManifest manifest;
  std::vector<Part> parts;  // in the order of loading
  std::string directory;
  std::string log;
  // What the ring has for the part `restored`, if that lacks some of it.
  AofRestored ring;
  std::string restored;  // its path

  std::vector<Finding> findings;  // of ReadParts
};

// What a start with these files loads; `use_log`: the setting appendonly.
RecoveryPlan PlanStart(FileSystem& files, const DataPlaces& places, bool use_log);

// Of a log that was chosen already. `name`: the log's; empty: its ring is not looked at.
RecoveryPlan PlanLog(FileSystem& files, const std::string& directory, const std::string& name,
                     AofManifest manifest);

// Of a single file of commands, or of an RDB file and commands.
RecoveryPlan PlanFile(FileSystem& files, const std::string& path);

class PartReader {
 public:
  virtual ~PartReader() = default;
  // Reads the part from beginning to end. `file` has what the ring has for it. Offsets are those of
  // the file. kRefused: it cannot be used whatever is cut off; the text then names the file.
  virtual AofEnd Read(const RecoveryPlan::Part& part, const base::MappedFile& file) = 0;
};

struct ReadRules {
  bool cut_tails = true;  // aof-load-truncated
  bool read_on = false;   // after what is refused, to tell everything that is wrong
};

// Has the parts read, in order, as far as the log goes, and notes in `plan` what is wrong. An
// error: a start refuses the log, and why. What can be known before is refused before anything is
// read, unless `read_on`.
base::Status ReadParts(FileSystem& files, RecoveryPlan* plan, PartReader& reader,
                       const ReadRules& rules);

// Writes what the ring has for the log to where it belongs, and syncs it, lacking or not: it may
// have been in memory only. Afterwards the ring is not needed.
base::Status RestoreLog(FileSystem& files, const RecoveryPlan& plan);

// The same, then cuts off what a start leaves out of the log.
// REQUIRES: ReadParts found that a start may load it.
base::Status RepairLog(FileSystem& files, const RecoveryPlan& plan);

}  // namespace sava::storage
