#include "storage/aof_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "base/crc.h"
#include "storage/aof_reader.h"

namespace sava::storage {

namespace {

constexpr std::string_view kMagic = "SAVARNG1";
// Behind what the ring has, for a command that ends there.
constexpr uint64_t kLookBeyond = 16 << 20;

struct Header {
  char magic[8];
  uint64_t number;
  uint64_t increment;
  uint64_t offset;
  uint32_t size;
  uint32_t before;
  uint64_t before_crc;
  uint64_t crc;
};
static_assert(sizeof(Header) == 56);

struct FirstBlock {
  char magic[8];
  uint64_t secret;
};

uint64_t CrcOf(uint64_t secret, const Header& header, std::string_view bytes) {
  const std::string_view front(reinterpret_cast<const char*>(&header), offsetof(Header, crc));
  return base::Crc64(base::Crc64(secret, front), bytes);
}

uint64_t RoomFor(uint64_t bytes) {
  return (sizeof(Header) + bytes + Blocks::kSize - 1) / Blocks::kSize * Blocks::kSize;
}

struct Found {
  Header header;
  std::string_view bytes;
};

// All whole entries, by number.
std::map<uint64_t, Found> Entries(std::string_view ring, uint64_t* secret) {
  std::map<uint64_t, Found> entries;
  FirstBlock first;
  if (ring.size() < Blocks::kSize) return entries;
  memcpy(&first, ring.data(), sizeof(first));
  if (std::string_view(first.magic, sizeof(first.magic)) != kMagic) return entries;
  *secret = first.secret;
  ring.remove_prefix(Blocks::kSize);
  while (ring.size() >= sizeof(Header)) {
    Header header;
    memcpy(&header, ring.data(), sizeof(header));
    uint64_t room = Blocks::kSize;
    if (std::string_view(header.magic, sizeof(header.magic)) == kMagic && header.increment > 0 &&
        header.before <= header.offset && header.size > 0 && header.size <= AofRing::kMostBytes &&
        header.size <= ring.size() - sizeof(Header)) {
      const std::string_view bytes = ring.substr(sizeof(Header), header.size);
      if (header.crc == CrcOf(first.secret, header, bytes) &&
          header.offset <= UINT64_MAX - header.size) {
        entries[header.number] = {header, bytes};
        room = RoomFor(header.size);
      }
    }
    ring.remove_prefix(std::min<uint64_t>(room, ring.size()));
  }
  return entries;
}

// Whether the log was continued without the ring. What was lost reads as zeros, or as
// anything, but hardly as commands.
bool OtherCommands(std::string_view file, std::string_view ring) {
  size_t at = 0;
  const size_t both = std::min(file.size(), ring.size());
  while (at < both && (file[at] == ring[at] || file[at] == '\0')) ++at;
  if (at == both) return false;
  return ReadAof(file, [](const AofCommand&) { return base::Status(); }).good > at;
}

// Whether a later increment shows that this one was whole.
bool LaterFilesCount(FileSystem& files, const std::string& directory, const AofManifest& manifest,
                     uint64_t increment) {
  const std::vector<AofFile> increments = manifest.increments();
  return std::any_of(increments.begin(), increments.end(), [&](const AofFile& file) {
    if (file.sequence <= increment) return false;
    const auto beginning = files.Read(PathIn(directory, file.name), 0, kLookBeyond);
    return beginning && AofProvesSync(beginning.value());
  });
}

}  // namespace

base::Result<std::unique_ptr<AofRing>> AofRing::Make(FileSystem& files, const std::string& path,
                                                     uint64_t size) {
  auto blocks = files.MakeBlocks(path, size);
  if (!blocks) return base::Error{blocks.error()};
  std::random_device random;
  FirstBlock first{{}, static_cast<uint64_t>(random()) << 32 | random()};
  memcpy(first.magic, kMagic.data(), kMagic.size());
  std::string block(reinterpret_cast<const char*>(&first), sizeof(first));
  block.resize(Blocks::kSize, '\0');
  if (base::Status status = (*blocks)->Write(0, block); !status) {
    return base::Error{status.error()};
  }
  return std::unique_ptr<AofRing>(new AofRing(std::move(*blocks), size, first.secret));
}

base::Result<bool> AofRing::Put(uint64_t increment, uint64_t offset, std::string_view before,
                                std::string_view bytes, uint64_t synced) {
  while (!entries_.empty()) {
    const Entry& oldest = entries_.front();
    if (oldest.increment == increment && oldest.end > synced) break;
    used_ -= oldest.room;
    entries_.pop_front();
  }
  const uint64_t room = RoomFor(bytes.size());
  const uint64_t left = size_ - position_;  // before it begins again
  const bool again = left < room;
  const uint64_t taken = room + (again ? left : 0);
  if (size_ - Blocks::kSize - used_ < taken) return false;
  if (again) position_ = Blocks::kSize;

  Header header{};
  memcpy(header.magic, kMagic.data(), kMagic.size());
  header.number = ++number_;
  header.increment = increment;
  header.offset = offset;
  header.size = static_cast<uint32_t>(bytes.size());
  header.before = static_cast<uint32_t>(before.size());
  header.before_crc = base::Crc64(secret_, before);
  header.crc = CrcOf(secret_, header, bytes);
  scratch_.assign(reinterpret_cast<const char*>(&header), sizeof(header));
  scratch_ += bytes;
  scratch_.resize(room, '\0');
  if (base::Status status = blocks_->Write(position_, scratch_); !status) {
    return base::Error{status.error()};
  }
  position_ += room;
  used_ += taken;
  entries_.push_back({increment, offset + bytes.size(), taken});
  return true;
}

std::string AofRingName(std::string_view name) { return fmt::format("{}.ring", name); }

// Entries before the ones that join were overwritten, or something was synced in between: either
// way the file has what they had.
AofRingEnd ReadAofRing(std::string_view ring) {
  AofRingEnd end;
  const std::map<uint64_t, Found> entries = Entries(ring, &end.secret);
  auto first = entries.rbegin();
  if (first == entries.rend()) return end;
  for (auto next = std::next(first); next != entries.rend(); first = next++) {
    const Header& at = first->second.header;
    const Header& earlier = next->second.header;
    if (earlier.number + 1 != at.number || earlier.increment != at.increment ||
        earlier.offset + earlier.size != at.offset) {
      break;
    }
  }
  const Header& header = first->second.header;
  end.increment = header.increment;
  end.offset = header.offset;
  end.before = header.before;
  end.before_crc = header.before_crc;
  for (auto at = entries.find(first->first); at != entries.end(); ++at) {
    end.bytes += at->second.bytes;
  }
  return end;
}

base::Result<AofRestored> RestoreFromRing(FileSystem& files, const std::string& directory,
                                          std::string_view name, const AofManifest& manifest,
                                          bool write) {
  AofRestored restored;
  const std::string ring_path = PathIn(directory, AofRingName(name));
  if (!files.Exists(ring_path)) return restored;
  const auto ring = files.Read(ring_path, 0, AofRing::kSize);
  if (!ring) return base::Error{ring.error()};
  AofRingEnd end = ReadAofRing(ring.value());
  for (const AofFile& file : manifest.increments()) {
    if (file.sequence == end.increment) restored.file = file.name;
  }
  if (end.increment == 0 || restored.file.empty()) return AofRestored();

  const std::string path = PathIn(directory, restored.file);
  const auto size = files.Size(path);
  if (!size) return base::Error{size.error()};
  const auto misfit = [&](std::string_view why) {
    return base::Error{fmt::format(
        "{} has {} bytes for {} from byte {} on, but {}. To go on without them, remove {}",
        ring_path, end.bytes.size(), path, end.offset, why, ring_path)};
  };
  // Another log may have a file of that name.
  const auto before = files.Read(path, end.offset - end.before, end.before);
  if (!before) return base::Error{before.error()};
  if (size.value() < end.offset) return misfit(fmt::format("that file has only {}", size.value()));
  if (base::Crc64(end.secret, before.value()) != end.before_crc)
    return misfit("it is another log's");
  const auto found = files.Read(path, end.offset, end.bytes.size() + kLookBeyond);
  if (!found) return base::Error{found.error()};
  const std::string& tail = found.value();
  const auto same = static_cast<uint64_t>(
      std::mismatch(end.bytes.begin(), end.bytes.end(), tail.begin(), tail.end()).first -
      end.bytes.begin());
  restored.lacking = end.bytes.size() - same;
  if (restored.lacking > 0) {
    if (OtherCommands(tail, end.bytes)) return misfit("other commands stand there");
    if (LaterFilesCount(files, directory, manifest, end.increment)) {
      return misfit("later files of the log build on what it has");
    }
  }
  if (!write) {
    restored.offset = end.offset;
    restored.end = std::move(end.bytes);
    return restored;
  }
  base::Status status;
  if (restored.lacking > 0) {
    auto file = files.Open(path, FileSystem::Mode::kAppend);
    if (!file) return base::Error{file.error()};
    status = (*file)->Truncate(end.offset + same);
  }
  if (status) status = files.WriteOver(path, end.offset, end.bytes);
  if (!status) return base::Error{status.error()};
  return restored;
}

}  // namespace sava::storage
