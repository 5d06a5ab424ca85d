#include "replication/announce.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "commands/errors.h"
#include "replication/wire.h"

namespace sava::replication {

namespace {

constexpr size_t kLongestIp = 255;
constexpr int64_t kLastPort = 65535;
constexpr size_t kLongestVersion = 32;

void Capability(std::string_view word, engine::Announcement* announced) {
  if (base::EqualsNoCase(word, "eof")) announced->eof = true;
  if (base::EqualsNoCase(word, "psync2")) announced->psync2 = true;
  if (base::EqualsNoCase(word, kSavaCapability)) announced->sava = true;
}

// False at a word that is not known.
bool Filter(std::string_view words, engine::Announcement* announced) {
  announced->filtered = true;
  announced->keys = announced->functions = false;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    if (base::EqualsNoCase(word, "functions")) {
      announced->functions = true;
    } else if (!word.empty()) {
      return false;
    }
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return true;
}

base::Status AnnounceOne(std::string_view name, std::string_view value,
                         engine::Announcement* announced) {
  int64_t number = 0;
  if (base::EqualsNoCase(name, "listening-port")) {
    if (!base::ParseInt(value, &number) || number < 0 || number > kLastPort)
      return base::Error{std::string(commands::errors::kNotInteger)};
    announced->port = number;
  } else if (base::EqualsNoCase(name, "ip-address")) {
    if (value.size() > kLongestIp) {
      return base::Error{
          fmt::format("ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                      value.size())};
    }
    // It is shown in lines of fields.
    const auto odd = [](unsigned char c) { return c <= ' ' || c >= 127 || c == ','; };
    if (std::ranges::any_of(value, odd)) {
      return base::Error{"ERR REPLCONF ip-address is not an address"};
    }
    announced->ip = value;
  } else if (base::EqualsNoCase(name, "capa")) {
    Capability(value, announced);
  } else if (base::EqualsNoCase(name, "version")) {
    announced->version = value.substr(0, kLongestVersion);
  } else if (base::EqualsNoCase(name, "rdb-only")) {
    if (!base::ParseInt(value, &number))
      return base::Error{std::string(commands::errors::kNotInteger)};
    announced->rdb_only = number == 1;
  } else if (base::EqualsNoCase(name, "rdb-filter-only")) {
    if (!Filter(value, announced)) {
      return base::Error{fmt::format("ERR Unsupported rdb-filter-only option: {}", value)};
    }
  } else {
    return base::Error{fmt::format("ERR Unrecognized REPLCONF option: {}", name)};
  }
  return {};
}

}  // namespace

base::Status Announce(std::span<const std::string_view> words, engine::Announcement* announced) {
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (base::Status status = AnnounceOne(words[i], words[i + 1], announced); !status)
      return status;
  }
  return {};
}

}  // namespace sava::replication
