#include "cli/bloom_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/mapped_file.h"
#include "base/varint.h"
#include "cli/bloom_text.h"
#include "types/filters/bloom.h"
#include "types/value/save.h"

namespace sava::cli {

namespace {

using types::Bloom;
using types::FilterHash;

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

bool WriteParts(int fd, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (!WriteAll(fd, part)) return false;
  }
  return true;
}

// The bytes of a filter's bits, bit p in byte p / 8.
std::string BytesOf(const Bloom& bloom) {
  std::string bytes;
  std::string chunk;
  for (int64_t iterator = 1; bloom.ReadChunk(&iterator, &chunk);) {
    // A chunk begins with the numbers of its stage and of its first block.
    const auto* const begin = reinterpret_cast<const uint8_t*>(chunk.data());
    const uint8_t* const end = begin + chunk.size();
    uint64_t number = 0;
    const uint8_t* p = base::GetVarint(begin, end, &number);
    if (p != nullptr) p = base::GetVarint(p, end, &number);
    if (p != nullptr) bytes.append(reinterpret_cast<const char*>(p), static_cast<size_t>(end - p));
  }
  return bytes;
}

class SealedFilter final : public FileFilter {
 public:
  explicit SealedFilter(std::unique_ptr<Bloom> bloom) : bloom_(std::move(bloom)) {}

  BloomForm form() const override { return BloomForm::kSealed; }
  bool Add(std::string_view value) override {
    return bloom_->Add(FilterHash(value)) == Bloom::Added::kNew;
  }
  bool Has(std::string_view value) const override { return bloom_->Has(FilterHash(value)); }

  std::vector<uint64_t> Positions(std::string_view value) const override {
    const Bloom::Stats stats = bloom_->stats();
    if (bloom_->encoding() != "classic" || stats.stages != 1) return {};
    // Double hashing whose step grows, as docs/formats/filters.md tells it.
    uint64_t at = FilterHash(value);
    uint64_t step = types::MixHash(at) | 1;
    std::vector<uint64_t> positions;
    for (uint32_t i = 0; i < stats.hashes; ++i) {
      positions.push_back(types::ScaleHash(at, stats.bits));
      at += step;
      step += 0x9e3779b97f4a7c15ULL;
    }
    return positions;
  }

  std::function<bool(uint64_t)> Bits() const override {
    return [bytes = BytesOf(*bloom_)](uint64_t position) {
      return (static_cast<uint8_t>(bytes[position / 8]) >> (position % 8) & 1) != 0;
    };
  }

  Numbers numbers() const override {
    const Bloom::Stats stats = bloom_->stats();
    return {.bits = stats.bits,
            .hashes = stats.hashes,
            .items = stats.items,
            .fill = stats.fill,
            .rate_formula = stats.rate_formula,
            .rate_observed = stats.rate_observed};
  }

  base::Status Write(const std::string& path) const override {
    std::string body;
    {
      types::Writer out(&body);
      out.Byte(bloom_->rdb_type());
      bloom_->Save(out);
    }
    types::SealDump(&body);
    return ReplaceFile(path, {kFirstLine, body});
  }

 private:
  std::unique_ptr<Bloom> bloom_;
};

base::Result<std::unique_ptr<FileFilter>> ParseSealed(std::string_view rest) {
  if (!rest.starts_with(kFirstLine)) return base::Error{"this is not a Bloom filter of sava"};
  rest.remove_prefix(kFirstLine.size());
  std::string_view body;
  if (!types::OpenDump(rest, &body) || body.empty()) {
    return base::Error{"the Bloom filter is damaged (wrong checksum)"};
  }
  types::Reader in(body);
  const bool ours = in.Byte() == types::kRdbModule && in.Length() == Bloom::Type().module_id;
  std::unique_ptr<types::Object> object =
      ours ? Bloom::Type().load(types::kRdbModule, in) : nullptr;
  if (object == nullptr || in.remaining() != 0) {
    return base::Error{"the Bloom filter is damaged"};
  }
  std::unique_ptr<Bloom> bloom(static_cast<Bloom*>(object.release()));
  return std::unique_ptr<FileFilter>(std::make_unique<SealedFilter>(std::move(bloom)));
}

}  // namespace

base::Result<std::unique_ptr<FileFilter>> MakeFileFilter(BloomForm form, uint64_t bits,
                                                         uint32_t hashes) {
  if (form == BloomForm::kText) return MakeTextFilter(bits);
  std::unique_ptr<Bloom> bloom = Bloom::MakeClassic(bits, hashes);
  if (bloom == nullptr) return base::Error{fmt::format("no memory for {} bits", bits)};
  return std::unique_ptr<FileFilter>(std::make_unique<SealedFilter>(std::move(bloom)));
}

base::Result<std::unique_ptr<FileFilter>> ReadBloomFile(const std::string& path) {
  const base::Result<base::MappedFile> file = base::MappedFile::Open(path);
  if (!file) return base::Error{file.error()};
  const std::string_view bytes = file.value().bytes();
  auto filter = LooksLikeTextFilter(bytes) ? ParseTextFilter(bytes) : ParseSealed(bytes);
  if (!filter) return Problem(path, filter.error());
  return filter;
}

base::Status ReplaceFile(const std::string& path, std::initializer_list<std::string_view> parts) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return Problem(path, strerror(errno));
  struct stat old {};
  const mode_t mode = stat(path.c_str(), &old) == 0 ? old.st_mode & 0777 : 0644;
  const bool written = WriteParts(fd, parts) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
  int error = errno;
  close(fd);
  if (written && rename(temporary.c_str(), path.c_str()) == 0) return {};
  if (written) error = errno;
  unlink(temporary.c_str());
  return Problem(path, strerror(error));
}

}  // namespace sava::cli
