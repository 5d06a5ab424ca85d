// Jobs that replication gives to the keeper: a copy of the data set for others, and a data set that
// takes the place of this server's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/stock.h"
#include "snapshot/rdb_aux.h"

namespace sava::persistence {

// Made like a snapshot, when nothing else is being made.
struct DataCopy {
  std::function<base::Status(std::string_view)> sink;  // gets its bytes
  bool keys = true;
  bool functions = true;
  commands::Reader reader = commands::Reader::kSava;
  std::vector<snapshot::RdbAux*> aux;  // besides those of the data set
  std::function<void()> at_cut;        // with the gate closed
  std::function<void()> after_cut;     // outside, before anything is written that depends on it
  uint64_t left_out = 0;               // keys that the reader would not understand
  std::function<void(const base::Result<uint64_t>&)> done;  // on the keeper's thread
};

struct DataReplacement {
  std::string path;  // an RDB file, all of it; it is removed, or becomes the dump
  // Whether it is still wanted, called just before the old data is removed. With the gate closed.
  std::function<bool()> wanted;
  // The data is in memory. With the gate closed, before clients are served again.
  std::function<void()> loaded;
  // On the keeper's thread, after `loaded`, or instead. `emptied`: the old data is gone.
  std::function<void(const base::Status& status, bool emptied)> done;
};

}  // namespace sava::persistence
