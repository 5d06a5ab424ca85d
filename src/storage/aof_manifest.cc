#include "storage/aof_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "storage/data_set.h"

namespace sava::storage {

namespace {

// With its end; what Redis reads at most.
constexpr size_t kMaxLine = 1024;
// Thousands of files.
constexpr uint64_t kMaxSize = 1 << 20;

bool NeedsQuotes(std::string_view name) {
  return name.empty() || std::any_of(name.begin(), name.end(), [](char c) {
           return c <= ' ' || c >= 0x7f || c == '\\' || c == '"' || c == '\'';
         });
}

base::Result<AofFile> ParseLine(std::string_view line) {
  const auto words = base::SplitArgs(line);
  // Other pairs may follow one day; they are passed over.
  if (!words || words->size() < 6 || words->size() % 2 != 0) {
    return base::Error{"Invalid AOF manifest file format"};
  }
  AofFile file;
  char kind = 0;
  for (size_t i = 0; i < words->size(); i += 2) {
    const std::string& value = (*words)[i + 1];
    if (base::EqualsNoCase((*words)[i], "file")) {
      if (value.find('/') != std::string::npos || value.find('\0') != std::string::npos ||
          value == "." || value == "..") {
        return base::Error{"File can't be a path, just a filename"};
      }
      file.name = value;
    } else if (base::EqualsNoCase((*words)[i], "seq")) {
      if (!base::ParseUint(value, &file.sequence) || file.sequence > AofManifest::kLastSequence) {
        file.sequence = 0;
      }
    } else if (base::EqualsNoCase((*words)[i], "type")) {
      kind = value.empty() ? '\0' : value[0];
    }
  }
  if (file.name.empty() || file.sequence == 0 || kind == 0) {
    return base::Error{"Invalid AOF manifest file format"};
  }
  if (kind != 'b' && kind != 'i' && kind != 'h') return base::Error{"Unknown AOF file type"};
  file.kind = static_cast<AofFile::Kind>(kind);
  return file;
}

// "# sava-data-set ID"; others are passed over.
void ReadComment(std::string_view line, AofManifest* manifest) {
  const auto words = base::SplitArgs(line);
  if (words && words->size() == 3 && (*words)[0] == "#" && (*words)[1] == kDataSetField &&
      IsDataSetId((*words)[2])) {
    manifest->data_set = (*words)[2];
  }
}

int Rank(AofFile::Kind kind) {
  return kind == AofFile::Kind::kBase ? 0 : (kind == AofFile::Kind::kIncrement ? 1 : 2);
}

}  // namespace

base::Result<AofManifest> AofManifest::Parse(std::string_view text) {
  if (text.empty()) return base::Error{"Found an empty AOF manifest"};
  AofManifest manifest;
  std::unordered_set<std::string> names;
  uint64_t last_increment = 0;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos || end >= kMaxLine) {
      return base::Error{"The AOF manifest file contains too long line"};
    }
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.starts_with('#')) {
      ReadComment(line, &manifest);
      continue;
    }
    const auto wrong = [&](std::string_view what) {
      return base::Error{
          fmt::format("Reading the manifest file, at line {}: '{}': {}", number, line, what)};
    };
    auto file = ParseLine(line);
    if (!file) return wrong(file.error());
    if (file->kind == AofFile::Kind::kBase && manifest.base() != nullptr) {
      return wrong("Found duplicate base file information");
    }
    if (file->kind == AofFile::Kind::kIncrement) {
      if (file->sequence <= last_increment) return wrong("Found a non-monotonic sequence number");
      last_increment = file->sequence;
    }
    if (!names.insert(file->name).second) return wrong("Found a file twice");
    manifest.files.push_back(std::move(*file));
  }
  std::stable_sort(manifest.files.begin(), manifest.files.end(),
                   [](const AofFile& a, const AofFile& b) { return Rank(a.kind) < Rank(b.kind); });
  return manifest;
}

base::Result<AofManifest> AofManifest::Read(FileSystem& files, const std::string& path) {
  const auto text = files.Read(path, 0, kMaxSize + 1);
  if (!text) return base::Error{text.error()};
  if (text.value().size() > kMaxSize) {
    return base::Error{fmt::format("{}: it has more than {} bytes", path, kMaxSize)};
  }
  auto manifest = Parse(text.value());
  if (!manifest) return base::Error{fmt::format("{}: {}", path, manifest.error())};
  return manifest;
}

std::string AofManifest::Text() const {
  // Scripts look for the base in the first line and for the log in use in the last.
  std::string comment;
  if (!data_set.empty()) comment = fmt::format("# {} {}\n", kDataSetField, data_set);
  std::string text;
  for (const AofFile& file : files) {
    if (&file == &files.back() && files.size() > 1) text += std::exchange(comment, {});
    text += fmt::format("file {} seq {} type {}\n",
                        NeedsQuotes(file.name) ? base::Quoted(file.name) : file.name, file.sequence,
                        static_cast<char>(file.kind));
  }
  return text + comment;
}

const AofFile* AofManifest::base() const {
  const auto at = std::find_if(files.begin(), files.end(), [](const AofFile& file) {
    return file.kind == AofFile::Kind::kBase;
  });
  return at == files.end() ? nullptr : &*at;
}

std::vector<AofFile> AofManifest::increments() const {
  std::vector<AofFile> found;
  std::copy_if(files.begin(), files.end(), std::back_inserter(found),
               [](const AofFile& file) { return file.kind == AofFile::Kind::kIncrement; });
  return found;
}

uint64_t AofManifest::highest(AofFile::Kind kind) const {
  uint64_t highest = 0;
  for (const AofFile& file : files) {
    if (file.kind == kind) highest = std::max(highest, file.sequence);
  }
  return highest;
}

std::string AofManifestName(std::string_view name) { return fmt::format("{}.manifest", name); }

std::string AofBaseName(std::string_view name, uint64_t sequence, bool rdb) {
  return fmt::format("{}.{}.base.{}", name, sequence, rdb ? "rdb" : "aof");
}

std::string AofIncrementName(std::string_view name, uint64_t sequence) {
  return fmt::format("{}.{}.incr.aof", name, sequence);
}

}  // namespace sava::storage
