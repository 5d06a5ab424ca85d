// AuxData: what the values of one type share in this process, and a file therefore holds once, in
// front of the keys (module AUX data of an RDB file). Values in the file then refer to it.
//
// Thread safety: an AuxData is used from any thread; what it returns, from one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace sava::types {

class Reader;
class Writer;

// What a file being loaded has of it.
class LoadedAux {
 public:
  LoadedAux() = default;
  LoadedAux(const LoadedAux&) = delete;
  LoadedAux& operator=(const LoadedAux&) = delete;
  virtual ~LoadedAux() = default;
};

class AuxData {
 public:
  virtual ~AuxData() = default;

  virtual std::string_view name() const = 0;  // "the … of …", for people
  virtual bool empty() const = 0;
  // While pinned, what was there stays as a file may refer to it.
  virtual void Pin() = 0;
  virtual void Unpin() = 0;

  // Writes it as module items: SaveNew as often as wanted, each time what has come since, and End.
  class Saving {
   public:
    virtual ~Saving() = default;
    virtual void SaveNew(Writer& out) = 0;
    virtual void End(Writer& out) = 0;
  };
  virtual std::unique_ptr<Saving> Save() const = 0;
  // What Saving wrote; nullptr when it is damaged.
  virtual std::shared_ptr<const LoadedAux> Load(Reader& in) const = 0;
};

// The auxiliary data of one file, by the module id of its type.
class FileAux {
 public:
  const LoadedAux* Find(uint64_t module_id) const {
    for (const auto& [id, aux] : loaded_) {
      if (id == module_id) return aux.get();
    }
    return nullptr;
  }
  // REQUIRES: there is none with that id.
  void Put(uint64_t module_id, std::shared_ptr<const LoadedAux> aux) {
    loaded_.emplace_back(module_id, std::move(aux));
  }
  bool empty() const { return loaded_.empty(); }

 private:
  std::vector<std::pair<uint64_t, std::shared_ptr<const LoadedAux>>> loaded_;
};

}  // namespace sava::types
