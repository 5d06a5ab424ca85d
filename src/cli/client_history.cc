// Persistent history of the interactive client. Failures are silent: history is a convenience.
#include "cli/client_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/text.h"
#include "cli/client_hints.h"

namespace sava::cli {
namespace {

bool AnyIs(const std::vector<std::string>& words, size_t from, std::string_view wanted) {
  return std::any_of(words.begin() + static_cast<std::ptrdiff_t>(std::min(from, words.size())),
                     words.end(),
                     [&](const std::string& word) { return base::EqualsNoCase(word, wanted); });
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool IsRegularFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

std::string HistoryFile::DefaultPath() {
  if (const char* path = std::getenv("SAVA_HISTORY"); path != nullptr) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::string(home) + "/.sava_history";
}

std::vector<std::string> HistoryFile::Load() {
  std::vector<std::string> lines;
  if (path_.empty() || !IsRegularFile(path_)) return lines;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  const bool overgrown = lines.size() >= 2 * kMaxLines;
  if (lines.size() > kMaxLines) lines.erase(lines.begin(), lines.end() - kMaxLines);
  if (overgrown) Rewrite(lines);
  return lines;
}

void HistoryFile::Rewrite(const std::vector<std::string>& lines) {
  std::string bytes;
  for (const std::string& line : lines) bytes += line + '\n';
  std::string temporary = path_ + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return;
  const bool written = WriteAll(fd, bytes);
  close(fd);
  if (!written || rename(temporary.c_str(), path_.c_str()) != 0) unlink(temporary.c_str());
}

void HistoryFile::Append(std::string_view line) {
  if (path_.empty() || line.empty() || CarriesSecret(line)) return;
  const int fd = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  WriteAll(fd, std::string(line) + '\n');
  close(fd);
}

bool CarriesSecret(std::string_view line) {
  std::vector<std::string> words = SplitPartial(line).words;
  if (words.empty()) {
    // Quotes beyond mending: judge by the plain words.
    std::string plain(line);
    std::erase_if(plain, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
    words = SplitPartial(plain).words;
  }
  int64_t repeat = 0;
  if (words.size() > 1 && base::ParseInt(words.front(), &repeat)) words.erase(words.begin());
  if (words.empty()) return false;
  const auto is = [&](size_t i, std::string_view wanted) {
    return i < words.size() && base::EqualsNoCase(words[i], wanted);
  };
  if (is(0, "auth")) return true;
  if (is(0, "hello")) return AnyIs(words, 1, "auth");
  if (is(0, "migrate")) return AnyIs(words, 1, "auth") || AnyIs(words, 1, "auth2");
  if (is(0, "acl")) return is(1, "setuser");
  if (is(0, "config") && is(1, "set")) {
    for (const std::string_view name : {"requirepass", "masterauth", "masteruser",
                                        "tls-key-file-pass", "tls-client-key-file-pass"}) {
      if (AnyIs(words, 2, name)) return true;
    }
  }
  return false;
}

}  // namespace sava::cli
