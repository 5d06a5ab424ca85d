// Names for the addresses of a stack, without locks or memory: for the crash report.
#pragma once

#include <cstdint>
#include <string_view>

namespace sava::admin {

// Notes where the program and its libraries lie. Before there is anything to report.
void NoteModules();

struct CodePlace {
  std::string_view module;  // the file; empty: not found
  uint64_t offset = 0;      // in the file's own numbering, as addr2line takes it
  bool own = false;         // the program itself
};
CodePlace FindCode(const void* address);

// The program's own functions by their names in the executable, as far as it was not stripped.
class SymbolTable {
 public:
  SymbolTable();  // maps the executable; never unmapped, the process is about to end
  // The mangled name; empty if there is none.
  std::string_view NameOf(uint64_t offset, uint64_t* within) const;

 private:
  bool Find(const char* file, uint64_t size);

  const char* symbols_ = nullptr;
  uint64_t count_ = 0;
  const char* names_ = nullptr;
  uint64_t names_size_ = 0;
};

}  // namespace sava::admin
