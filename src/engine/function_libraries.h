// FunctionLibraries: the sources of the function libraries that belong to the data set. They go
// into every snapshot and every base of the log. Nothing is compiled here: the room `script` does
// that, and looks whether they have changed.
//
// Thread safety: any thread. The lock is a leaf.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
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
  // What FUNCTION does in a log: LOAD, DELETE, FLUSH, RESTORE.
  base::Status Replay(std::span<const std::string_view> words) override;
  std::string_view command() const override { return "function"; }

  // Instead of all there are, or of those of the same names.
  void Put(std::span<const std::string> codes, bool flush);
  // False: there is none of this name.
  bool Delete(std::string_view name);
  // The libraries in a payload of FUNCTION DUMP.
  static base::Result<std::vector<std::string>> Unpack(std::string_view payload);
  std::string Pack() const;
  // Grows with each change.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  void AtCut() override;
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
  std::vector<std::string> SourcesLocked() const;

  mutable std::mutex mutex_;
  std::vector<Library> libraries_;               // guarded by mutex_
  std::optional<std::vector<std::string>> cut_;  // guarded by mutex_; sources as of the cut
  std::atomic<uint64_t> generation_{0};
};

}  // namespace sava::engine
