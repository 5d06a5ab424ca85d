// Libraries: what FCALL and FUNCTION LIST know of the function libraries of the data set
// (engine/function_libraries.h has their sources): which functions each registers, and how.
//
// A Catalog does not change; there is a new one after each change. When the sources
// have changed (a data set was loaded), the first thread that needs it makes it from them.
//
// Thread safety: any thread; changes with the gate closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/function_libraries.h"
#include "lua/interpreter.h"
#include "script/script_cache.h"

namespace sava::script {

struct Library;

struct Function {
  lua::Function info;  // its handle is of no use: each interpreter has its own
  Library* library = nullptr;
  size_t index = 0;  // among its library's
  std::atomic<Conduct> conduct{Conduct::kUnknown};
};

struct Library {
  std::string name;
  std::string code;
  size_t head = 0;
  std::vector<std::unique_ptr<Function>> functions;

  std::string_view body() const { return std::string_view(code).substr(head); }
};

using LibraryPtr = std::shared_ptr<Library>;

struct Catalog {
  uint64_t generation = 0;
  std::map<std::string, LibraryPtr> libraries;
  std::unordered_map<std::string, Function*> functions;  // by name in lower case

  Function* Find(std::string_view name) const;
  // The error says why the library cannot be added to the others.
  base::Status Add(const LibraryPtr& library);
  void Remove(const std::string& name);
};

using CatalogPtr = std::shared_ptr<const Catalog>;

// Whether scripts with this source are to run alone, whatever is learned of them.
using Judge = std::function<bool(std::string_view source)>;

// Compiles a library in an interpreter; the error is without "ERR ". `handles`: of its functions.
base::Result<LibraryPtr> Compile(lua::Interpreter& interpreter, std::string_view code,
                                 const std::function<bool()>& interrupted,
                                 std::vector<int>* handles);

class Libraries {
 public:
  Libraries(engine::FunctionLibraries* sources, Judge strays)
      : sources_(*sources), strays_(std::move(strays)) {}

  // As the sources are now. What cannot be compiled is left out, and a line in the log says so.
  CatalogPtr Now(lua::Interpreter& interpreter);
  // What there was when it was last asked for.
  CatalogPtr last() const;
  // A library before it is added to a catalog.
  LibraryPtr Judged(LibraryPtr library) const;
  // A change of one's own. REQUIRES: the gate is closed; the sources were changed likewise.
  void Replace(std::shared_ptr<Catalog> catalog);

 private:
  engine::FunctionLibraries& sources_;
  const Judge strays_;
  mutable std::mutex mutex_;
  CatalogPtr catalog_ = std::make_shared<Catalog>();  // guarded by mutex_
};

}  // namespace sava::script
