#include "cli/bloom_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "types/value/save.h"

namespace sava::cli {

namespace {

constexpr std::string_view kFirstLine = "sava bloom 1\n";

base::Error Problem(const std::string& path, std::string_view what) {
  return base::Error{fmt::format("{}: {}", path, what)};
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

base::Result<std::unique_ptr<types::Bloom>> ReadBloomFile(const std::string& path) {
  const base::Result<base::MappedFile> file = base::MappedFile::Open(path);
  if (!file) return base::Error{file.error()};
  std::string_view rest = file.value().bytes();
  if (!rest.starts_with(kFirstLine)) return Problem(path, "this is not a Bloom filter of sava");
  rest.remove_prefix(kFirstLine.size());
  std::string_view body;
  if (!types::OpenDump(rest, &body) || body.empty()) {
    return Problem(path, "the Bloom filter is damaged (wrong checksum)");
  }
  types::Reader in(body);
  const bool ours = in.Byte() == types::kRdbModule && in.Length() == types::Bloom::Type().module_id;
  std::unique_ptr<types::Object> object =
      ours ? types::Bloom::Type().load(types::kRdbModule, in) : nullptr;
  if (object == nullptr || in.remaining() != 0) {
    return Problem(path, "the Bloom filter is damaged");
  }
  return std::unique_ptr<types::Bloom>(static_cast<types::Bloom*>(object.release()));
}

base::Status WriteBloomFile(const std::string& path, const types::Bloom& bloom) {
  std::string body;
  {
    types::Writer out(&body);
    out.Byte(bloom.rdb_type());
    bloom.Save(out);
  }
  types::SealDump(&body);
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return Problem(path, strerror(errno));
  struct stat old {};
  const mode_t mode = stat(path.c_str(), &old) == 0 ? old.st_mode & 0777 : 0644;
  const bool written =
      WriteAll(fd, kFirstLine) && WriteAll(fd, body) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
  int error = errno;
  close(fd);
  if (written && rename(temporary.c_str(), path.c_str()) == 0) return {};
  if (written) error = errno;
  unlink(temporary.c_str());
  return Problem(path, strerror(error));
}

}  // namespace sava::cli
