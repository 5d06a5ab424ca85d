#include "base/process_memory.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

// Weak: absent in builds without jemalloc.
extern "C" {
__attribute__((weak)) int mallctl(const char* name, void* old, size_t* old_length, void* fresh,
                                  size_t fresh_length);
__attribute__((weak)) void malloc_stats_print(void (*write)(void*, const char*), void* argument,
                                              const char* options);
}

namespace sava::base {

namespace {

// In names, 4096 stands for all arenas.
size_t Read(const char* name) {
  size_t value = 0;
  size_t length = sizeof value;
  return mallctl(name, &value, &length, nullptr, 0) == 0 ? value : 0;
}

}  // namespace

AllocatorFigures ReadAllocator() {
  AllocatorFigures figures;
  if (mallctl != nullptr) {
    uint64_t epoch = 1;
    size_t length = sizeof epoch;
    mallctl("epoch", &epoch, &length, &epoch, length);
    figures.allocated = Read("stats.allocated");
    figures.cached = std::min(figures.allocated, Read("stats.arenas.4096.tcache_bytes"));
    figures.active = Read("stats.active");
    figures.resident = Read("stats.resident");
    return figures;
  }
  const struct mallinfo2 info = mallinfo2();
  figures.allocated = info.uordblks + info.hblkhd;
  figures.active = info.arena + info.hblkhd;
  figures.resident = figures.active;
  return figures;
}

size_t ResidentBytes() {
  FILE* file = fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long size = 0;
  unsigned long resident = 0;
  const int fields = fscanf(file, "%lu %lu", &size, &resident);
  fclose(file);
  return fields == 2 ? resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

size_t SystemMemory() {
  struct sysinfo info {};
  sysinfo(&info);
  return static_cast<size_t>(info.totalram) * info.mem_unit;
}

size_t MemoryCeiling() {
  size_t least = SystemMemory();
  // "0::/path": its own group, and those that it is in.
  std::string path;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  while (!path.empty()) {
    size_t limit = 0;
    std::ifstream file("/sys/fs/cgroup" + path + "/memory.max");
    if (file >> limit && limit > 0) least = std::min(least, limit);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return least;
}

void LimitHugePages(bool limit) {
  prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);  // it may have been inherited
  if (!limit) return;
  // PR_THP_DISABLE_EXCEPT_ADVISED, known to Linux since 6.18.
  constexpr unsigned long kExceptAdvised = 1UL << 1;
  if (prctl(PR_SET_THP_DISABLE, 1, kExceptAdvised, 0, 0) == 0) return;
  std::string modes;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), modes);
  const bool asked_only = modes.find("[madvise]") != std::string::npos;
  if (!asked_only) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

void RestartAllocatorThread() {
  if (mallctl == nullptr) return;
  bool on = true;
  mallctl("background_thread", nullptr, nullptr, &on, sizeof on);
}

void WarmAllocator() {
  void* volatile block = malloc(1);
  free(block);
}

int ControlAllocator(const char* name, void* old, size_t* old_length, void* fresh,
                     size_t fresh_length) {
  return mallctl == nullptr ? ENOENT : mallctl(name, old, old_length, fresh, fresh_length);
}

void PurgeAllocator() {
  if (mallctl == nullptr) {
    malloc_trim(0);
    return;
  }
  mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

std::string AllocatorReport() {
  std::string report;
  if (malloc_stats_print != nullptr) {
    malloc_stats_print(
        [](void* out, const char* text) { static_cast<std::string*>(out)->append(text); }, &report,
        "");
  }
  return report;
}

std::string AllocatorName() {
  if (mallctl == nullptr) return "libc";
  const char* version = nullptr;
  size_t length = sizeof version;
  if (mallctl("version", &version, &length, nullptr, 0) != 0) return "jemalloc";
  const std::string text = version;
  return "jemalloc-" + text.substr(0, text.find('-'));
}

}  // namespace sava::base
