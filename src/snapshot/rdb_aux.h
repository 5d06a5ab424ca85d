// RdbAux: what belongs to a data set besides its keys, and goes into its files and comes back from
// them: function libraries, the ids of a replication history. The composition root registers each
// with the code that saves and loads; these know none of them by name.
//
// Thread safety: AtCut and Clear with the gate closed; the rest on the thread that saves or loads,
// one at a time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/cut_writer.h"

namespace sava::snapshot {

class RdbAux {
 public:
  virtual ~RdbAux() = default;

  // A snapshot begins: what Save writes next is as of now.
  virtual void AtCut() {}
  // Writes AUX fields and functions, in front of the keys.
  virtual void Save(CutWriter& out) const = 0;

  // From an RDB file; false: it belongs to another.
  virtual bool LoadField(std::string_view name, std::string_view value) {
    static_cast<void>(name), static_cast<void>(value);
    return false;
  }
  virtual bool LoadFunction(std::string_view code) {
    static_cast<void>(code);
    return false;
  }
  // The command, in lower case, by which a log tells of it; empty: there is none. The error of
  // Replay is what a client would have been told: nothing has changed then.
  virtual std::string_view command() const { return {}; }
  virtual base::Status Replay(std::span<const std::string_view> words) {
    static_cast<void>(words);
    return {};
  }
  // A key of an RDB file is past its time and was not loaded. On the thread that loads.
  virtual void LeftOut(int db, std::string_view key) {
    static_cast<void>(db), static_cast<void>(key);
  }
  // The server's start: all is loaded, and no command has run yet. With the gate closed.
  virtual void LoadEnded() {}
  // A comment line for the end of the log, when the server ends in good order: it holds as long as
  // nothing follows it. Empty: none.
  virtual std::string EndLine() const { return {}; }
  // The data set is emptied.
  virtual void Clear() {}
  // A line for the server's log about what was loaded; empty: there is nothing to tell.
  virtual std::string Loaded() const { return {}; }
};

using RdbAuxes = std::span<RdbAux* const>;

}  // namespace sava::snapshot
