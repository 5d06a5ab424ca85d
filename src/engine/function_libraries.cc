#include "engine/function_libraries.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "commands/errors.h"
#include "types/value/save.h"

namespace sava::engine {

namespace {

// What a library begins with in a payload of FUNCTION DUMP, as in an RDB file.
constexpr uint8_t kFunctionRecord = 245;
constexpr uint8_t kFunctionRecordBefore7 = 246;

constexpr std::string_view kNamePrefix = "name=";

bool Is(std::string_view word, std::string_view name) { return base::EqualsNoCase(word, name); }

}  // namespace

std::string FunctionLibraries::NameOf(std::string_view code) {
  if (!code.starts_with("#!")) return {};
  const auto words = base::SplitArgs(code.substr(0, code.find('\n')));
  if (!words) return {};
  for (const std::string& word : *words) {
    if (Is(std::string_view(word).substr(0, kNamePrefix.size()), kNamePrefix)) {
      return word.substr(kNamePrefix.size());
    }
  }
  return {};
}

bool FunctionLibraries::HasLocked(std::string_view name) const {
  return std::ranges::any_of(libraries_, [&](const Library& one) { return one.name == name; });
}

void FunctionLibraries::AddLocked(std::string_view code) {
  std::string name = NameOf(code);
  // Without a name nothing can be said to be its older version.
  std::erase_if(libraries_, [&](const Library& one) {
    return name.empty() ? one.code == code : one.name == name;
  });
  libraries_.push_back({std::move(name), std::string(code)});
  generation_.fetch_add(1, std::memory_order_release);
}

void FunctionLibraries::Put(std::span<const std::string> codes, bool flush) {
  std::lock_guard lock(mutex_);
  if (flush) libraries_.clear();
  for (const std::string& code : codes) AddLocked(code);
  generation_.fetch_add(1, std::memory_order_release);
}

bool FunctionLibraries::Delete(std::string_view name) {
  std::lock_guard lock(mutex_);
  const size_t gone =
      std::erase_if(libraries_, [&](const Library& one) { return one.name == name; });
  generation_.fetch_add(1, std::memory_order_release);
  return gone > 0;
}

void FunctionLibraries::Add(std::string_view code) {
  std::lock_guard lock(mutex_);
  AddLocked(code);
}

void FunctionLibraries::Clear() {
  std::lock_guard lock(mutex_);
  libraries_.clear();
  generation_.fetch_add(1, std::memory_order_release);
}

base::Status FunctionLibraries::Load(std::span<const std::string_view> words) {
  const bool replace = words.size() == 4 && Is(words[2], "replace");
  if (words.size() != 3 && !replace) return base::Error{"ERR Unknown option given"};
  const std::string name = NameOf(words.back());
  if (name.empty()) return base::Error{"ERR Missing library metadata"};
  std::lock_guard lock(mutex_);
  if (!replace && HasLocked(name)) {
    return base::Error{fmt::format("ERR Library '{}' already exists", name)};
  }
  AddLocked(words.back());
  return {};
}

base::Status FunctionLibraries::Restore(std::span<const std::string_view> words) {
  const std::string_view policy = words.size() == 4 ? words[3] : "append";
  const bool flush = Is(policy, "flush");
  const bool replace = Is(policy, "replace");
  if (words.size() < 3 || words.size() > 4 || (!flush && !replace && !Is(policy, "append"))) {
    return base::Error{"ERR Wrong restore policy given"};
  }
  const auto codes = Unpack(words[2]);
  if (!codes) return base::Error{"ERR " + codes.error()};
  std::lock_guard lock(mutex_);
  for (const std::string& code : codes.value()) {
    if (flush || replace || !HasLocked(NameOf(code))) continue;
    return base::Error{fmt::format("ERR Library {} already exists", NameOf(code))};
  }
  if (flush) libraries_.clear();
  for (const std::string& code : codes.value()) AddLocked(code);
  generation_.fetch_add(1, std::memory_order_release);
  return {};
}

base::Result<std::vector<std::string>> FunctionLibraries::Unpack(std::string_view payload) {
  std::string_view body;
  if (!types::OpenDump(payload, &body)) {
    return base::Error{"DUMP payload version or checksum are wrong"};
  }
  std::vector<std::string> codes;
  types::Reader in(body);
  std::string scratch;
  while (in.remaining() > 0) {
    const uint8_t record = in.Byte();
    if (record == kFunctionRecordBefore7)
      return base::Error{"Pre-GA function format not supported"};
    if (record != kFunctionRecord) return base::Error{"given type is not a function"};
    const std::string_view code = in.StringView(&scratch);
    if (!in.ok()) return base::Error{"failed loading the given functions payload"};
    codes.emplace_back(code);
  }
  return codes;
}

std::string FunctionLibraries::Pack() const {
  std::string payload;
  types::Writer out(&payload);
  for (const std::string& code : sources()) {
    out.Byte(kFunctionRecord);
    out.String(code);
  }
  out.Flush();
  types::SealDump(&payload);
  return payload;
}

base::Status FunctionLibraries::Replay(std::span<const std::string_view> words) {
  const std::string_view what = words.size() > 1 ? words[1] : std::string_view();
  if (Is(what, "load")) return Load(words);
  if (Is(what, "restore")) return Restore(words);
  if (Is(what, "flush")) {
    Clear();
    return {};
  }
  if (!Is(what, "delete") || words.size() != 3) return base::Error{"ERR it changes no library"};
  std::lock_guard lock(mutex_);
  const size_t gone =
      std::erase_if(libraries_, [&](const Library& one) { return one.name == words[2]; });
  generation_.fetch_add(1, std::memory_order_release);
  if (gone == 0) return base::Error{std::string(commands::errors::kNoLibrary)};
  return {};
}

void FunctionLibraries::Save(snapshot::CutWriter& out) const {
  std::vector<std::string> codes;
  {
    std::lock_guard lock(mutex_);
    codes = cut_ ? *cut_ : SourcesLocked();
  }
  for (const std::string& code : codes) out.Function(code);
}

void FunctionLibraries::AtCut() {
  std::lock_guard lock(mutex_);
  cut_ = SourcesLocked();
}

bool FunctionLibraries::LoadFunction(std::string_view code) {
  Add(code);
  return true;
}

std::string FunctionLibraries::Loaded() const {
  const size_t number = count();
  if (number == 0) return {};
  return fmt::format("Function libraries: {} loaded. Each is compiled when it is first needed.",
                     number);
}

std::vector<std::string> FunctionLibraries::sources() const {
  std::lock_guard lock(mutex_);
  return SourcesLocked();
}

std::vector<std::string> FunctionLibraries::SourcesLocked() const {
  std::vector<std::string> codes;
  for (const Library& one : libraries_) codes.push_back(one.code);
  return codes;
}

size_t FunctionLibraries::count() const {
  std::lock_guard lock(mutex_);
  return libraries_.size();
}

size_t FunctionLibraries::bytes() const {
  std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const Library& one : libraries_) bytes += one.name.size() + one.code.size();
  return bytes;
}

}  // namespace sava::engine
