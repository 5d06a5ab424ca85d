#include "net/port_owner.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>

namespace sava::net {

namespace {

constexpr std::string_view kListening = "0A";  // a state in /proc/net/tcp

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// The columns: number, local address:port, remote address:port, state, ..., inode is the tenth.
void AddListeners(const char* table, int port, std::set<std::string>* sockets) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string local;
    std::string state;
    std::string word;
    std::string inode;
    words >> word >> local >> word >> state;
    for (int i = 0; i < 5; ++i) words >> word;
    words >> inode;
    const size_t colon = local.rfind(':');
    if (!words || colon == std::string::npos || state != kListening) continue;
    int found = 0;
    const char* end = local.data() + local.size();
    if (std::from_chars(local.data() + colon + 1, end, found, 16).ptr == end && found == port) {
      sockets->insert(fmt::format("socket:[{}]", inode));
    }
  }
}

bool HasOneOf(const std::string& process, const std::set<std::string>& sockets) {
  const std::string folder = process + "/fd";
  const Directory files(opendir(folder.c_str()));
  if (files == nullptr) return false;
  while (const dirent* file = readdir(files.get())) {
    char target[64];
    const std::string path = folder + "/" + file->d_name;
    const ssize_t n = readlink(path.c_str(), target, sizeof target);
    if (n > 0 && sockets.contains(std::string(target, static_cast<size_t>(n)))) return true;
  }
  return false;
}

std::string NameOf(const std::string& process) {
  std::ifstream file(process + "/cmdline");
  std::string name;
  std::getline(file, name, '\0');
  name = name.substr(0, name.find(' '));
  return name.substr(name.rfind('/') + 1);
}

}  // namespace

PortOwner FindPortOwner(int port) {
  std::set<std::string> sockets;
  AddListeners("/proc/net/tcp", port, &sockets);
  AddListeners("/proc/net/tcp6", port, &sockets);
  const Directory processes(sockets.empty() ? nullptr : opendir("/proc"));
  if (processes == nullptr) return {};
  while (const dirent* one = readdir(processes.get())) {
    const std::string_view text = one->d_name;
    int pid = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) continue;
    const std::string process = fmt::format("/proc/{}", pid);
    if (HasOneOf(process, sockets)) return {pid, NameOf(process)};
  }
  return {};
}

}  // namespace sava::net
