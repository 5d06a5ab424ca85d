// FunctionLibraries: the function libraries that came with a data set. FCALL is not available, so
// nothing is run or compiled: the source of each is kept as it came and goes into every snapshot
// and every base of the log, for a server that has functions.
//
// Thread safety: any thread. The lock is a leaf.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/rdb_aux.h"

namespace sava::engine {

class FunctionLibraries final : public snapshot::RdbAux {
 public:
  // The name in the first line of a source, "#!lua name=mylib"; empty when there is none.
  static std::string NameOf(std::string_view code);

  // Keeps a library, instead of one of the same name if there is one.
  void Add(std::string_view code);
  void Clear() override;
  // What FUNCTION, as it stands in a log, does: LOAD, DELETE, FLUSH, RESTORE.
  base::Status Replay(std::span<const std::string_view> words) override;
  std::string_view command() const override { return "function"; }

  void Save(snapshot::CutWriter& out) const override;
  bool LoadFunction(std::string_view code) override;
  std::string Loaded() const override;

  // Sources in the order in which they came.
  std::vector<std::string> sources() const;
  size_t count() const;
  size_t bytes() const;

 private:
  struct Library {
    std::string name;
    std::string code;
  };

  base::Status Load(std::span<const std::string_view> words);
  base::Status Restore(std::span<const std::string_view> words);
  // REQUIRES: mutex_.
  void AddLocked(std::string_view code);
  bool HasLocked(std::string_view name) const;

  mutable std::mutex mutex_;
  std::vector<Library> libraries_;  // guarded by mutex_
};

}  // namespace sava::engine
