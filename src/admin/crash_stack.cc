#include "admin/crash_stack.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace sava::admin {

namespace {

struct Module {
  uintptr_t base;
  uintptr_t begin;
  uintptr_t end;
  char name[64];
};

constexpr int kMostModules = 32;
Module modules[kMostModules];
int module_count = 0;

int NoteModule(dl_phdr_info* info, size_t /*size*/, void* /*data*/) {
  if (module_count == kMostModules) return 1;
  Module& module = modules[module_count];
  module.base = info->dlpi_addr;
  module.begin = UINTPTR_MAX;
  module.end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (begin < module.begin) module.begin = begin;
    if (begin + part.p_memsz > module.end) module.end = begin + part.p_memsz;
  }
  const char* const slash = strrchr(info->dlpi_name, '/');
  const char* const name = slash != nullptr ? slash + 1 : info->dlpi_name;
  // The first is the program, which has no name here.
  strncpy(module.name, module_count == 0 ? "sava" : name, sizeof module.name - 1);
  ++module_count;
  return 0;
}

}  // namespace

void NoteModules() {
  module_count = 0;
  dl_iterate_phdr(NoteModule, nullptr);
}

CodePlace FindCode(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < module_count; ++i) {
    const Module& module = modules[i];
    if (at >= module.begin && at < module.end) return {module.name, at - module.base, i == 0};
  }
  return {};
}

SymbolTable::SymbolTable() {
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info {};
  if (fstat(fd, &info) == 0 && info.st_size > 0) {
    const auto size = static_cast<size_t>(info.st_size);
    void* const file = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file != MAP_FAILED && !Find(static_cast<const char*>(file), size)) count_ = 0;
  }
  close(fd);
}

bool SymbolTable::Find(const char* file, uint64_t size) {
  ElfW(Ehdr) header;
  if (size < sizeof header) return false;
  memcpy(&header, file, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(ElfW(Shdr)) ||
      header.e_shoff > size || header.e_shnum > (size - header.e_shoff) / sizeof(ElfW(Shdr))) {
    return false;
  }
  const auto section = [&](size_t i) {
    ElfW(Shdr) one;
    memcpy(&one, file + header.e_shoff + i * sizeof one, sizeof one);
    return one;
  };
  const auto inside = [size](const ElfW(Shdr) & one) {
    return one.sh_offset <= size && one.sh_size <= size - one.sh_offset;
  };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const ElfW(Shdr) symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB || symbols.sh_link >= header.e_shnum) continue;
    const ElfW(Shdr) names = section(symbols.sh_link);
    if (!inside(symbols) || !inside(names)) return false;
    symbols_ = file + symbols.sh_offset;
    count_ = symbols.sh_size / sizeof(ElfW(Sym));
    names_ = file + names.sh_offset;
    names_size_ = names.sh_size;
    return true;
  }
  return false;
}

std::string_view SymbolTable::NameOf(uint64_t offset, uint64_t* within) const {
  for (uint64_t i = 0; i < count_; ++i) {
    ElfW(Sym) symbol;
    memcpy(&symbol, symbols_ + i * sizeof symbol, sizeof symbol);
    if ((symbol.st_info & 0xf) != STT_FUNC || offset < symbol.st_value) continue;
    if (offset - symbol.st_value >= symbol.st_size || symbol.st_name >= names_size_) continue;
    *within = offset - symbol.st_value;
    const char* const name = names_ + symbol.st_name;
    return {name, strnlen(name, names_size_ - symbol.st_name)};
  }
  return {};
}

}  // namespace sava::admin
